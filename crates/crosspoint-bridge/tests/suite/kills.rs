//! A requester that is killed at every step, by name.

use std::collections::BTreeSet;

use crosspoint_bridge::WRITE_STEPS;

use crate::process::{long_text, play, was_killed};
use crate::scratch::Scratch;

const THING: &str = ".agent-response.json";

#[test]
fn a_writer_that_is_killed_leaves_the_old_or_the_new() {
    for (at, step) in WRITE_STEPS.into_iter().enumerate() {
        for old in [None, Some("old")] {
            let scratch = Scratch::new();
            if let Some(old) = old {
                scratch.put(THING, old);
            }
            assert!(was_killed(play("write", scratch.path(), Some(&format!("thing.{step}")))), "{step}");
            let is_new = at >= 3;
            let expected = if is_new { Some(long_text('n')) } else { old.map(str::to_owned) };
            let there = scratch.path().join(THING).exists().then(|| scratch.text(THING));
            assert!(there == expected, "killed when it was {step}, with {old:?}");
            scratch.age();
            scratch.open().sweep(|_| false, 1 << 20).expect("it can be swept");
            let names: Vec<&str> = expected.iter().map(|_| THING).collect();
            assert_eq!(scratch.list(), names, "{step}");
            assert!(play("write", scratch.path(), None).success());
            assert!(scratch.text(THING) == long_text('n'));
        }
    }
}

/// All places at which a requester can be killed.
fn places() -> Vec<String> {
    let mut places: Vec<String> =
        ["run", "request"].iter().flat_map(|what| WRITE_STEPS.map(|step| format!("{what}.{step}"))).collect();
    let others = ["ask.noted", "answer.moved", "answer.kept", "ask.taken", "run.withdrawn", "run.ended"];
    places.extend(others.map(str::to_owned));
    places
}

#[test]
fn a_program_that_is_killed_while_asking_asks_the_same_and_loses_no_answer() {
    for place in places() {
        let scratch = Scratch::new();
        let (mut killed, mut asked, mut answers) = (false, BTreeSet::new(), 0);
        // The requester asks twice and is killed at most once, so it is started at most four times.
        for round in 0.. {
            assert!(round < 5, "{place}: it does not end");
            let failpoint = (!killed).then_some(place.as_str());
            let status = play("ask", scratch.path(), failpoint);
            killed |= was_killed(status);
            let ids = scratch.answer(&format!("answer {}", asked.len() + 1));
            answers += ids.len();
            asked.extend(ids);
            if status.success() {
                break;
            }
            assert!(was_killed(status) || status.code() == Some(42), "{place}: {status:?}");
            if scratch.path().join("result").exists() && killed {
                // The requester was done and was killed while it cleaned up. The next run that begins anew removes the
                // rest.
                break;
            }
        }
        assert!(killed, "it never came to {place}");
        assert_eq!(scratch.text("result"), "answer 1, answer 2", "{place}");
        assert_eq!((asked.len(), answers), (2, 2), "{place}: each was asked under one id and answered once");
        crosspoint_bridge::ask::Run::begin(scratch.path()).expect("it is there").finish().expect("it can be forgotten");
        scratch.age();
        scratch.open().sweep(|_| false, 1 << 20).expect("it can be swept");
        assert_eq!(scratch.list(), ["result"], "{place}");
    }
}
