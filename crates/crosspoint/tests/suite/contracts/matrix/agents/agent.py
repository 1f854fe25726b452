"""An agent that is a program: its input says what it does."""

import json
import os
import signal
import sys
import time

given = json.loads(sys.stdin.readline())
cell = given["cell"]


def note(what, **more):
    line = {"what": what, "id": os.environ["CROSSPOINT_JOB_ID"], **more}
    with open("seen/" + cell, "a") as seen:
        seen.write(json.dumps(line) + "\n")


def say(what):
    line = "@crosspoint " + json.dumps(what, ensure_ascii=False) + "\n"
    sys.stdout.buffer.write(line.encode())
    sys.stdout.buffer.flush()


def until_released():
    while not os.path.exists("go/" + cell):
        time.sleep(0.01)


def stopped(*_):
    note("told")
    sys.exit(1)


# Before it is seen, so that whoever has seen it may stop it.
signal.signal(signal.SIGTERM, stopped)
environment = os.environ
note(
    "new",
    request_id=environment["CROSSPOINT_REQUEST_ID"],
    work=environment["CROSSPOINT_WORK"],
    trace=environment["TRACEPARENT"],
    input=given,
)

wanted = given["do"]
outputs = given
if wanted in ("progress", "die", "hold"):
    say({"progress": 40, "step": "Half-way"})
if wanted in ("progress", "die"):
    until_released()
if wanted == "die":
    os.kill(os.getpid(), signal.SIGKILL)
elif wanted in ("hold", "silent"):
    time.sleep(600)
elif wanted == "big":
    outputs = {"blob": "ä€x" * 350_000}
elif wanted == "artifacts":
    say({"artifact": {"name": "report.md", "type": "text/markdown", "content": "# Report"}})
elif wanted == "ask":
    say({"ask": {"prompt": "Which pan?", "schema": {"type": "string"}}})
    outputs = {"answer": json.loads(sys.stdin.readline())}
elif wanted == "fail":
    print(given["message"], file=sys.stderr)
    sys.exit(3)
elif wanted == "raw":
    print(given["raw"])
    sys.exit(0)
elif wanted == "flood":
    print("x" * 100_000)
say({"outputs": outputs})
