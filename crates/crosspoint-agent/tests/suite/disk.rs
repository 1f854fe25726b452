//! What becomes of work when the disk fails, and while the store of answers is shortened.

use std::io::Read;
use std::process::Command;

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
fn callers_are_answered_while_the_store_is_shortened() {
    async fn long(_: Value, _: Context) -> Result<Value, Failure> {
        Ok(json!({"text": "x".repeat(300_000)}))
    }
    let path = scratch("disk");
    // The new file takes no more than a pipe does, until it is read.
    let beside = path.with_file_name(format!("{}.new", path.file_name().expect("it has one").to_string_lossy()));
    assert!(Command::new("mkfifo").arg(&beside).status().is_ok_and(|status| status.success()));
    let keep = Keep { bytes: 700_000, ..Keep::default() };
    let served = Served::start(Agent::new("worker").on("long", long).answers(&path).keep(keep));
    let run = |id: &str| {
        let run = json!({"request_id": id, "task_type": "long", "inputs": {}}).to_string();
        served.post("/agents/run/sync", &run).status
    };
    assert_eq!((run("r-1"), run("r-2"), run("r-3")), (200, 200, 200), "the third makes it too long");
    let unknown = served.get("/tasks/550e8400-e29b-41d4-a716-446655440060");
    assert_eq!(unknown.status, 404, "the store can be looked at");
    let mut pipe = std::fs::File::open(&beside).expect("it can be read");
    let mut copied = vec![0; 100_000];
    pipe.read_exact(&mut copied).expect("the younger answer is copied");
    drop(std::thread::spawn(move || std::io::copy(&mut pipe, &mut std::io::sink())));
    assert_eq!(run("r-4"), 200, "a store that cannot be shortened is used on");
}
