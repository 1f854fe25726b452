"""A caller of the message contract that is told later: python3 callback.py [SERVER [PORT]]. README.md says more."""
import json, os, sys, threading, time, urllib.error, urllib.request, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

server, port = (sys.argv[1:] + ["http://127.0.0.1:7420", "9000"][len(sys.argv) - 1:])[:2]
token = {"Authorization": "Bearer " + os.environ["CALLER_TOKEN"]} if "CALLER_TOKEN" in os.environ else {}
request_id, task_id, seen, ended = str(uuid.uuid4()), str(uuid.uuid4()), set(), threading.Event()

class Callback(BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = not token or self.headers["Authorization"] == token["Authorization"]
        if known: told(message)
        # A status of 2xx acknowledges the message, so it comes last: what was not acknowledged comes again.
        self.send_response(204 if known else 401)
        self.end_headers()
        if known and message["request_id"] == request_id and message["type"] in ["work_result", "error"]: ended.set()

    def log_message(self, *_): pass

def told(message):
    if message["message_id"] not in seen: print(json.dumps(message) + "\n", end="", flush=True)
    seen.add(message["message_id"])

callback = ThreadingHTTPServer(("127.0.0.1", int(port)), Callback)
threading.Thread(target=callback.serve_forever, daemon=True).start()
request = {
    "protocol_version": "1.0", "message_id": str(uuid.uuid4()), "from_agent": "orchestrator", "to_agent": "infra",
    "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "trace_id": str(uuid.uuid4()),
    "request_id": request_id, "type": "work_request",
    "payload": {"task_id": task_id, "work_type": "run_playbook", "parameters": {"steps": 3}},
}
post = urllib.request.Request(server + "/api/agent/message", json.dumps(request).encode(), token)
try: told(json.load(urllib.request.urlopen(post)))
except urllib.error.HTTPError as error: sys.exit(error.read().decode())
ended.wait()
