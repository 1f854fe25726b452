//! A store that an earlier version wrote, and what that version showed of it: both are kept in `testdata/stores`.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::program::{crosspoint, root, stdout};
use crate::support::server::Server;

fn kept(file: &str) -> PathBuf {
    root().join("testdata/stores/schema-7").join(file)
}

/// Jobs that had not ended: a server goes on with them, so it shows something else.
const UNDER_WAY: [&str; 3] = ["n-waits", "n-review-open", "n-joined-2"];

fn is_under_way(job: &Value) -> bool {
    UNDER_WAY.iter().any(|name| job["request_id"] == **name)
}

/// Later versions say of each broken rule how much it matters, of old ones that it is an error.
fn without_levels(text: &str) -> String {
    text.replace(r#","level":"error""#, "")
}

/// Later versions show broken rules beside the outcome in the last event too.
fn without_violations(text: &str) -> String {
    let Some((before, rest)) = text.split_once(r#","violations":["#) else { return text.to_owned() };
    let (_, after) = rest.split_once(']').expect("a list has an end");
    before.to_owned() + after
}

/// Earlier versions listed what they had filled into an answer that no agent wrote as a document.
fn without_filled(text: &str) -> String {
    let Some((before, rest)) = text.split_once(r#","filled":"#) else { return text.to_owned() };
    let (_, after) = rest.split_once("}}").expect("an object has an end");
    before.to_owned() + after
}

/// Earlier versions did not say how a job came from its parent.
fn without_origins(text: &str) -> String {
    let mut parts = text.split(r#""origin":{"retry_of":"#);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, after) = part.split_once("},").expect("an object has an end");
        whole.push_str(after);
    }
    whole
}

/// Nor did they name questions.
fn without_question_ids(text: &str) -> String {
    let mut parts = text.split(r#","question_id":""#);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (_, after) = part.split_once('"').expect("a text has an end");
        whole.push_str(after);
    }
    whole
}

#[test]
fn everything_is_exported_as_it_was() {
    for schema in ["schema-7", "schema-8", "schema-10", "schema-12", "schema-13", "schema-14", "schema-15"] {
        let kept = |file: &str| root().join("testdata/stores").join(schema).join(file);
        let data = std::env::temp_dir().join(format!("crosspoint-older-{schema}-{}", std::process::id()));
        fs::create_dir_all(&data).expect("a directory can be made");
        fs::copy(kept("jobs.db"), data.join("jobs.db")).expect("it can be copied");
        let expected = fs::read_to_string(kept("export.jsonl")).expect("it is there");
        let exported = stdout(crosspoint(&["store", "export", "--data"]).arg(&data));
        let (_, lines) = exported.split_once('\n').expect("the first line says what store it is");
        let compared = |lines: &str| without_question_ids(&without_origins(&without_levels(lines)));
        assert!(compared(lines) == compared(&expected), "{schema}: the export differs");
        let _ = fs::remove_dir_all(data);
    }
}

#[test]
fn a_server_shows_every_job_and_answers_every_caller_as_the_earlier_one_did() {
    // None of that store's agents is configured, and no job is ever old enough to be removed.
    let mut server = Server::configured("[store]\nretention_days = 36500\n");
    server.stop();
    fs::copy(kept("jobs.db"), server.data().join("jobs.db")).expect("it can be copied");
    for log in ["jobs.db-wal", "jobs.db-shm"] {
        let _ = fs::remove_file(server.data().join(log));
    }
    server.restart();
    let shown = fs::read_to_string(kept("shown.jsonl")).expect("it is there");
    let (mut compared, mut left) = (0, Vec::new());
    for line in shown.lines() {
        let shown: Value = serde_json::from_str(line).expect("it is JSON");
        let expected = shown["body"].as_str().expect("a body");
        let answer = match shown["get"].as_str() {
            Some(path) => server.get(path),
            None => {
                let path = shown["post"].as_str().expect("a path");
                server.request("POST", path, &[], shown["document"].to_string().as_bytes())
            }
        };
        let body = String::from_utf8_lossy(&answer.body);
        if let Some(jobs) = serde_json::from_str::<Value>(expected).ok().filter(|page| page["jobs"].is_array()) {
            let ended = |page: &Value| {
                let mut jobs = page["jobs"].as_array().expect("a list").clone();
                jobs.retain(|job| !is_under_way(job));
                jobs
            };
            assert_eq!(ended(&serde_json::from_str(&body).expect("it is JSON")), ended(&jobs));
        } else if ![without_levels(&body), without_violations(&body)].contains(&expected.to_owned())
            && body != without_filled(expected)
        {
            left.push(shown["get"].as_str().unwrap_or_default().to_owned());
            continue;
        }
        compared += 1;
    }
    // A server says what it does with jobs under way, and adds to their events, so only those may differ.
    let of_ended: Vec<&String> = left.iter().filter(|path| !is_about_work_under_way(&shown, path)).collect();
    assert!(of_ended.is_empty() && compared > 140, "{of_ended:?} differ, {compared} are the same");
}

/// Whether a path is about a job that had not ended.
fn is_about_work_under_way(shown: &str, path: &str) -> bool {
    let jobs = shown.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let bodies = jobs.filter_map(|line| serde_json::from_str::<Value>(line["body"].as_str()?).ok());
    let mut ids = bodies.filter(is_under_way).filter_map(|job| Some(job["id"].as_str()?.to_owned()));
    ids.any(|id| path.contains(&id))
}
