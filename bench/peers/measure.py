"""One system at a time: started, warmed, loaded with 1, 32 and 128 connections, and stopped.

A cell in which the processors were busy with something else is measured again, a few times at most; every try is kept, and
one that stays disturbed is marked. An answer that is wrong, or any of 400 or more, is an error of the whole cell: a system that
refuses work is not fast.
"""

import http.client
import json
import math
import shutil
import subprocess
import time

import payload
import systems
from install import HERE, say
from machine import Watch
from processes import Group

# Of the processors' time: to other machines on the same host, and to other programs on this one. The kernel's own threads,
# which write what was synced, count among the latter.
STOLEN_PERCENT_MAX = 3.0
OTHERS_PERCENT_MAX = 15.0
TRIES_MAX = 3
START_SECONDS_MAX = 60
# wrk and the fronts give up after 30 s; a job that took so long was not answered.
LATENCY_US_MAX = 29_000_000
# wrk drops what is under way when it stops. A cell is so many times as long as a request at least, so that this is little, but
# not longer than a minute.
REQUESTS_LONG = 20
CELL_SECONDS_MAX = 60


class Failed(Exception):
    """A system did not do what it was asked; the text says what, in the words of the table."""


def once(name, tools, extent, connections):
    """Starts a system, measures the cells, and gives what was seen."""
    directory = HERE / "run"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with Group(directory) as group:
        began = time.monotonic()
        running = systems.ALL[name].start(group, tools)
        wait_for_answer(group, running, began)
        start_ms = round((time.monotonic() - began) * 1000)
        say(f"{name}: first job answered after {start_ms} ms")
        cells = {str(count): cell(name, group, running, count, extent) for count in connections}
        seen = {"start_ms": start_ms, "memory_bytes": group.memory_bytes(), "cells": cells, "settings": running.settings()}
    shutil.rmtree(directory, ignore_errors=True)
    return seen


def wait_for_answer(group, running, began):
    """Asks until there is an answer; that nobody listens yet is no error, that a process has ended is."""
    while time.monotonic() - began < START_SECONDS_MAX:
        group.check()
        try:
            return check(running)
        except (OSError, ValueError, http.client.HTTPException) as error:
            last = error
        time.sleep(0.005)
    raise Failed(f"no answer within {START_SECONDS_MAX} s: {last}")


def check(running):
    if running.echo() != payload.INPUT:
        raise Failed("the answer is not what was sent")


def cell(name, group, running, connections, extent):
    """All tries of one cell; the last one counts."""
    tries = []
    while True:
        warm = load(group, running, connections, extent.warm_seconds)
        # What wrk left behind when it stopped is done before this is answered, and does not count against the cell.
        check(running)
        watch = Watch(group, group.directory)
        loaded = load(group, running, connections, long_enough(warm, extent.seconds))
        seen = {**loaded, **watch.seen()}
        check(running)
        seen["disturbed"] = disturbed(seen)
        tries.append(seen)
        say(f"{name}, {connections} connections: {described(seen)}")
        if not seen["disturbed"] or len(tries) == TRIES_MAX or not extent.may_repeat():
            return tries


def long_enough(warm, seconds):
    """How long a cell is measured, as the warming lets expect."""
    return min(CELL_SECONDS_MAX, max(seconds, math.ceil(REQUESTS_LONG * warm["p50_us"] / 1e6)))


def disturbed(seen):
    return seen["stolen_percent"] > STOLEN_PERCENT_MAX or seen["others_percent"] > OTHERS_PERCENT_MAX


def load(group, running, connections, seconds):
    command = [str(part) for part in running.load(connections, seconds)]
    done = subprocess.run(command, capture_output=True, timeout=seconds + 60, check=False)
    group.check()
    if done.returncode:
        raise Failed(f"the client ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()[:200]}")
    said = json.loads(done.stdout.decode().strip().splitlines()[-1])
    if said["bad"] or said.get("max_us", 0) > LATENCY_US_MAX:
        raise Failed(f"{said['bad']} of {said['requests']} requests failed at {connections} connections")
    if not said["requests"]:
        raise Failed(f"nothing was answered within {seconds:g} s at {connections} connections")
    return {**said, "rate": round(said["requests"] / said["seconds"], 1)}


def described(seen):
    rate, p50, p99 = seen["rate"], seen["p50_us"] / 1000, seen["p99_us"] / 1000
    noise = f"stolen {seen['stolen_percent']}%, others {seen['others_percent']}%, load {seen['load_before']}"
    mark = ", DISTURBED" if seen["disturbed"] else ""
    return f"{rate:.0f} jobs/s, p50 {p50:.2f} ms, p99 {p99:.2f} ms, {seen['flushes']} flushes; {noise}{mark}"
