#!/usr/bin/env bash
# A caller of the message door, with curl: call.sh [SERVER]
# The agent beside it must run, because no other takes this work.
set -euo pipefail
server=${1:-http://127.0.0.1:7420}
here=$(dirname "$0")

say() { printf '\n== %s\n' "$*"; }
new_id() { python3 -c 'import uuid; print(uuid.uuid4())'; }

# Sends the message on stdin.
send() {
  curl --silent --show-error --fail-with-body --header 'content-type: application/json' --data @- "$@" && echo
}

# Writes a message with these ids: message REQUEST_ID TASK_ID TYPE PAYLOAD
message() {
  cat <<JSON
{"protocol_version": "1.0", "message_id": "$(new_id)", "from_agent": "orchestrator", "to_agent": "infra",
 "timestamp": "$(date -u +%Y-%m-%dT%H:%M:%SZ)", "trace_id": "$2", "request_id": "$1", "type": "$3", "payload": $4}
JSON
}

say 'A request that is answered when the work has ended'
first=$(send "$server/api/agent/message?wait=60" < "$here/request.json")
echo "$first"

say 'The same request again: the work is not repeated, its result is'
again=$(send "$server/api/agent/message?wait=60" < "$here/request.json")
[ "$again" = "$first" ] || { echo "another answer: $again"; exit 1; }
echo 'the same answer, byte for byte'

say 'A request that is not waited for: accepted'
request=$(new_id) task=$(new_id)
payload='{"task_id": "'$task'", "work_type": "run_playbook", "parameters": {"steps": 1000}, "hints": {}}'
message "$request" "$task" work_request "$payload" | send "$server/api/agent/message"

say 'An error 5901 with its request_id: the work is cancelled'
payload='{"error_code": 5901, "error_message": "No longer wanted", "error_context": {"task_id": "'$task'"}}'
message "$request" "$task" error "$payload" | send "$server/api/agent/message"
