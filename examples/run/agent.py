#!/usr/bin/env python3
"""A run agent with nothing but the standard library: python3 agent.py --port 8000"""

import argparse
import contextlib
import json
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY_BYTES_MAX = 16 * 1024 * 1024


class Failed(Exception):
    """Ends a task that comes to nothing; its text goes to the caller, so there is no content in it."""


def word_count(inputs):
    text = text_of(inputs)
    yield 50, "Count the words"
    return {"words": len(text.split()), "characters": len(text)}


def summarise_lines(inputs):
    lines = [line.split() for line in text_of(inputs).splitlines() if line.strip()]
    summary = []
    for number, words in enumerate(lines):
        if number % 1000 == 0:
            yield 100 * number // len(lines), f"Line {number + 1} of {len(lines)}"
        summary.append(" ".join(words[:5]) + (" ..." if len(words) > 5 else ""))
    return {"lines": summary}


def text_of(inputs):
    if not isinstance(inputs.get("text"), str):
        raise Failed("inputs.text must be a string")
    return inputs["text"]


# What this agent takes. A task yields how far it is, and returns its outputs.
TASKS = {"WORD_COUNT": word_count, "SUMMARISE_LINES": summarise_lines}


def events(run):
    """What happens in a run: started, progress as it comes, and exactly one final, however the task ends."""
    run_id, began = {"request_id": run["request_id"], "task_type": run["task_type"]}, time.monotonic()
    yield "started", run_id
    outputs, error = {}, None
    task = TASKS[run["task_type"]](run.get("inputs", {}))
    try:
        while True:
            percent, step = next(task)
            yield "progress", {**run_id, "percent": percent, "step": step}
    except StopIteration as end:
        outputs = end.value or {}
    except Failed as failed:
        error = "TASK_FAILED", str(failed)
    except Exception as bug:  # Its text may have content in it, so that only its kind is told.
        error = "TASK_FAILED", f"the task ended with {type(bug).__name__}"
    final = {**run_id, **answer(run["request_id"], outputs, error)}
    log(**run_id, status=final["status"], duration_ms=round((time.monotonic() - began) * 1000))
    yield "final", final


def answer(request_id, outputs, error=None, warnings=()):
    """How a run ended: well, unless there is an error, which is a code and a text."""
    ended = {"status": "error" if error else "ok", "ok": not error, "request_id": request_id, "outputs": outputs}
    if error:
        ended["error"] = {"code": error[0], "message": error[1]}
    return {**ended, "artifacts": [], "provenance": {}, "usage": {}, "warnings": list(warnings)}


def refusal(run, code, message):
    """The answer to what is no run of ours; it names the request, if that could be read."""
    if isinstance(run, dict) and is_name(run.get("request_id")):
        return answer(run["request_id"], {}, (code, message))
    return answer(str(uuid.uuid4()), {}, (code, message), ["request_id is generated: none could be read"])


def is_name(value):
    """Whether it is a string with something in it that can be echoed; JSON can escape half a character."""
    return isinstance(value, str) and value != "" and not any("\ud800" <= char <= "\udfff" for char in value)


def mistake_in(run):
    """Why we cannot do this run, as a code and a text; None if we can."""
    if not isinstance(run, dict):
        return "VALIDATION_ERROR", "the body must be a JSON object"
    for name in ("request_id", "task_type"):
        if not is_name(run.get(name)):
            return "VALIDATION_ERROR", f"{name} must be a string that is not empty"
    if not isinstance(run.get("inputs", {}), dict):
        return "VALIDATION_ERROR", "inputs must be an object"
    if run["task_type"] not in TASKS:
        return "UNSUPPORTED_TASK_TYPE", "this agent takes " + " and ".join(TASKS)
    return None


def sse(name, data):
    """One event on the wire. JSON on one line has no line breaks that could end it early."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # so that connections are used again
    disable_nagle_algorithm = True  # so that an event goes out when it happens

    def do_GET(self):
        health = {"/health": "ok", "/health/ready": "ready"}.get(self.path)
        self.give(200 if health else 404, {"status": health or "no such path"})

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True  # What we leave unread would be taken for the next request.
            wanted = f"a body says its length, at most {BODY_BYTES_MAX} bytes"
            return self.give(413 if length.isdecimal() else 411, refusal(None, "VALIDATION_ERROR", wanted))
        try:
            run = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            run = None
        mistake = mistake_in(run)
        if self.path not in ("/agents/run/sync", "/agents/run/stream"):
            self.give(404, refusal(run, "VALIDATION_ERROR", "no such path"))
        elif mistake:
            self.give(400, refusal(run, *mistake))
        elif self.path == "/agents/run/stream":
            self.stream(events(run))
        else:
            *_, (_, final) = events(run)
            self.give(200, final)  # Also of a task that failed: the run was as it should be.

    def give(self, status, document):
        body = json.dumps(document).encode()
        self.begin(status, "application/json", ("Content-Length", str(len(body))))
        self.wfile.write(body)

    def stream(self, told):
        self.begin(200, "text/event-stream", ("Transfer-Encoding", "chunked"))
        for name, data in told:
            event = sse(name, data)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")

    def begin(self, status, content_type, framing):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header(*framing)
        self.end_headers()

    def log_message(self, *_):
        """Says nothing: runs are logged where they end."""


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *_):
        """Callers leave when they like; and a traceback may have content in it, so the kind of error is enough."""
        log(error=sys.exc_info()[0].__name__)


def log(**what):
    """Ids and figures, never inputs or outputs; as JSON, so that no id can break the line."""
    print(json.dumps(what), file=sys.stderr, flush=True)


def port(about):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--port", type=int, default=8000, help="0 is any that is free")
    return parser.parse_args().port


def main():
    server = Server(("127.0.0.1", port(__doc__)), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
