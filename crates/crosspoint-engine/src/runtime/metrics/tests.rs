//! Tests that the number of series is limited, whatever names there are.

use crosspoint_contracts::content::Body;
use crosspoint_contracts::request::{Door, Key, Limits, Priority};

use super::*;
use crate::core::{Spec, Standing};
use crate::event::Entry;
use crate::id::JobId;
use crate::job::{Request, State};
use crate::policy::Policy;
use crate::runtime::AgentView;

/// Makes a job that was accepted, started and completed within one batch, one second apart.
fn done(seq: u64, work: &str, agent: &str) -> Written {
    let request = Request {
        id: JobId::new(Seq(seq), Time(0), 1),
        origin: None,
        door: Door::Native,
        caller: Arc::default(),
        request_id: "r".into(),
        key: Key::None,
        work: work.into(),
        pinned: None,
        addressed: None,
        priority: Priority::Normal,
        limits: Limits::default(),
        trace: None,
        echo: None,
        notify: None,
        accepted_at: Time(0),
        input: 0..0,
    };
    let outcome = Arc::new(job::Ending::new(
        Time(2_000_000),
        crosspoint_contracts::outcome::Outcome::completed(crosspoint_contracts::reply::Success::of(Body::of(&"x"))),
    ));
    let mut job = Job::accepted(Arc::new(request));
    job.agent = Some(agent.into());
    job.state = State::Ended(outcome.clone());
    let entry = |n, at, what| Entry { n, at: Time(at), what };
    let entries = vec![
        entry(1, 1_000_000, What::Started { attempt: 1, agent: agent.into() }),
        entry(2, 2_000_000, What::Ended(outcome)),
    ];
    Written { job: Arc::new(job), accepted: None, entries }
}

#[test]
fn a_thousand_works_and_agents_are_some_series_and_none_is_lost() {
    let mut counted = Counted::new(NAMES_MAX);
    for n in 0..1_000 {
        counted.add(Seq(n), &done(n, &format!("work-{n}"), &format!("agent-{n}")));
    }
    let ended = counted.ended();
    assert_eq!(ended.len(), NAMES_MAX + 1, "each name that is told apart, and the rest");
    assert_eq!(ended.iter().map(|series| series.count).sum::<u64>(), 1_000);
    let other = ended.iter().find(|series| &*series.work == "other").expect("there is a rest");
    assert_eq!((&*other.agent, other.count), ("other", 1_000 - NAMES_MAX as u64));
    assert_eq!((counted.job_times.len(), counted.attempt_times.len()), (NAMES_MAX + 1, NAMES_MAX + 1));
    let seconds: f64 = counted.attempt_times.values().map(|times| times.look().sum).sum();
    assert!((seconds - 1_000.0).abs() < 1e-6, "{seconds}");
    assert!(counted.begun.is_empty(), "what has ended is forgotten");
}

#[test]
fn combinations_have_a_limit_too() {
    let mut counted = Counted::new(NAMES_MAX);
    for n in 0..10_000_u64 {
        counted.add(Seq(n), &done(n, &format!("work-{}", n % 100), &format!("agent-{}", n / 100)));
    }
    let ended = counted.ended();
    assert_eq!(ended.len(), SERIES_MAX + 1);
    assert_eq!(ended.iter().map(|series| series.count).sum::<u64>(), 10_000);
}

#[test]
fn agents_that_are_not_told_apart_are_added_up() {
    let mut counted = Counted::new(1);
    let view = |name: &str, running| AgentView {
        spec: Spec {
            name: name.into(),
            contract: "builtin".into(),
            agent_type: None,
            awaited: false,
            works: Vec::new(),
            concurrency: 4,
            waiting_max: 64,
            policy: Policy::DEFAULT,
        },
        standing: Standing::default(),
        running,
        waiting: 0,
        joined: None,
        seen: None,
        token_refused_since: None,
        reached: None,
    };
    let loads = counted.loads(&[view("a", 1), view("b", 2), view("c", 3)]);
    let shown: Vec<_> = loads.iter().map(|(name, load)| (&**name, load.running, load.breakers)).collect();
    assert_eq!(shown, [("a", 1, [1, 0, 0]), ("other", 5, [2, 0, 0])]);
}
