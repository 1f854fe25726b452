#!/usr/bin/env bash
# A caller of the task door, with curl: call.sh [SERVER]
# The work is that of the sample agents, which a server has that is started without a configuration.
set -euo pipefail
server=${1:-http://127.0.0.1:7420}

say() { printf '\n== %s\n' "$*"; }
new_id() { python3 -c 'import uuid; print(uuid.uuid4())'; }

call() { curl --silent --show-error --fail-with-body --no-buffer "$@" && echo; }
get() { call "$server$1"; }
post() { call --header 'content-type: application/json' --data "$2" "$server$1"; }

# One member of the JSON document on stdin.
member() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

# Looks at a task until it is in one of these states, and says each state on the way. It ends with the whole task.
poll() {
  local id=$1 wanted=$2 task status='' before
  until [[ " $wanted " == *" ${status:-none} "* ]]; do
    before=$status
    task=$(get "/tasks/$id")
    status=$(member status <<< "$task")
    [ "$status" = "$before" ] && sleep 0.2 || echo "$status"
  done
  echo "$task"
}

say 'Simple: hand it over, and wait for the result'
post '/tasks?wait=30' '{"id": "'"$(new_id)"'", "type": "echo", "payload": {"message": "hello"}}'

say 'Polling: hand it over, and look until it has ended'
id=$(new_id)
post /tasks '{"id": "'"$id"'", "type": "slow_echo", "payload": {"message": "hello"}}'
poll "$id" 'completed failed cancelled'

say 'Input required: it asks, and goes on with the answer'
id=$(new_id)
post /tasks '{"id": "'"$id"'", "type": "ask", "payload": {"prompt": "Ship it?"}}'
poll "$id" input_required
post "/tasks/$id/input" '{"input": "yes"}'
get "/tasks/$id?wait=30"

say 'Cancel: it ends at once, and stays so'
id=$(new_id)
post /tasks '{"id": "'"$id"'", "type": "slow_echo", "payload": {"message": "never mind", "seconds": 60}}'
post "/tasks/$id/cancel" ''
get "/tasks/$id"

say 'Events: every change when it happens, and the last is the end'
id=$(new_id)
post /tasks '{"id": "'"$id"'", "type": "slow_echo", "payload": {"message": "hello"}}'
get "/tasks/$id/events"
