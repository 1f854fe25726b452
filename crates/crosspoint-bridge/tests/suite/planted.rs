//! What is planted under the names of the files is neither followed nor opened.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use crosspoint_bridge::ask::{Refused, Run};
use crosspoint_bridge::{Fault, Pair, Question, request, response};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::scratch::Scratch;

const SECRET: &str = "a secret elsewhere";

/// Puts something that is not a regular file there.
type Plant = fn(&Path);

fn link(path: &Path) {
    let target = path.with_file_name("target");
    fs::write(&target, SECRET).expect("it can be written");
    symlink(target, path).expect("it can be linked");
}

fn dangling(path: &Path) {
    symlink(path.with_file_name("nowhere"), path).expect("it can be linked");
}

fn fifo(path: &Path) {
    // Opening a FIFO to read blocks until another process opens it to write.
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("it can be made");
}

fn socket(path: &Path) {
    UnixListener::bind(path).expect("it can be bound");
}

fn directory(path: &Path) {
    fs::create_dir(path).expect("it can be made");
    fs::write(path.join("inside"), "").expect("it can be written");
}

const PLANTS: [(&str, Plant); 5] = [
    ("a symbolic link", link),
    ("a symbolic link", dangling),
    ("a named pipe", fifo),
    ("a socket", socket),
    ("a directory", directory),
];

#[test]
fn nothing_but_files_is_read() {
    for (expected, plant) in PLANTS {
        let scratch = Scratch::new();
        plant(&scratch.path().join(Pair::PLAIN.request()));
        plant(&scratch.path().join(Pair::of_phase(1).expect("there is one").response()).with_extension("json"));
        match request::look(&scratch.open(), Pair::PLAIN) {
            Err(Fault::NotAFile { what, .. }) => assert_eq!(what, expected),
            Err(fault) => panic!("{expected}: {fault}"),
            Ok(_) => panic!("{expected} was read"),
        }
        let found = response::look(&scratch.open(), Pair::of_phase(1).expect("there is one"), "id");
        assert!(matches!(found, Ok(response::Look::NotAFile(what)) if what == expected), "{expected}");
    }
}

#[test]
fn whatever_it_is_it_can_be_set_aside() {
    for (expected, plant) in PLANTS {
        let scratch = Scratch::new();
        plant(&scratch.path().join(".agent-response.json"));
        let aside = scratch.open().set_aside(".agent-response.json").expect("it can be moved");
        assert_eq!(aside.as_deref(), Some(".agent-response.json.stale-1"), "{expected}");
        assert!(scratch.path().join(".agent-response.json.stale-1").symlink_metadata().is_ok(), "{expected} is kept");
    }
}

#[test]
fn writing_replaces_a_link_and_not_what_it_leads_to() {
    let scratch = Scratch::new();
    link(&scratch.path().join(".agent-response.json"));
    scratch.open().write(".agent-response.json", "thing", b"new").expect("it can be written");
    assert_eq!((scratch.text(".agent-response.json").as_str(), scratch.text("target").as_str()), ("new", SECRET));
    assert!(scratch.path().join(".agent-response.json").symlink_metadata().expect("it is there").is_file());
}

#[test]
fn a_response_is_written_beside_what_was_planted() {
    for (expected, plant) in PLANTS {
        let scratch = Scratch::new();
        plant(&scratch.path().join(Pair::PLAIN.response()));
        let document = response::success("id", "text", "2026-01-01T00:00:00Z", 0.0);
        let aside = response::write(&scratch.open(), Pair::PLAIN, &document).expect("it can be written");
        assert_eq!(aside.as_deref(), Some(".agent-response.json.stale-1"), "{expected}");
        assert!(scratch.text(".agent-response.json").contains("\"text\""));
        if scratch.path().join("target").exists() {
            assert_eq!(scratch.text("target"), SECRET);
        }
    }
}

#[test]
fn the_asking_side_says_what_is_in_the_way() {
    let question = Question::new("agent", "Do it.");
    for (expected, plant) in PLANTS {
        let scratch = Scratch::new();
        plant(&scratch.path().join(Pair::PLAIN.request()));
        let run = Run::resume(scratch.path()).expect("it is there");
        match run.try_ask(&question) {
            Err(Refused::Fault(Fault::NotAFile { what, .. })) => assert_eq!(what, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn answers_are_not_remembered_where_a_link_leads() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path().join("elsewhere")).expect("it can be made");
    symlink("elsewhere", scratch.path().join(".agent-answers")).expect("it can be linked");
    let run = Run::resume(scratch.path()).expect("it is there");
    let refused = run.try_ask(&Question::new("agent", "Do it.")).expect_err("it is refused");
    assert!(matches!(refused, Refused::Fault(_)), "{refused:?}");
    assert_eq!(fs::read_dir(scratch.path().join("elsewhere")).expect("it is there").count(), 0);
}
