//! A process that is killed while it applies an output: the repository is exactly as before, or exactly as after.

use std::collections::BTreeMap;
use std::fs;

use crosspoint_workflow::repository::{Recovered, failpoint, recover};

use crate::process::{FAULT, long_output, output, play, start, was_killed};
use crate::scratch::{Scratch, written};

/// A repository before the output.
pub(crate) fn prepared() -> Scratch {
    let scratch = Scratch::new();
    for (path, text) in [("old/two", "two"), ("same", "same"), ("four", "four"), ("other", "other")] {
        scratch.put(path, text);
    }
    scratch
}

/// The repository after the output.
pub(crate) fn state_after() -> BTreeMap<String, String> {
    let all = [
        ("four", "four, new"),
        ("new/", ""),
        ("new/deep/", ""),
        ("new/deep/one", "one"),
        ("new/five", "five"),
        ("old/", ""),
        ("old/three", "three"),
        ("old/two", "two, new"),
        ("other", "other"),
        ("same", "same"),
    ];
    all.map(|(path, text)| (path.to_owned(), text.to_owned())).into()
}

const BEFORE_COMMIT: [&str; 9] =
    ["kept_contents", "planned", "staging_made", "staged.0", "staged.1", "staged.2", "staged.4", "staged.5", "synced"];

const AFTER_COMMIT: [&str; 13] = [
    "committed",
    "made.0",
    "made.1",
    "placed.0",
    "kept.1",
    "placed.1",
    "placed.2",
    "kept.4",
    "placed.4",
    "placed.5",
    "settled",
    "cleaned",
    "done",
];

#[test]
fn killed_before_the_commit_mark_nothing_was_done() {
    for place in BEFORE_COMMIT {
        let scratch = prepared();
        let before = scratch.tree();
        assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, place)])), "{place}");
        let recovered = recover(&scratch.record()).expect("it can be recovered");
        assert!(recovered.finished.is_empty(), "{place}");
        assert_eq!(scratch.tree(), before, "{place}");
        goes_on(&scratch, place);
    }
}

#[test]
fn killed_after_the_commit_mark_it_is_carried_forward() {
    for place in AFTER_COMMIT {
        let scratch = prepared();
        assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, place)])), "{place}");
        let recovered = recover(&scratch.record()).expect("it can be recovered");
        let finished = if place == "done" { vec![] } else { vec![1] };
        assert_eq!(recovered, Recovered { finished, undone: vec![] }, "{place}");
        assert_eq!(scratch.tree(), state_after(), "{place}");
        goes_on(&scratch, place);
    }
}

#[test]
fn applying_again_recovers_by_itself() {
    for place in BEFORE_COMMIT.into_iter().chain(AFTER_COMMIT) {
        let scratch = prepared();
        assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, place)])), "{place}");
        goes_on(&scratch, place);
    }
}

#[test]
fn killed_while_recovering_it_is_recovered_again() {
    for place in AFTER_COMMIT {
        let scratch = prepared();
        assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, "committed")])));
        let is_passed = place != "committed";
        assert_eq!(was_killed(play("recover", scratch.path(), &[(failpoint::KILL, place)])), is_passed, "{place}");
        goes_on(&scratch, place);
    }
}

/// A fault in the middle of the renames, and a kill while they are taken back.
#[test]
fn killed_while_taking_back_it_is_taken_back() {
    let places = [
        "undo_marked",
        "undone.5",
        "undone.4",
        "undone.2",
        "undone.1",
        "undone.0",
        "undo_synced",
        "undo_directories",
        "undo_cleaned",
    ];
    for place in places {
        let scratch = prepared();
        let before = scratch.tree();
        let both = [(failpoint::FAIL, "settled"), (failpoint::KILL, place)];
        assert!(was_killed(play("output", scratch.path(), &both)), "{place}");
        let recovered = recover(&scratch.record()).expect("it can be recovered");
        assert_eq!(recovered, Recovered { finished: vec![], undone: vec![1] }, "{place}");
        assert_eq!(scratch.tree(), before, "{place}");
        goes_on(&scratch, place);
    }
}

/// A fault while the renames are taken back leaves a step that the next apply takes back.
#[test]
fn a_fault_while_taking_back_is_mended_by_the_next_apply() {
    for place in ["undone.4", "undo_synced", "undo_cleaned"] {
        let scratch = prepared();
        assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, "placed.4")])));
        scratch.put("new/five", "by another program");
        let status = play("recover", scratch.path(), &[(failpoint::FAIL, place)]);
        assert_eq!(status.code(), Some(FAULT), "{place}");
        let recovered = recover(&scratch.record()).expect("it can be recovered");
        assert_eq!(recovered.undone, [1], "{place}");
        let mut expected = prepared().tree();
        expected.insert("new/".to_owned(), String::new());
        expected.insert("new/five".to_owned(), "by another program".to_owned());
        assert_eq!(scratch.tree(), expected, "{place}");
    }
}

#[test]
fn an_update_goes_on_over_what_another_program_wrote_meanwhile() {
    let scratch = prepared();
    assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, "placed.1")])));
    scratch.put("four", "edited");
    assert_eq!(recover(&scratch.record()).expect("it can be recovered").finished, [1]);
    assert_eq!(scratch.tree(), state_after());
}

#[test]
fn what_can_no_longer_be_written_takes_the_whole_output_back() {
    type Meddle = fn(&Scratch);
    let meddles: [(&str, Meddle); 4] = [
        ("a file to create appeared", |scratch| scratch.put("new/five", "theirs")),
        ("a file to update is gone", |scratch| fs::remove_file(scratch.root().join("four")).expect("it is there")),
        ("a directory is in the way", |scratch| scratch.put("new/five/inside", "theirs")),
        ("a link is in the way", |scratch| {
            std::os::unix::fs::symlink("/etc/passwd", scratch.root().join("new/five")).expect("it can be linked");
        }),
    ];
    for (what, meddle) in meddles {
        let scratch = prepared();
        assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, "placed.2")])));
        meddle(&scratch);
        assert_eq!(recover(&scratch.record()).expect("it can be recovered").undone, [1], "{what}");
        let tree = scratch.tree();
        assert_eq!(tree["old/two"], "two", "{what}");
        assert!(!tree.contains_key("old/three") && !tree.contains_key("new/deep/"), "{what}: {tree:?}");
        assert!(!tree.keys().any(|path| path.starts_with(".crosspoint")), "{what}: {tree:?}");
    }
}

#[test]
fn killed_at_any_moment_it_is_all_or_none() {
    let rounds = std::env::var("CROSSPOINT_TEST_KILLS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(50);
    let filled = || {
        let scratch = Scratch::new();
        (0..40).for_each(|number| scratch.put(&format!("old/f{number}"), "old"));
        scratch
    };
    let before = filled().tree();
    let whole = filled();
    let started = std::time::Instant::now();
    assert!(start("long output", whole.path()).wait().expect("it ends").success());
    let (time, after) = (started.elapsed(), whole.tree());
    for round in 0..rounds {
        let scratch = filled();
        let mut child = start("long output", scratch.path());
        // Spread over the whole time that it takes. Waiting is by the clock alone: any moment is a good one.
        let moment = std::time::Instant::now() + time * round / rounds;
        while std::time::Instant::now() < moment {
            std::thread::yield_now();
        }
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        recover(&scratch.record()).expect("it can be recovered");
        let tree = scratch.tree();
        assert!(tree == before || tree == after, "round {round}: {:?}", tree.keys());
        assert_eq!(written(&scratch.apply(1, &long_output())).len(), 80);
        assert!(scratch.tree() == after, "round {round}");
    }
}

/// Applies the output again, and finds it as it should be.
fn goes_on(scratch: &Scratch, place: &str) {
    let first = scratch.apply(1, &output());
    assert_eq!(scratch.tree(), state_after(), "{place}");
    assert_eq!(scratch.apply(1, &output()), first, "{place}");
    let changes: Vec<_> = written(&first).into_iter().map(|(_, change)| format!("{change:?}")).collect();
    assert_eq!(changes, ["Created", "Updated", "Created", "Unchanged", "Updated", "Created"], "{place}");
    let left: Vec<_> = fs::read_dir(scratch.record()).expect("it is there").collect();
    assert_eq!(left.len(), 3, "{place}: a journal and two contents, {left:?}");
}
