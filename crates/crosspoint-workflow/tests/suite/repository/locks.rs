//! Programs that hold the lock of a root, and outputs that are no longer wanted.

use std::cell::Cell;
use std::fs::{self, File};
use std::time::Duration;

use crosspoint_workflow::repository::{Applied, Fault, NotApplied, Rules, failpoint, recover_within};

use crate::crash::{prepared, state_after};
use crate::process::{output, play, was_killed};
use crate::scratch::{Scratch, create, update};

/// Locks a root as `flock .` in it does.
pub(crate) fn held(scratch: &Scratch) -> File {
    let root = File::open(scratch.root()).expect("it is there");
    root.lock().expect("it can be locked");
    root
}

#[test]
fn a_lock_that_is_never_let_go_is_a_fault() {
    let scratch = Scratch::new();
    let lock = held(&scratch);
    let repository = scratch.open().with_lock_wait(Duration::from_millis(10));
    let apply = || repository.apply(&scratch.record(), 1, &[create("a", "")], &Rules::default());
    match apply() {
        Err(NotApplied::Fault(fault @ Fault::Locked { .. })) => {
            let root = scratch.root();
            assert_eq!(fault.to_string(), format!("another program has held the lock of {} for 0 s", root.display()));
            assert!(fault.hint().contains("lslocks"), "{}", fault.hint());
        }
        other => panic!("{other:?}"),
    }
    assert!(scratch.tree().is_empty());
    drop(lock);
    assert!(matches!(apply(), Ok(Applied::Written(_))));
}

#[test]
fn recovering_waits_for_a_lock_with_an_end() {
    let scratch = prepared();
    assert!(was_killed(play("output", scratch.path(), &[(failpoint::KILL, "placed.1")])));
    let lock = held(&scratch);
    let recovered = recover_within(&scratch.record(), Duration::ZERO);
    assert!(matches!(recovered, Err(Fault::Unfinished { step: 1, .. })), "{recovered:?}");
    drop(lock);
    assert_eq!(recover_within(&scratch.record(), Duration::ZERO).expect("it is free").finished, [1]);
    assert_eq!(scratch.tree(), state_after());
}

#[test]
fn a_lock_is_not_waited_for_when_the_output_is_no_longer_wanted() {
    let scratch = Scratch::new();
    let _lock = held(&scratch);
    let asked = Cell::new(0);
    let is_wanted = || asked.replace(asked.get() + 1) < 3;
    let applied = scratch.open().apply_while(&scratch.record(), 1, &[create("a", "")], &Rules::default(), &is_wanted);
    assert!(matches!(applied, Err(NotApplied::Fault(Fault::Unwanted))), "{applied:?}");
}

/// The output stops being wanted at each moment at which it is asked.
#[test]
fn an_unwanted_output_leaves_nothing_and_can_be_applied_later() {
    let scratch = prepared();
    let before = scratch.tree();
    let apply = |is_wanted: &dyn Fn() -> bool| {
        scratch.open().apply_while(&scratch.record(), 1, &output(), &Rules::default(), is_wanted)
    };
    for moment in 0..2 {
        let asked = Cell::new(0);
        let applied = apply(&|| asked.replace(asked.get() + 1) < moment);
        assert!(matches!(applied, Err(NotApplied::Fault(Fault::Unwanted))), "{moment}: {applied:?}");
        assert_eq!(scratch.tree(), before, "{moment}");
        assert_eq!(fs::read_dir(scratch.record()).expect("it is there").count(), 0, "{moment}: it is forgotten");
    }
    // The last question comes when all files are staged, right before the commit mark.
    let staged = Cell::new(false);
    let applied = apply(&|| {
        staged.set(scratch.tree().keys().any(|path| path.ends_with("/new-5")));
        true
    });
    assert!(applied.is_ok() && staged.get(), "{applied:?}");
    assert_eq!(scratch.tree(), state_after());
    assert_eq!(apply(&|| false).expect("it was applied before"), applied.expect("it was"));
}

#[test]
fn an_unwanted_conflict_is_not_remembered() {
    let scratch = Scratch::new();
    let changes = [update("missing", "x")];
    let applied = scratch.open().apply_while(&scratch.record(), 1, &changes, &Rules::default(), &|| false);
    assert!(matches!(applied, Err(NotApplied::Fault(Fault::Unwanted))), "{applied:?}");
    scratch.put("missing", "here now");
    assert!(matches!(scratch.apply(1, &changes), Applied::Written(_)));
}
