"""An agent of the message contract that has its work pushed: python3 push_agent.py [SERVER [PORT]]. See README.md."""
import contextlib, json, os, pathlib, sys, threading, time, urllib.request, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

server, port = (sys.argv[1:] + ["http://127.0.0.1:7420", "8000"][len(sys.argv) - 1:])[:2]
token = {"Authorization": "Bearer " + os.environ["AGENT_TOKEN"]} if "AGENT_TOKEN" in os.environ else {}
answers, one_at_a_time = pathlib.Path("infra-2.answers"), threading.Lock()

def call(path, document):  # What the server cannot take now is sent again; it takes nothing twice.
    request = urllib.request.Request(server + path, json.dumps(document).encode(), token)
    while True:
        try: return json.loads(urllib.request.urlopen(request, timeout=60).read() or "{}")
        except OSError as error:
            if getattr(error, "code", 503) < 500: refused(json.load(error)["payload"])
        time.sleep(1)

def refused(said):  # The same again would not help, and the server says what would.
    print(said["error_message"], "hint: " + said["error_context"]["hint"], sep="\n", file=sys.stderr)
    os._exit(1)

def message(kind, asked, payload):  # A message about the work that was asked for.
    ids = {"message_id": str(uuid.uuid4()), **{name: asked[name] for name in ["request_id", "trace_id"]}}
    ends = {"from_agent": asked["to_agent"], "to_agent": "orchestrator", "x_custom_fields": {}}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    payload = {"task_id": asked["payload"]["task_id"], **payload}
    return {"protocol_version": "1.0", **ids, **ends, "timestamp": now, "type": kind, "payload": payload}

def work(asked):  # Returns the result, or None if the work is no longer wanted.
    kept, steps = answers / str(uuid.UUID(asked["request_id"])), asked["payload"]["parameters"].get("steps", 3)
    for number in range(1, 1 if kept.exists() else steps + 1):  # What was done is not done again.
        step = {"number": number, "name": f"Step {number} of {steps}", "output": f"step {number} is done\n"}
        status = {"status": "running", "progress_percent": 100 * number // steps, "step": step}
        if call("/api/agent/message", message("work_status", asked, status)).get("type") == "error": return None
        time.sleep(0.2)
    result = {"status": "success", "exit_code": 0, "output": f"{steps} steps are done\n"}
    if not kept.exists():
        kept.with_suffix(".new").write_text(json.dumps({**result, "resources_used": {"duration_seconds": steps // 5}}))
        kept.with_suffix(".new").rename(kept)
    return message("work_result", asked, json.loads(kept.read_text()))

class Door(BaseHTTPRequestHandler):
    def do_POST(self):  # The result is the answer to the request. What is cancelled is noticed at the next status.
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if token and self.headers["Authorization"] != token["Authorization"]: return self.answer(401)
        if asked["type"] != "work_request": return self.answer(200)
        with one_at_a_time: self.answer(200, work(asked))

    def do_GET(self): self.answer(200)  # The server asks for /health after failures.

    def log_message(self, *_): pass

    def answer(self, status, document=None):  # The server may have left if the work was cancelled.
        body = json.dumps(document).encode() if document else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        with contextlib.suppress(ConnectionError): self.end_headers(), self.wfile.write(body)

answers.mkdir(exist_ok=True)
door = ThreadingHTTPServer(("127.0.0.1", int(port)), Door)
me = {"agent_id": "infra-2", "agent_type": "infra", "supported_versions": ["1.0"], "work_types": ["run_playbook"]}
call("/api/agent/register", {**me, "base_url": f"http://127.0.0.1:{door.server_port}", "concurrency": 1})
door.serve_forever()
