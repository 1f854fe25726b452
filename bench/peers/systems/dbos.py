"""DBOS in Python with SQLite as its system database: a workflow for each request, in the process that answers."""

import json
import urllib.request

import install
import payload
import versions
from install import SOURCES
from processes import free_port
from systems.running import over_http

TITLE = "DBOS on SQLite"
SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


def prepare():
    return {"programs": install.python(tuple(versions.DBOS)), "versions": versions.DBOS}


def start(group, tools):
    port = free_port()
    app = SOURCES / "apps" / "dbos_echo.py"
    group.start("dbos", [tools["programs"] / "python", app, port, group.directory / "dbos.sqlite"])
    return over_http(group, port, "/echo", payload.BODY, lambda: settings(port))


def settings(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/settings", timeout=10) as answer:
        told = json.load(answer)
    return {**told, "synchronous": SYNCHRONOUS[told["synchronous"]]}
