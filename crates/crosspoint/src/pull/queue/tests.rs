//! Checks which sessions are woken for work, and when untaken work goes back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crosspoint_contracts::request::{Door, Key, Limits, Priority};
use crosspoint_contracts::time::Time;
use crosspoint_engine::core::Spec;
use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::job::{Job, Request};
use crosspoint_engine::policy::Policy;
use crosspoint_engine::runtime::Handed;
use tokio::sync::Notify;
use uuid::Uuid;

use super::{Queue, Served};
use crate::pull::Joining;
use crate::pull::session::Wanted;

fn joining(session: u128, policy: Policy) -> Joining {
    let spec = Spec {
        name: "dig".into(),
        contract: "pull".into(),
        agent_type: None,
        awaited: false,
        works: vec!["dig".into()],
        concurrency: 0,
        waiting_max: 1,
        policy,
    };
    Joining { session: Uuid::from_u128(session), concurrency: 1, lease: Duration::from_secs(15), spec }
}

fn queue(sessions: u128, policy: &Policy) -> Queue {
    let mut queue = Queue::default();
    for session in 1..=sessions {
        assert!(queue.join(&joining(session, policy.clone()), Instant::now()).is_ok());
    }
    queue
}

fn handed(seq: u64) -> Handed {
    let request = Request {
        id: JobId::new(Seq(seq), Time::default(), seq),
        origin: None,
        door: Door::Native,
        caller: "".into(),
        request_id: "".into(),
        key: Key::None,
        work: "dig".into(),
        pinned: None,
        addressed: None,
        priority: Priority::Normal,
        limits: Limits::default(),
        trace: None,
        echo: None,
        notify: None,
        accepted_at: Time::default(),
        input: 0..0,
    };
    Handed { job: Arc::new(Job::accepted(Arc::new(request))), attempt: 1, document: None, resumed: None }
}

/// Begins a call for one job that finds nothing and waits; returns the number and the notifier of the call.
fn waits(queue: &mut Queue, session: u128) -> (u64, Arc<Notify>) {
    let session = Uuid::from_u128(session);
    assert!(queue.call_begins(session).is_ok());
    let Ok((round, _, bell)) = queue.begin_take(session) else { panic!("it has joined") };
    let Served::Ordered(ordered) = queue.serve(session, round, &Wanted::new(1, &[]), true) else {
        panic!("it is served")
    };
    assert!(ordered.is_empty());
    (round, bell)
}

fn rings(bell: &Notify) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::pin!(bell.notified()).poll(&mut context).is_ready()
}

#[test]
fn a_call_that_is_over_is_not_woken_in_place_of_one_that_waits() {
    let mut queue = queue(2, &Policy::DEFAULT);
    let (round, dead) = waits(&mut queue, 1);
    queue.call_ends(Uuid::from_u128(1), Some(round));
    let (_, bell) = waits(&mut queue, 2);
    queue.enqueue(vec![handed(1)], Instant::now());
    assert!(!rings(&dead) && rings(&bell));
}

#[test]
fn what_was_woken_and_vanished_or_left_hands_its_turn_on() {
    for leaves in [false, true] {
        let mut queue = queue(2, &Policy::DEFAULT);
        let (round, first) = waits(&mut queue, 1);
        let (_, second) = waits(&mut queue, 2);
        queue.enqueue(vec![handed(1)], Instant::now());
        assert!(rings(&first) && !rings(&second), "one for one job");
        if leaves {
            assert!(queue.leave(Uuid::from_u128(1)).is_some());
        } else {
            queue.call_ends(Uuid::from_u128(1), Some(round));
        }
        assert!(rings(&second), "leaves: {leaves}");
    }
}

#[test]
fn the_end_of_an_earlier_call_is_not_that_of_the_one_that_waits() {
    let mut queue = queue(1, &Policy::DEFAULT);
    let (earlier, _) = waits(&mut queue, 1);
    let (_, bell) = waits(&mut queue, 1);
    queue.call_ends(Uuid::from_u128(1), Some(earlier));
    queue.enqueue(vec![handed(1)], Instant::now());
    assert!(rings(&bell));
}

#[test]
fn what_nobody_takes_goes_back_in_half_of_its_time() {
    let now = Instant::now();
    let policy = Policy { silence: Some(Duration::from_secs(8)), ..Policy::DEFAULT };
    let mut queue = queue(1, &policy);
    let half = now + Duration::from_secs(4);
    assert_eq!(queue.enqueue(vec![handed(1)], now), Some(half));
    assert!(queue.stale(half - Duration::from_millis(1)).is_empty());
    assert_eq!((queue.stale(half).len(), queue.ready.len()), (1, 0));
}
