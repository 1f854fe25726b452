#!/usr/bin/env bash
# A caller of the run door, with curl: call.sh [SERVER]
set -euo pipefail
server=${1:-http://127.0.0.1:7420}
# A request id names one run: the same id again is the same run again.
id=example-$(date +%s)-$$

say() { printf '\n== %s\n' "$*"; }

# Posts a request to one of the door's two endpoints; events are shown as they come.
run() {
  local endpoint=$1 request=$2
  shift 2
  curl --silent --show-error --no-buffer --header 'content-type: application/json' --data "$request" "$@" \
    "$server/agents/run/$endpoint"
}

say 'A run that is answered when it has ended'
request='{"request_id": "'$id'-count", "task_type": "WORD_COUNT", "inputs": {"text": "any caller meets any agent"}}'
first=$(run sync "$request" --fail-with-body)
echo "$first"

say 'The same request again: the run is not repeated, its result is'
again=$(run sync "$request" --fail-with-body)
[ "$again" = "$first" ] || { echo "another answer: $again"; exit 1; }
echo 'the same answer, byte for byte'

say 'A run that is followed: started, progress as it comes, one final'
request='{"request_id": "'$id'-lines", "task_type": "SUMMARISE_LINES",
  "inputs": {"text": "the first line is rather a long one\nthe second is not"}}'
run stream "$request" --fail-with-body

say 'A task type that no agent takes: refused'
request='{"request_id": "'$id'-nobody", "task_type": "NOBODY_DOES_THIS"}'
refused=$(run sync "$request" --write-out '\nHTTP %{http_code}')
echo "$refused"
[[ $refused == *$'\nHTTP 400' ]] || { echo 'it should have been a 400'; exit 1; }
