//! Journals that a disk damaged, or another program wrote.

use std::fs;

use crosspoint_workflow::repository::{Fault, KEPT_FILE_BYTES_MAX, diff, failpoint, recover};
use serde_json::{Value, json};

use crate::crash::{clean, prepared, state_after};
use crate::process::{output, play, was_killed};
use crate::scratch::Scratch;

/// A repository with half an output, without its staging directory.
fn half_done() -> Scratch {
    let scratch = prepared();
    assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, "placed.1")])));
    clean(&scratch);
    scratch
}

/// Changes a member of a journal, and returns the journal as it was.
fn change(scratch: &Scratch, journal: &str, member: &str, value: Value) -> Vec<u8> {
    let path = scratch.record().join(journal);
    let before = fs::read(&path).expect("it is there");
    let mut journal: Value = serde_json::from_slice(&before).expect("it is JSON");
    *journal.pointer_mut(member).expect("it has the member") = value;
    fs::write(path, journal.to_string()).expect("it can be written");
    before
}

/// Returns what is wrong with a file of the record, because of which step 1 is not finished.
fn damage(scratch: &Scratch) -> (String, String) {
    let fault = recover(&scratch.record()).expect_err("it is damaged");
    let text = format!("{fault:?}");
    let Fault::Unfinished { step: 1, why } = fault else { panic!("{text}") };
    let Fault::Record { file, why } = *why else { panic!("{text}") };
    (file, why)
}

#[test]
fn a_journal_that_names_more_than_the_contents_have_is_damaged() {
    // A length that no memory has would end the process.
    let lengths = [u64::MAX, 1 << 60, KEPT_FILE_BYTES_MAX + 1, KEPT_FILE_BYTES_MAX, 100].map(|it| ("length", it));
    for (member, value) in lengths.into_iter().chain([("offset", u64::MAX), ("offset", 1 << 40), ("offset", 100)]) {
        let scratch = half_done();
        let pointer = format!("/entries/4/after/{member}");
        let journal = change(&scratch, "step-1.commit.json", &pointer, json!(value));
        let why = "the journal names a part that it does not have".to_owned();
        assert_eq!(damage(&scratch), ("step-1.after".to_owned(), why), "{member} {value}");
        fs::write(scratch.record().join("step-1.commit.json"), journal).expect("it can be written");
        assert_eq!(recover(&scratch.record()).expect("it is whole again").finished, [1], "{member} {value}");
        assert_eq!(scratch.tree(), state_after(), "{member} {value}");
    }
}

#[test]
fn a_difference_reads_no_more_than_the_contents_have() {
    for (member, value) in [("length", 4 << 20), ("offset", u64::MAX)] {
        let scratch = prepared();
        scratch.apply(1, &output());
        change(&scratch, "step-1.done.json", &format!("/entries/4/before/{member}"), json!(value));
        let shown = diff(&scratch.record(), &mut Vec::new(), 64 << 20);
        assert_eq!(shown.expect_err("it is damaged").kind(), std::io::ErrorKind::InvalidData, "{member} {value}");
    }
}

/// The directory would be emptied as if the step had staged its files there, or a file outside would be taken back.
#[test]
fn a_journal_that_names_what_no_step_writes_is_damaged() {
    let staging = ["", ".", "old", "../outside", ".crosspoint-", ".crosspoint-0123456789abcde/"];
    let staging = staging.map(|name| ("/staging", json!(name), "it names no staging directory"));
    let paths = ["../outside/file", "a/../../outside/file", "", "./", "a\0"];
    let paths = paths.map(|path| ("/entries/0/path", json!(path), "it names a path that no step writes"));
    let others = [
        ("/directories/0", json!("../outside/new"), "it names a path that no step writes"),
        ("/step", json!(2), "it is about step 2"),
        ("/version", json!(2), "it has version 2, and this program knows version 1"),
    ];
    for (member, value, why) in staging.into_iter().chain(paths).chain(others) {
        let scratch = half_done();
        fs::create_dir(scratch.path().join("outside")).expect("it can be made");
        fs::write(scratch.path().join("outside/file"), "theirs").expect("it can be written");
        let half = scratch.tree();
        change(&scratch, "step-1.commit.json", member, value.clone());
        assert_eq!(damage(&scratch), ("step-1.commit.json".to_owned(), why.to_owned()), "{member} {value}");
        assert_eq!(scratch.tree(), half, "{member} {value}");
    }
}

#[test]
fn a_journal_that_is_longer_than_any_is_not_read() {
    let scratch = half_done();
    let journal = fs::File::options().write(true).open(scratch.record().join("step-1.commit.json"));
    // It takes no room on the disk.
    journal.expect("it is there").set_len(1 << 40).expect("it can be longer");
    assert_eq!(damage(&scratch).1, "it is longer than any journal");
}
