#!/usr/bin/env python3
"""One agent with two actions: `validate` looks for missing sections, `classify_gaps` for questions that are open."""
import json
import sys
from pathlib import Path

envelope = json.load(sys.stdin)
paths, task = envelope["paths"], envelope["task"]
lines = Path(paths["spec"]).read_text().splitlines()
missing = [section for section in task["params"].get("sections", []) if f"## {section}" not in lines]
questions = [line.removeprefix("OPEN: ") for line in lines if line.startswith("OPEN: ")]

artifacts = []
if task["action"] == "validate":
    summary = f"Validated the specification: missing sections: {len(missing)}."
    notes = [f"Missing section: {section}" for section in missing]
    recommendation = "retry" if missing else "proceed"
elif questions:
    summary, notes, recommendation = questions[0], ["The specification leaves this open."], "escalate"
else:
    summary, notes, recommendation = "Nothing is open.", [], "proceed"
    artifacts = [{"path": paths["index"], "operation": "update", "content": "Status: specified\n"}]

json.dump(
    {
        "success": True,
        "summary": summary,
        "artifacts": artifacts,
        "notes": notes,
        "recommendation": recommendation,
    },
    sys.stdout,
)
