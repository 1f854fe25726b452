//! What is acknowledged is on the disk, and not only on its way there: the system's syncs are counted, and made to fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::live::{Server, until};
use crate::run::root;

/// Stands before the C library's syncs: counts them, and fails while there is a file that says so.
const SYNCS: &str = r#"
    use std::io::Write;

    fn sync() -> i32 {
        let Some(place) = std::env::var_os("SYNCS") else { return 0 };
        let place = std::path::PathBuf::from(place);
        if place.join("fail").exists() {
            return -1;
        }
        let file = std::fs::File::options().create(true).append(true).open(place.join("count"));
        if file.and_then(|mut file| file.write_all(b"x")).is_ok() { 0 } else { -1 }
    }

    #[no_mangle]
    pub extern "C" fn fsync(_: i32) -> i32 { sync() }

    #[no_mangle]
    pub extern "C" fn fdatasync(_: i32) -> i32 { sync() }
"#;

/// A server whose syncs are ours.
struct Watched {
    server: Server,
    place: PathBuf,
}

impl Watched {
    fn start() -> Watched {
        let mut server = Server::start();
        server.kill();
        let place = server.data().join("syncs");
        fs::create_dir_all(&place).expect("a directory can be made");
        let library = library(&place);
        let preload = format!("LD_PRELOAD={}", library.display());
        server.start_by(&["env", &preload, &format!("SYNCS={}", place.display())]);
        server.restart();
        Watched { server, place }
    }

    fn count(&self) -> u64 {
        fs::metadata(self.place.join("count")).map_or(0, |file| file.len())
    }

    fn fail(&self, fail: bool) {
        let file = self.place.join("fail");
        let done = if fail { fs::write(file, "") } else { fs::remove_file(file) };
        done.expect("it can be said");
    }
}

/// Built by the compiler that has built us.
fn library(place: &Path) -> PathBuf {
    let source = place.join("syncs.rs");
    let library = place.join("libsyncs.so");
    fs::write(&source, SYNCS).expect("it can be written");
    let mut rustc = Command::new("rustc");
    rustc.current_dir(root()).args(["--edition", "2021", "--crate-type", "cdylib", "-o"]).args([&library, &source]);
    let output = rustc.output().expect("the compiler is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

#[test]
fn every_acknowledgement_comes_after_a_sync() {
    let watched = Watched::start();
    let server = &watched.server;
    let grew = |what: &str, act: &dyn Fn()| {
        let before = watched.count();
        act();
        assert!(watched.count() > before, "{what} was acknowledged and not synced");
    };
    server.post("/api/v1/agents/slow_echo/drain", "");
    for number in 0..10 {
        grew("a job", &|| drop(server.submit(&format!(r#"{{"work":"slow_echo","request_id":"r{number}"}}"#))));
    }
    let job = server.submit(r#"{"work":"slow_echo"}"#)["id"].as_str().expect("an id").to_owned();
    grew("a cancellation", &|| assert_eq!(server.post(&format!("/api/v1/jobs/{job}/cancel"), "").status, 200));
    grew("an operator's wish", &|| assert_eq!(server.post("/api/v1/agents/echo/drain", "").status, 200));
    let ask = server.submit(r#"{"work":"ask"}"#)["id"].as_str().expect("an id").to_owned();
    server.in_state(&ask, "waiting");
    let answer = format!("/api/v1/jobs/{ask}/answer");
    grew("an answer", &|| assert_eq!(server.post(&answer, r#"{"input":1}"#).status, 200));
}

#[test]
fn what_cannot_be_synced_is_not_acknowledged() {
    let watched = Watched::start();
    let server = &watched.server;
    let kept = server.submit(r#"{"work":"ask"}"#)["id"].as_str().expect("an id").to_owned();
    server.in_state(&kept, "waiting");
    watched.fail(true);
    let wish = r#"{"work":"echo","input":1,"request_id":"mine"}"#;
    let refused = server.post("/api/v1/jobs", wish);
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &json!("unavailable")), "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    let ready = server.get("/health/ready");
    assert_eq!((ready.status, &ready.json()["status"]), (503, &json!("failing")), "{ready:?}");
    for (path, body) in [("cancel", ""), ("answer", r#"{"input":1}"#)] {
        assert_eq!(server.post(&format!("/api/v1/jobs/{kept}/{path}"), body).status, 503, "{path}");
    }
    assert_eq!(server.post("/api/v1/agents/echo/drain", "").status, 503);
    assert_eq!(server.job(&kept)["state"], "waiting", "what is there can be read");
    assert_eq!(server.get("/api/v1/agents/echo").json()["drained"], false);
    watched.fail(false);
    until("it is ready again", || (server.get("/health/ready").status == 200).then_some(()));
    let jobs = server.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len);
    assert_eq!(jobs, Some(1), "what was refused was not done");
    let accepted = server.post("/api/v1/jobs?wait=60", wish);
    assert_eq!((accepted.status, &accepted.json()["outcome"]["outputs"]), (200, &json!(1)), "{accepted:?}");
    assert_eq!(server.post(&format!("/api/v1/jobs/{kept}/answer"), r#"{"input":2}"#).status, 200);
    assert_eq!(server.ended(&kept)["outcome"]["outputs"], json!({"answer": 2}));
}

#[test]
fn whoever_was_refused_and_sends_it_again_after_a_kill_has_one_job() {
    let mut watched = Watched::start();
    watched.fail(true);
    let wish = r#"{"work":"echo","input":1,"request_id":"mine"}"#;
    assert_eq!(watched.server.post("/api/v1/jobs", wish).status, 503);
    // What was written and not synced may be there or not.
    watched.server.kill();
    watched.fail(false);
    watched.server.restart();
    let job = watched.server.post("/api/v1/jobs?wait=60", wish).json();
    assert_eq!(job["outcome"]["outputs"], 1, "{job}");
    assert_eq!(watched.server.get("/api/v1/jobs").json()["jobs"], json!([job]));
}
