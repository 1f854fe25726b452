//! A process that is killed while it applies an output: the repository is exactly as before, or exactly as after.

mod forgetting;
mod moments;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crosspoint_workflow::repository::{Fault, Recovered, failpoint, recover};

use crate::process::{FAULT, UNFINISHED, output, play, was_fine, was_killed};
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

const AFTER_COMMIT: [&str; 15] = [
    "committed",
    "made.0",
    "made.1",
    "checked.0",
    "placed.0",
    "checked.1",
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
        assert_eq!(status.code(), Some(UNFINISHED), "{place}");
        let recovered = recover(&scratch.record()).expect("it can be recovered");
        assert_eq!(recovered.undone, [1], "{place}");
        let mut expected = prepared().tree();
        expected.insert("new/".to_owned(), String::new());
        expected.insert("new/five".to_owned(), "by another program".to_owned());
        assert_eq!(scratch.tree(), expected, "{place}");
    }
}

/// A crash comes after a directory for the record was made, and before its name is synced.
#[test]
fn the_name_of_a_record_is_synced_after_a_crash() {
    for (made, synced) in [("record_made.1", "record_synced.1"), ("record_made.0", "record_synced.0")] {
        let scratch = prepared();
        let play_to = |variable, place| play("deep record", scratch.path(), &[(variable, place)]);
        assert!(was_killed(play_to(failpoint::KILL, made)), "{made}");
        assert_eq!(play_to(failpoint::FAIL, synced).code(), Some(FAULT), "{made}: it is synced");
        assert!(was_fine(play_to(failpoint::FAIL, "nowhere")), "{made}");
        assert!(was_fine(play_to(failpoint::FAIL, synced)), "{made}: a record with steps is not synced again");
        assert_eq!(scratch.tree(), state_after(), "{made}");
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

/// Removes the staging directory, as `git clean -fd` does.
pub(crate) fn clean(scratch: &Scratch) {
    for entry in fs::read_dir(scratch.root()).expect("it is there").flatten() {
        if entry.file_name().to_string_lossy().starts_with(".crosspoint-") {
            fs::remove_dir_all(entry.path()).expect("it can be removed");
        }
    }
}

#[test]
fn a_staging_directory_that_is_removed_after_the_commit_mark_is_made_again() {
    for place in AFTER_COMMIT {
        let scratch = prepared();
        fs::set_permissions(scratch.root().join("four"), fs::Permissions::from_mode(0o751)).expect("it has a mode");
        assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, place)])), "{place}");
        clean(&scratch);
        let finished = if place == "done" { vec![] } else { vec![1] };
        let recovered = recover(&scratch.record()).expect("it can be recovered");
        assert_eq!(recovered, Recovered { finished, undone: vec![] }, "{place}");
        assert_eq!(scratch.tree(), state_after(), "{place}");
        assert_eq!(scratch.mode("four"), 0o751, "{place}");
        goes_on(&scratch, place);
    }
}

/// Files that were created are untracked too, so they are removed with the staging directory.
#[test]
fn created_files_that_are_removed_before_the_step_is_done_are_written_again() {
    let scratch = prepared();
    assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, "placed.5")])));
    clean(&scratch);
    fs::remove_dir_all(scratch.root().join("new")).expect("it is there");
    fs::remove_file(scratch.root().join("old/three")).expect("it is there");
    assert_eq!(recover(&scratch.record()).expect("it can be recovered").finished, [1]);
    assert_eq!(scratch.tree(), state_after());
    goes_on(&scratch, "placed.5");
}

#[test]
fn one_staged_file_that_is_removed_is_staged_again() {
    let scratch = prepared();
    assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, "placed.1")])));
    let staged = |path: &String| path.starts_with(".crosspoint-") && path.ends_with("/new-4");
    let four = scratch.tree().into_keys().find(staged).expect("it is staged");
    fs::remove_file(scratch.root().join(four)).expect("it can be removed");
    assert_eq!(recover(&scratch.record()).expect("it can be recovered").finished, [1]);
    assert_eq!(scratch.tree(), state_after());
}

#[test]
fn killed_while_staging_again_it_is_staged_again() {
    // Three files are lost when the second is in place.
    for place in ["written_again.0", "written_again.2", "staged_again.0", "staged_again.2", "placed.2", "settled"] {
        let scratch = prepared();
        assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, "placed.1")])));
        clean(&scratch);
        assert!(was_killed(play("recover", scratch.path(), &[(failpoint::KILL, place)])), "{place}");
        goes_on(&scratch, place);
    }
}

/// The staging directory is removed, and then a file to create is there already: all is taken back, from the record.
#[test]
fn without_the_staging_directory_an_output_is_taken_back_whole() {
    let places = ["undo_marked", "written_again.1", "undone.4", "undone.2", "undo_synced", "undo_cleaned", "none"];
    for place in places {
        for is_cleaned_again in [false, true] {
            let scratch = prepared();
            let mut expected = scratch.tree();
            expected.extend([("new/".to_owned(), String::new()), ("new/five".to_owned(), "theirs".to_owned())]);
            assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, "placed.4")])));
            clean(&scratch);
            scratch.put("new/five", "theirs");
            let status = play("recover", scratch.path(), &[(failpoint::KILL, place)]);
            assert_eq!(was_killed(status), place != "none", "{place}");
            if is_cleaned_again {
                clean(&scratch);
            }
            recover(&scratch.record()).expect("it can be recovered");
            assert_eq!(scratch.tree(), expected, "{place} {is_cleaned_again}");
            assert_eq!(fs::read_dir(scratch.record()).expect("it is there").count(), 0, "{place}: it is forgotten");
        }
    }
}

/// A fault has the step taken back, a kill interrupts that, and then the staging directory is removed.
#[test]
fn a_staging_directory_that_is_removed_while_taking_back_is_not_needed() {
    for place in ["undo_marked", "undone.5", "undone.4", "undone.1", "undo_synced", "undo_directories", "undo_cleaned"]
    {
        let scratch = prepared();
        let before = scratch.tree();
        let both = [(failpoint::FAIL, "settled"), (failpoint::KILL, place)];
        assert!(was_killed(play("output", scratch.path(), &both)), "{place}");
        clean(&scratch);
        assert_eq!(recover(&scratch.record()).expect("it can be recovered").undone, [1], "{place}");
        assert_eq!(scratch.tree(), before, "{place}");
        goes_on(&scratch, place);
    }
}

#[test]
fn what_the_record_cannot_restore_is_said() {
    let scratch = prepared();
    assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, "placed.1")])));
    clean(&scratch);
    let (contents, aside) = (scratch.record().join("step-1.after"), scratch.path().join("aside"));
    fs::rename(&contents, &aside).expect("it is there");
    let half = scratch.tree();
    match recover(&scratch.record()) {
        Err(fault @ Fault::Unfinished { step: 1, .. }) => {
            assert!(fault.to_string().contains("step-1.after in the record of the run is damaged"), "{fault}");
        }
        other => panic!("{other:?}"),
    }
    let files = |tree: BTreeMap<String, String>| tree.into_iter().filter(|(path, _)| !path.starts_with('.'));
    assert!(files(scratch.tree()).eq(files(half)), "nothing else is changed");
    fs::rename(aside, contents).expect("it can be put back");
    assert_eq!(recover(&scratch.record()).expect("it can be recovered").finished, [1]);
    assert_eq!(scratch.tree(), state_after());
}

/// A very long file is not kept in the record, which tells it by its digest.
#[test]
fn a_very_long_file_is_told_by_its_digest() {
    let scratch = Scratch::new();
    scratch.put("long", "old");
    assert!(was_killed(play("very long", scratch.path(), &[(failpoint::KILL, "placed.0")])));
    clean(&scratch);
    let whole = scratch.text("long");
    scratch.put("long", &whole.replace("y", "x"));
    let recovered = recover(&scratch.record());
    assert!(matches!(recovered, Err(Fault::Unfinished { step: 1, .. })), "{recovered:?}");
    scratch.put("long", &whole);
    assert_eq!(recover(&scratch.record()).expect("it is whole again").finished, [1]);
    assert_eq!(scratch.text("small"), "x");
}

#[test]
fn a_step_that_is_done_is_not_looked_at_again() {
    let scratch = prepared();
    scratch.apply(1, &output());
    scratch.put("four", "edited by a person");
    fs::remove_file(scratch.root().join("old/three")).expect("it is there");
    let edited = scratch.tree();
    assert_eq!(recover(&scratch.record()).expect("there is nothing to do"), Recovered::default());
    scratch.apply(2, &[crate::scratch::create("later", "x")]);
    fs::remove_file(scratch.root().join("later")).expect("it is there");
    assert_eq!(scratch.tree(), edited);
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
