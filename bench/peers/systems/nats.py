"""NATS JetStream: messages appended to a stream in a file, each synced before it is acknowledged.

No job: nobody does any work, and there is no result. It shows what mere logging costs, and what one sync for each message
means.
"""

import json
import subprocess
import urllib.request

import install
import payload
import versions
from processes import free_port
from systems.running import Running, locked, version

TITLE = "NATS JetStream, append only"
CONFIG = """listen: "127.0.0.1:{port}"
http: "127.0.0.1:{monitor}"
jetstream {{ store_dir: "{directory}", sync_interval: always }}
"""


def prepare():
    server = install.python(tuple(versions.NATS_SERVER)) / "nats-server"
    client = install.peer_program("nats-append")
    return {"server": server, "client": client, "versions": [version(server, "--version"), locked("async-nats", "nats-append")]}


def start(group, tools):
    port, monitor = free_port(), free_port()
    config, body = group.directory / "nats.conf", group.directory / "body.json"
    body.write_bytes(payload.BODY)
    config.write_text(CONFIG.format(port=port, monitor=monitor, directory=group.directory / "data"))
    group.start("server", [tools["server"], "--config", config])

    def load(connections, seconds):
        return [tools["client"], f"nats://127.0.0.1:{port}", connections, seconds, body]

    return Running(lambda: append(load(1, 0.2)), load, lambda: settings(monitor))


def append(command):
    """Something was appended, and the stream holds all that was acknowledged."""
    done = subprocess.run([str(part) for part in command], capture_output=True, check=False, timeout=30)
    if done.returncode:
        raise ConnectionError(done.stderr.decode().strip())
    said = json.loads(done.stdout)
    return payload.INPUT if said["requests"] and not said["bad"] else None


def settings(monitor):
    with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/jsz", timeout=10) as answer:
        config = json.load(answer)["config"]
    return {"sync_always": str(config.get("sync_always", False)).lower()}
