#!/usr/bin/env python3
"""Makes the directory of a feature. Unless the run names one there is none yet: context.feature_id is null, and the
runner takes the feature from the path of the first file that fits (WF-10)."""
import json
import os
import sys

envelope = json.load(sys.stdin)
title = envelope["task"]["params"]["title"]
number = len(os.listdir("specs")) + 1 if os.path.isdir("specs") else 1
feature = envelope["context"]["feature_id"] or f"{number:03}-{title.lower().replace(' ', '-')}"
json.dump(
    {
        "success": True,
        "summary": f"Scaffolded {feature}.",
        "artifacts": [
            {"path": f"specs/{feature}/spec.md", "operation": "create", "content": f"# {title}\n"},
            {"path": f"specs/{feature}/.workflow/index.md", "operation": "create", "content": "Status: scaffolded\n"},
        ],
        "notes": [],
        "recommendation": "proceed",
    },
    sys.stdout,
)
