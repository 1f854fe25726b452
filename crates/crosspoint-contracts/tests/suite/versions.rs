//! Picking the version that two sides speak.

use crosspoint_contracts::message::code;
use crosspoint_contracts::message::version::{NAME_BYTES_MAX, NAMES_MAX, NoCommonVersion, Picked, SPOKEN, pick};
use proptest::prelude::*;

fn picked<'a>(ours: &[&'a str], theirs: &[&str]) -> Option<&'a str> {
    pick(ours, theirs).ok().map(Picked::get)
}

fn refused(ours: &[&str], theirs: &[&str]) -> NoCommonVersion {
    pick(ours, theirs).expect_err("there is no common version")
}

#[test]
fn the_lowest_common_version_is_picked() {
    assert_eq!(picked(&["1.0"], &["1.0"]), Some("1.0"));
    assert_eq!(picked(&["2.0", "1.0"], &["1.0", "2.0"]), Some("1.0"));
    assert_eq!(picked(&["1.0", "1.1", "2.0"], &["3.0", "2.0", "1.1"]), Some("1.1"));
    assert_eq!(picked(SPOKEN, &["2.0", "1.0"]), Some("1.0"));
}

#[test]
fn versions_are_compared_as_numbers() {
    let ascending = ["0.9", "1", "1.0", "1.0.1", "1.1", "1.9", "1.10", "2.0", "10.0"];
    for (index, lower) in ascending.iter().enumerate() {
        for higher in &ascending[index + 1..] {
            assert_eq!(picked(&[higher, lower], &[lower, higher]), Some(*lower), "{lower} and {higher}");
        }
    }
    assert_eq!(picked(&["1.0"], &["01.00"]), Some("1.0"), "leading zeros say nothing, and our spelling is used");
    assert_eq!(picked(&["1.0"], &["10", "1", "1.0.0", "0.1", "10.0", "1.01"]), None);
}

#[test]
fn numbers_of_any_length_do_not_overflow() {
    let nines = "9".repeat(100);
    let (large, larger) = (format!("1.{nines}8"), format!("1.{nines}9"));
    assert_eq!(picked(&[&larger, &large], &[&larger, &large]), Some(large.as_str()));
    assert_eq!(picked(&[&large], &[&larger]), None);
    // 2^64, which wraps to 0.
    assert_eq!(picked(&["1.0"], &["1.18446744073709551616"]), None);
}

#[test]
fn what_is_no_version_is_never_picked() {
    for odd in ["", ".", "1.", ".0", "1..0", "v1.0", "1.0 ", "+1.0", "1,0", "1.0-beta", "１.０", "latest"] {
        assert_eq!(picked(&[odd], &[odd]), None, "{odd:?}");
        assert_eq!(picked(&["1.0", odd], &[odd, "1.0"]), Some("1.0"), "{odd:?}");
    }
    // An empty part is not zero.
    assert_eq!(picked(&["1.0"], &["1."]), None);
    assert_eq!(picked(&["1."], &["1.0"]), None);
}

#[test]
fn no_common_version_names_both_lists() {
    let error = refused(SPOKEN, &["2.0", "latest"]);
    assert_eq!(
        error.to_string(),
        r#"no common protocol version: we speak "1.0"; the other side speaks "2.0", "latest""#
    );
    assert_eq!(error.error_code(), code::UNSUPPORTED);
    assert_eq!(error.error_code(), 5006);
    assert_eq!((error.ours.shown(), error.ours.more()), (["1.0".to_owned()].as_slice(), 0));
    assert_eq!(error.theirs.shown(), ["2.0", "latest"]);
    assert!(refused(SPOKEN, &[]).to_string().ends_with("the other side speaks none"));
}

#[test]
fn a_strangers_list_cannot_flood_a_log() {
    let million = vec!["2.0"; 1_000_000];
    let error = refused(SPOKEN, &million);
    assert_eq!((error.theirs.shown().len(), error.theirs.more()), (NAMES_MAX, 1_000_000 - NAMES_MAX));
    assert!(error.to_string().ends_with(r#""2.0" and 999984 more"#), "{error}");

    let long = "é".repeat(5 << 20);
    let error = refused(SPOKEN, &[&long]);
    assert_eq!(error.theirs.shown(), [format!("{}…", "é".repeat(NAME_BYTES_MAX / 2))]);

    let digits = "7".repeat(10 << 20);
    let error = refused(SPOKEN, &[&digits, "\n\u{1b}[31mfake: line"]);
    assert!(!error.to_string().contains(['\n', '\u{1b}']), "{error}");
}

proptest! {
    #[test]
    fn picking_agrees_with_numbers(
        ours in proptest::collection::vec((0..4u64, 0..12u64), 0..6),
        theirs in proptest::collection::vec((0..4u64, 0..12u64), 0..6),
    ) {
        let spelled = |versions: &[(u64, u64)]| -> Vec<String> {
            versions.iter().map(|(major, minor)| format!("{major}.{minor}")).collect()
        };
        let (our_texts, their_texts) = (spelled(&ours), spelled(&theirs));
        let expected = ours.iter().filter(|version| theirs.contains(version)).min();
        let our_texts: Vec<&str> = our_texts.iter().map(String::as_str).collect();
        let their_texts: Vec<&str> = their_texts.iter().map(String::as_str).collect();
        let expected = expected.map(|(major, minor)| format!("{major}.{minor}"));
        prop_assert_eq!(picked(&our_texts, &their_texts).map(str::to_owned), expected);
    }

    #[test]
    fn errors_stay_short(theirs in proptest::collection::vec(any::<String>(), 0..40)) {
        let texts: Vec<&str> = theirs.iter().map(String::as_str).collect();
        if let Err(error) = pick(SPOKEN, &texts) {
            // Every byte of a name may be escaped to six characters, such as \u{1f}.
            let most = 200 + NAMES_MAX * (NAME_BYTES_MAX + 8) * 6;
            let debugged = format!("{error:?}");
            prop_assert!(error.to_string().len() < most && debugged.len() < most);
        }
    }
}
