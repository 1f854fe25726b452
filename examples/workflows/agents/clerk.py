#!/usr/bin/env python3
"""An agent with four actions. An input envelope comes in on stdin, an output envelope goes out on stdout."""
import json
import sys
from pathlib import Path

envelope = json.load(sys.stdin)
action, path = envelope["task"]["action"], envelope["paths"]["letter"]
answers = [given["answer"] for given in envelope["task"]["params"].get("answers", [])]
letter = Path(path).read_text() if Path(path).exists() else ""
summary, notes, text, recommendation = f"Done: {action}.", [], None, "proceed"

if action == "draft":
    text = "Dear reader,\n" if not envelope.get("prior_context") else "Dear reader,\nall is well.\n"
elif action == "check" and "well" not in letter:
    summary, notes, recommendation = "The letter says nothing.", ["Say how things are."], "retry"
elif action == "ask" and not answers:
    summary, recommendation = "Who signs?", "escalate"
elif action == "ask":
    notes = answers
elif action == "sign":
    text = letter + envelope["prior_context"][0] + "\n"

operation = "update" if letter else "create"
artifacts = [{"path": path, "operation": operation, "content": text}] if text else []
json.dump(
    {"success": True, "summary": summary, "artifacts": artifacts, "notes": notes, "recommendation": recommendation},
    sys.stdout,
)
