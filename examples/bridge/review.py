#!/usr/bin/env python3
"""Has a file reviewed and the review summed up. Take `ask` with you: it needs nothing but the standard library.

    crosspoint bridge run -- ./review.py FILE
"""

import datetime
import json
import os
import shutil
import sys
import uuid
from pathlib import Path

NEED_AGENT = 42
ANSWERS = Path(".agent-answers")
FIELDS = {"request_id", "version", "status", "response", "error_message", "error_type", "created_at",
          "duration_seconds", "metadata"}


class AgentFailed(Exception):
    """The agent did not do it: it failed or took too long. The program has its own idea of what to do then."""

    def __init__(self, message, error_type):
        super().__init__(message)
        self.error_type = error_type


class BadResponse(Exception):
    """The response file is not to be used. It is kept, for whoever wrote it."""


def ask(agent_name, prompt, context=None, phase=None, timeout_seconds=120):
    """Gives the agent's text, or leaves the request and ends the program with 42.

    The program is run again from its beginning once there is an answer; the same words are the same question, and what was answered before is
    answered at once. So the words must not change from run to run: no dates, no random numbers.
    """
    suffix = f"-phase{phase}" if phase else ""
    request, response = Path(f".agent-request{suffix}.json"), Path(f".agent-response{suffix}.json")
    request_id = str(uuid.uuid5(_run(), json.dumps([agent_name, prompt, context, phase])))
    kept, asked = ANSWERS / f"{request_id}.json", ANSWERS / f"{request_id}.asked"
    # Nobody has answered while the request is there. A response that is older than the question is left to whoever answers.
    if not kept.exists() and asked.exists() and response.exists() and not request.exists():
        _read(response, request_id)
        # Moved in one step: killed at any moment, we have it or the file is still there.
        os.replace(response, kept)
    if kept.exists():
        return _text(_read(kept, request_id))
    if request.exists() and json.loads(request.read_text("utf-8")).get("request_id") != request_id:
        raise SystemExit(f"{request} waits for somebody else")
    fields = {"request_id": request_id, "version": "1.0", "agent_name": agent_name, "prompt": prompt,
              "timeout_seconds": timeout_seconds, "created_at": datetime.datetime.now(datetime.timezone.utc).isoformat()}
    if context is not None:
        fields["context"] = context
    if phase is not None:
        fields["phase"] = phase
    asked.touch(mode=0o600)
    _write(request, json.dumps(fields, indent=2, ensure_ascii=False))
    raise SystemExit(NEED_AGENT)


def finish():
    """The program is done: what was answered is forgotten."""
    shutil.rmtree(ANSWERS, ignore_errors=True)


def _run():
    """The id of this run, which is the same each time the program is resumed."""
    file = ANSWERS / "run"
    if not file.exists():
        ANSWERS.mkdir(mode=0o700, exist_ok=True)
        _write(file, str(uuid.uuid4()))
    return uuid.UUID(file.read_text("utf-8").strip())


def _read(path, request_id):
    """The envelope. What is wrong with it is another mistake than what is wrong with the text inside."""
    try:
        envelope = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise BadResponse(f"{path} is not JSON: {error}") from error
    if not isinstance(envelope, dict) or FIELDS - envelope.keys():
        missing = ", ".join(sorted(FIELDS - envelope.keys())) if isinstance(envelope, dict) else "everything"
        raise BadResponse(f"{path} lacks {missing}")
    if envelope["request_id"] != request_id:
        raise BadResponse(f"{path} answers {envelope['request_id']}, and {request_id} was asked")
    if envelope["status"] == "success" and not isinstance(envelope["response"], str):
        raise BadResponse(f"{path}: `response` is no string; whoever writes it must json.dumps() it")
    return envelope


def _text(envelope):
    if envelope["status"] != "success":
        raise AgentFailed(envelope["error_message"], envelope["error_type"])
    return envelope["response"]


def _write(path, text):
    """Whole or not at all, and readable by nobody else."""
    new = path.with_name(f"{path.name}.new-{os.getpid()}")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def main():
    words = [word for word in sys.argv[1:] if word != "--resume"]
    if len(words) != 1:
        raise SystemExit("usage: review.py FILE")
    if "--resume" not in sys.argv:
        finish()
    file = words[0]
    try:
        text = ask("review", f"Review {file}. Answer with JSON.", context={"file": file, "text": Path(file).read_text("utf-8")})
        # The text inside is a document of its own.
        verdict = json.loads(text)["verdict"]
    except AgentFailed as failed:
        verdict = f"nobody could review it ({failed.error_type})"
    except (ValueError, KeyError):
        verdict = "the reviewer did not answer as it was asked to"
    print(f"{file}: {verdict}", file=sys.stderr)
    # An agent that prints its answer ends the line itself.
    print(ask("summarise", f"Sum it up in one sentence: {file} is {verdict}.").rstrip())
    finish()


if __name__ == "__main__":
    try:
        main()
    except (AgentFailed, BadResponse) as error:
        sys.exit(f"error: {error}")
