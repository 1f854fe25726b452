//! Agents and callers beside each other: reports count only from the agent that had the attempt, and no backlog takes
//! the room of others.

use std::sync::Arc;

use crosspoint_engine::core::{AgentCommand, Command, Grip, Origin, Rejected, Reply, Room, Share, Spec};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::{Job, Phase, Request};
use crosspoint_engine::machine::Event;
use crosspoint_engine::policy::{Policy, Recovery};

use crate::made::{POLICY, T0, ask, at, done, request, secs};
use crate::town::{Town, agent as spec, origin};

/// A town with two agents that joined and are present.
fn neighbours() -> Town {
    let joined = |name: &str, works: &[&str]| {
        let policy = Policy { recovery: Recovery::Resume, ..POLICY };
        let spec = Spec { policy, ..spec(name, works, 0) };
        Command::Join(Arc::new(crosspoint_engine::core::Member {
            spec,
            lease: secs(15),
            left_at: None,
            registration: None,
        }))
    };
    let mut town = Town::new(Vec::new());
    for (name, works) in [("honest", &["work"][..]), ("forger", &["forging"][..])] {
        town.tell(&joined(name, works));
        town.tell(&Command::Agent(name.into(), crosspoint_engine::core::AgentCommand::Capacity(4)));
    }
    town
}

fn says(town: &mut Town, agent: &str, grip: Grip, seq: Seq, event: Event) -> Reply {
    let id = town.job(seq).id();
    town.tell(&Command::Report { agent: agent.into(), grip, id, event })
}

#[test]
fn only_the_agent_that_had_an_attempt_can_end_it() {
    let mut town = neighbours();
    let seq = town.submit_work("work");
    assert_eq!(town.with(seq).as_deref(), Some("honest"));
    for grip in [Grip::Holds, Grip::Lost] {
        for event in [done(1), Event::Heard { attempt: 1 }, ask(1, "whose?")] {
            let reply = says(&mut town, "forger", grip, seq, event);
            assert!(matches!(reply, Reply::NotTheirs), "{reply:?}");
            let recorded: Vec<&str> = town.batch.violations.iter().map(|(_, _, violation)| violation.clause).collect();
            assert_eq!(recorded, ["ALL-2"], "it is on record");
            assert_eq!(town.job(seq).phase(), Phase::Running);
        }
    }
    let reply = says(&mut town, "honest", Grip::Holds, seq, done(1));
    assert!(matches!(reply, Reply::Job(job) if job.phase() == Phase::Completed));
}

#[test]
fn a_success_of_an_earlier_attempt_counts_from_the_agent_that_had_it() {
    let mut town = neighbours();
    let seq = town.submit_work("work");
    says(&mut town, "honest", Grip::Holds, seq, crate::made::dead(1));
    town.now = at(10_000);
    town.tell(&Command::Agent("honest".into(), AgentCommand::Drain(false)));
    assert_eq!((town.job(seq).attempts, town.job(seq).had_by(1).map(|name| &**name)), (2, Some("honest")));
    // The agent, in a session that was given up, reports a failure, and another agent reports a success.
    let failed = crate::made::failed(1, crosspoint_contracts::failure::Failure::AgentFailed, POLICY_BEGUN);
    assert!(matches!(says(&mut town, "honest", Grip::Lost, seq, failed), Reply::NotTheirs));
    assert!(matches!(says(&mut town, "forger", Grip::Lost, seq, done(1)), Reply::NotTheirs));
    assert_eq!(town.job(seq).phase(), Phase::Running);
    let reply = says(&mut town, "honest", Grip::Lost, seq, done(1));
    assert!(matches!(reply, Reply::Job(job) if job.phase() == Phase::Completed));
}

const POLICY_BEGUN: crosspoint_contracts::failure::Dispatched = crosspoint_contracts::failure::Dispatched::Yes;

#[test]
fn the_backlog_of_one_work_or_agent_leaves_room_for_the_others() {
    let room = Room { jobs: 10, of_work: 3, of_agent: 4, of_caller: 10 };
    let agents = vec![spec("one", &["a", "b"], 1), spec("two", &["c", "d"], 1), spec("three", &["d"], 1)];
    let mut town = Town::of(Origin { room, ..origin(agents) });
    let full = |reply: Reply| {
        let Reply::Rejected(Rejected::Full { share, most }) = reply else { return None };
        Some((share, most))
    };
    for _ in 0..3 {
        town.submit_work("a");
    }
    assert_eq!(full(town.try_submit(request(0, "a"))), Some((Share::Work, 3)));
    town.submit_work("b");
    assert_eq!(full(town.try_submit(request(0, "b"))), Some((Share::Agent, 4)), "only one agent takes either");
    town.submit_work("c");
    for _ in 0..3 {
        town.submit_work("d");
    }
    assert_eq!(full(town.try_submit(request(0, "d"))), Some((Share::Work, 3)));
    // A job that ends makes room.
    town.finish(Seq(1));
    town.submit_work("a");
}

#[test]
fn the_backlog_of_one_caller_leaves_room_for_the_others() {
    let room = Room { jobs: 10, of_work: 10, of_agent: 10, of_caller: 2 };
    let mut town = Town::of(Origin { room, ..origin(vec![spec("one", &["work"], 1)]) });
    let of = |caller: &str| Request { caller: caller.into(), ..request(0, "work") };
    for _ in 0..2 {
        assert!(matches!(town.try_submit(of("busy")), Reply::Accepted(_)));
    }
    let refused = town.try_submit(of("busy"));
    assert!(matches!(refused, Reply::Rejected(Rejected::Full { share: Share::Caller, most: 2 })), "{refused:?}");
    assert!(matches!(town.try_submit(of("other")), Reply::Accepted(_)));
}

#[test]
fn an_agent_has_only_so_many_jobs_that_wait_for_people() {
    let mut town = Town::new(vec![Spec { waiting_max: 2, ..spec("one", &["work"], 1) }]);
    let seqs: Vec<Seq> = (0..4).map(|_| town.submit_work("work")).collect();
    for seq in &seqs[..2] {
        assert_eq!(town.with(*seq).as_deref(), Some("one"));
        town.happens(*seq, ask(1, "which?"));
    }
    assert_eq!(town.with(seqs[2]), None, "two questions are as many as there may be");
    town.happens(seqs[0], crate::made::answer("that"));
    town.finish(seqs[0]);
    assert_eq!(town.with(seqs[2]).as_deref(), Some("one"));
}

#[test]
fn a_job_that_goes_to_and_fro_remembers_only_so_many_of_those_that_had_it() {
    let mut job = Job::accepted(Arc::new(request(1, "work")));
    let step = |job: &Job, event| crosspoint_engine::machine::step(job, event, T0, &POLICY).expect("it may").job;
    for attempt in 1..=500 {
        let agent: Arc<str> = if attempt % 2 == 0 { "even".into() } else { "odd".into() };
        job = step(&job, Event::Start { agent });
        job = step(&job, Event::Withdrawn { attempt });
    }
    assert!(job.had.len() <= 100, "{}", job.had.len());
    assert_eq!(job.had_by(499).map(|agent| &**agent), Some("odd"));
    assert_eq!(job.had_by(498).map(|agent| &**agent), Some("even"));
    assert_eq!(job.had_by(1).map(|agent| &**agent), Some(""), "it is nobody's who could claim it");
}
