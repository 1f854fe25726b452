//! Stages that were under way when the last orchestrator ended: at a start they wait until their jobs come to them,
//! unless their agents went on with them.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::clause::Level;
use crosspoint_engine::core::{Command, Effect, Mode, Origin, Spec};
use crosspoint_engine::event::Violation;
use crosspoint_engine::id::{Ids, Seq};
use crosspoint_engine::job::{self, Job, Phase, Request};
use crosspoint_engine::machine::Event;
use crosspoint_engine::policy::{Policy, Recovery};

use crate::made::{POLICY, T0, go, request, start};
use crate::town::{Town, agent, origin};

/// A job that has a stage done, at a start after both were under way, and `policy` for the stage's agent.
fn with_stage(policy: Policy) -> Town {
    let of = job::Origin::ChildOf { parent: request(1, "run").id.uuid(), stage: "draft".into() };
    let jobs = vec![
        running(request(1, "run"), "runner", &RESUMED),
        running(Request { origin: Some(of), ..request(2, "work") }, "a", &policy),
    ];
    at_a_start(jobs, Mode::Serve, policy)
}

fn running(request: Request, agent: &str, policy: &Policy) -> Job {
    let mut job = go(&Job::accepted(Arc::new(request)), start(), T0, policy).job;
    job.agent = Some(agent.into());
    job
}

const RESUMED: Policy =
    Policy { recovery: Recovery::Resume, silence: None, total: Duration::from_secs(100_000), ..POLICY };

fn at_a_start(jobs: Vec<Job>, mode: Mode, policy: Policy) -> Town {
    let runner = Spec { policy: RESUMED, ..agent("runner", &["run"], 1) };
    let agents = vec![runner, Spec { policy, ..agent("a", &["work"], 1) }];
    // Ids as these stories have them, with their numbers in the clear.
    let ids = Ids::hidden([7; 32], u64::MAX);
    Town::of(Origin { jobs, last_seq: Seq(2), mode, ids, ..origin(agents) })
}

fn resumed(policy: Policy) -> Town {
    let mut town = with_stage(policy);
    town.core.resume(town.now, &mut town.batch);
    town
}

/// Which jobs something is done for outside.
fn acted_for(town: &Town) -> Vec<Seq> {
    let of_job = |effect: &Effect| match effect {
        Effect::Job { job, .. } => Some(job.seq()),
        Effect::Check { .. } => None,
    };
    town.batch.effects.iter().filter_map(of_job).collect()
}

/// The job may have to wait before anything is done for it, and its stage with it.
#[test]
fn a_stage_waits_at_a_start_until_its_job_comes_to_it_and_that_time_does_not_count() {
    let mut town = resumed(POLICY);
    assert_eq!(acted_for(&town), [Seq(1)], "the job goes on");
    assert_eq!(town.core.mode(), Mode::ServeBut { behind: [Seq(2)].into() });
    assert_eq!((town.job(Seq(2)).phase(), town.running("a")), (Phase::Queued, 0), "its attempt is over");
    town.now = T0.plus(Duration::from_secs(10_000));
    town.tell(&Command::Violation(Seq(2), Violation { clause: "ALL-3", level: Level::Error, what: "x".into() }));
    assert_eq!((town.job(Seq(2)).phase(), town.job(Seq(2)).attempts), (Phase::Queued, 1), "no time of it is up");
    come_to(&mut town);
    assert_eq!((town.dispatched(), town.job(Seq(2)).attempts), (vec![Seq(2)], 2), "it is begun again");
    assert_eq!((town.core.mode(), town.running("a")), (Mode::Serve, 1));
    let begun = town.job(Seq(2)).running().map(|running| running.heard_at);
    assert_eq!(begun, Some(town.now), "and has all its time");
}

/// Nobody else would listen to what it says.
#[test]
fn a_stage_whose_agent_goes_on_is_taken_up_at_the_start() {
    for recovery in [Recovery::Resume, Recovery::ResumeOnce] {
        let town = resumed(Policy { recovery, ..POLICY });
        assert_eq!(acted_for(&town), [Seq(1), Seq(2)]);
        assert_eq!((town.core.mode(), town.running("a")), (Mode::Serve, 1));
        assert_eq!((town.job(Seq(2)).phase(), town.job(Seq(2)).attempts), (Phase::Running, 1), "the same attempt");
    }
}

#[test]
fn a_stage_of_which_nothing_can_be_known_has_failed() {
    let town = resumed(Policy { recovery: Recovery::Fail, ..POLICY });
    assert!(town.batch.jobs[&Seq(2)].job.outcome().is_some());
    assert_eq!(town.core.mode(), Mode::Serve);
}

/// Its changes cannot be written, so its job must not have it begun again and again.
#[test]
fn a_stage_that_is_set_aside_waits_for_an_operator_and_for_no_job() {
    let mut town = with_stage(POLICY);
    town.core.set_aside(Seq(2), T0, &mut town.batch);
    town.core.resume(town.now, &mut town.batch);
    assert_eq!(town.core.mode(), Mode::Serve);
    assert!(town.job(Seq(2)).aside.is_some());
    town.happens(Seq(2), Event::Release);
    assert_eq!(town.dispatched(), [Seq(2)], "it is begun again");
}

#[test]
fn a_stage_that_waits_for_its_job_ends_with_it() {
    let mut town = resumed(POLICY);
    town.happens(Seq(1), Event::Cancel);
    assert!(town.batch.jobs[&Seq(2)].job.outcome().is_some());
    assert_eq!(town.core.mode(), Mode::Serve);
}

#[test]
fn a_core_made_anew_leaves_the_same_stages_to_their_jobs() {
    let town = resumed(POLICY);
    let jobs = [1, 2].map(|seq| (*town.job(Seq(seq))).clone()).to_vec();
    let mut anew = at_a_start(jobs, town.core.mode(), POLICY);
    assert_eq!((anew.running("runner"), anew.running("a")), (1, 0));
    come_to(&mut anew);
    assert_eq!((anew.dispatched(), anew.running("a")), (vec![Seq(2)], 1));
}

/// The job asks for its stage again.
fn come_to(town: &mut Town) {
    town.tell(&Command::TakeUp(town.job(Seq(2)).id()));
}
