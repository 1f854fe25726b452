#!/usr/bin/env bash
# The same without crosspoint: what a script does by itself to ask by files. It needs python3 for JSON, and runs under any driver of the contract.
#
#   crosspoint bridge run -- ./plain.sh FILE
set -euo pipefail
umask 077 # requests and answers are nobody else's business

# Answers are kept until the script is done. One that is not resumed begins anew.
answers=.agent-answers
[[ " $* " == *" --resume "* ]] || rm -rf "$answers"
mkdir -p "$answers"

# ask NAME AGENT < PROMPT: prints the answer to the question that is called NAME, or exits with 42. Behind its callers' `|| exit` nothing ends
# the script by itself, so each step that may fail says so.
ask() {
    local name=$1 agent=$2 id
    if [ -e "$answers/$name.text" ]; then
        cat "$answers/$name.text"
        return
    fi
    # The id is kept first: if we are killed after this, the same question is asked under the same id, and done once.
    if [ ! -e "$answers/$name.id" ]; then
        python3 -c 'import uuid; print(uuid.uuid4())' > "$answers/$name.id.new" || exit
        mv "$answers/$name.id.new" "$answers/$name.id" || exit
    fi
    id=$(< "$answers/$name.id") || exit
    # While the request is there, nobody has answered it.
    if [ ! -e .agent-request.json ] && [ -e .agent-response.json ] && [ -e "$answers/$name.asked" ]; then
        take "$id" > "$answers/$name.text.new" || exit
        # Kept before the response is gone: killed in between, we have it.
        mv "$answers/$name.text.new" "$answers/$name.text" || exit
        rm .agent-response.json || exit
        cat "$answers/$name.text"
        return
    fi
    # Written whole under another name, then renamed: whoever looks sees all of it or nothing.
    request "$id" "$agent" > .agent-request.json.new || exit
    : > "$answers/$name.asked" || exit
    mv .agent-request.json.new .agent-request.json || exit
    exit 42
}

# request ID AGENT < PROMPT: prints a request. Everybody can see the words of a command, and the system allows few of them: a prompt is none.
request() {
    python3 -c '
import datetime, json, os, sys
request_id, agent_name = sys.argv[1:]
prompt = open(0, encoding="utf-8").read().rstrip("\n")
now = datetime.datetime.now(datetime.timezone.utc).isoformat()
json.dump({"request_id": request_id, "version": "1.0", "agent_name": agent_name, "prompt": prompt,
           "timeout_seconds": 120, "created_at": now}, sys.stdout, indent=2, ensure_ascii=False)
sys.stdout.flush()
os.fsync(1)' "$@"
}

# take ID: prints the text of the response if it is the one to this request. 1: the agent failed; 2: the file is not to be used, and stays.
take() {
    python3 -c '
import json, sys
try:
    with open(".agent-response.json", encoding="utf-8") as file:
        response = json.load(file)
    found, status, text = response["request_id"], response["status"], response["response"]
except (ValueError, KeyError, TypeError) as error:
    sys.exit(print(f".agent-response.json is malformed: {error!r}", file=sys.stderr) or 2)
if found != sys.argv[1]:
    sys.exit(print(f".agent-response.json answers {found}, and {sys.argv[1]} was asked", file=sys.stderr) or 2)
if status == "success" and not isinstance(text, str):
    sys.exit(print("`response` is no string: JSON-encode it", file=sys.stderr) or 2)
if status != "success":
    sys.exit(print(response["error_message"], file=sys.stderr) or 1)
print(text)' "$1"
}

file=${1:?usage: plain.sh FILE}
review=$(ask review review <<< "Review $file: $(cat -- "$file")") || exit
summary=$(ask summary summarise <<< "Sum this review up: $review") || exit
echo "$summary"
rm -r "$answers"
