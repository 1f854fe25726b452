//! Steps that a crash left half in place, and that can be neither finished nor taken back just now.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crosspoint_workflow::repository::{
    Applied, Fault, NotApplied, Recovered, Rules, abandon, failpoint, half_written, recover, recover_within,
};

use super::locks::held;
use crate::crash::{prepared, state_after};
use crate::process::{UNFINISHED, output, play, was_killed};
use crate::scratch::{Scratch, create};

/// A repository with the output, killed at a place.
fn killed_at(place: &str) -> Scratch {
    let scratch = prepared();
    assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, place)])), "{place}");
    scratch
}

/// A repository in which a crash came while the output was taken back.
fn killed_while_taking_back() -> Scratch {
    let scratch = prepared();
    let both = [(failpoint::FAIL, "settled"), (failpoint::KILL, "undone.4")];
    assert!(was_killed(play("output", scratch.path(), &both)));
    scratch
}

/// The faults of all calls that have to settle the step first.
fn faults(scratch: &Scratch) -> [Fault; 3] {
    let repository = scratch.open().with_lock_wait(Duration::ZERO);
    let applied = |step| match repository.apply(&scratch.record(), step, &output(), &Rules::default()) {
        Err(NotApplied::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    };
    [recover_within(&scratch.record(), Duration::ZERO).expect_err("it cannot be settled"), applied(1), applied(2)]
}

/// What is in the way of step 1, which is unfinished.
fn why(fault: Fault) -> Fault {
    let text = format!("{fault:?}");
    let Fault::Unfinished { step: 1, why } = fault else { panic!("{text}") };
    *why
}

#[test]
fn what_cannot_be_taken_back_a_second_time_either_is_unfinished() {
    for place in ["undo_marked", "undone.2", "undo_synced", "undo_cleaned"] {
        let scratch = killed_while_taking_back();
        for part in ["recover", "output"] {
            let status = play(part, scratch.path(), &[(failpoint::FAIL, place)]);
            assert_eq!(status.code(), Some(UNFINISHED), "{place}, {part}");
        }
        assert_eq!(recover(&scratch.record()).expect("nothing is in the way").undone, [1], "{place}");
        assert_eq!(scratch.tree(), prepared().tree(), "{place}");
    }
}

#[test]
fn a_step_whose_journal_cannot_be_read_is_unfinished() {
    for (scratch, journal) in
        [(killed_at("placed.1"), "step-1.commit.json"), (killed_while_taking_back(), "step-1.undo.json")]
    {
        let (journal, aside) = (scratch.record().join(journal), scratch.path().join("aside"));
        fs::rename(&journal, &aside).expect("it is there");
        fs::write(&journal, "{").expect("it can be written");
        for fault in faults(&scratch) {
            assert!(matches!(why(fault), Fault::Record { .. }));
        }
        fs::rename(aside, journal).expect("it can be put back");
        assert!(matches!(scratch.apply(1, &output()), Applied::Written(_)));
        assert_eq!(scratch.tree(), state_after());
    }
}

#[test]
fn a_step_in_a_directory_that_was_moved_away_is_unfinished() {
    for scratch in [killed_at("placed.1"), killed_while_taking_back()] {
        let aside = scratch.path().join("aside");
        fs::rename(scratch.root(), &aside).expect("it is there");
        let gone = recover(&scratch.record()).expect_err("it is not there");
        assert!(matches!(why(gone), Fault::Gone(_)));
        fs::create_dir(scratch.root()).expect("it can be made");
        for fault in faults(&scratch) {
            assert!(fault.hint().starts_with("put the directory back"), "{}", fault.hint());
            assert!(matches!(why(fault), Fault::AnotherRoot { .. }));
        }
        assert!(scratch.tree().is_empty());
        fs::remove_dir(scratch.root()).expect("it is empty");
        fs::rename(&aside, scratch.root()).expect("it can be put back");
        scratch.apply(1, &output());
        assert_eq!(scratch.tree(), state_after());
    }
}

#[test]
fn a_step_that_has_to_wait_for_a_lock_is_unfinished() {
    for scratch in [killed_at("committed"), killed_at("placed.1"), killed_while_taking_back()] {
        let lock = held(&scratch);
        for fault in faults(&scratch) {
            assert!(fault.hint().contains("lslocks") && !fault.hint().contains("nothing was written"));
            assert!(matches!(why(fault), Fault::Locked { .. }));
        }
        drop(lock);
        scratch.apply(1, &output());
        assert_eq!(scratch.tree(), state_after());
    }
}

/// An output that is no longer wanted is a matter of the caller, and what is in the way is none of its.
#[test]
fn an_output_that_is_not_wanted_stays_unwanted() {
    let scratch = killed_at("placed.1");
    let _lock = held(&scratch);
    let applied = scratch.open().apply_while(&scratch.record(), 1, &output(), &Rules::default(), &|| false);
    assert!(matches!(applied, Err(NotApplied::Fault(Fault::Unwanted))), "{applied:?}");
}

/// Nothing of a step before its commit mark is in place, so its faults are what they are.
#[test]
fn a_step_before_its_commit_mark_is_never_unfinished() {
    let scratch = killed_at("synced");
    let lock = held(&scratch);
    for fault in faults(&scratch) {
        assert!(matches!(fault, Fault::Locked { .. }), "{fault:?}");
    }
    drop(lock);
    let (root, aside) = (scratch.root(), scratch.path().join("aside"));
    fs::rename(&root, &aside).expect("it is there");
    let gone = recover(&scratch.record());
    assert!(matches!(gone, Err(Fault::Gone(_))), "{gone:?}");
    fs::create_dir(&root).expect("it can be made");
    for fault in faults(&scratch) {
        assert!(matches!(fault, Fault::AnotherRoot { .. }), "{fault:?}");
    }
    fs::write(scratch.record().join("step-1.plan.json"), "{").expect("it can be written");
    for fault in faults(&scratch) {
        assert!(matches!(fault, Fault::Record { .. }), "{fault:?}");
    }
}

/// A step that cannot be settled keeps those after it from being settled.
#[test]
fn a_fault_of_a_step_before_leaves_the_half_done_one_unfinished() {
    let scratch = killed_at("placed.1");
    fs::write(scratch.record().join("step-0.plan.json"), "{").expect("it can be written");
    for fault in faults(&scratch) {
        assert!(matches!(why(fault), Fault::Record { .. }));
    }
    fs::remove_file(scratch.record().join("step-0.plan.json")).expect("it is there");
    scratch.apply(2, &[create("later", "")]);
}

/// A copy that was removed took what was half written in it along. Another directory did not.
#[test]
fn what_was_removed_on_purpose_is_forgotten() {
    for scratch in [killed_at("placed.1"), killed_while_taking_back(), killed_at("synced")] {
        let root = scratch.root().canonicalize().expect("it is there");
        let half = half_written(&scratch.record());
        fs::remove_dir_all(&root).expect("it can be removed");
        abandon(&scratch.record(), &scratch.path().join("another")).expect("it can be read");
        assert!(recover(&scratch.record()).is_err(), "it is about another root");
        assert_eq!(half_written(&scratch.record()), half);
        abandon(&scratch.record(), &root).expect("it can be forgotten");
        assert_eq!(recover(&scratch.record()).expect("nothing is left"), Recovered::default());
    }
    abandon(Path::new("no/such/record"), Path::new("no/such/root")).expect("there is nothing to forget");
}
