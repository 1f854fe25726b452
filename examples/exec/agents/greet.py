"""Greets whoever the input names, and asks for a name where it names nobody."""

import json
import sys


def say(**what):
    """Says something to crosspoint, and not to whoever reads the output."""
    print("@crosspoint", json.dumps(what), flush=True)


def main():
    name = json.loads(sys.stdin.readline()).get("name")
    if name is None:
        say(ask={"prompt": "Whom shall I greet?", "schema": {"type": "string"}})
        name = json.loads(sys.stdin.readline())
    if not isinstance(name, str):
        sys.exit("a name is a text")  # To stderr, and exit code 1: the job fails, and says so.
    say(progress=90, step="Greet")
    greeting = f"Hello, {name}!"
    say(artifact={"name": "greeting.txt", "type": "text/plain", "content": greeting + "\n"})
    say(outputs={"greeting": greeting})


main()
