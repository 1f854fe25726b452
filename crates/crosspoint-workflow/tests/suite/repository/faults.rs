//! Faults of the system: all or none also without a crash.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crosspoint_workflow::repository::{
    CHANGES_MAX, DIRECTORIES_BYTES_MAX, Fault, NotApplied, Repository, Rules, failpoint, recover,
};

use crate::crash::{clean, prepared, state_after};
use crate::process::{FAULT, UNFINISHED, output, play, play_with_short_files, was_fine, was_killed};
use crate::scratch::{Scratch, create, written};

/// The places before the renames are over. A fault there leaves nothing.
const TAKEN_BACK: [&str; 20] = [
    "kept_contents",
    "planned",
    "staging_made",
    "staged.0",
    "staged.5",
    "synced",
    "committed",
    "made.0",
    "made.1",
    "kept.1",
    "kept.4",
    "placed.0",
    "placed.1",
    "placed.2",
    "placed.4",
    "placed.5",
    "settled",
    "staged.1",
    "staged.2",
    "staged.4",
];

#[test]
fn a_fault_at_any_place_leaves_nothing() {
    for place in TAKEN_BACK {
        let scratch = prepared();
        let before = scratch.tree();
        assert_eq!(play("output", scratch.path(), &[(failpoint::FAIL, place)]).code(), Some(FAULT), "{place}");
        assert_eq!(scratch.tree(), before, "{place}");
        assert_eq!(recover(&scratch.record()).expect("there is nothing to do"), Default::default(), "{place}");
        scratch.apply(1, &output());
        assert_eq!(scratch.tree(), state_after(), "{place}");
    }
}

#[test]
fn a_fault_after_the_renames_is_finished_by_trying_again() {
    for place in ["cleaned", "done"] {
        let scratch = prepared();
        assert_eq!(play("output", scratch.path(), &[(failpoint::FAIL, place)]).code(), Some(UNFINISHED), "{place}");
        assert_eq!(scratch.tree(), state_after(), "{place}");
        assert_eq!(written(&scratch.apply(1, &output())).len(), 6);
        assert_eq!(scratch.tree(), state_after(), "{place}");
    }
}

#[test]
fn no_room_leaves_nothing() {
    let scratch = Scratch::new();
    // The record has no room for the contents, or the repository has none for the file.
    assert_eq!(play_with_short_files("large", scratch.path(), 20).code(), Some(FAULT));
    assert!(scratch.tree().is_empty());
    assert!(was_fine(play("large", scratch.path(), &[])));
    assert_eq!(scratch.text("large").len(), 200_000);
}

#[test]
fn a_mount_inside_the_root_is_a_fault_and_says_so() {
    let root = Repository::open(Path::new("/")).expect("it is there");
    match root.check(&[create("proc/crosspoint", "")], &Rules::default()) {
        Err(NotApplied::Fault(fault @ Fault::Mount(_))) => {
            assert_eq!(fault.to_string(), "/proc is on another file system than the repository");
            assert!(fault.hint().starts_with("unmount it"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_kind_of_a_fault_names_no_path() {
    let path = || std::path::PathBuf::from("/secret/place");
    let faults = [
        Fault::Gone(path()),
        Fault::NotADirectory(path()),
        Fault::Denied { path: path(), why: "permission denied" },
        Fault::Full(path()),
        Fault::Mount(path()),
        Fault::Changed(path()),
        Fault::AnotherStep { step: 1 },
        Fault::AnotherRoot { root: path() },
        Fault::Record { file: "secret".to_owned(), why: "secret".to_owned() },
        Fault::NotUtf8(path()),
        Fault::Locked { root: path(), seconds: 1 },
        Fault::Unwanted,
        Fault::Unfinished { step: 1, why: Box::new(Fault::Full(path())) },
        Fault::Other { path: path(), source: std::io::Error::other("secret") },
    ];
    let kinds: std::collections::BTreeSet<&str> = faults.iter().map(Fault::kind).collect();
    assert_eq!(kinds.len(), faults.len(), "each has its own");
    assert!(!kinds.iter().any(|kind| kind.contains("secret")), "{kinds:?}");
}

/// Callers of an API read of these faults, and may not see where the server keeps its data.
#[test]
fn what_a_record_says_against_an_output_does_not_tell_where_the_record_is() {
    let scratch = prepared();
    scratch.apply(1, &[create("a", "")]);
    let fault = |changes: &[_]| scratch.try_apply(1, changes).expect_err("it cannot be applied").to_string();
    assert_eq!(fault(&output()), "step 1 of the run was another output");
    fs::write(scratch.record().join("step-1.done.json"), "{").expect("it can be written");
    let text = fault(&output());
    assert!(text.starts_with("the file step-1.done.json in the record of the run is damaged: EOF"), "{text}");

    let scratch = prepared();
    assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, "placed.1")])));
    clean(&scratch);
    let contents = scratch.record().join("step-1.after");
    fs::rename(&contents, scratch.record().join("aside")).expect("it is there");
    symlink("aside", &contents).expect("it can be linked");
    let text = recover(&scratch.record()).expect_err("it is a link").to_string();
    assert!(text.contains("step-1.after") && !text.contains("record/"), "{text}");
}

#[test]
fn another_directory_at_the_path_of_the_root_is_a_fault_that_says_what_to_do() {
    let scratch = Scratch::new();
    scratch.apply(1, &[create("a", "")]);
    let root = scratch.root();
    fs::rename(&root, scratch.path().join("aside")).expect("it is there");
    fs::create_dir(&root).expect("it can be made");
    match scratch.try_apply(2, &[create("b", "")]) {
        Err(NotApplied::Fault(fault @ Fault::AnotherRoot { .. })) => {
            let text = format!("{} is another directory than the one that the run began in", root.display());
            assert_eq!(fault.to_string(), text);
            let hint =
                "put the directory back that the run began in, or cancel the run and begin it again in the new one";
            assert_eq!(fault.hint(), hint);
        }
        other => panic!("{other:?}"),
    }
}

/// A path of many parts names many directories, and each of them has a long path.
#[test]
fn the_paths_of_all_directories_together_are_limited() {
    let scratch = Scratch::new();
    let deep = |number: u32| (0..127).map(|_| format!("{number:030}")).collect::<Vec<_>>().join("/") + "/f";
    let changes: Vec<_> = (0..300).map(|number| create(&deep(number), "")).collect();
    let checked = scratch.open().check(&changes, &Rules::default());
    let is_limited = matches!(checked, Err(NotApplied::Fault(Fault::Limit { limit: DIRECTORIES_BYTES_MAX, .. })));
    assert!(is_limited, "{checked:?}");
    assert!(scratch.open().check(&changes[..100], &Rules::default()).is_ok());
}

#[test]
fn too_many_files_are_a_fault() {
    let scratch = Scratch::new();
    let changes = vec![create("a", ""); CHANGES_MAX + 1];
    match scratch.try_apply(1, &changes) {
        Err(NotApplied::Fault(fault @ Fault::Limit { .. })) => {
            let text = "the output has 100001 files, and at most 100000 are applied at once";
            assert_eq!(fault.to_string(), text);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_root_or_a_record_that_cannot_be_used_is_a_fault() {
    let scratch = Scratch::new();
    scratch.put("file", "");
    let opened = Repository::open(&scratch.root().join("file"));
    assert!(matches!(opened, Err(Fault::NotADirectory(_))), "{opened:?}");
    let opened = Repository::open(&scratch.root().join("nowhere"));
    assert!(matches!(opened, Err(Fault::Gone(_))), "{opened:?}");
    let record = scratch.root().join("file");
    let applied = scratch.open().apply(&record, 1, &[create("a", "")], &Rules::default());
    assert!(matches!(applied, Err(NotApplied::Fault(_))), "{applied:?}");
    assert_eq!(scratch.tree().len(), 1);
}
