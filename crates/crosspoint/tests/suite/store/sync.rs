//! What is acknowledged is on the disk, and not only on its way there: the system's syncs are counted, and made to
//! fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::support::program::root;
use crate::support::server::{Server, until};

/// A library that replaces the C library's syncs and clock: it counts syncs, fails them while a certain file exists,
/// and shows a wall clock time that another file moves.
const SYNCS: &str = r#"
    use std::io::Write;

    fn sync(file: i32) -> i32 {
        let Some(place) = std::env::var_os("SYNCS") else { return 0 };
        let place = std::path::PathBuf::from(place);
        let synced = std::fs::read_link(format!("/proc/self/fd/{file}")).unwrap_or_default();
        if std::env::var_os("SYNC_DIRECTORIES").is_some() && synced.is_dir() {
            let list = std::fs::File::options().create(true).append(true).open(place.join("directories"));
            let _ = list.and_then(|mut list| writeln!(list, "{}", synced.display()));
        }
        if place.join("fail").exists() {
            return -1;
        }
        let file = std::fs::File::options().create(true).append(true).open(place.join("count"));
        if file.and_then(|mut file| file.write_all(b"x")).is_ok() { 0 } else { -1 }
    }

    #[no_mangle]
    pub extern "C" fn fsync(file: i32) -> i32 { sync(file) }

    #[no_mangle]
    pub extern "C" fn fdatasync(file: i32) -> i32 { sync(file) }

    #[repr(C)]
    pub struct Time { seconds: i64, nanos: i64 }

    extern "C" { fn syscall(number: i64, ...) -> i64; }

    #[cfg(target_arch = "x86_64")]
    const CLOCK_GETTIME: i64 = 228;
    #[cfg(not(target_arch = "x86_64"))]
    const CLOCK_GETTIME: i64 = 113;

    #[no_mangle]
    pub unsafe extern "C" fn clock_gettime(clock: i32, time: *mut Time) -> i32 {
        let done = syscall(CLOCK_GETTIME, i64::from(clock), time);
        if clock == 0 && done == 0 {
            let place = std::env::var_os("SYNCS").map(std::path::PathBuf::from).unwrap_or_default();
            let moved = std::fs::read_to_string(place.join("clock")).ok();
            (*time).seconds += moved.and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(0);
        }
        done as i32
    }
"#;

/// A server whose syncs and clock the test controls.
pub(crate) struct Watched {
    pub(crate) server: Server,
    place: PathBuf,
}

impl Watched {
    fn start() -> Watched {
        Watched::with("")
    }

    pub(crate) fn with(config: &str) -> Watched {
        let mut server = Server::with(config, &["--log", "error"]);
        server.kill();
        let place = server.data().join("syncs");
        fs::create_dir_all(&place).expect("a directory can be made");
        let library = library(&place);
        let preload = format!("LD_PRELOAD={}", library.display());
        server.start_by(&["env", &preload, &format!("SYNCS={}", place.display())]);
        server.restart();
        Watched { server, place }
    }

    pub(crate) fn count(&self) -> u64 {
        fs::metadata(self.place.join("count")).map_or(0, |file| file.len())
    }

    /// Sets the server's wall clock off by this many seconds.
    pub(crate) fn set_clock(&self, seconds: i64) {
        fs::write(self.place.join("clock.new"), seconds.to_string()).expect("it can be written");
        fs::rename(self.place.join("clock.new"), self.place.join("clock")).expect("it can be put in place");
    }

    pub(crate) fn fail(&self, fail: bool) {
        let file = self.place.join("fail");
        let done = if fail { fs::write(file, "") } else { fs::remove_file(file) };
        done.expect("it can be said");
    }
}

/// Built by the compiler that built the tests.
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

/// After a failed sync it is not known what the disk has: no command is reported as safe to repeat, except those that
/// were not even tried.
#[test]
fn what_was_tried_and_may_be_there_is_said_to_be_unknown() {
    let watched = Watched::start();
    let server = &watched.server;
    let kept = server.submit(r#"{"work":"ask"}"#)["id"].as_str().expect("an id").to_owned();
    server.in_state(&kept, "waiting");
    let task = r#"{"id":"mine","type":"ask","payload":{}}"#;
    assert_eq!(server.post("/tasks", task).status, 202);
    let session = "00000000-0000-4000-8000-000000000001";
    let wishes = [
        ("/api/v1/jobs".to_owned(), r#"{"work":"echo","request_id":"other"}"#.to_owned()),
        (format!("/api/v1/jobs/{kept}/answer"), r#"{"input":1}"#.to_owned()),
        ("/api/v1/agents/echo/drain".to_owned(), String::new()),
        ("/api/v1/agents/echo/breaker".to_owned(), r#"{"state":"open"}"#.to_owned()),
        ("/api/v1/agents/dig/join".to_owned(), format!(r#"{{"session":"{session}","work":["dig"]}}"#)),
        (format!("/api/v1/jobs/{kept}/cancel"), String::new()),
    ];
    for (path, body) in &wishes {
        watched.fail(true);
        let tried = server.post(path, body);
        assert_eq!((tried.status, &tried.json()["error"]["repeat"]), (503, &json!("unknown")), "{path}: {tried:?}");
        // From now on commands are not tried, and refused at once. Stored jobs can be looked at, also by the caller's
        // own id.
        let refused = server.post(path, body);
        assert_eq!((refused.status, &refused.json()["error"]["repeat"]), (503, &json!("safe")), "{path}: {refused:?}");
        assert_eq!(server.get("/tasks/mine").json()["status"], "input_required", "{path}");
        assert_eq!(server.get("/tasks/nobodys").status, 404);
        watched.fail(false);
        until("it is ready again", || (server.get("/health/ready").status == 200).then_some(()));
    }
}

#[test]
fn the_directories_that_are_made_are_synced_too() {
    let mut watched = Watched::start();
    watched.server.kill();
    let place = watched.place.clone();
    let elsewhere = watched.server.directory().join("elsewhere");
    fs::create_dir(&elsewhere).expect("it can be made");
    let opened = |data: &str| {
        let _ = fs::remove_file(place.join("directories"));
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
        command.current_dir(&elsewhere).args(["serve", "--listen", "127.0.0.1:0", "--log", "off", "--data", data]);
        command.env("LD_PRELOAD", place.join("libsyncs.so")).env("SYNCS", &place).env("SYNC_DIRECTORIES", "1");
        let mut child = command.stderr(std::process::Stdio::null()).spawn().expect("it starts");
        let database = elsewhere.join(data).join("jobs.db");
        until("it is there", || database.exists().then_some(()));
        until("a job could be accepted", || fs::read_to_string(elsewhere.join(data).join("server.json")).ok());
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        let synced = fs::read_to_string(place.join("directories")).unwrap_or_default();
        synced.lines().map(PathBuf::from).collect::<Vec<PathBuf>>()
    };
    let elsewhere = elsewhere.canonicalize().expect("it is there");
    let synced = opened(".crosspoint");
    assert!(synced.contains(&elsewhere), "the data directory's own entry: {synced:?}");
    assert!(synced.contains(&elsewhere.join(".crosspoint")), "the database's entry: {synced:?}");
    let synced = opened("a/b");
    for made in [elsewhere.clone(), elsewhere.join("a"), elsewhere.join("a/b")] {
        assert!(synced.contains(&made), "{}: {synced:?}", made.display());
    }
}

#[test]
fn a_request_that_was_refused_and_is_sent_again_after_a_kill_is_one_job() {
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
