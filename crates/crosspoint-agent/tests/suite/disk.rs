//! What becomes of work when the disk fails, and where its file is in the way or gone.

use crosspoint_agent::{Agent, Context, Failure, Keep};
use serde_json::{Value, json};

use crate::process::Process;
use crate::support::{Served, scratch};

#[test]
fn on_a_full_disk_work_that_is_done_at_most_once_is_not_begun_and_other_work_is_answered() {
    // Every file may have no bytes: writing one fails as on a full disk.
    let process = Process::start_with("trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"");
    let payload = json!({"service": "kuma", "hosts": ["a", "b"]});
    for (id, work, status) in [("d-1", "deploy", "failed"), ("p-1", "plan", "completed"), ("d-1", "deploy", "failed")] {
        let id = format!("550e8400-e29b-41d4-a716-4466554400{}", if id == "d-1" { "50" } else { "51" });
        let task = process.post("/tasks?wait=60", &json!({"id": id, "type": work, "payload": payload}));
        assert_eq!(task["status"], status, "{work}: {task}");
    }
}

#[test]
fn a_store_that_cannot_be_shortened_is_used_on() {
    async fn long(_: Value, _: Context) -> Result<Value, Failure> {
        Ok(json!({"text": "x".repeat(300_000)}))
    }
    let path = scratch("disk");
    // What stands where the new file is written cannot be removed as a file is.
    let beside = path.with_file_name(format!("{}.new", path.file_name().expect("it has one").to_string_lossy()));
    std::fs::create_dir(&beside).expect("it can be made");
    let keep = Keep { bytes: 700_000, ..Keep::default() };
    let served = Served::start(Agent::new("worker").on("long", long).answers(&path).keep(keep));
    for id in ["r-1", "r-2", "r-3", "r-4"] {
        let run = json!({"request_id": id, "task_type": "long", "inputs": {}}).to_string();
        assert_eq!(served.post("/agents/run/sync", &run).status, 200, "{id}");
    }
}

#[test]
fn without_its_file_an_agent_does_no_work_that_is_done_at_most_once() {
    async fn quick(_: Value, _: Context) -> Result<Value, Failure> {
        Ok(json!({}))
    }
    let path = scratch("disk");
    let agent = Agent::new("worker").on("quick", quick).at_most_once("pay", quick).answers(&path);
    let served = Served::start(agent);
    let asked = |id: &str, work: &str| {
        let run = json!({"request_id": id, "task_type": work, "inputs": {}}).to_string();
        served.post("/agents/run/sync", &run).json()
    };
    assert_eq!(asked("p-1", "pay")["status"], "ok");
    std::fs::remove_file(&path).expect("it is there");
    let refused = asked("p-2", "pay");
    assert_eq!(refused["error"]["code"], "AGENT_UNAVAILABLE", "{refused}");
    assert_eq!(refused["error"]["details"]["repeat"], "safe", "{refused}");
    assert_eq!(asked("q-1", "quick")["status"], "ok", "other work goes on");
    assert_eq!(asked("p-1", "pay")["status"], "ok", "what was done is still answered");
}
