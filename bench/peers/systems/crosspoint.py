"""Crosspoint with the built-in echo: two commits a job, each synced, shared with all that wait at that moment."""

import contextlib
import sqlite3
import urllib.request

import install
import payload
from processes import free_port
from systems.running import over_http, version

TITLE = "Crosspoint, built-in echo"
JOB = payload.compact({"work": "echo", "input": payload.INPUT})


def prepare():
    program = install.crosspoint()
    return {"program": program, "versions": [version(program, "--version")]}


def start(group, tools):
    return serve(group, tools, free_port())


def serve(group, tools, port, *more):
    started(group, tools, port, *more)
    return asked(group, port, "/api/v1/jobs?wait=30", JOB, outputs)


def started(group, tools, port, *more):
    data = group.directory / "data"
    # One line a request and a transition would be measured too; the others are as quiet.
    options = ["--listen", f"127.0.0.1:{port}", "--log", "warn", "--data", data, *more]
    group.start("serve", [tools["program"], "serve", *options])


def asked(group, port, path, body, outputs):
    """At one of its doors. An answer of 200 may say that the job failed, and wrk looks at none: so the server is asked whether any did."""
    running = over_http(group, port, path, body, lambda: journal(group.directory / "data" / "jobs.db"), outputs)
    echo = running.echo
    running.echo = lambda: None if failed(port) else echo()
    return running


def failed(port):
    """Whether any job has, since the start."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return any(line.startswith("crosspoint_jobs_ended_total{") and 'outcome="failed"' in line for line in lines)


def outputs(job):
    return (job.get("outcome") or {}).get("outputs")


def journal(path):
    """What the file itself tells; how it is synced belongs to the server's connection, and shows in the flushes."""
    with contextlib.closing(sqlite3.connect(path)) as file:
        return {"journal_mode": file.execute("PRAGMA journal_mode").fetchone()[0]}
