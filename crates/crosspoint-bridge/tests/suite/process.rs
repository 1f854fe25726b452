//! Other processes: this test binary, started again to play a role, so that it can be killed.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use crosspoint_bridge::ask::Run;
use crosspoint_bridge::{Directory, Question, failpoint};
use rustix::fs::Mode;

const PART: &str = "CROSSPOINT_TEST_PART";
const DIRECTORY: &str = "CROSSPOINT_TEST_DIRECTORY";

/// The text that the writer role writes.
pub(crate) fn long_text(letter: char) -> String {
    letter.to_string().repeat(300_000)
}

pub(crate) fn start(part: &str, directory: &Path, failpoint: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("it is known"));
    command.args(["--exact", "process::plays_its_part", "--nocapture", "--test-threads", "1"]);
    command.env(PART, part).env(DIRECTORY, directory).env_remove(failpoint::VARIABLE);
    if let Some(place) = failpoint {
        command.env(failpoint::VARIABLE, place);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts")
}

pub(crate) fn play(part: &str, directory: &Path, failpoint: Option<&str>) -> ExitStatus {
    let output = start(part, directory, failpoint).wait_with_output().expect("it ends");
    output.status
}

pub(crate) fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(9)
}

#[test]
fn plays_its_part() {
    let Ok(part) = std::env::var(PART) else {
        // In the test itself, checks that the role is played at all.
        assert_eq!(play("end", Path::new("."), None).code(), Some(7));
        return;
    };
    let path = PathBuf::from(std::env::var_os(DIRECTORY).expect("a directory is given"));
    match part.as_str() {
        "end" => std::process::exit(7),
        "write" => {
            Directory::open(&path).and_then(|it| it.write(".agent-response.json", "thing", long_text('n').as_bytes()))
        }
        "write without rights" => {
            rustix::process::umask(Mode::from_raw_mode(0o777));
            Directory::open(&path).and_then(|it| it.write(".agent-response.json", "thing", b"secret"))
        }
        "hold" => {
            let directory = Directory::open(&path).expect("it is there");
            let _lock = directory.lock().expect("it is free");
            fs::write(path.join("held"), "").expect("it can be written");
            // Waits until the test closes our stdin, or kills this process.
            let _ = std::io::read_to_string(std::io::stdin());
            Ok(())
        }
        "ask" => two_questions(&path),
        other => panic!("nobody knows the part {other}"),
    }
    .expect("it is done");
}

/// A program that asks two questions, the second with the answer to the first.
fn two_questions(path: &Path) -> Result<(), crosspoint_bridge::Fault> {
    let run = Run::resume(path)?;
    let first = run.ask(&Question::new("planner", "Plan it.")).expect("it can be asked");
    let first = first.text().expect("it succeeded").to_owned();
    let second = run.ask(&Question::new("reviewer", format!("Review: {first}"))).expect("it can be asked");
    let second = second.text().expect("it succeeded").to_owned();
    fs::write(path.join("result"), format!("{first}, {second}")).expect("it can be written");
    run.finish()
}
