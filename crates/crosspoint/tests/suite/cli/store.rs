//! `crosspoint store`: check and export, of stores that are whole, damaged, in use, or missing.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::program::{crosspoint, stdout, transcript};
use crate::support::server::{Server, until};
use crate::support::stores::Stored;

fn store_of(server: &Server) -> String {
    format!("sqlite:{}", server.data().join("jobs.db").display())
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn of_kind<'l>(lines: &'l [Value], kind: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

/// A server with a job of every sort: done, failed, printed, asking, answered.
fn busy() -> Server {
    let server = Server::start();
    let submit = |body: &str| server.submit(body)["id"].as_str().expect("an id").to_owned();
    // A document with line breaks and an escape, which are kept as they came.
    let spread =
        "{\n  \"work\": \"echo\",\r\n  \"input\": {\n\"text\": \"gr\\u00fc\u{df}e\"\n},\n \"request_id\": \"r-1\"}";
    server.ended(&submit(spread));
    server.ended(&submit(r#"{"work":"fail","input":{"message":"no"}}"#));
    server.ended(&submit(r#"{"work":"slow_echo","input":{"seconds":0.01}}"#));
    let asks =
        submit(r#"{"work":"ask","input":{"prompt":"?"},"limits":{"seconds":900,"attempts":3},"priority":"high"}"#);
    server.in_state(&asks, "waiting");
    server
}

#[test]
fn an_export_holds_everything_while_the_server_runs() {
    let server = busy();
    let text = stdout(&mut crosspoint(&["store", "export", "--store", &store_of(&server)]));
    let lines = lines(&text);
    assert_eq!(
        (&lines[0]["kind"], &lines[0]["format"], &lines[0]["last_job"]),
        (&json!("store"), &json!(1), &json!(4))
    );
    assert_eq!(lines.last(), Some(&json!({"kind": "end", "jobs": 4, "unread": 0})));
    let jobs = of_kind(&lines, "job");
    assert_eq!(jobs.len(), 4);
    for job in &jobs {
        let id = job["job"]["id"].as_str().expect("it has an id");
        let mut shown = server.job(id);
        // Only a server knows this.
        shown.as_object_mut().expect("a job").remove("stuck");
        assert_eq!(job["job"], shown);
        let document =
            of_kind(&lines, "document").into_iter().find(|line| line["job"] == id).expect("it has a document");
        assert_eq!(document["text"], server.get(&format!("/api/v1/jobs/{id}/document")).text());
        let stream = server.get(&format!("/api/v1/jobs/{id}/events?follow=false")).text();
        let told: Vec<&str> = stream.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
        let events: Vec<&Value> = of_kind(&lines, "event").into_iter().filter(|line| line["job"] == id).collect();
        assert!(events.iter().map(|line| line["event"].as_str().expect("a name")).eq(told), "{events:?}");
        assert!(events.iter().map(|line| line["n"].as_u64()).eq((1..=events.len() as u64).map(Some)));
    }
    let outputs = of_kind(&lines, "event").into_iter().filter(|line| line["event"] == "output");
    let printed: String = outputs.map(|line| line["data"]["text"].as_str().expect("a text")).collect();
    assert!(printed.starts_with("Step 1 of 10\n") && printed.ends_with("Step 10 of 10\n"), "{printed}");
    assert_eq!(jobs[0]["record"]["request_key"], json!({"request_id": "r-1"}));
    assert_eq!(jobs[3]["record"]["limits"]["attempts"], 3);
    assert_eq!(jobs[3]["record"]["questions_asked"], 0, "those before the one that it waits with");
}

#[test]
fn an_export_can_be_of_some_jobs() {
    let server = busy();
    let count = |arguments: &[&str]| {
        let store = store_of(&server);
        let all = [&["store", "export", "--store", &store], arguments].concat();
        of_kind(&lines(&stdout(&mut crosspoint(&all))), "job").len()
    };
    assert_eq!(count(&["--state", "failed"]), 1);
    assert_eq!(count(&["--state", "failed,waiting", "--since", "1h"]), 2);
    assert_eq!(count(&["--since", "2026-01-01"]), 4);
    assert_eq!(count(&["--since", "2100-01-01T00:00:00Z"]), 0);
    let said = transcript(&mut crosspoint(&["store", "export", "--since", "yesterday"]));
    assert!(said.starts_with("exit 2\n") && said.contains("how long ago as 24h"), "{said}");
}

/// Whether a page says which tables there are. Without it nothing can be read.
fn has_schema(page: &[u8]) -> bool {
    page.windows(b"CREATE TABLE".len()).any(|text| text == b"CREATE TABLE")
}

/// Pages of the file are overwritten with garbage: everything else is exported, and what is missing is named.
#[test]
fn an_export_of_a_damaged_store_saves_what_can_be_read() {
    const PAGE: usize = 4_096;
    const JOBS: usize = 200;
    let mut server = Server::start();
    assert!(server.stop().success());
    let mut stored = Stored::new(&server.data());
    for _ in 1..JOBS {
        let id = stored.begin();
        stored.end(id);
    }
    drop(stored);
    // A server that has written something leaves everything in the one file when it ends.
    server.restart();
    assert_eq!(server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#).status, 200);
    assert!(server.stop().success());
    let bytes = fs::read(server.data().join("jobs.db")).expect("it can be read");
    let is_leaf = |page: &usize| bytes[page * PAGE] == 0x0d && !has_schema(&bytes[page * PAGE..][..PAGE]);
    let leaves: Vec<usize> = (4..bytes.len() / PAGE).filter(is_leaf).collect();
    let broken = server.data().join("broken.db");
    let (mut unread, mut without) = (0, 0);
    for page in leaves.iter().skip(1).step_by(5) {
        let mut torn = bytes.clone();
        torn[page * PAGE..(page + 1) * PAGE].fill(0xa5);
        fs::write(&broken, torn).expect("it can be written");
        let output = crosspoint(&["store", "export", "--store", &format!("sqlite:{}", broken.display())]).output();
        let output = output.expect("it starts");
        assert!([0, 1].contains(&output.status.code().expect("it exits")), "page {page}: {output:?}");
        let lines = lines(&String::from_utf8_lossy(&output.stdout));
        let (jobs, missing) = (of_kind(&lines, "job").len(), of_kind(&lines, "unread").len());
        assert!(jobs > JOBS / 2, "page {page}: only {jobs} jobs were saved");
        assert_eq!(output.status.code() == Some(1), missing > 0, "page {page}");
        assert!(jobs == JOBS || missing > 0, "page {page}: what is missing is named");
        assert_eq!(lines.last().map(|line| &line["kind"]), Some(&json!("end")), "page {page}");
        unread += missing;
        without += usize::from(jobs < JOBS);
    }
    assert!(unread > 0 && without > 0, "rows of jobs were damaged, and what belongs to them: {unread}, {without}");
}

#[test]
fn an_interrupted_export_leaves_nothing_behind() {
    let mut server = Server::start();
    assert!(server.stop().success());
    let mut stored = Stored::new(&server.data());
    let id = stored.begin();
    for block in 0..200 {
        stored.print(id, block * 100_000, vec![b'x'; 100_000]);
    }
    stored.end(id);
    drop(stored);
    let directory = server.data().join("exports");
    fs::create_dir(&directory).expect("it can be made");
    let program = assert_cmd::cargo::cargo_bin!("crosspoint");
    let mut export = Command::new(program);
    export.args(["store", "export", "--store", &store_of(&server), "--output", "jobs.jsonl"]).current_dir(&directory);
    let mut child = export.stderr(Stdio::null()).spawn().expect("it starts");
    until("it has written something", || {
        let is_begun = open_file_in(child.id(), &directory).is_some_and(|draft| draft.len() > 0);
        (is_begun || directory.join("jobs.jsonl").exists()).then_some(())
    });
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let left: Vec<_> =
        fs::read_dir(&directory).expect("it can be listed").map(|entry| entry.expect("an entry").file_name()).collect();
    assert!(left.is_empty() || left == ["jobs.jsonl"], "{left:?}");
}

/// A file of this directory that a process has open, whether or not the file has a name.
fn open_file_in(pid: u32, directory: &Path) -> Option<fs::Metadata> {
    let mut open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten().map(|entry| entry.path());
    let file = open.find(|file| fs::read_link(file).is_ok_and(|to| to.starts_with(directory)))?;
    fs::metadata(file).ok()
}

#[test]
fn agents_that_joined_are_exported() {
    let server = Server::start();
    let joining =
        r#"{"session":"5f0c6c1e-8d0a-4c2e-9d8b-0a4f3f2f9b11","work":["haul"],"concurrency":7,"repeatable":false}"#;
    assert_eq!(server.post("/api/v1/agents/three/join", joining).status, 200);
    let lines = lines(&stdout(&mut crosspoint(&["store", "export", "--store", &store_of(&server)])));
    let members = of_kind(&lines, "member");
    let shown =
        members.iter().map(|member| (&member["name"], &member["work"], &member["recovery"], &member["lease_seconds"]));
    let expected = (&json!("three"), &json!(["haul"]), &json!("resume_once"), &json!(15.0));
    assert_eq!(shown.collect::<Vec<_>>(), [expected]);
}

#[test]
fn what_a_job_is_addressed_to_and_to_whom_its_outcome_is_owed_are_exported() {
    let data = std::env::temp_dir().join(format!("crosspoint-owed-{}", std::process::id()));
    fs::create_dir_all(&data).expect("a directory can be made");
    let mut stored = Stored::new(&data);
    let ids = [stored.begin(), stored.begin()];
    ids.into_iter().for_each(|id| stored.end(id));
    drop(stored);
    let store = rusqlite::Connection::open(data.join("jobs.db")).expect("it opens");
    let sql = r#"UPDATE job SET addressed = 'coder', echo = '{"task_id":"t"}', notify = 'one', stays = 1 WHERE seq = 1;
        INSERT INTO owed VALUES (1, 'one');
        INSERT INTO member VALUES ('far', 'linked', '["dig"]', '{"repeats":false,"same_agent":true,"recovery":"resume"}',
            1, NULL, 'digger', 7, CAST('{"base_url":"http://127.0.0.1"}' AS BLOB))"#;
    store.execute_batch(sql).expect("it can be changed");
    drop(store);
    let lines = lines(&stdout(crosspoint(&["store", "export", "--data"]).arg(&data)));
    let records: Vec<&Value> = of_kind(&lines, "job").into_iter().map(|line| &line["record"]).collect();
    let shown = ["addressed", "echo", "notify", "owed", "stays"].map(|name| records[0][name].clone());
    assert_eq!(json!(shown), json!(["coder", r#"{"task_id":"t"}"#, "one", true, true]));
    assert!(records[1].get("notify").is_none() && records[1].get("owed").is_none(), "{}", records[1]);
    let member = of_kind(&lines, "member")[0];
    let shown = ["agent_type", "concurrency", "repeats"].map(|name| member[name].clone());
    assert_eq!(json!(shown), json!(["digger", 7, "same_agent"]));
    assert_eq!(member["registration"]["text"], r#"{"base_url":"http://127.0.0.1"}"#);
    let _ = fs::remove_dir_all(data);
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let server = busy();
    let directory = server.data().join("exports");
    fs::create_dir(&directory).expect("it can be made");
    let file = directory.join("jobs.jsonl");
    fs::write(&file, "what was there before").expect("it can be written");
    let export = |store: &str, file: &Path| {
        transcript(&mut crosspoint(&["store", "export", "--store", store, "--output", &file.display().to_string()]))
    };
    let whole = server.data().join("jobs.db");
    let broken = server.data().join("broken.db");
    let bytes = fs::read(&whole).expect("it can be read");
    fs::write(&broken, &bytes[..bytes.len().min(4_096)]).expect("it can be written");
    let said = export(&format!("sqlite:{}", broken.display()), &file);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "what was there before");
    assert_eq!(export(&store_of(&server), &file), "exit 0\n--- stdout\n--- stderr\n");
    let text = fs::read_to_string(&file).expect("it is there");
    assert_eq!(lines(&text).last().map(|line| line["kind"].clone()), Some(json!("end")));
    let left: Vec<_> = fs::read_dir(&directory).expect("it can be listed").collect();
    assert_eq!(left.len(), 1, "no draft is left: {left:?}");
    let pipe = directory.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    let said = export(&store_of(&server), &pipe);
    assert!(said.starts_with("exit 2\n") && said.contains("is no file"), "{said}");
    assert!(!fs::metadata(&pipe).expect("it is still there").is_file());
    let nowhere = directory.join("missing/jobs.jsonl");
    let said = export(&store_of(&server), &nowhere);
    assert!(said.starts_with("exit 2\n") && said.contains("cannot write"), "{said}");
}

#[test]
fn a_reader_of_an_export_may_leave_early() {
    let server = busy();
    let mut program = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"))
        .args(["store", "export", "--store", &store_of(&server)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(program.stdout.take());
    let output = program.wait_with_output().expect("the program ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

/// Most memory that exporting long output may need beside that for short output, in bytes.
const EXPORT_BYTES_MAX: u64 = 16_000_000;

/// Output that is much longer than the memory for it, some of it not text. The program itself takes as much memory as
/// its pages that happen to be mapped, so what counts is how much more a long export takes than a short one.
#[test]
fn a_long_output_is_exported_piece_by_piece() {
    let server = Server::start();
    let [short, long] = [("short", 4), ("long", 250)].map(|(name, blocks)| exported(&server.data().join(name), blocks));
    let more = long.saturating_sub(short);
    assert!(short > 0 && long < 64_000_000, "the whole program took {long} bytes");
    assert!(more < EXPORT_BYTES_MAX, "50 MB were exported with {more} bytes more than 0.8 MB ({short})");
}

/// Exports a job with this many blocks of output; returns the program's peak memory near the end.
fn exported(data: &Path, blocks: u64) -> u64 {
    const BLOCK: usize = 200_000;
    let mut stored = Stored::new(data);
    let id = stored.begin();
    for block in 0..blocks {
        let byte = if block % 2 == 0 { b'x' } else { 0xff };
        stored.print(id, block * BLOCK as u64, vec![byte; BLOCK]);
    }
    stored.end(id);
    drop(stored);
    let mut program = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"))
        .args(["store", "export", "--data", &data.display().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut out = BufReader::new(program.stdout.take().expect("it has an output"));
    let (mut outputs, mut high) = (0, 0);
    let mut line = String::new();
    while out.read_line(&mut line).expect("it can be read") > 0 {
        let value: Value = serde_json::from_str(&line).expect("it is JSON");
        if value["event"] == "output" {
            let name = if outputs % 2 == 0 { "text" } else { "base64" };
            let text = value["data"][name].as_str().unwrap_or_else(|| panic!("output {outputs} is under {name}"));
            assert_eq!(value["data"]["offset"], outputs * BLOCK as u64);
            assert!(if name == "text" { text.len() == BLOCK } else { text.starts_with("////") });
            outputs += 1;
            // The export waits until the test reads on, so it is still running when its memory is measured.
            if outputs == blocks - 2 {
                high = high_water(program.id());
            }
        }
        line.clear();
    }
    assert!(program.wait().expect("it ends").success());
    assert_eq!(outputs, blocks);
    high
}

/// Peak memory of a process.
fn high_water(pid: u32) -> u64 {
    let mut status = String::new();
    fs::File::open(format!("/proc/{pid}/status"))
        .and_then(|mut file| file.read_to_string(&mut status))
        .expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is said");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1_024
}

#[test]
fn a_store_that_is_whole_is_said_to_be_while_the_server_runs_and_after() {
    let mut server = busy();
    let check = |server: &Server, more: &[&str]| {
        let store = store_of(server);
        transcript(&mut crosspoint(&[&["store", "check", "--store", &store], more].concat()))
    };
    for _ in 0..2 {
        let said = check(&server, &[]);
        assert!(said.starts_with("exit 0\n--- stdout\nok: ") && said.contains(" is whole: 4 jobs, "), "{said}");
        assert!(said.ends_with("--- stderr\n"), "{said}");
        server.kill();
    }
    let said = check(&server, &["--json"]);
    let sum: Value = serde_json::from_str(said.lines().nth(2).expect("a line")).expect("it is JSON");
    assert_eq!((&sum["whole"], &sum["jobs"], &sum["findings"]), (&json!(true), &json!(4), &json!(0)));
}

#[test]
fn damage_is_told_with_what_to_do_and_without_content() {
    const PAGE: usize = 4_096;
    let mut server = Server::start();
    for n in 0..60 {
        let text = "secret ".repeat(60);
        server.submit(&format!(r#"{{"work":"echo","input":{{"n":{n},"text":"{text}"}}}}"#));
    }
    assert!(server.stop().success());
    let copy = server.data().join("copy.db");
    let mut bytes = fs::read(server.data().join("jobs.db")).expect("it can be read");
    let pages = bytes.len() / PAGE;
    let is_row = |page: &usize| !has_schema(&bytes[page * PAGE..][..PAGE]);
    let damaged: Vec<usize> = (pages / 2..pages).step_by(3).filter(is_row).collect();
    for page in damaged {
        bytes[page * PAGE..page * PAGE + 600].fill(0x5a);
    }
    fs::write(&copy, &bytes).expect("it can be written");
    let store = format!("sqlite:{}", copy.display());
    let said = transcript(&mut crosspoint(&["store", "check", "--store", &store]));
    assert!(said.starts_with("exit 1\n--- stdout\nerror[pages]: "), "{said}");
    assert!(said.contains("\n  = hint: stop the server, copy the store away"), "{said}");
    assert!(said.contains("\ndamaged: ") && !said.contains("secret"), "{said}");
    let said = transcript(&mut crosspoint(&["store", "check", "--store", &store, "--json"]));
    let findings =
        lines(said.split("--- stdout\n").nth(1).and_then(|rest| rest.split("--- stderr").next()).expect("it"));
    let (sum, findings) = findings.split_last().expect("there is a sum");
    assert_eq!((&sum["whole"], sum["findings"].as_u64()), (&json!(false), Some(findings.len() as u64)));
    assert!(findings.iter().all(|finding| finding["flaw"].is_string() && finding["hint"].is_string()));
}

#[test]
fn what_is_no_store_can_be_neither_checked_nor_exported() {
    let server = Server::start();
    let nothing = format!("sqlite:{}", server.data().join("nothing.db").display());
    let other = server.data().join("other.db");
    fs::write(&other, "some other file, with enough in it to be read as a header of something else, but not ours")
        .expect("it can be written");
    let other = format!("sqlite:{}", other.display());
    for action in ["check", "export"] {
        let said = transcript(&mut crosspoint(&["store", action, "--store", &nothing]));
        assert!(said.starts_with("exit 2\n--- stdout\n--- stderr\nerror: there is no store at"), "{said}");
        assert!(said.contains("hint: "), "{said}");
        assert!(!server.data().join("nothing.db").exists(), "none is made to be looked at");
        let said = transcript(&mut crosspoint(&["store", action, "--store", &other]));
        assert!(said.starts_with("exit 2\n") && said.contains("is not a store of crosspoint"), "{said}");
    }
}

#[test]
fn after_a_clean_end_everything_is_in_the_one_file() {
    let mut server = busy();
    assert!(server.stop().success());
    let copy = server.data().join("copy.db");
    fs::copy(server.data().join("jobs.db"), &copy).expect("it can be copied");
    let said = transcript(&mut crosspoint(&["store", "check", "--store", &format!("sqlite:{}", copy.display())]));
    assert!(said.starts_with("exit 0\n") && said.contains("4 jobs"), "{said}");
}
