"""Restate: one node with its default settings, and a service of its Rust SDK in another process."""

import subprocess

import install
import payload
from processes import free_port
from systems.running import call, locked, over_http, version

TITLE = "Restate"
# Where its log is, whether that is synced, and into how many it is divided.
SETTINGS = ("bifrost.default-provider", "log-server.rocksdb-disable-wal-fsync", "default-num-partitions")


def prepare():
    server, service = install.restate_server(), install.peer_program("restate-echo")
    return {"server": server, "service": service, "versions": [version(server, "--version"), locked("restate-sdk", "restate-echo")]}


def start(group, tools):
    ingress, admin, node, service = (free_port() for _ in range(4))
    environment = {
        "RESTATE_INGRESS__BIND_PORT": str(ingress),
        "RESTATE_ADMIN__BIND_PORT": str(admin),
        "RESTATE_LOG_FILTER": "warn",
        "RESTATE_DISABLE_TELEMETRY": "true",
    }
    options = ["--bind-ip", "127.0.0.1", "--bind-port", node, "--listen-mode", "tcp", "--node-name", "bench"]
    group.start("service", [tools["service"], f"127.0.0.1:{service}"])
    group.start("server", [tools["server"], "--no-logo", *options, "--base-dir", group.directory / "data"], **environment)
    running = over_http(group, ingress, "/Echo/echo", payload.BODY, lambda: settings(tools["server"], environment))
    running.echo = registered(running.echo, admin, f"http://127.0.0.1:{service}")
    return running


def registered(echo, admin, uri):
    """Before the first job the server must be told where the service is; that is part of the start."""
    told = []

    def echo_of_registered():
        if not told:
            told.append(call(admin, "/deployments", payload.compact({"uri": uri})))
        return echo()

    return echo_of_registered


def settings(server, environment):
    """As the server itself understands them, by `table.key` or `key`."""
    command = ["env", *[f"{name}={value}" for name, value in environment.items()], str(server), "--dump-config"]
    dump = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()
    return {name: setting(dump, *name.rpartition(".")[::2]) for name in SETTINGS}


def setting(dump, table, key):
    text = dump.partition(f"\n[{table}]\n")[2] if table else dump
    return next((line.split(" = ")[1].strip('"') for line in text.splitlines() if line.startswith(f"{key} = ")), "unknown")
