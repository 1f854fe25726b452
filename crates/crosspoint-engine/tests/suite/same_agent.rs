//! Work that only the agent that may have done it repeats, because it alone knows whether it did.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::request::{Backoff, Limits, Schedule};
use crosspoint_engine::core::{AgentCommand, Command, Origin, Spec};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::{Job, Phase, Request};
use crosspoint_engine::machine::{End, Event};
use crosspoint_engine::policy::{Policy, Recovery, Repeats};
use crosspoint_engine::runtime::{Ahead, Attempt, Engine, Watch};
use tokio::sync::Semaphore;

use crate::made::{POLICY, T0, at, dead, failed, go, job, request, secs, start};
use crate::scratch::Scratch;
use crate::stage::{self, ended, new_job, reaches, stop, submit, until};
use crate::town::{Town, agent, origin};

const SAME: Policy = Policy { repeats: Repeats::SameAgent, ..POLICY };

fn agents(policy: &Policy) -> Vec<Spec> {
    ["a", "b"].map(|name| Spec { policy: policy.clone(), ..agent(name, &["work"], 1) }).into()
}

/// A town whose one job was given to the first agent, which is busy with another one when the job may go on.
fn after_attempt(policy: &Policy, event: Event) -> (Town, Seq) {
    let mut town = Town::new(agents(policy));
    let seq = town.submit_work("work");
    assert_eq!(town.with(seq).as_deref(), Some("a"));
    town.happens(seq, event);
    town.tell(&Command::Agent("a".into(), AgentCommand::Drain(true)));
    town.now = town.now.plus(secs(10));
    town.tell(&Command::Agent("b".into(), AgentCommand::Drain(false)));
    (town, seq)
}

#[test]
fn what_may_have_begun_waits_for_the_same_agent_and_what_has_not_goes_to_any() {
    let lost = || failed(1, Failure::Unavailable, Dispatched::Yes);
    for event in [lost(), failed(1, Failure::ResourceLimit, Dispatched::Yes), dead(1)] {
        let (mut town, seq) = after_attempt(&SAME, event.clone());
        assert_eq!((town.with(seq), town.job(seq).stays), (None, true), "{event:?}");
        town.tell(&Command::Agent("a".into(), AgentCommand::Drain(false)));
        assert_eq!(town.with(seq).as_deref(), Some("a"));
        // It stays, also if the next attempt surely never began.
        town.happens(seq, failed(2, Failure::Unavailable, Dispatched::No));
        assert!(town.job(seq).stays, "{event:?}");
    }
    let (town, seq) = after_attempt(&SAME, failed(1, Failure::Unavailable, Dispatched::No));
    assert_eq!((town.with(seq).as_deref(), town.job(seq).stays), (Some("b"), false), "it surely never began");
    let (town, seq) = after_attempt(&SAME, Event::Withdrawn { attempt: 1 });
    assert!(!town.job(seq).stays, "it was never given to the agent");
    let (town, seq) = after_attempt(&POLICY, lost());
    assert_eq!((town.with(seq).as_deref(), town.job(seq).stays), (Some("b"), false), "doing it twice does no harm");
}

#[test]
fn silence_and_the_end_of_a_server_leave_it_unknown_too() {
    let mut town = Town::new(agents(&SAME));
    let seq = town.submit_work("work");
    town.now = at(30_000);
    town.tell(&Command::Agent("a".into(), AgentCommand::Drain(true)));
    assert_eq!((town.job(seq).phase(), town.job(seq).stays), (Phase::Retrying, true), "it was silent");
    town.now = at(40_000);
    town.tell(&Command::Agent("b".into(), AgentCommand::Drain(false)));
    assert_eq!(town.with(seq), None);

    for (recovery, stays) in [(Recovery::Rerun, true), (Recovery::Resume, false)] {
        let policy = Policy { recovery, ..SAME };
        let running = go(&job(), start(), T0, &policy).job;
        let after = go(&running, Event::Interrupted(End::Unclean), at(1_000), &policy).job;
        assert_eq!(after.stays, stays, "{recovery:?}: an attempt that is taken up is not over");
    }
}

#[test]
fn it_waits_for_its_agent_also_after_a_restart_and_a_retry_that_a_caller_asks_for() {
    let fixed = Schedule { attempts_max: 5, backoff: Backoff::Fixed, first: secs(1) };
    let limits = Limits { retry: Some(fixed), ..Limits::default() };
    let mut town = Town::new(agents(&SAME));
    let seq = town.submit(Request { limits, ..request(0, "work") });
    town.happens(seq, failed(1, Failure::Unavailable, Dispatched::Yes));
    let row = (*town.job(seq)).clone();
    assert!(row.stays, "a caller that wants it repeated does not want it done twice");
    let now = T0.plus(secs(60));
    let jobs: Vec<Job> = vec![row];
    let mut town = Town::of(Origin { jobs, last_seq: seq, now, alive_at: Some(T0), ..origin(agents(&SAME)) });
    town.tell(&Command::Agent("a".into(), AgentCommand::Drain(true)));
    town.core.resume(now, &mut town.batch);
    town.tell(&Command::Agent("b".into(), AgentCommand::Drain(false)));
    assert_eq!((town.job(seq).phase(), town.with(seq)), (Phase::Queued, None));
    town.tell(&Command::Agent("a".into(), AgentCommand::Drain(false)));
    assert_eq!(town.with(seq).as_deref(), Some("a"));
}

/// An agent whose first attempts fail at a gate, after they may have begun, and whose later ones succeed.
fn shaky(name: &str, gate: &Arc<Semaphore>) -> stage::Agent {
    let gate = gate.clone();
    let (spec, link) = stage::agent("work", move |attempt: Attempt| {
        let gate = gate.clone();
        async move {
            if attempt.number() > 1 {
                return stage::echo(attempt).await;
            }
            gate.acquire().await.expect("the gate stays").forget();
            stage::failed(Failure::Unavailable, Dispatched::Yes)
        }
    });
    let schedule = Schedule { attempts_max: 3, backoff: Backoff::Fixed, first: Duration::from_millis(1) };
    let policy = Policy { repeats: Repeats::SameAgent, recovery: Recovery::Rerun, schedule, ..Policy::default() };
    (Spec { name: name.into(), policy, ..spec }, link)
}

#[tokio::test]
async fn a_job_that_stays_says_for_whom_it_waits_and_its_agent_gets_it_again() {
    let (scratch, gate) = (Scratch::new(), Arc::new(Semaphore::new(0)));
    let both = || ["one", "two"].map(|name| shaky(name, &gate)).into();
    let engine = stage::start(&scratch, both());
    let watch = submit(&engine, new_job("work", "{}")).await;
    let had = reaches(&watch, Phase::Running).await.agent.clone().expect("an agent has it");
    engine.drain(&had, true).await.expect("there is such an agent");
    gate.add_permits(1);
    let why = async |engine: &Engine, watch: &Watch| {
        let job = watch.job();
        engine.stuck(&job, Ahead::Counted).filter(|_| job.phase() == Phase::Queued).map(|stuck| stuck.reason)
    };
    let waits = format!("agent {had} is paused by an operator");
    until("it waits for its agent", async || why(&engine, &watch).await.as_ref() == Some(&waits)).await;
    stop(engine).await;

    // Only the other agent is configured now. It is free, and does not know whether the work was done.
    let other = if &*had == "one" { "two" } else { "one" };
    let engine = stage::start(&scratch, vec![shaky(other, &gate)]);
    let watch = engine.job(watch.job().id()).await.expect("it can be read").expect("it is there");
    let waits = format!("agent {had}, which may have done it, is not there or does not take work");
    until("it says so", async || why(&engine, &watch).await.as_ref() == Some(&waits)).await;
    stop(engine).await;

    let engine = stage::start(&scratch, both());
    engine.drain(&had, false).await.expect("there is such an agent");
    let watch = engine.job(watch.job().id()).await.expect("it can be read").expect("it is there");
    let job = ended(&watch).await;
    assert_eq!((job.phase(), job.attempts, job.stays), (Phase::Completed, 2, true));
    assert_eq!((job.had_by(1), job.had_by(2)), (Some(&had), Some(&had)));
    stop(engine).await;
}
