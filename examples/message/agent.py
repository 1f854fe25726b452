"""An agent of the message contract that pulls its work: python3 agent.py [SERVER]. README.md beside it says more."""
import json, os, sqlite3, sys, threading, time, urllib.request, uuid

server, me, messages = (sys.argv + ["http://127.0.0.1:7420"])[1], {"agent_id": "infra-1", "agent_type": "infra"}, []
token = {"Authorization": "Bearer " + os.environ["AGENT_TOKEN"]} if "AGENT_TOKEN" in os.environ else {}
kept = sqlite3.connect("infra-1.answers", isolation_level=None).execute("CREATE TABLE IF NOT EXISTS kept (id, result)")

def now(): return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

def call(path, document=None):  # What the server cannot take now is sent again; it takes nothing twice.
    request = urllib.request.Request(server + path, document and json.dumps(document).encode(), token)
    while True:
        try: return json.loads(urllib.request.urlopen(request, timeout=60).read() or "{}")
        except OSError as error:  # Where the same again would not help, the server says what would.
            if getattr(error, "code", 503) < 500: print(error.read().decode(), file=sys.stderr), os._exit(1)
        time.sleep(1)

def send(kind, payload, **ids):  # Returns whether the server answers with an error: the work is no longer wanted.
    ids = {"message_id": str(uuid.uuid4()), "request_id": str(uuid.uuid4()), "trace_id": str(uuid.uuid4()), **ids}
    ends = {"from_agent": me["agent_type"], "to_agent": "orchestrator", "timestamp": now(), "x_custom_fields": {}}
    message = {"protocol_version": "1.0", **ids, **ends, "type": kind, "payload": payload}
    return call("/api/agent/message", message).get("type") == "error"

def beat(seconds):
    while not time.sleep(seconds):
        send("work_status", {**me, "status": "online", "current_task_id": None, "resources": {}, "timestamp": now()})

def work(task_id, steps, **ids):
    before = kept.execute("SELECT result FROM kept WHERE id = ?", [ids["request_id"]]).fetchone()
    for number in range(1, 1 if before else steps + 1):  # What was done is not done again.
        step = {"number": number, "name": f"Step {number} of {steps}", "output": f"step {number} is done\n"}
        status = {"task_id": task_id, "status": "running", "progress_percent": 100 * number // steps, "step": step}
        if send("work_status", status, **ids): return
        time.sleep(0.2)
    result = {"task_id": task_id, "status": "success", "exit_code": 0, "output": f"{steps} steps are done\n"}
    result = json.loads(before[0]) if before else {**result, "resources_used": {"duration_seconds": steps // 5}}
    before or kept.execute("INSERT INTO kept VALUES (?, ?)", [ids["request_id"], json.dumps(result)])
    send("work_result", result, **ids)

registered = call("/api/agent/register", {**me, "supported_versions": ["1.0"], "work_types": ["run_playbook"]})
threading.Thread(target=beat, args=[registered["heartbeat_seconds"]], daemon=True).start()
while True:
    acks = ",".join(message["message_id"] for message in messages)
    messages = call(f"/api/agent/messages?agent={me['agent_id']}&wait=30&ack={acks}")["messages"]
    for new in [message for message in messages if message["type"] == "work_request"]:
        about, asked = {name: new[name] for name in ["request_id", "trace_id"]}, new["payload"]
        work(asked["task_id"], asked["parameters"].get("steps", 3), **about)
