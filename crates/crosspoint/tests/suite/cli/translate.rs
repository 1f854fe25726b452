//! `crosspoint translate`

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use crosspoint_contracts::job::Canonical;
use crosspoint_contracts::{Contract, Kind, Options, read_jobs};
use serde_json::Value;

use crate::support::program::{crosspoint, root, stdout, transcript};

const STREAM: &str = "testdata/run/stream-full.sse";
const STATUS: &str = "testdata/message/work_status-printed.json";
const RUN_REQUEST: &str = "testdata/run/request-full.json";

/// A request or the end of a job, which can be translated everywhere and back.
struct Golden {
    contract: &'static str,
    path: PathBuf,
}

impl Golden {
    fn all() -> Vec<Golden> {
        let in_contract = |contract: &'static str| {
            let entries = fs::read_dir(root().join("testdata").join(contract)).expect("golden documents are there");
            let paths = entries.map(|entry| entry.expect("it can be listed").path());
            paths.filter(|path| is_request_or_end(path)).map(move |path| Golden { contract, path })
        };
        let all: Vec<Golden> = contracts().into_iter().flat_map(in_contract).collect();
        assert!(all.len() > 60, "only {} golden documents", all.len());
        all
    }

    fn name(&self) -> &str {
        name_of(&self.path)
    }
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("file names are plain")
}

fn is_request_or_end(path: &Path) -> bool {
    let unended = ["work_status", "pending", "in_progress", "input_required", "question"];
    name_of(path).ends_with(".json") && !unended.iter().any(|word| name_of(path).contains(word))
}

fn translate(path: &Path, to: &str) -> String {
    stdout(&mut crosspoint(&["translate", path.to_str().expect("UTF-8"), "--to", to]))
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// By way of every contract, through pipes. A loose document comes back in its strict form.
#[test]
fn there_and_back_again() {
    for golden in Golden::all() {
        let strict = value(&translate(&golden.path, golden.contract));
        if !golden.name().contains("loose") {
            let original = fs::read_to_string(&golden.path).expect("it can be read");
            assert_eq!(strict, value(&original), "{} as itself", golden.path.display());
        }
        for contract in contracts().into_iter().filter(|contract| *contract != golden.contract) {
            let there = translate(&golden.path, contract);
            let back = stdout(crosspoint(&["translate", "--to", golden.contract]).write_stdin(there));
            assert_eq!(value(&back), strict, "{} by way of {contract}", golden.path.display());
        }
    }
}

/// A translated document is valid, and detected without `--as`.
#[test]
fn what_is_translated_is_detected_and_valid() {
    let directory = std::env::temp_dir().join(format!("crosspoint-translate-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("the directory can be made");
    for golden in Golden::all() {
        for to in contracts() {
            let original = fs::read_to_string(&golden.path).expect("it can be read");
            let translated = translate(&golden.path, to);
            assert_eq!(part(&translated), part(&original), "{} in {to}", golden.path.display());
            let file = format!("{to},{}-{}", golden.contract, golden.name());
            fs::write(directory.join(file), translated).expect("it can be written");
        }
    }
    let output = crosspoint(&["validate", "--format", "json"]).arg(&directory).output().expect("it starts");
    fs::remove_dir_all(&directory).expect("it can be removed");
    let lines = String::from_utf8(output.stdout).expect("output is UTF-8");
    assert_eq!(lines.lines().count(), Golden::all().len() * Contract::ALL.len());
    for line in lines.lines().map(value) {
        let file = name_of(Path::new(line["file"].as_str().expect("a name"))).to_owned();
        let (to, _) = file.split_once(',').expect("it was named here");
        let kind = line["kind"].as_str().and_then(Kind::from_name).expect("it is detected");
        assert!(line["valid"] == true && kind.contract().name() == to, "{file} is {kind}: {}", line["findings"]);
    }
    assert_eq!(output.status.code(), Some(0));
}

fn contracts() -> [&'static str; Contract::ALL.len()] {
    Contract::ALL.map(Contract::name)
}

/// The part of a job's life that a document is about.
fn part(document: &str) -> &'static str {
    let (_, jobs) = read_jobs(document.as_bytes(), &Options::default());
    match jobs.first().map(Canonical::state) {
        Some(None) => "request",
        Some(Some(state)) if state.is_ended() => "end",
        Some(Some(_)) | None => "neither",
    }
}

/// Filters ids and times that are new in every run.
fn steady(test: impl FnOnce()) {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter("[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "<derived id>");
    settings.add_filter(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>");
    settings.bind(test);
}

fn told(arguments: &[&str]) -> String {
    transcript(crosspoint(&["translate"]).args(arguments))
}

fn told_of(document: &str, arguments: &[&str]) -> String {
    transcript(crosspoint(&["translate"]).args(arguments).write_stdin(document))
}

#[test]
fn a_run_as_a_task() {
    insta::assert_snapshot!(told(&[RUN_REQUEST, "--to", "task"]));
}

#[test]
fn a_bridge_request_as_a_message() {
    let path = "testdata/bridge/request-full.json";
    steady(|| insta::assert_snapshot!(told(&[path, "--to", "message", "--agent", "research"])));
}

#[test]
fn a_stream_as_messages_and_as_tasks() {
    let both = [told(&[STREAM, "--to", "message"]), told(&[STREAM, "--to", "task"])];
    steady(|| insta::assert_snapshot!(both.join("\n")));
}

/// That contract only knows how work ended.
#[test]
fn a_stream_as_a_bridge_response() {
    let both = [told(&[STREAM, "--to", "bridge"]), told(&[STREAM, "--to", "bridge", "--strict"])];
    steady(|| insta::assert_snapshot!(both.join("\n")));
}

/// Work that has not ended is an event, and an event comes back as one.
#[test]
fn work_under_way_is_an_event() {
    let task = "testdata/task/response-input_required.json";
    let line = stdout(&mut crosspoint(&["translate", STREAM, "--to", "message"]));
    let last = line.lines().last().expect("there is a line");
    let all = [told(&[STATUS, "--to", "run"]), told(&[task, "--to", "run"]), told_of(last, &["--to", "run"])];
    steady(|| insta::assert_snapshot!(all.join("\n")));
}

#[test]
fn what_has_no_counterpart_says_where_it_goes() {
    let heartbeat = "testdata/message/work_status-heartbeat.json";
    let all = [
        told(&[STATUS, "--to", "bridge"]),
        told(&[STATUS, "--to", "workflow", "--strict"]),
        told(&[heartbeat, "--to", "task"]),
        told(&[heartbeat, "--to", "message"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn carrying_can_be_turned_off() {
    let all = [
        told(&[RUN_REQUEST, "--to", "task", "--compact", "--no-carry"]),
        told(&[RUN_REQUEST, "--to", "task", "--no-carry", "--strict"]),
        told(&[RUN_REQUEST, "--to", "task", "--compact", "--strict"]),
        told(&["testdata/task/request-minimal.json", "--to", "task", "--compact", "--no-carry", "--strict"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn documents_that_cannot_be_translated() {
    let all = [
        told(&["testdata/broken/bridge/BRIDGE-2.json", "--to", "task"]),
        told_of("{\"hello\": 1}", &["--to", "task"]),
        told_of("{\"request_id\": \"a\", \"status\": \"error\"}", &["--to", "task"]),
        told_of("{\"id\": None}", &["--to", "task"]),
        told(&["testdata/nowhere.json", "--to", "task"]),
        told(&[RUN_REQUEST, "--to", "task", "--from", "task.request"]),
        told(&[RUN_REQUEST, "--to", "message", "--agent", "painter"]),
    ];
    insta::assert_snapshot!(all.join("\n"));
    assert!(told(&[RUN_REQUEST]).starts_with("exit 2"), "--to must be there");
    assert!(told(&[RUN_REQUEST, "--to", "task.request"]).starts_with("exit 2"), "a contract, not a kind");
}

#[test]
fn an_added_type_of_agent_is_known_on_both_sides() {
    let painter = ["--agent-type", "painter", "--agent", "painter", "--to"];
    let message = stdout(crosspoint(&["translate", RUN_REQUEST]).args(painter).arg("message"));
    assert_eq!(value(&message)["to_agent"], "painter");
    let back = |command: &mut Command| command.write_stdin(message.clone()).output().expect("it starts").status.code();
    assert_eq!(back(&mut crosspoint(&["translate", "--to", "run"])), Some(1));
    assert_eq!(back(crosspoint(&["translate"]).args(painter).arg("run")), Some(0));
}

/// Carried data comes from outside, so the result is checked before it is printed.
#[test]
fn what_was_carried_must_fit() {
    let broken = r#"{"id": "a", "status": "completed", "result": {}, "metadata": {"x_crosspoint":
        {"from": "message.work_result", "fields": {"message": {"/message_id": "no UUID"}}}}}"#;
    let deep = format!(r#"{{"id": "a", "type": "b", "payload": {{"a": {}{}}}}}"#, "[".repeat(125), "]".repeat(125));
    let unfit = r#"{"id": "a", "status": "completed", "result": {}, "metadata": {"x_crosspoint":
        {"from": "run.response", "fields": {"run": {"/grounding": 5}}}}}"#;
    let all =
        [told_of(broken, &["--to", "message"]), told_of(&deep, &["--to", "message"]), told_of(unfit, &["--to", "run"])];
    insta::assert_snapshot!(all.join("\n"));
}

/// The list is limited, and a member's name cannot colour the terminal or move its cursor.
#[test]
fn names_are_few_and_safe_to_show() {
    let members: Vec<String> = (0..30).map(|number| format!("\"m{number:02}\": 1")).collect();
    let document = format!(
        "{{\"request_id\": \"r\", \"task_type\": \"t\", \"inputs\": {{}}, \"\\u001b[31m\\u202e\\n\": 1, {}}}",
        members.join(", ")
    );
    let output = crosspoint(&["translate", "--to", "task"]).write_stdin(document).output().expect("it starts");
    let said = String::from_utf8(output.stderr).expect("it is UTF-8");
    assert!(!said.contains(['\u{1b}', '\u{202e}']) && said.lines().count() == 1, "{said:?}");
    assert!(said.ends_with("run/m17, run/m18 and 11 more\n"), "{said:?}");
}

/// Payloads keep their own line breaks, except where a document is printed on one line.
#[test]
fn one_line_is_one_line() {
    let compact = stdout(&mut crosspoint(&["translate", RUN_REQUEST, "--to", "task", "--compact"]));
    assert_eq!(compact.lines().count(), 1, "{compact}");
    let lines = stdout(&mut crosspoint(&["translate", STREAM, "--to", "message"]));
    assert_eq!(lines.lines().count(), 4, "{lines}");
}

/// Work under way becomes one event of a stream, and that goes back.
#[test]
fn work_under_way_comes_back_from_an_event() {
    for file in [
        "message/work_status-printed",
        "task/response-in_progress",
        "task/response-input_required",
        "task/response-pending",
    ] {
        let path = format!("testdata/{file}.json");
        let own = file.split('/').next().expect("a contract");
        let event = crosspoint(&["translate", &path, "--to", "run"]).output().expect("it starts");
        assert!(event.stdout.starts_with(b"event: progress\n"), "{file}");
        let back = crosspoint(&["translate", "--to", own]).write_stdin(event.stdout).output().expect("it starts");
        let original = std::fs::read(root().join(&path)).expect("the file can be read");
        let value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).expect("it is JSON");
        assert_eq!(value(&back.stdout), value(&original), "{file}");
        assert!(String::from_utf8_lossy(&back.stderr).contains("part of a stream"), "{file}");
    }
}

#[test]
fn agent_types_have_names() {
    for name in ["", " "] {
        let arguments =
            ["translate", "testdata/run/request-full.json", "--to", "message", "--agent-type", name, "--agent", name];
        crosspoint(&arguments).assert().code(2);
    }
}
