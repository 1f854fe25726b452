"""What all systems have in common: how one that runs is asked, and how it is loaded."""

import dataclasses
import http.client
import json
import subprocess
import typing
import uuid

import install
from install import SOURCES


@dataclasses.dataclass
class Running:
    """A system that has been started."""

    # One job, and what came back of the payload; raises while nobody answers.
    echo: typing.Callable[[], object]
    # The command that loads it, for (connections, seconds); the last line that it prints is JSON.
    load: typing.Callable[[int, float], list]
    # What is in force, read from the system itself where it tells.
    settings: typing.Callable[[], dict]


def version(*command):
    """The first line of what a program says about its version."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode().strip().splitlines()[0].strip()


def locked(name, lock):
    """The version of a crate in the lock file of one of the peers' programs."""
    text = (SOURCES / lock / "Cargo.lock").read_text()
    return name + " " + text.partition(f'name = "{name}"\nversion = "')[2].partition('"')[0]


def call(port, path, body, key=None):
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"content-type": "application/json", **({"idempotency-key": key} if key else {})}
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if not 200 <= answer.status < 300:
        raise ConnectionError(f"{path} answered {answer.status}")
    return json.loads(text)


def over_http(group, port, path, body, settings, outputs=lambda answer: answer):
    """A system that wrk can load; `outputs` finds the payload in an answer."""
    file = group.directory / "body.json"
    file.write_bytes(body)

    def load(connections, seconds):
        options = ["-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", SOURCES / "echo.lua"]
        return [install.debian("wrk"), *options, f"http://127.0.0.1:{port}", "--", path, file, uuid.uuid4()]

    def echo():
        return outputs(call(port, path, body, str(uuid.uuid4())))

    return Running(echo, load, settings)
