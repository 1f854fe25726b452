//! `submit`, `jobs` and `agents`, against a running server.

use assert_cmd::Command;
use serde_json::{Value, json};

use crate::support::program::{crosspoint, transcript};
use crate::support::programs::bash;
use crate::support::puller::Puller;
use crate::support::server::Server;

/// The program, run in the directory where the server was started.
pub(crate) fn beside(server: &Server, arguments: &[&str]) -> Command {
    let mut command = crosspoint(arguments);
    command.current_dir(server.data().parent().expect("the data is in a directory"));
    command.args(["--data", "data"]).env_remove("HOME").env_remove("XDG_CONFIG_HOME").env_remove("CROSSPOINT_SERVER");
    command
}

fn said(server: &Server, arguments: &[&str]) -> String {
    transcript(&mut beside(server, arguments))
}

/// Filters for what differs in every run.
fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(
        r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[the job's id, of 36 characters]    ",
    );
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "[time]");
    settings.add_filter(r"\d\d:\d\d:\d\d\.\d{3}", "[clock]");
    settings.add_filter(r"  \d{1,2}s ( *)", "  [age] ");
    settings.add_filter(r"http://127\.0\.0\.1:\d+", "[url]");
    settings.add_filter(r" +\n", "\n");
    settings
}

macro_rules! assert_said {
    ($said:expr) => {
        settings().bind(|| insta::assert_snapshot!($said))
    };
}

fn id_of(said: &str) -> String {
    let stdout = said.split("--- stdout\n").nth(1).and_then(|rest| rest.split("--- stderr").next());
    stdout.expect("a transcript has it").trim().to_owned()
}

fn detached(server: &Server, arguments: &[&str]) -> String {
    let said = said(server, &[&["submit"], arguments, &["--detach"]].concat());
    assert!(said.starts_with("exit 0"), "{said}");
    id_of(&said)
}

#[test]
fn outputs_go_to_stdout_as_they_came_and_can_do_no_harm() {
    let server = Server::start();
    let input = "{\"b\": 1.50, \"a\": [\"x\u{9b}31m\u{202e}\", \"\\u001b[2J\"], \"text\": \"\u{e4}\"}";
    assert_said!(said(&server, &["submit", "echo", "--input", input]));
}

#[test]
fn every_way_to_end_has_its_exit_code() {
    let server = Server::start();
    let told = [
        said(&server, &["submit", "fail"]),
        said(&server, &["submit", "fail", "--input", r#"{"failure": "broken_contract"}"#, "--json"]),
        said(&server, &["submit", "ask", "--input", r#"{"prompt": "Which one?\u001b[2J\nThis or that?"}"#]),
        said(&server, &["submit", "nothing"]),
        said(&server, &["submit", "echo", "--input", "{\"a\": 1,}"]),
        said(&server, &["submit", "echo", "--input", "@absent.json"]),
        said(&server, &["submit", "echo", "--agent", "ask"]),
        said(&server, &["submit", "echo", "--timeout", "0"]),
        said(&server, &["submit", "echo", "--server", "http://127.0.0.1:1"]),
        said(&server, &["submit", "echo", "--server", "ftp://somewhere"]),
    ];
    assert_said!(told.join("\n"));
}

#[test]
fn progress_is_lines_where_there_is_no_terminal() {
    let server = Server::start();
    let output = beside(&server, &["submit", "slow_echo", "--input", r#"{"seconds": 1}"#]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\n  \"seconds\": 1\n}\n");
    let stderr = String::from_utf8(output.stderr).expect("it is UTF-8");
    let mut lines = stderr.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("job ")), "{stderr}");
    let percents: Vec<u32> = lines
        .map(|line| {
            let (percent, step) = line.split_once("%  ").unwrap_or_else(|| panic!("{line}"));
            assert!(step.starts_with("Step ") && step.ends_with(" of 10"), "{line}");
            percent.parse().expect("it is a number")
        })
        .collect();
    assert!(percents.len() > 1 && percents.is_sorted(), "{stderr}");
}

#[test]
fn input_comes_from_files_and_from_standard_input() {
    let server = Server::start();
    let file = server.data().join("input.json");
    std::fs::write(&file, "\u{feff}{\"from\": \"file\"}\n").expect("it can be written");
    let from_file = said(&server, &["submit", "echo", "--input", &format!("@{}", file.display())]);
    assert!(from_file.contains("\"from\": \"file\""), "{from_file}");
    let from_stdin = transcript(beside(&server, &["submit", "echo", "--input", "-"]).write_stdin("[1,\n2]"));
    assert!(from_stdin.starts_with("exit 0\n--- stdout\n[\n  1,\n  2\n]\n"), "{from_stdin}");
    let broken = transcript(beside(&server, &["submit", "echo", "--input", "-"]).write_stdin("[1,\n  true false]"));
    assert!(broken.contains("--> <stdin>:2:"), "{broken}");
}

#[test]
fn a_request_id_makes_a_repeat_the_same_job() {
    let server = Server::start();
    let arguments = ["echo", "--request-id", "mine", "--input", "{\"a\": 1}"];
    let first = detached(&server, &arguments);
    assert_eq!(first, detached(&server, &arguments));
    // Some callers know no other id of their work.
    let shown = said(&server, &["jobs", "show", "mine"]);
    assert!(shown.contains(&format!("job         {first}\n")), "{shown}");
    let unknown = said(&server, &["jobs", "show", "yours"]);
    assert!(unknown.starts_with("exit 2") && unknown.contains("an id of a job is wanted"), "{unknown}");
    let other = said(&server, &["submit", "echo", "--request-id", "mine", "--input", "{\"a\": 2}"]);
    assert!(other.starts_with("exit 2") && other.contains(&first), "{other}");
    assert_ne!(detached(&server, &["echo"]), detached(&server, &["echo"]));
}

#[test]
fn what_is_asked_for_is_what_arrives() {
    let server = Server::start();
    let id = detached(
        &server,
        &["echo", "--agent", "echo", "--priority", "urgent", "--timeout", "7.5", "--input", "{ \"a\" : 1e2 }"],
    );
    let document = said(&server, &["jobs", "document", &id]);
    let expected =
        r#"{"work":"echo","input":{ "a" : 1e2 },"agent":"echo","priority":"urgent","limits":{"seconds":7.5}}"#;
    assert_eq!(document, format!("exit 0\n--- stdout\n{expected}--- stderr\n"));
    assert_eq!(server.ended(&id)["priority"], "urgent");
}

#[test]
fn events_are_one_line_each() {
    let server = Server::start();
    let id = detached(&server, &["ask", "--input", r#"{"prompt": "Which one?"}"#]);
    server.in_state(&id, "waiting");
    let so_far = said(&server, &["jobs", "events", &id]);
    let answered = said(&server, &["jobs", "answer", &id, "--text", "the second"]);
    assert!(answered.starts_with("exit 0"), "{answered}");
    let followed = said(&server, &["jobs", "events", &id, "--follow"]);
    let rest = said(&server, &["jobs", "events", &id, "--follow", "--after", "3", "--json"]);
    let nothing = said(&server, &["jobs", "events", &id, "--follow", "--after", "5"]);
    assert_said!([so_far, followed, rest, nothing].join("\n"));
}

#[test]
fn following_a_submission_prints_its_events() {
    let server = Server::start();
    let output = beside(&server, &["submit", "fail", "--follow", "--json"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let lines = String::from_utf8(output.stdout).expect("it is UTF-8");
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let names: Vec<&Value> = events.iter().map(|event| &event["event"]).collect();
    assert_eq!(names, [&json!("accepted"), &json!("started"), &json!("failed")]);
    assert_eq!(events[2]["n"], 3);
}

#[test]
fn a_job_is_shown_as_a_card() {
    let server = Server::start();
    let ask = detached(&server, &["ask", "--request-id", "mine", "--input", r#"{"prompt": "Which one?"}"#]);
    server.in_state(&ask, "waiting");
    let waiting = said(&server, &["jobs", "show", &ask]);
    let cancelled = said(&server, &["jobs", "cancel", &ask]);
    let twice = said(&server, &["jobs", "answer", &ask, "--input", "1"]);
    let fail = detached(&server, &["fail"]);
    server.ended(&fail);
    let failed = said(&server, &["jobs", "show", &fail]);
    let repeated = said(&server, &["jobs", "retry", &fail]);
    let absent = said(&server, &["jobs", "show", "../health"]);
    assert_said!([waiting, cancelled, twice, failed, repeated, absent].join("\n"));
    let json = said(&server, &["jobs", "show", &fail, "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&id_of(&json)).expect("it is JSON"), server.job(&fail));
}

#[test]
fn a_job_that_goes_on_cannot_be_repeated_and_one_that_ended_can() {
    let server = Server::start();
    let ask = detached(&server, &["ask"]);
    let early = said(&server, &["jobs", "retry", &ask]);
    assert!(early.starts_with("exit 2") && early.contains("has not ended"), "{early}");
    let echo = detached(&server, &["echo", "--input", "{\"a\":1}"]);
    server.ended(&echo);
    let again = said(&server, &["jobs", "retry", &echo, "--json"]);
    let job: Value = serde_json::from_str(&id_of(&again)).expect("it is JSON");
    assert_eq!((&job["parent"], &job["outcome"]["outputs"]), (&json!(echo), &json!({"a": 1})));
}

#[test]
fn jobs_are_listed_page_by_page() {
    let server = Server::start();
    let ids: Vec<String> = (0..5).map(|_| detached(&server, &["echo"])).collect();
    ids.iter().for_each(|id| drop(server.ended(id)));
    let fail = detached(&server, &["fail"]);
    server.ended(&fail);
    assert_said!(said(&server, &["jobs", "list", "--limit", "2"]));
    let listed = |arguments: &[&str]| -> Vec<String> {
        let said = id_of(&said(&server, &[&["jobs", "list", "--json"], arguments].concat()));
        let id =
            |line: &str| serde_json::from_str::<Value>(line).expect("it is JSON")["id"].as_str().map(str::to_owned);
        said.lines().map(|line| id(line).expect("it has an id")).collect()
    };
    assert_eq!(listed(&["--state", "failed"]), [fail]);
    assert_eq!(listed(&["--work", "echo"]).len(), 5);
    assert_eq!(listed(&["--agent", "echo", "--door", "native", "--limit", "1"]), ids[4..]);
    assert_eq!(listed(&["--before", &ids[3]]), [&*ids[2], &*ids[1], &*ids[0]]);
    assert_said!(said(&server, &["jobs", "list", "--work", "absent"]));
}

#[test]
fn agents_are_listed_drained_and_closed() {
    let server = Server::start();
    let told = [
        said(&server, &["agents", "list"]),
        said(&server, &["agents", "drain", "echo"]),
        said(&server, &["agents", "drain", "echo", "--resume", "--json"]),
        said(&server, &["agents", "breaker", "fail", "open"]),
        said(&server, &["agents", "breaker", "fail", "close", "--json"]),
        said(&server, &["agents", "breaker", "fail"]),
        said(&server, &["agents", "show", "n/o"]),
    ];
    assert_said!(told.join("\n"));
}

#[test]
fn an_agent_that_is_away_is_shown_and_forgotten() {
    let server = Server::start();
    Puller::joined(&server, "digger", 1).leave(&server);
    let shown = said(&server, &["agents", "show", "digger"]);
    assert!(shown.contains("running     0\n") && shown.contains("away        since "), "{shown}");
    assert!(shown.contains("configured  no: it joined or registered\n"), "{shown}");
    let closed = said(&server, &["agents", "breaker", "digger", "--close"]);
    assert!(closed.contains("breaker     closed\n"), "{closed}");
    let forgotten = said(&server, &["agents", "forget", "digger"]);
    assert_eq!(forgotten, "exit 0\n--- stdout\nagent digger is forgotten\n--- stderr\n");
    assert!(said(&server, &["agents", "show", "digger"]).starts_with("exit 2"));
}

#[test]
fn a_job_that_does_not_move_says_why() {
    let server = Server::start();
    assert!(said(&server, &["agents", "drain", "echo"]).starts_with("exit 0"));
    let id = detached(&server, &["echo"]);
    let shown = said(&server, &["jobs", "show", &id]);
    assert!(shown.contains("stuck       agent echo is paused by an operator\n            since "), "{shown}");
    assert!(said(&server, &["jobs", "list"]).contains("agent echo is paused by an operator"));
}

#[test]
fn the_last_words_of_a_program_that_failed_are_shown_to_people() {
    let script = "seq 1 20 >&2; printf 'boom\\033[2J\\n' >&2; exit 3";
    let server = Server::configured(&bash("dig", script, ""));
    let failed = said(&server, &["submit", "dig"]);
    assert!(failed.starts_with("exit 1\n") && failed.contains("exit code 3"), "{failed}");
    assert!(failed.contains("stderr: 12\n") && !failed.contains("stderr: 11\n"), "the last ten lines: {failed}");
    assert!(failed.contains("stderr: boom") && !failed.contains('\u{1b}'), "harmless for terminals: {failed}");
    let id = server.get("/api/v1/jobs").json()["jobs"][0]["id"].as_str().expect("it has an id").to_owned();
    let card = said(&server, &["jobs", "show", &id]);
    assert!(card.contains("stderr") && card.contains("boom") && !card.contains('\u{1b}'), "{card}");
}

#[test]
fn what_a_job_printed_is_printed_byte_for_byte_and_followed() {
    let script = r"printf 'a\377\000b'; while [ ! -e go ]; do sleep 0.02; done; echo end";
    let server = Server::configured(&bash("prints", script, ""));
    let job = detached(&server, &["prints"]);
    let mut follow = std::process::Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    follow.args(["jobs", "output", &job, "--follow", "--data", "data"]).current_dir(server.directory());
    follow.env_remove("CROSSPOINT_SERVER").stdout(std::process::Stdio::piped());
    let mut follow = follow.spawn().expect("the program starts");
    let mut seen = [0; 4];
    let mut printed = follow.stdout.take().expect("it is piped");
    std::io::Read::read_exact(&mut printed, &mut seen).expect("it prints what there is");
    assert_eq!(&seen, b"a\xff\0b");
    std::fs::write(server.directory().join("go"), "").expect("it can be written");
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut printed, &mut rest).expect("it ends");
    assert_eq!((rest.as_slice(), follow.wait().expect("it ends").code()), (&b"end\n"[..], Some(0)));
    let whole = beside(&server, &["jobs", "output", &job]).output().expect("the program starts");
    assert_eq!((whole.stdout.as_slice(), whole.status.code()), (&b"a\xff\0bend\n"[..], Some(0)));
    let end = beside(&server, &["jobs", "output", &job, "--from", "4", "--attempt", "1"]).output().expect("it starts");
    assert_eq!(end.stdout, b"end\n");
    let none = said(&server, &["jobs", "output", "0199d3a2-8b1e-7000-8000-0004b2c6d8e1"]);
    assert!(none.starts_with("exit 2") && none.contains("jobs list"), "{none}");
}

#[test]
fn an_output_is_followed_across_a_restart_of_the_server() {
    let server_toml = bash("prints", "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second", "");
    let mut server = Server::configured(&server_toml);
    let job = detached(&server, &["prints"]);
    let mut follow = std::process::Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    follow.args(["jobs", "output", &job, "-f", "--data", "data"]).current_dir(server.directory());
    follow.env_remove("CROSSPOINT_SERVER").stdout(std::process::Stdio::piped());
    let mut follow = follow.spawn().expect("the program starts");
    let mut printed = follow.stdout.take().expect("it is piped");
    let mut seen = [0; 6];
    std::io::Read::read_exact(&mut printed, &mut seen).expect("it prints what there is");
    server.kill();
    std::fs::write(server.directory().join("go"), "").expect("it can be written");
    server.restart();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut printed, &mut rest).expect("it ends");
    assert_eq!(rest, "first\nsecond\n", "nothing twice: the second attempt printed its own");
    assert!(follow.wait().expect("it ends").success());
}
