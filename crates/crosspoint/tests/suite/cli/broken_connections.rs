//! What the commands do when something breaks: the server, the connection, or the patience of the caller.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;

use crate::cli::jobs::beside;
use crate::support::program::{crosspoint, transcript};
use crate::support::programs::bash;
use crate::support::server::{Server, until};

/// A submission under way, whose stderr can be read meanwhile.
struct Waiting {
    child: Child,
    said: PathBuf,
}

impl Waiting {
    fn start(server: &Server, arguments: &[&str]) -> Waiting {
        let directory = server.data().parent().expect("the data is in a directory").to_owned();
        let said = directory.join("said");
        let child = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"))
            .current_dir(directory)
            .args(arguments)
            .args(["--data", "data"])
            .env_remove("CROSSPOINT_SERVER")
            .env_remove("HOME")
            .env_remove("XDG_CONFIG_HOME")
            .stdout(File::create(said.with_extension("out")).expect("it can be made"))
            .stderr(File::create(&said).expect("it can be made"))
            .spawn()
            .expect("the program starts");
        Waiting { child, said }
    }

    fn stderr(&self) -> String {
        fs::read_to_string(&self.said).expect("it can be read")
    }

    fn until_said(&self, text: &str) {
        until(text, || self.stderr().contains(text).then_some(()));
    }

    fn interrupt(&self) {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal was sent");
    }

    /// The job that it waits for.
    fn id(&self) -> String {
        self.stderr().lines().find_map(|line| line.strip_prefix("job ")).expect("it says which job").to_owned()
    }

    fn exit_code(&mut self) -> Option<i32> {
        until("it ends", || self.child.try_wait().expect("it can be asked")).code()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SLOW: [&str; 4] = ["submit", "slow_echo", "--input", r#"{"seconds": 2}"#];

#[test]
fn a_server_that_is_killed_and_comes_back_is_found_again() {
    let mut server = Server::start();
    let mut waiting = Waiting::start(&server, &SLOW);
    waiting.until_said("Step 2 of 10");
    server.kill();
    waiting.until_said("the connection broke");
    server.restart();
    assert_eq!(waiting.exit_code(), Some(0), "{}", waiting.stderr());
    let said = waiting.stderr();
    assert_eq!(said.matches("the connection broke").count(), 1, "{said}");
    assert!(said.contains("attempt 1 was cut short"), "{said}");
    assert_eq!(server.job(&waiting.id())["attempts"], 2);
    let stdout = fs::read_to_string(waiting.said.with_extension("out")).expect("it can be read");
    assert_eq!(stdout, "{\n  \"seconds\": 2\n}\n");
}

#[test]
fn a_server_that_stops_and_comes_back_is_found_again() {
    let mut server = Server::configured("[server]\ndrain_seconds = 0.01\n");
    let mut waiting = Waiting::start(&server, &SLOW);
    waiting.until_said("Step 2 of 10");
    assert!(server.stop().success());
    waiting.until_said("the connection broke");
    server.restart();
    assert_eq!(waiting.exit_code(), Some(0), "{}", waiting.stderr());
}

#[test]
fn ctrl_c_leaves_the_job_running_and_says_where_it_is() {
    let server = Server::start();
    let mut waiting = Waiting::start(&server, &SLOW);
    waiting.until_said("Step 2 of 10");
    waiting.interrupt();
    assert_eq!(waiting.exit_code(), Some(130));
    let id = waiting.id();
    let hint = format!("the job goes on; crosspoint jobs show {id} --data data shows it");
    assert!(waiting.stderr().contains(&hint), "{}", waiting.stderr());
    assert_eq!(server.ended(&id)["state"], "completed");
}

/// Forwards connections to the server. The first is cut when the answer comes, so that its caller cannot know what
/// happened to the request.
fn cutting_proxy(server: &Server) -> String {
    let (listener, target) = (TcpListener::bind("127.0.0.1:0").expect("a port is free"), server.address());
    let url = format!("http://{}", listener.local_addr().expect("it has an address"));
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(near) = stream else { return };
            let Ok(far) = TcpStream::connect(target) else { return };
            let (mut from_near, mut to_far) = (near.try_clone().expect("a clone"), far.try_clone().expect("a clone"));
            thread::spawn(move || std::io::copy(&mut from_near, &mut to_far));
            thread::spawn(move || pass_back(far, near, number == 0));
        }
    });
    url
}

fn pass_back(mut far: TcpStream, mut near: TcpStream, cut: bool) {
    let mut bytes = [0; 4096];
    while let Ok(count) = far.read(&mut bytes) {
        if count == 0 || cut || near.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (far.shutdown(Shutdown::Both), near.shutdown(Shutdown::Both));
}

#[test]
fn a_submission_whose_answer_is_lost_is_sent_again_and_is_one_job() {
    let server = Server::start();
    let url = cutting_proxy(&server);
    let said = transcript(&mut beside(&server, &["submit", "echo", "--server", &url]));
    assert!(said.starts_with("exit 0\n--- stdout\n{}\n"), "{said}");
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_a_killed_server_left_behind_misleads_no_command() {
    let mut server = Server::start();
    let id = server.submit(r#"{"work": "echo"}"#)["id"].as_str().expect("it has an id").to_owned();
    server.ended(&id);
    server.kill();
    assert!(server.data().join("server.json").exists());
    let listed = transcript(&mut beside(&server, &["jobs", "list"]));
    assert!(listed.starts_with("exit 0") && listed.contains(&id), "{listed}");
}

#[test]
fn without_a_server_the_store_is_opened() {
    let mut server = Server::start();
    let ask = server.submit(r#"{"work": "ask"}"#)["id"].as_str().expect("it has an id").to_owned();
    server.in_state(&ask, "waiting");
    assert!(server.stop().success());
    let said = transcript(&mut beside(&server, &["submit", "echo", "--input", "{\"a\": 1}"]));
    assert!(said.starts_with("exit 0\n--- stdout\n{\n  \"a\": 1\n}\n"), "{said}");
    // Older jobs are not driven, but can be looked at.
    let shown = transcript(&mut beside(&server, &["jobs", "show", &ask]));
    assert!(shown.contains("state       waiting"), "{shown}");
    let parked = transcript(&mut beside(&server, &["submit", "ask"]));
    assert!(parked.starts_with("exit 3") && parked.contains("start crosspoint serve"), "{parked}");
    let followed = transcript(&mut beside(&server, &["jobs", "events", &ask, "--follow"]));
    assert!(followed.starts_with("exit 2") && followed.contains("question"), "{followed}");
    assert!(followed.contains("no server runs that would go on with it\nhint: start crosspoint serve"), "{followed}");
    let listed = transcript(&mut beside(&server, &["agents", "list"]));
    assert!(listed.starts_with("exit 0") && listed.contains("slow_echo"), "{listed}");
    let cancelled = transcript(&mut beside(&server, &["jobs", "cancel", &ask]));
    assert!(cancelled.contains("state       cancelled"), "{cancelled}");
    server.restart();
    assert_eq!(server.job(&ask)["state"], "cancelled");
}

/// The waiting process is also the one that works: a server takes up the job that it leaves.
#[test]
fn ctrl_c_without_a_server_keeps_the_job() {
    let mut server = Server::start();
    assert!(server.stop().success());
    let mut waiting = Waiting::start(&server, &SLOW);
    waiting.until_said("Step 2 of 10");
    waiting.interrupt();
    assert_eq!(waiting.exit_code(), Some(130), "{}", waiting.stderr());
    assert!(waiting.stderr().contains("goes on when crosspoint serve runs"), "{}", waiting.stderr());
    server.restart();
    assert_eq!(server.ended(&waiting.id())["state"], "completed");
}

/// Begins, says so, and succeeds only once the gate is open.
const GATED: &str = "echo begun >> begun; while [ ! -e gate ]; do sleep 0.05; done; echo '{\"done\": true}'";

/// The same submission again takes the job up, however the process that worked on it ended.
#[test]
fn without_a_server_the_same_submission_again_goes_on_with_its_job() {
    let mut server = Server::configured(&bash("gated", GATED, ""));
    assert!(server.stop().success());
    let submission = ["submit", "gated", "--input", "{\"a\": 1}", "--request-id", "wanted"];
    let begun = |times: usize| until("it runs", || (server.said_in("begun").lines().count() == times).then_some(()));
    let mut waiting = Waiting::start(&server, &submission);
    begun(1);
    waiting.until_said("job ");
    waiting.interrupt();
    assert_eq!(waiting.exit_code(), Some(130), "{}", waiting.stderr());
    let id = waiting.id();
    let mut waiting = Waiting::start(&server, &submission);
    begun(2);
    waiting.until_said("job ");
    waiting.child.kill().expect("it can be killed");
    waiting.child.wait().expect("it ends");
    assert_eq!(waiting.id(), id);
    // A command that only looks at the job is told that no process drives it, and does not change it.
    let followed = transcript(&mut beside(&server, &["jobs", "events", &id, "--follow"]));
    assert!(followed.starts_with("exit 2") && followed.contains("no server runs"), "{followed}");
    let left = transcript(&mut beside(&server, &[&submission[..], &["--detach"]].concat()));
    assert!(left.starts_with(&format!("exit 0\n--- stdout\n{id}\n")), "{left}");
    let shown = transcript(&mut beside(&server, &["jobs", "show", &id]));
    assert!(shown.contains("no server is running"), "{shown}");
    fs::write(server.directory().join("gate"), "").expect("it can be opened");
    let said = transcript(&mut beside(&server, &submission));
    assert!(said.starts_with("exit 0\n--- stdout\n{\n  \"done\": true\n}\n"), "{said}");
    begun(3);
    let listed = transcript(&mut beside(&server, &["jobs", "list"]));
    let jobs: Vec<&str> = listed.lines().filter(|line| line.contains("gated")).collect();
    assert!(matches!(jobs[..], [job] if job.contains(&id) && job.contains("completed")), "{listed}");
}

#[test]
fn a_job_that_no_server_drives_says_so() {
    let mut server = Server::start();
    let slow = server.submit(r#"{"work": "slow_echo", "input": {"seconds": 3600}}"#)["id"].as_str().map(str::to_owned);
    let slow = slow.expect("it has an id");
    server.in_state(&slow, "running");
    server.post("/api/v1/agents/echo/drain", "");
    let queued = server.submit(r#"{"work": "echo"}"#)["id"].as_str().map(str::to_owned).expect("it has an id");
    server.kill();
    for id in [slow, queued] {
        for arguments in [&["jobs", "show", &id][..], &["jobs", "show", &id, "--json"], &["jobs", "list"]] {
            let said = transcript(&mut beside(&server, arguments));
            assert!(said.contains("no server is running") && !said.contains("busy with"), "{said}");
        }
    }
}

#[test]
fn without_a_store_there_is_nothing_to_look_at() {
    let nowhere = std::env::temp_dir().join(format!("crosspoint-nowhere-{}", std::process::id()));
    let nowhere = nowhere.to_str().expect("it is UTF-8");
    for command in [&["jobs", "list"][..], &["agents", "list"], &["jobs", "show", "x"]] {
        let said = transcript(crosspoint(command).args(["--data", nowhere]).env_remove("CROSSPOINT_SERVER"));
        assert!(
            said.starts_with("exit 2\n--- stdout\n--- stderr\nerror: there is no server, and no store at "),
            "{said}"
        );
        assert!(said.contains("\nhint: start one with crosspoint serve"), "{said}");
    }
    assert!(!PathBuf::from(nowhere).exists());
}

#[test]
fn a_server_can_be_named_in_the_environment() {
    let server = Server::start();
    let mut command = beside(&server, &["submit", "echo"]);
    let said = transcript(command.env("CROSSPOINT_SERVER", server.url()).args(["--store", "sqlite:unused.db"]));
    assert!(said.starts_with("exit 0"), "{said}");
}
