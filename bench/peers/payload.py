"""What every system is given, and must give back: 1,000 bytes of JSON."""

import json

BYTES = 1000


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


INPUT = {"message": "x" * (BYTES - len(compact({"message": ""})))}
BODY = compact(INPUT)
assert len(BODY) == BYTES
