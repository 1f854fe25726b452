//! A step that was taken back, and a kill or a fault while its record is removed.

use std::collections::BTreeMap;
use std::fs;

use crosspoint_workflow::repository::{failpoint, recover};

use super::prepared;
use crate::process::{UNFINISHED, as_long, play, was_killed};
use crate::scratch::Scratch;

/// Before the removal of the journal is synced, and before each removal of contents.
const PLACES: [&str; 3] = ["forgotten.0", "forgotten.1", "forgotten.2"];

/// A repository in which the output was taken back, and a kill came while that was forgotten.
fn killed_at(place: &str) -> (Scratch, BTreeMap<String, String>) {
    let scratch = prepared();
    let before = scratch.tree();
    let both = [(failpoint::FAIL, "settled"), (failpoint::KILL, place)];
    assert!(was_killed(play("as long", scratch.path(), &both)), "{place}");
    assert_eq!(scratch.tree(), before, "{place}: all was taken back");
    (scratch, before)
}

/// Applies the output, which finds nothing of the first try.
fn goes_on(scratch: &Scratch, place: &str) {
    scratch.apply(1, &as_long());
    assert_eq!((scratch.text("four"), scratch.text("new/one")), ("FOUR".to_owned(), "one".to_owned()), "{place}");
    let left: Vec<_> = fs::read_dir(scratch.record()).expect("it is there").collect();
    assert_eq!(left.len(), 3, "{place}: a journal and two contents, {left:?}");
}

#[test]
fn killed_while_forgetting_a_step_stays_taken_back() {
    for place in PLACES {
        let (scratch, before) = killed_at(place);
        recover(&scratch.record()).unwrap_or_else(|fault| panic!("{place}: {fault}"));
        assert_eq!(scratch.tree(), before, "{place}");
        goes_on(&scratch, place);
    }
}

/// The file is as long as the one that the step made there, and was taken away again.
#[test]
fn killed_while_forgetting_a_file_of_another_program_stays() {
    for place in PLACES {
        let (scratch, mut before) = killed_at(place);
        scratch.put("new/one", "two");
        before.extend([("new/".to_owned(), String::new()), ("new/one".to_owned(), "two".to_owned())]);
        recover(&scratch.record()).unwrap_or_else(|fault| panic!("{place}: {fault}"));
        assert_eq!(scratch.tree(), before, "{place}");
        fs::remove_dir_all(scratch.root().join("new")).expect("it can be removed");
        goes_on(&scratch, place);
    }
}

/// A power cut may bring back the journal, whose removal was not synced, but then it has the contents.
#[test]
fn as_long_as_the_journal_may_come_back_it_has_its_contents() {
    let (scratch, before) = killed_at("undo_cleaned");
    let (journal, aside) = (scratch.record().join("step-1.undo.json"), scratch.path().join("aside"));
    fs::copy(&journal, &aside).expect("it is there");
    assert!(was_killed(play("recover", scratch.path(), &[(failpoint::KILL, "forgotten.0")])));
    assert!(!journal.exists(), "it is the first to go");
    fs::rename(aside, journal).expect("it can be put back");
    assert_eq!(recover(&scratch.record()).expect("it has all that it needs").undone, [1]);
    assert_eq!(scratch.tree(), before);
    goes_on(&scratch, "undo_cleaned");
}

#[test]
fn a_fault_while_contents_are_forgotten_does_no_harm() {
    for (place, code) in [("forgotten.0", Some(UNFINISHED)), ("forgotten.1", Some(0)), ("forgotten.2", Some(0))] {
        let (scratch, before) = killed_at("undo_cleaned");
        let status = play("recover", scratch.path(), &[(failpoint::FAIL, place)]);
        assert_eq!(status.code(), code, "{place}");
        assert_eq!(recover(&scratch.record()).expect("there is nothing to do"), Default::default(), "{place}");
        assert_eq!(scratch.tree(), before, "{place}");
        goes_on(&scratch, place);
    }
}
