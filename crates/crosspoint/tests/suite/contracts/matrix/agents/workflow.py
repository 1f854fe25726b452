"""An agent of the workflow contract that is a program: the parameters say what it does."""

import json
import os
import signal
import sys
import time

envelope = json.load(sys.stdin)
given = envelope["task"]["params"]
cell = given["cell"]


def note(what, **more):
    line = {"what": what, "id": os.environ["CROSSPOINT_JOB_ID"], **more}
    with open("seen/" + cell, "a") as seen:
        seen.write(json.dumps(line) + "\n")


def until_released():
    while not os.path.exists("go/" + cell):
        time.sleep(0.01)


def stopped(*_):
    note("told")
    sys.exit(1)


# Before it is seen, so that whoever has seen it may stop it.
signal.signal(signal.SIGTERM, stopped)
note("new", trace=os.environ["TRACEPARENT"], document=envelope)

wanted = given["do"]
outputs = given
output = {"success": True, "summary": "", "artifacts": [], "recommendation": "proceed"}
if wanted in ("progress", "die"):
    until_released()
if wanted == "die":
    os.kill(os.getpid(), signal.SIGKILL)
elif wanted in ("hold", "silent"):
    time.sleep(600)
elif wanted == "big":
    outputs = {"blob": "ä€x" * 350_000}
elif wanted == "artifacts":
    output["artifacts"] = [{"path": "report.md", "operation": "create", "content": "# Report"}]
elif wanted == "own":
    output["own"] = {"deep": [1, {"ä/~": None}], "text": "\U0001f600 \"quoted\""}
    output["notes"] = ["a little salty"]
elif wanted == "fail":
    output = {"success": False, "summary": given["message"], "artifacts": [], "recommendation": "escalate"}
elif wanted == "raw":
    output["raw"] = "@raw"
elif wanted == "flood":
    print("x" * 100_000)
if output["success"] and wanted != "break":
    output["summary"] = json.dumps(outputs, ensure_ascii=False, separators=(",", ":"))
elif wanted == "break":
    del output["summary"]
printed = json.dumps(output, ensure_ascii=False).replace('"@raw"', given.get("raw", ""))
sys.stdout.buffer.write(printed.encode())
