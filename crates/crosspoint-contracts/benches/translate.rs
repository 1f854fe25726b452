//! The cost of translation compared with mere parsing and mere copying, as ratios of one run.
//!
//! `cargo bench --bench translate` prints a table. Each figure is the median of rounds in which the two sides
//! alternate, so that a busy machine slows both alike. No test depends on these figures.

mod compare;

use std::hint::black_box;

use compare::{compare, print, row};
use crosspoint_contracts::json::Levels;
use crosspoint_contracts::map::{Carrying, WriteContext};
use crosspoint_contracts::translate::write;
use crosspoint_contracts::{Contract, Kind, Options, read_jobs};

fn main() {
    print("| what | ours | theirs | ratio | target |");
    print("|---|---|---|---|---|");
    let documents: [(&str, Kind, &[u8], Contract); 6] = [
        (
            "work_request to task",
            Kind::WorkRequest,
            include_bytes!("../../../testdata/message/work_request-printed.json"),
            Contract::Task,
        ),
        (
            "task.request to message",
            Kind::TaskRequest,
            include_bytes!("../../../testdata/task/request-printed.json"),
            Contract::Message,
        ),
        (
            "run.request to task",
            Kind::RunRequest,
            include_bytes!("../../../testdata/run/request-full.json"),
            Contract::Task,
        ),
        (
            "run.response to message",
            Kind::RunResponse,
            include_bytes!("../../../testdata/run/response-full.json"),
            Contract::Message,
        ),
        (
            "bridge.response to run",
            Kind::BridgeResponse,
            include_bytes!("../../../testdata/bridge/response-printed_success.json"),
            Contract::Run,
        ),
        (
            "workflow.output to task",
            Kind::WorkflowOutput,
            include_bytes!("../../../testdata/workflow/output-printed.json"),
            Contract::Task,
        ),
    ];
    for (name, kind, bytes, to) in documents {
        small(name, kind, bytes, to);
    }
    large("one string", &format!("\"{}\"", "some opaque text, ".repeat(10_000_000 / 18)));
    large("numbers", &format!("[{}1]", "12345,".repeat(10_000_000 / 6)));
}

fn fresh() -> WriteContext<'static> {
    WriteContext {
        now: "2026-11-16T08:00:00Z",
        id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("a UUID"),
        message_id: "f0763953-805e-5282-8797-647eab1d92c2".parse().expect("a UUID"),
        agent_types: &[],
        agent_type: "code",
        carrying: Carrying::On,
        known_as: None,
        completing: false,
        levels: Levels::Received,
        facts: &[],
    }
}

/// Reads one contract and writes another, compared with parsing the same bytes into a tree of values.
fn small(name: &str, kind: Kind, bytes: &[u8], to: Contract) {
    let fresh = fresh();
    let options = Options { kind: Some(kind), ..Options::default() };
    let translate = || {
        let (_, jobs) = read_jobs(black_box(bytes), &options);
        black_box(write(&jobs[0], to, &fresh).expect("it has a counterpart"));
    };
    let parse = || {
        black_box(serde_json::from_slice::<serde_json::Value>(black_box(bytes)).expect("it is JSON"));
    };
    let (ours, theirs) = compare(2_000, translate, parse);
    row(&format!("{name}, read and written, against Value"), ours, theirs, "at most 3");
}

/// Translates a large payload, compared with copying it once.
fn large(name: &str, payload: &str) {
    let document = format!(r#"{{"request_id": "r", "task_type": "t", "inputs": {{"text": {payload}}}}}"#);
    let fresh = fresh();
    let options = Options { kind: Some(Kind::RunRequest), ..Options::default() };
    let copy = || drop(black_box(black_box(document.as_bytes()).to_vec()));
    let (_, jobs) = read_jobs(document.as_bytes(), &options);
    let pass = || drop(black_box(write(black_box(&jobs[0]), Contract::Task, &fresh).expect("it has a counterpart")));
    let (ours, theirs) = compare(1, pass, copy);
    row(&format!("10 MB payload, {name}, written, against copying it"), ours, theirs, "at most 2");
    let whole = || {
        let (_, jobs) = read_jobs(black_box(document.as_bytes()), &options);
        black_box(write(&jobs[0], Contract::Task, &fresh).expect("it has a counterpart"));
    };
    let (ours, theirs) = compare(1, whole, copy);
    row(&format!("10 MB payload, {name}, read and written, against copying it"), ours, theirs, "-");
}
