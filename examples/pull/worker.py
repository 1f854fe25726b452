#!/usr/bin/env python3
"""An agent of your own, without our program: python3 worker.py http://127.0.0.1:7420 shouter shout"""

import http.client
import json
import sys
import time
import urllib.error
import urllib.request
import uuid

base, name, work = sys.argv[1:4]
session = str(uuid.uuid4())
joined = False
done = []  # what has not been acknowledged yet


def call(what, **body):
    data = json.dumps({"session": session, **body}).encode()
    with urllib.request.urlopen(f"{base}/api/v1/agents/{name}/{what}", data, timeout=60) as answer:
        return json.load(answer)


def shout(job):
    given = job["input"]
    text = given.get("text", "") if isinstance(given, dict) else given
    return {"text": str(text).upper()}


while True:
    try:
        if not joined:
            call("join", work=[work], concurrency=1)
            joined = True
        if done:
            call("report", reports=done)
            done = []
        for job in call("take?wait=5", room=1, holding=[])["jobs"]:
            done.append({"id": job["id"], "attempt": job["attempt"], "result": {"outputs": shout(job)}})
    except urllib.error.HTTPError as error:
        if error.code == 409 and joined:  # the server does not know us any more
            joined = False
        elif error.code >= 500 or error.code in (408, 429):  # not now: come again
            time.sleep(1)
        else:
            sys.exit(error.read().decode())
    except (OSError, ValueError, http.client.HTTPException):  # it is not there, or went away while it spoke
        time.sleep(1)
