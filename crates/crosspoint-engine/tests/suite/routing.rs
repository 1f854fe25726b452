//! Which job goes to which agent, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::request::Priority;
use crosspoint_contracts::time::Time;
use crosspoint_engine::breaker::{self, Breaker, FAILURES_MAX, Health, OPEN_FOR};
use crosspoint_engine::core::{AgentCommand, Batch, Command, Effect, Mode, Origin, Rejected, Reply, Room, Share, Spec};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::{Job, Phase, Request};
use crosspoint_engine::machine::Event;
use crosspoint_engine::queue::OLDEST_EVERY;

use crate::made::{T0, answer, ask, failed, go, request, start};
use crate::town::{Town, agent, origin};

fn with_priority(priority: Priority) -> Request {
    Request { priority, ..request(0, "work") }
}

fn pinned(name: &str, work: &str) -> Request {
    Request { pinned: Some(name.into()), ..request(0, work) }
}

fn breaker_of(name: &str, event: breaker::Event) -> Command {
    Command::Agent(name.into(), AgentCommand::Breaker(event))
}

/// Fails the present attempt as unavailable.
fn lose(town: &mut Town, seq: Seq) {
    let attempt = town.job(seq).attempts;
    town.happens(seq, failed(attempt, Failure::Unavailable, Dispatched::No));
}

#[test]
fn the_least_loaded_agent_goes_first_by_share_of_its_room() {
    let mut town = Town::new(vec![agent("big", &["work"], 4), agent("small", &["work"], 2)]);
    let jobs: Vec<Seq> = (0..6).map(|_| town.submit_work("work")).collect();
    assert_eq!((town.running("big"), town.running("small")), (4, 2));
    let early: Vec<_> = jobs[..3].iter().filter_map(|seq| town.with(*seq)).collect();
    assert_eq!(early.iter().filter(|name| *name == "small").count(), 1, "one of the first three: {early:?}");
}

#[test]
fn equals_take_turns() {
    let mut town = Town::new(["a", "b", "c"].map(|name| agent(name, &["work"], 2)).into());
    let mut turns = BTreeMap::new();
    for _ in 0..9 {
        let seq = town.submit_work("work");
        *turns.entry(town.with(seq)).or_insert(0) += 1;
        town.finish(seq);
    }
    assert_eq!(turns.into_values().collect::<Vec<_>>(), [3, 3, 3]);
}

#[test]
fn no_agent_ever_has_more_than_it_may() {
    let mut town = Town::new(vec![agent("a", &["work"], 3)]);
    let jobs: Vec<Seq> = (0..10).map(|_| town.submit_work("work")).collect();
    for seq in &jobs {
        assert!(town.running("a") <= 3);
        town.finish(*seq);
    }
    assert_eq!((town.running("a"), town.core.jobs().count()), (0, 0));
}

#[test]
fn work_goes_only_where_it_is_taken_and_a_pinned_job_only_to_its_agent() {
    let mut town = Town::new(vec![agent("a", &["work"], 1), agent("b", &["work", "other"], 1)]);
    let first = town.submit(pinned("b", "work"));
    assert_eq!(town.with(first).as_deref(), Some("b"));
    let other = town.submit_work("other");
    assert_eq!(town.with(other), None, "a has room, and does not take it");
    let second = town.submit(pinned("b", "work"));
    assert_eq!(town.with(second), None, "a has room, and is not meant");
    town.finish(first);
    assert_eq!(town.with(other).as_deref(), Some("b"), "the older of the two");
    town.finish(other);
    assert_eq!(town.with(second).as_deref(), Some("b"));
}

#[test]
fn what_no_agent_could_ever_take_is_refused_at_once() {
    let mut town = Town::new(vec![agent("a", &["work"], 1), agent("b", &["other"], 1)]);
    for (request, why) in [
        (request(0, "unheard"), Rejected::UnknownWork),
        (pinned("nobody", "work"), Rejected::UnknownAgent),
        (pinned("b", "work"), Rejected::NotItsWork),
    ] {
        assert!(matches!(town.try_submit(request), Reply::Rejected(found) if found == why), "{why:?}");
    }
    assert!(matches!(town.tell(&breaker_of("nobody", breaker::Event::Open)), Reply::NoSuchAgent));
}

#[test]
fn a_drained_agent_keeps_what_it_has_and_gets_no_more() {
    let mut town = Town::new(vec![agent("a", &["work"], 2)]);
    let first = town.submit_work("work");
    town.tell(&Command::Agent("a".into(), AgentCommand::Drain(true)));
    let second = town.submit_work("work");
    assert_eq!((town.with(first).as_deref(), town.with(second)), (Some("a"), None), "accepted, and waits");
    town.tell(&Command::Agent("a".into(), AgentCommand::Drain(false)));
    assert_eq!(town.dispatched(), [second]);
}

#[test]
fn five_bad_marks_in_a_row_open_the_breaker_for_a_minute_and_a_check_closes_it() {
    let mut town = Town::new(vec![agent("a", &["work"], 9), agent("b", &["other"], 1)]);
    let jobs: Vec<Seq> = (0..7).map(|_| town.submit_work("work")).collect();
    jobs[..4].iter().for_each(|seq| lose(&mut town, *seq));
    assert_eq!(town.standing("a").breaker, Breaker::Closed { failures: FAILURES_MAX - 1 });
    lose(&mut town, jobs[4]);
    let until = town.now.plus(OPEN_FOR);
    assert_eq!(town.standing("a").breaker, Breaker::Open { until });
    assert_eq!(town.with(jobs[5]).as_deref(), Some("a"), "what it has goes on");
    let waiting = town.submit_work("work");
    assert_eq!(town.with(waiting), None);
    town.now = Time(until.0 - 1);
    town.happens(jobs[5], Event::Heard { attempt: 1 });
    town.finish(jobs[5]);
    assert_eq!((town.with(waiting), town.standing("a").breaker), (None, Breaker::Open { until }));
    town.now = until;
    town.tell(&breaker_of("b", breaker::Event::Clock));
    assert!(town.batch.effects.iter().any(|effect| matches!(effect, Effect::Check { agent } if &**agent == "a")));
    assert_eq!((town.with(waiting), town.standing("a").breaker), (None, Breaker::HalfOpen), "the check goes first");
    town.tell(&breaker_of("a", breaker::Event::Checked(Health::Well)));
    assert_eq!(town.with(waiting).as_deref(), Some("a"));
}

#[test]
fn a_good_mark_in_between_begins_the_count_anew() {
    let mut town = Town::new(vec![agent("a", &["work"], 20)]);
    let jobs: Vec<Seq> = (0..12).map(|_| town.submit_work("work")).collect();
    jobs[..4].iter().for_each(|seq| lose(&mut town, *seq));
    town.happens(jobs[4], failed(1, Failure::AgentFailed, Dispatched::Yes));
    jobs[5..9].iter().for_each(|seq| lose(&mut town, *seq));
    assert_eq!(town.standing("a").breaker, Breaker::Closed { failures: 4 });
}

#[test]
fn work_avoids_an_agent_whose_breaker_is_open() {
    let mut town = Town::new(vec![agent("a", &["work"], 5), agent("b", &["work"], 5)]);
    town.tell(&breaker_of("a", breaker::Event::Open));
    let jobs: Vec<Seq> = (0..6).map(|_| town.submit_work("work")).collect();
    assert_eq!((town.running("a"), town.running("b")), (0, 5));
    town.now = town.now.plus(Duration::from_secs(1_000_000));
    assert_eq!(town.core.alarm(town.now).map(|at| at > town.now), Some(false), "the jobs of b have clocks");
    town.tell(&breaker_of("a", breaker::Event::Close));
    assert_eq!(town.with(jobs[5]).as_deref(), Some("a"), "an operator's breaker stays until it is closed");
}

#[test]
fn higher_priorities_go_first_and_older_jobs_before_younger_ones() {
    let mut town = Town::new(vec![agent("a", &["work"], 1)]);
    let first = town.submit(with_priority(Priority::Low));
    let order = [Priority::Normal, Priority::Low, Priority::Urgent, Priority::High, Priority::Normal, Priority::Urgent];
    let jobs: Vec<Seq> = order.into_iter().map(|priority| town.submit(with_priority(priority))).collect();
    assert_eq!(town.core.ahead_of(&town.job(jobs[4])), 4);
    let mut went = Vec::new();
    let mut last = first;
    for _ in &jobs {
        town.finish(last);
        last = town.dispatched()[0];
        went.push(last);
    }
    assert_eq!(went, [2, 5, 3, 0, 4, 1].map(|index: usize| jobs[index]));
}

#[test]
fn the_oldest_goes_every_eighth_time_whatever_keeps_coming() {
    let mut town = Town::new(vec![agent("a", &["work"], 1)]);
    let mut last = town.submit(with_priority(Priority::Urgent));
    let low: Vec<Seq> = (0..3).map(|_| town.submit(with_priority(Priority::Low))).collect();
    let mut turns = Vec::new();
    for turn in 1..=4 * OLDEST_EVERY {
        town.submit(with_priority(Priority::Urgent));
        town.finish(last);
        last = town.dispatched()[0];
        if low.contains(&last) {
            turns.push(turn);
        }
    }
    assert_eq!(turns.len(), low.len(), "all of them");
    for (before, turn) in turns.iter().enumerate() {
        assert!(*turn <= OLDEST_EVERY * (before as u64 + 1), "after {turn} turns with {before} before it");
    }
}

fn of_caller(caller: &str, priority: Priority) -> Request {
    Request { caller: caller.into(), ..with_priority(priority) }
}

#[test]
fn a_callers_backlog_does_not_hold_up_the_work_of_another() {
    let mut town = Town::new(vec![agent("a", &["work"], 1)]);
    let mut last = town.submit(of_caller("busy", Priority::Urgent));
    for _ in 0..50 {
        town.submit(of_caller("busy", Priority::Urgent));
    }
    let patient = town.submit(of_caller("calm", Priority::Low));
    assert_eq!(town.core.ahead_of(&town.job(patient)), 1, "one of the other caller");
    let mut before = 0;
    while last != patient {
        town.finish(last);
        last = town.dispatched()[0];
        before += 1;
    }
    assert!(before <= 2, "it went as number {before}");
}

#[test]
fn an_agent_goes_round_the_callers_whatever_their_works_and_priorities() {
    let mut town = Town::new(vec![agent("a", &["work", "other"], 1)]);
    let mut last = town.submit(of_caller("one", Priority::Normal));
    let mut callers = BTreeMap::from([(last, "one")]);
    for _ in 0..40 {
        callers.insert(town.submit(of_caller("one", Priority::Urgent)), "one");
        callers.insert(town.submit(of_caller("two", Priority::Low)), "two");
        callers.insert(town.submit(Request { caller: "three".into(), ..request(0, "other") }), "three");
    }
    let mut turns = BTreeMap::new();
    for _ in 0..48 {
        town.finish(last);
        last = town.dispatched()[0];
        *turns.entry(callers[&last]).or_insert(0) += 1;
    }
    // Six of the turns go to the oldest job, whosever it is.
    assert!(turns.values().all(|turns| (14..=20).contains(turns)), "{turns:?}");
}

#[test]
fn questions_of_one_caller_leave_places_to_the_others() {
    let asker = Spec { waiting_max: 4, ..agent("a", &["work"], 1) };
    let mut town = Town::new(vec![asker]);
    let busy: Vec<Seq> = (0..5).map(|_| town.submit(of_caller("busy", Priority::Urgent))).collect();
    for seq in &busy[..3] {
        town.happens(*seq, ask(1, "which?"));
    }
    assert_eq!(town.job(busy[3]).phase(), Phase::Queued, "three of four places are the caller's own");
    let calm = town.submit(of_caller("calm", Priority::Low));
    assert_eq!(town.with(calm).as_deref(), Some("a"));
    town.finish(calm);
    assert_eq!(town.job(busy[3]).phase(), Phase::Queued);
    town.happens(busy[0], answer("this"));
    town.finish(busy[0]);
    assert_eq!(town.with(busy[3]).as_deref(), Some("a"), "with an answer there is a place again");
}

#[test]
fn jobs_of_one_caller_that_may_all_ask_leave_places_to_the_others() {
    // Those that run are as many as those that may wait: all of them may ask in the same moment.
    let asker = Spec { waiting_max: 4, ..agent("a", &["work"], 4) };
    let mut town = Town::new(vec![asker]);
    let busy: Vec<Seq> = (0..6).map(|_| town.submit(of_caller("busy", Priority::Urgent))).collect();
    assert_eq!(town.running("a"), 3, "three of four places for questions are the caller's own");
    for seq in &busy[..3] {
        town.happens(*seq, ask(1, "which?"));
    }
    assert_eq!(town.running("a"), 0);
    let calm = town.submit(of_caller("calm", Priority::Low));
    assert_eq!(town.with(calm).as_deref(), Some("a"));
}

#[test]
fn one_caller_has_all_of_an_agent_that_asks_little_or_nobody() {
    for waiting_max in [12, 64, u32::MAX] {
        let mut town = Town::new(vec![Spec { waiting_max, ..agent("a", &["work"], 8) }]);
        let busy: Vec<Seq> = (0..20).map(|_| town.submit(of_caller("busy", Priority::Normal))).collect();
        assert_eq!(town.running("a"), 8, "{waiting_max}");
        town.finish(busy[0]);
        assert_eq!(town.running("a"), 8, "{waiting_max}");
    }
}

#[test]
fn a_job_that_waits_for_a_person_frees_its_place() {
    let mut town = Town::new(vec![agent("a", &["work"], 1)]);
    let (first, second) = (town.submit_work("work"), town.submit_work("work"));
    town.happens(first, ask(1, "which?"));
    assert_eq!(town.with(second).as_deref(), Some("a"));
    town.happens(first, answer("that"));
    assert_eq!(town.running("a"), 2, "an answer is not kept from the agent that waits for it");
    let third = town.submit_work("work");
    town.finish(first);
    assert_eq!(town.with(third), None, "and nothing new begins before there is room");
    town.finish(second);
    assert_eq!(town.with(third).as_deref(), Some("a"));
}

#[test]
fn an_answer_that_is_given_again_is_counted_on_disk() {
    let mut town = Town::new(vec![agent("a", &["work"], 1)]);
    let seq = town.submit_work("work");
    town.happens(seq, ask(1, "which?"));
    town.happens(seq, answer("that"));
    town.batch = Batch::default();
    town.core.resume(town.now, &mut town.batch);
    town.core.settle(town.now, &mut town.batch);
    town.happens(seq, ask(2, "which?"));
    let written = &town.batch.jobs[&seq];
    assert!(written.entries.is_empty(), "nobody is asked");
    assert_eq!(written.job.running().map(|running| running.asked), Some(1), "the next question is the second");
}

#[test]
fn there_are_no_more_jobs_than_there_may_be() {
    let mut town = Town::of(Origin {
        room: Room { jobs: 2, of_work: 9, of_agent: 9, of_caller: 9 },
        ..origin(vec![agent("a", &["work"], 1)])
    });
    let first = town.submit_work("work");
    town.submit_work("work");
    let full = town.try_submit(request(0, "work"));
    assert!(matches!(full, Reply::Rejected(Rejected::Full { share: Share::All, most: 2 })), "{full:?}");
    town.finish(first);
    assert!(matches!(town.try_submit(request(0, "work")), Reply::Accepted(_)), "one has ended");
}

#[test]
fn held_jobs_are_left_alone_and_new_ones_are_driven() {
    let job = |seq| Job::accepted(std::sync::Arc::new(request(seq, "work")));
    let agents = || vec![agent("a", &["work"], 1)];
    let running = go(&job(1), start(), T0, &crate::made::POLICY).job;
    let held = Origin { jobs: vec![running, job(2)], last_seq: Seq(2), mode: Mode::Held, ..origin(agents()) };
    let mut town = Town::of(held);
    let third = town.submit_work("work");
    assert_eq!(town.dispatched(), [third], "with the room that the others have elsewhere");
    assert_eq!(town.with(third).as_deref(), Some("a"));
    town.now = town.now.plus(Duration::from_secs(29));
    town.finish(third);
    assert_eq!(town.dispatched(), []);
    town.now = town.now.plus(Duration::from_secs(1_000_000));
    town.submit_work("work");
    assert_eq!((town.job(Seq(1)).phase(), town.job(Seq(2)).phase()), (Phase::Running, Phase::Queued));
    town.happens(Seq(2), Event::Cancel);
    assert!(town.core.job(Seq(2)).is_none(), "whoever asks may end them all the same");
}
