//! Reading, writing, removing, setting aside.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crosspoint_bridge::{Directory, Fault, Removed};

use crate::process::{long_text, play, start, was_killed};
use crate::scratch::Scratch;

const THING: &str = ".agent-response.json";
const ALL: u64 = 1 << 20;

#[test]
fn what_is_written_is_read_and_only_its_owner_may() {
    let scratch = Scratch::new();
    let directory = scratch.open();
    assert!(directory.read(THING, ALL).expect("it can be looked at").is_none());
    directory.write(THING, "thing", b"hello").expect("it can be written");
    let found = directory.read(THING, ALL).expect("it can be read").expect("it is there");
    assert_eq!((found.bytes.as_slice(), found.length), (&b"hello"[..], 5));
    let found = directory.read(THING, 2).expect("it can be read").expect("it is there");
    assert_eq!((found.bytes.as_slice(), found.length), (&b"he"[..], 5));
    assert_eq!(mode(&scratch, THING), 0o600);
    assert_eq!(scratch.list(), [THING]);
}

#[test]
fn the_mask_of_the_process_takes_nothing_away() {
    let scratch = Scratch::new();
    assert!(play("write without rights", scratch.path(), None).success());
    assert_eq!(mode(&scratch, THING), 0o600);
}

fn mode(scratch: &Scratch, name: &str) -> u32 {
    fs::metadata(scratch.path().join(name)).expect("it is there").permissions().mode() & 0o7777
}

#[test]
fn a_reader_never_sees_half_of_what_a_writer_writes() {
    let scratch = Scratch::new();
    let directory = scratch.open();
    directory.write(THING, "thing", long_text('a').as_bytes()).expect("it can be written");
    let path = scratch.path().to_owned();
    let writer = std::thread::spawn(move || {
        let directory = Directory::open(&path).expect("it is there");
        for letter in "bcdefghijklmnopqrstuvwxyz".chars().cycle().take(100) {
            directory.write(THING, "thing", long_text(letter).as_bytes()).expect("it can be written");
        }
    });
    let mut seen = std::collections::BTreeSet::new();
    while !writer.is_finished() {
        let found = directory.read(THING, ALL).expect("it can be read").expect("it is always there");
        let first = found.bytes[0];
        assert_eq!(found.bytes.len(), 300_000);
        assert!(found.bytes.iter().all(|byte| *byte == first), "two writings in one reading");
        seen.insert(first);
    }
    writer.join().expect("it writes");
    assert!(!seen.is_empty());
    assert_eq!(scratch.list(), [THING]);
}

#[test]
fn what_is_set_aside_gets_the_next_number() {
    let scratch = Scratch::new();
    let directory = scratch.open();
    for expected in [".agent-response.json.stale-1", ".agent-response.json.stale-2"] {
        scratch.put(THING, expected);
        assert_eq!(directory.set_aside(THING).expect("it can be moved").as_deref(), Some(expected));
        assert_eq!(scratch.text(expected), expected);
    }
    scratch.put(".agent-response.json.stale-41", "");
    scratch.put(".agent-response.json.stale-x", "");
    scratch.put(THING, "");
    assert_eq!(directory.set_aside(THING).expect("it can be moved").as_deref(), Some(".agent-response.json.stale-42"));
    assert_eq!(directory.set_aside(THING).expect("nothing is there"), None);
}

#[test]
fn what_was_set_aside_last_is_taken_back_and_nothing_is_written_over() {
    let scratch = Scratch::new();
    let directory = scratch.open();
    assert_eq!(directory.take_back(THING).expect("it can be listed"), None);
    for text in ["first", "last"] {
        scratch.put(THING, text);
        directory.set_aside(THING).expect("it can be moved");
    }
    scratch.put(".agent-response.json.stale-x", "another name");
    scratch.put(THING, "newer");
    assert_eq!(directory.take_back(THING).expect("it can be listed"), None, "the name is taken");
    assert_eq!(
        (scratch.text(THING).as_str(), scratch.text(".agent-response.json.stale-2").as_str()),
        ("newer", "last")
    );
    std::fs::remove_file(directory.path().join(THING)).expect("it is there");
    let taken = directory.take_back(THING).expect("it can be moved");
    assert_eq!((taken.as_deref(), scratch.text(THING).as_str()), (Some(".agent-response.json.stale-2"), "last"));
    assert_eq!(scratch.list(), [THING, ".agent-response.json.stale-1", ".agent-response.json.stale-x"]);
}

#[test]
fn only_what_is_expected_is_removed() {
    let scratch = Scratch::new();
    let directory = scratch.open();
    let is_mine = |found: &crosspoint_bridge::Found| found.bytes == b"mine";
    assert_eq!(directory.remove(THING, is_mine, ALL).expect("it can be looked at"), Removed::Absent);
    scratch.put(THING, "yours");
    assert_eq!(directory.remove(THING, is_mine, ALL).expect("it can be looked at"), Removed::Another);
    assert_eq!(scratch.text(THING), "yours");
    scratch.put(THING, "mine");
    assert_eq!(directory.remove(THING, is_mine, ALL).expect("it can be removed"), Removed::Yes);
    assert_eq!(scratch.list(), [""; 0]);
}

/// The file that was read and the file to be removed are not the same: another process wrote in between.
#[test]
fn one_that_comes_in_the_very_moment_stays() {
    let scratch = Scratch::new();
    let directory = scratch.open();
    scratch.put(THING, "mine");
    let looks = std::cell::Cell::new(0);
    let is_mine = |found: &crosspoint_bridge::Found| {
        if looks.replace(looks.get() + 1) == 0 {
            scratch.put(THING, "yours");
            return true;
        }
        found.bytes == b"mine"
    };
    assert_eq!(directory.remove(THING, is_mine, ALL).expect("it can be looked at"), Removed::Another);
    assert_eq!(scratch.text(THING), "yours");
    assert_eq!(scratch.list(), [THING]);
}

/// The file was replaced twice between the read and the removal: the last one stays, as if nothing had been removed.
#[test]
fn of_two_that_come_in_the_very_moment_the_newer_stays() {
    let scratch = Scratch::new();
    let directory = scratch.open();
    scratch.put(THING, "mine");
    let looks = std::cell::Cell::new(0);
    let is_mine = |_: &crosspoint_bridge::Found| {
        let is_first = looks.replace(looks.get() + 1) == 0;
        scratch.put(THING, if is_first { "yours" } else { "newer" });
        is_first
    };
    assert_eq!(directory.remove(THING, is_mine, ALL).expect("it can be looked at"), Removed::Another);
    assert_eq!((scratch.list(), scratch.text(THING)), (vec![THING.to_owned()], "newer".to_owned()));
}

/// A file that can no longer be read is not the one that was read: it gets its name back.
#[test]
fn what_became_something_else_in_the_very_moment_stays() {
    let scratch = Scratch::new();
    let directory = scratch.open();
    scratch.put(THING, "mine");
    let moved = scratch.path().join(format!("{THING}.tmp-removed"));
    let looks = std::cell::Cell::new(0);
    let is_mine = |_: &crosspoint_bridge::Found| {
        if looks.replace(looks.get() + 1) == 0 {
            fs::remove_file(scratch.path().join(THING)).expect("it is there");
            fs::create_dir(scratch.path().join(THING)).expect("it can be made");
        }
        true
    };
    assert_eq!(directory.remove(THING, is_mine, ALL).expect("it can be looked at"), Removed::Another);
    assert!(scratch.path().join(THING).is_dir() && !moved.exists());
}

#[test]
fn a_sweep_leaves_what_may_still_be_written_and_what_is_not_ours() {
    let scratch = Scratch::new();
    let directory = scratch.open();
    let names = [
        ".agent-response.json.tmp-0123456789abcdef0123456789abcdef",
        ".agent-response.json",
        "notes.tmp-1",
        ".agent-response.json.stale-1",
    ];
    names.iter().for_each(|name| scratch.put(name, "x"));
    directory.sweep(|_| false, ALL).expect("it can be swept");
    assert_eq!(scratch.list().len(), 4, "it may be written at this moment");
    scratch.age();
    directory.sweep(|_| false, ALL).expect("it can be swept");
    assert_eq!(scratch.list(), [".agent-response.json", ".agent-response.json.stale-1", "notes.tmp-1"]);
}

/// Files of other tools stay, and so does everything that is not a regular file.
#[test]
fn a_sweep_leaves_what_others_called_alike_and_what_is_no_file() {
    let scratch = Scratch::new();
    let directory = scratch.open();
    let others = [".agent-config.tmp-backup", ".agent-config.tmp-removed", ".agent-request.json.tmp-backup"];
    others.iter().for_each(|name| scratch.put(name, "x"));
    let planted = [
        ".agent-cache.tmp-1",
        ".agent-request.json.tmp-removed",
        ".agent-response.json.tmp-0123456789abcdef0123456789abcdef",
    ];
    planted.iter().for_each(|name| fs::create_dir(scratch.path().join(name)).expect("it can be made"));
    scratch.age();
    let before = scratch.list();
    directory.sweep(|_| true, ALL).expect("it can be swept");
    directory.sweep(|_| false, ALL).expect("it can be swept");
    assert_eq!(scratch.list(), before);
    assert!(!directory.is_half_removed(".agent-request.json").expect("it can be looked at"));
}

/// Steps whose cost grows with the number of files are left to the thorough sweep.
#[test]
fn what_may_not_wait_is_swept_without_looking_at_every_name() {
    let scratch = Scratch::new();
    let directory = scratch.open();
    let half_written = format!("{THING}.tmp-0123456789abcdef0123456789abcdef");
    scratch.put(&half_written, "x");
    scratch.put(&format!("{THING}.tmp-removed"), "old");
    scratch.age();
    directory.sweep_removed(|_| false, ALL).expect("it can be swept");
    assert_eq!(scratch.list(), [THING, &half_written]);
    directory.sweep(|_| false, ALL).expect("it can be swept");
    assert_eq!(scratch.list(), [THING]);
}

#[test]
fn what_was_half_removed_is_put_back_unless_it_is_done_with() {
    let scratch = Scratch::new();
    let directory = scratch.open();
    scratch.put(".agent-response.json.tmp-removed", "old");
    directory.sweep(|_| false, ALL).expect("it can be swept");
    assert_eq!((scratch.list(), scratch.text(THING)), (vec![THING.to_owned()], "old".to_owned()));
    // A newer file has come, so the older one is removed.
    scratch.put(".agent-response.json.tmp-removed", "older");
    directory.sweep(|_| false, ALL).expect("it can be swept");
    assert_eq!((scratch.list(), scratch.text(THING)), (vec![THING.to_owned()], "old".to_owned()));
    fs::rename(scratch.path().join(THING), scratch.path().join(".agent-response.json.tmp-removed"))
        .expect("it is moved");
    directory.sweep(|_| true, ALL).expect("it can be swept");
    assert_eq!(scratch.list(), [""; 0]);
}

#[test]
fn one_at_a_time_holds_the_lock() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.open(), scratch.open());
    let lock = one.lock().expect("it is free");
    assert!(matches!(other.lock(), Err(Fault::InUse(_))));
    assert!(matches!(one.lock(), Err(Fault::InUse(_))), "not even the same twice");
    drop(lock);
    other.lock().expect("it is free again");
}

#[test]
fn the_lock_goes_with_its_process() {
    let scratch = Scratch::new();
    let mut holder = start("hold", scratch.path(), None);
    while !scratch.path().join("held").exists() {
        assert!(holder.try_wait().expect("it is ours").is_none(), "it holds on");
        std::thread::yield_now();
    }
    assert!(matches!(scratch.open().lock(), Err(Fault::InUse(_))));
    holder.kill().expect("it can be killed");
    assert!(was_killed(holder.wait().expect("it ends")));
    scratch.open().lock().expect("it is free");
}

#[test]
fn directories_that_cannot_be_used_say_why() {
    let scratch = Scratch::new();
    let missing = scratch.path().join("missing");
    let said = |path: &Path| Directory::open(path).expect_err("it cannot be opened").to_string();
    assert!(said(&missing).ends_with("missing is not there"), "{}", said(&missing));
    scratch.put("file", "");
    assert!(said(&scratch.path().join("file")).ends_with("file is not a directory"));
    // No user can write there, not even root.
    let kernel = Directory::open(Path::new("/sys/kernel")).expect("it is there");
    let fault = kernel.write(THING, "thing", b"").expect_err("it cannot be written");
    assert!(matches!(fault, Fault::Denied { .. }), "{fault:?}");
    assert!(fault.hint().contains("nothing is lost"));
}

#[test]
fn a_directory_that_vanishes_is_gone_and_not_empty() {
    let scratch = Scratch::new();
    let path = scratch.path().join("it");
    fs::create_dir(&path).expect("it can be made");
    let directory = Directory::open(&path).expect("it is there");
    fs::remove_dir(&path).expect("it can be removed");
    assert!(matches!(directory.read(THING, ALL), Err(Fault::Gone(gone)) if gone == path));
    assert!(matches!(directory.write(THING, "thing", b""), Err(Fault::Gone(gone)) if gone == path));
    assert!(matches!(directory.has(THING), Err(Fault::Gone(_))));
}
