//! How long jobs are kept: the real server with short limits, killed in the middle, and its store checked.

use std::thread;

use serde_json::Value;

use crate::support::program::{crosspoint, stdout, transcript};
use crate::support::server::{Server, until};
use crate::support::stores::Stored;

fn check(server: &Server) -> String {
    let store = format!("sqlite:{}", server.data().join("jobs.db").display());
    transcript(&mut crosspoint(&["store", "check", "--store", &store]))
}

fn assert_whole(server: &Server) {
    let said = check(server);
    assert!(said.starts_with("exit 0\n") && said.contains("is whole"), "{said}");
}

fn id_of(job: &Value) -> String {
    job["id"].as_str().expect("it has an id").to_owned()
}

fn ids(server: &Server) -> Vec<String> {
    let page = server.get("/api/v1/jobs?limit=500").json();
    page["jobs"].as_array().expect("a page has jobs").iter().map(id_of).collect()
}

#[test]
fn a_job_that_is_old_enough_was_never_there_and_its_number_is_not_given_again() {
    // This is two seconds.
    let mut server = Server::configured("[store]\nretention_days = 0.0000231\n");
    let request = r#"{"work":"echo","input":{"a":1},"request_id":"r"}"#;
    let first = id_of(&server.submit(request));
    let path = format!("/api/v1/jobs/{first}");
    let answer = until("it is gone", || Some(server.get(&path)).filter(|answer| answer.status == 404));
    let hint = answer.json()["error"]["hint"].as_str().expect("it has a hint").to_owned();
    assert!(hint.contains("retention_days"), "{hint}");
    for (method, rest) in [("GET", "/events"), ("GET", "/document"), ("POST", "/cancel"), ("POST", "/retry")] {
        assert_eq!(server.request(method, &format!("{path}{rest}"), &[], b"").status, 404, "{rest}");
    }
    let data = server.data().display().to_string();
    let said = transcript(&mut crosspoint(&["jobs", "show", &first, "--data", &data]));
    assert!(said.starts_with("exit 2\n") && said.contains("retention_days"), "{said}");
    // The same request is a new job, also after a start with an empty store.
    let second = id_of(&server.submit(request));
    assert!(second > first, "ids sort by time");
    until("it is gone", || ids(&server).is_empty().then_some(()));
    assert!(server.stop().success());
    assert_whole(&server);
    server.restart();
    let third = id_of(&server.submit(request));
    assert!(third > second);
    let data = server.data().to_owned();
    let exported = stdout(crosspoint(&["store", "export", "--data"]).arg(&data));
    assert!(exported.contains(r#""last_job":3"#), "the number goes on: {exported}");
}

#[test]
fn only_so_many_jobs_are_kept_however_often_the_server_is_killed_meanwhile() {
    const KEPT: usize = 40;
    let mut server =
        Server::with(&format!("[store]\nretention_jobs = {KEPT}\nretention_min_days = 0\n"), &["--log", "warn"]);
    let alive = id_of(&server.submit(r#"{"work":"ask","input":{"prompt":"?"}}"#));
    server.in_state(&alive, "waiting");
    for round in 0..5 {
        let server_now = &server;
        let call = || {
            for _ in 0..60 + 10 * round {
                let body = br#"{"work":"echo","input":{"text":"some text"}}"#;
                assert_eq!(server_now.request("POST", "/api/v1/jobs?wait=60", &[], body).status, 200);
            }
        };
        thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(call))));
        // Perhaps in the middle of removing what the callers left. The engine's own tests kill at every step of that.
        server.kill();
        assert_whole(&server);
        server.restart();
        assert_whole(&server);
    }
    until("no more are kept than may be", || (ids(&server).len() == KEPT + 1).then_some(()));
    assert_eq!(server.job(&alive)["state"], "waiting", "what lives is kept");
    assert_eq!(ids(&server).last(), Some(&alive));
}

/// Ten megabytes of output are removed in many steps, through kills, and are never seen in part.
#[test]
fn a_long_job_is_there_whole_or_not_at_all_while_it_is_removed() {
    let mut server = Server::with("[store]\nretention_days = 0\n", &["--log", "warn"]);
    assert!(server.stop().success());
    let mut stored = Stored::new(&server.data());
    let id = stored.begin();
    for block in 0..100 {
        stored.print(id, block * 100_000, vec![b'x'; 100_000]);
    }
    stored.end(id);
    drop(stored);
    server.restart();
    let path = format!("/api/v1/jobs/{id}/events");
    assert_eq!(server.get(&path).text().matches("event: output").count(), 100, "0 is for ever");
    assert!(server.stop().success());
    server.configure("[store]\nretention_days = 0.00000001\n");
    for _ in 0..3 {
        server.restart();
        let answer = server.get(&path);
        match answer.status {
            404 => {}
            // A stream that began before the removal ends cleanly: its events have no gap from the first on, and the
            // outcome comes only after all of them.
            _ => {
                let text = answer.text();
                let offsets: Vec<u64> = text
                    .lines()
                    .filter_map(|line| {
                        serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok()?["offset"].as_u64()
                    })
                    .collect();
                let expected: Vec<u64> = (0..offsets.len() as u64).map(|block| block * 100_000).collect();
                assert_eq!(offsets, expected);
                assert!(offsets.len() == 100 || !text.contains("event: completed"), "{} blocks", offsets.len());
            }
        }
        server.kill();
        assert_whole(&server);
    }
    server.restart();
    until("it is gone", || (server.get(&path).status == 404).then_some(()));
    until("nothing is left", || check(&server).contains(": 0 jobs, 0 events").then_some(()));
    assert_eq!(server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#).status, 200);
}

#[test]
fn a_number_of_jobs_yields_to_their_youngest_age_and_that_is_said() {
    let server = Server::with("[store]\nretention_jobs = 3\n", &["--log", "warn"]);
    let wish = |n: u32| format!(r#"{{"work":"echo","input":{n},"request_id":"r{n}"}}"#);
    let ids: Vec<Value> = (0..10).map(|n| server.post("/api/v1/jobs?wait=60", &wish(n)).json()["id"].clone()).collect();
    until("it says so", || server.log().contains("more jobs are kept than [store] retention_jobs").then_some(()));
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("crosspoint_retention_overfull 1"), "{metrics}");
    for (n, id) in (0..).zip(&ids) {
        assert_eq!(
            server.post("/api/v1/jobs", &wish(n)).json()["id"],
            *id,
            "a repeat is the same job, however many came after it"
        );
    }
}

#[test]
fn a_store_that_is_full_has_room_again_when_jobs_go() {
    let limits = "[limits]\nstore_bytes = 700000\n";
    let mut server = Server::with(&format!("[store]\nretention_days = 0\n{limits}"), &["--log", "off"]);
    let body = format!(r#"{{"work":"echo","input":{{"text":"{}"}}}}"#, "x".repeat(20_000));
    let full = until("it is full", || Some(server.post("/api/v1/jobs", &body)).filter(|answer| answer.status == 503));
    assert!(full.text().contains("full"), "{full:?}");
    server.kill();
    server.configure(&format!("[store]\nretention_days = 0.0000001\n{limits}"));
    server.restart();
    until("there is room", || [200, 202].contains(&server.post("/api/v1/jobs", &body).status).then_some(()));
}
