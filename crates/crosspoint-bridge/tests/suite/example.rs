//! The example does what it says.

use std::path::PathBuf;
use std::process::{Command, Output};

use crosspoint_bridge::{Pair, response};

use crate::scratch::Scratch;

/// Cargo puts examples beside the directory of the tests.
fn review(scratch: &Scratch, arguments: &[&str]) -> Output {
    let tests = std::env::current_exe().expect("it is known");
    let built: PathBuf = tests.parent().and_then(|it| it.parent()).expect("it is in one").join("examples/review");
    assert!(built.exists(), "build it: cargo build -p crosspoint-bridge --example review");
    Command::new(built).args(arguments).current_dir(scratch.path()).output().expect("it starts")
}

#[test]
fn the_review_asks_twice_and_is_started_three_times() {
    let scratch = Scratch::new();
    assert_eq!(review(&scratch, &["a.txt"]).status.code(), Some(42));
    assert!(scratch.text(".agent-request.json").contains("Review a.txt."));
    scratch.answer("Fine work.");
    assert_eq!(review(&scratch, &["a.txt", "--resume"]).status.code(), Some(42));
    assert!(scratch.text(".agent-request.json").contains("Fine work."));
    scratch.answer("Fine.");
    let done = review(&scratch, &["a.txt", "--resume"]);
    assert_eq!((done.status.code(), done.stdout.as_slice()), (Some(0), &b"Fine.\n"[..]));
    assert_eq!(scratch.list(), [""; 0], "nothing is left");
}

#[test]
fn started_without_resume_it_begins_a_new_run() {
    let scratch = Scratch::new();
    review(&scratch, &["a.txt"]);
    let first = scratch.answer("Fine work.");
    assert_eq!(review(&scratch, &["a.txt"]).status.code(), Some(42));
    let second = scratch.answer("Other work.");
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
    review(&scratch, &["a.txt", "--resume"]);
    assert!(scratch.text(".agent-request.json").contains("Other work."));
}

#[test]
fn a_reviewer_that_fails_does_not_stop_it() {
    let scratch = Scratch::new();
    review(&scratch, &["a.txt"]);
    let id = scratch.request(Pair::PLAIN).expect("it waits").request_id;
    let document = response::error(&id, "timeout", "It took too long.", "2026-01-01T00:00:00Z", 120.0);
    response::write(&scratch.open(), Pair::PLAIN, &document).expect("it can be written");
    assert_eq!(review(&scratch, &["a.txt", "--resume"]).status.code(), Some(42));
    assert!(scratch.text(".agent-request.json").contains("nobody could review it: It took too long. (timeout)"));
}
