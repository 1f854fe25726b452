"""Celery with Redis as broker and for the results, synced at every write: a worker with as many processes as there are cores, and a
front that answers HTTP."""

import subprocess

import install
import payload
import versions
from install import SOURCES
from processes import free_port
from systems.running import over_http, version

TITLE = "Celery on Redis"
DURABLE = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
QUIET = ["--loglevel", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"]


def prepare():
    redis = install.debian("redis-server")
    told = next(word[2:] for word in version(redis, "--version").split() if word.startswith("v="))
    return {
        "redis": redis,
        "programs": install.python(tuple(versions.CELERY)),
        "versions": [*versions.CELERY, f"Redis {told}"],
    }


def start(group, tools):
    redis, port = free_port(), free_port()
    environment = {"REDIS_URL": f"redis://127.0.0.1:{redis}/0", "PYTHONPATH": str(SOURCES / "apps")}
    programs = tools["programs"]
    group.start("redis", [tools["redis"], "--port", redis, "--bind", "127.0.0.1", "--dir", group.directory, *DURABLE])
    group.start("worker", [programs / "celery", "-A", "celery_echo", "worker", *QUIET], **environment)
    group.start("front", [programs / "python", SOURCES / "apps" / "celery_front.py", port], **environment)
    return over_http(group, port, "/echo", payload.BODY, lambda: settings(redis))


def settings(redis):
    """Redis is asked; that tasks are acknowledged late stands in the app."""
    command = ["redis-cli", "-p", str(redis), "config", "get"]
    names = ("appendonly", "appendfsync")
    asked = [subprocess.run([*command, name], stdout=subprocess.PIPE, check=True).stdout.decode() for name in names]
    return dict(told.split() for told in asked)
