//! The agent that is a program. It writes what it sees to a file, and a file lets it go on.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::super::doors::Door;
use super::super::ledger::Seen;
use super::{Kind, Purpose, name};
use crate::support::programs::agent;

const PROGRAM: &str = include_str!("agent.py");

pub(super) fn configuration(door: Door, quiet_keys: &str) -> String {
    let python = interpreter();
    let python = [&python, "-I", "-S", "agent.py"];
    let named = |purpose| name(Kind::Exec, door, purpose);
    [
        agent(&named(Purpose::Plain), &python, "ask = true\nconcurrency = 8\n"),
        agent(&named(Purpose::Quiet), &python, quiet_keys),
        agent(&named(Purpose::Strict), &python, "output_bytes = 10000\n"),
        agent(&named(Purpose::Away), &["./nothing-is-here"], ""),
    ]
    .concat()
}

/// The interpreter itself, because a launcher that looks for it can take longer than everything else.
pub(super) fn interpreter() -> String {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let output = output.expect("there is Python");
    String::from_utf8(output.stdout).expect("a path is UTF-8").trim().to_owned()
}

pub(super) fn write_files(directory: &Path) {
    fs::write(directory.join("agent.py"), PROGRAM).expect("it can be written");
    for name in ["seen", "go"] {
        fs::create_dir(directory.join(name)).expect("it can be made");
    }
}

pub(super) fn release(cell: &str, directory: &Path) {
    fs::write(directory.join("go").join(cell), "").expect("it can be written");
}

/// Reads whole lines only, because the program may be writing one.
pub(super) fn seen(cell: &str, what: &'static str, directory: &Path) -> Vec<Seen> {
    let text = fs::read_to_string(directory.join("seen").join(cell)).unwrap_or_default();
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let all = lines.map(|line| serde_json::from_str::<Value>(line).expect("it writes JSON"));
    all.filter(|line| line["what"] == what).map(|line| read(what, &line)).collect()
}

fn read(what: &'static str, line: &Value) -> Seen {
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    if line["document"].is_object() {
        return Seen { what, id: text("id"), trace: text("trace"), document: line["document"].clone() };
    }
    let document = json!({"request_id": line["request_id"], "work": line["work"], "input": line["input"]});
    Seen { what, id: text("id"), trace: text("trace"), document }
}
