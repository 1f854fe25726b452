#!/usr/bin/env python3
"""An agent of the workflow contract that is a program: an envelope comes in on stdin, an envelope goes out on stdout."""
import json
import sys
from pathlib import Path

envelope = json.load(sys.stdin)
spec = envelope["paths"].get("spec", "spec.md")
print("validating", spec, file=sys.stderr)  # stdout is for the envelope alone

text = Path(spec).read_text() if Path(spec).exists() else ""
gaps = [line for line in text.splitlines() if "TODO" in line]
report = "# Gaps\n\n" + "".join(f"- {gap}\n" for gap in gaps)
json.dump(
    {
        "success": bool(text),
        "summary": f"Validated {spec}. Found {len(gaps)} gaps." if text else f"There is no {spec}.",
        "artifacts": [{"path": "gaps.md", "operation": "create", "content": report}] if gaps else [],
        "notes": [f"Round {envelope['context']['iteration']}: {len(gaps)} gaps"],
        "recommendation": "proceed" if text and not gaps else "retry" if text else "escalate",
    },
    sys.stdout,
)
