//! Wall clocks that are set while the engine runs, and while it does not.

use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::request::Limits;
use crosspoint_contracts::time::Time;
use crosspoint_engine::breaker::{Breaker, OPEN_FOR};
use crosspoint_engine::core::{Command, Origin, Standing};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::{Job, Phase, State};
use crosspoint_engine::machine::{self, End, Event};
use crosspoint_engine::policy::{Policy, Recovery};

use crate::made::{POLICY, T0, ask, at, failed, go, job, job_with, secs, start};
use crate::town::{Town, agent, origin};

const YEAR_MICROS: i64 = 365 * 86_400_000_000;

fn lost() -> Event {
    failed(1, Failure::Unavailable, Dispatched::Yes)
}

fn retrying() -> Job {
    let running = go(&job(), start(), T0, &POLICY).job;
    go(&running, lost(), T0, &POLICY).job
}

/// A start that finds one job, and an agent with this standing.
fn started(job: Job, standing: Standing, now: Time) -> Town {
    let agents = vec![agent("agent", &["work"], 1)];
    let standings = vec![("agent".into(), standing)];
    let alive_at = Some(now);
    Town::of(Origin { jobs: vec![job], standings, last_seq: Seq(1), now, alive_at, ..origin(agents) })
}

/// When the next alarm of the only job is due.
fn alarm(town: &Town) -> Option<Time> {
    machine::alarm(&town.job(Seq(1)), &POLICY)
}

fn until(job: &Job) -> Option<Time> {
    match job.state {
        State::Retrying { until, .. } => Some(until),
        State::Queued | State::Running(_) | State::Waiting { .. } | State::Poisoned | State::Ended(_) => None,
    }
}

#[test]
fn a_jump_moves_pauses_and_breakers_on_disk_too() {
    for micros in [YEAR_MICROS, -YEAR_MICROS] {
        let open = Standing { breaker: Breaker::Open { until: at(60_000) }, drained: false };
        let mut town = started(retrying(), open, T0);
        let due = until(&town.job(Seq(1))).expect("it is retrying");
        town.now = T0.shifted(micros);
        town.tell(&Command::ClockJumped { micros, total_micros: micros });
        let written = &town.batch.jobs[&Seq(1)];
        assert_eq!(until(&written.job), Some(due.shifted(micros)));
        assert!(written.entries.is_empty() && written.accepted.is_none(), "nothing has happened to the job");
        assert_eq!(town.batch.agents["agent"].breaker, Breaker::Open { until: at(60_000).shifted(micros) });
    }
}

#[test]
fn a_job_that_begins_after_a_jump_has_its_whole_time_after_a_restart() {
    let mut queued = job();
    queued.shift(YEAR_MICROS);
    let now = T0.shifted(YEAR_MICROS);
    let running = go(&queued, start(), now, &POLICY).job;
    assert_eq!(running.started_at, Some(now), "this is what the row says");
}

#[test]
fn a_clock_that_was_set_back_while_we_were_gone_holds_nothing_up() {
    let back = T0.shifted(-YEAR_MICROS);
    let open = Standing { breaker: Breaker::Open { until: at(60_000) }, drained: false };
    let town = started(retrying(), open, back);
    let pause = until(&town.job(Seq(1))).map(|until| until.since(back));
    assert!(pause.is_some_and(|pause| pause <= Duration::from_millis(1_500)), "{pause:?}");
    assert_eq!(town.standing("agent").breaker, Breaker::Open { until: back.plus(OPEN_FOR) });
    let limited = job_with(Limits { total: Some(secs(10)), ..Limits::default() });
    let town = started(limited, Standing::default(), back);
    assert_eq!(alarm(&town), Some(back.plus(secs(10))), "the caller's limit");
    let running = go(&job(), start(), T0, &POLICY).job;
    let town = started(running.clone(), Standing::default(), back);
    assert_eq!(alarm(&town), Some(back.plus(secs(30))), "silence");
    assert_eq!(town.job(Seq(1)).started_at, Some(back), "and the agent's total");
    let operator = Standing { breaker: Breaker::Open { until: Time::NEVER }, drained: false };
    let town = started(running, operator, back);
    assert_eq!(town.standing("agent").breaker, operator.breaker, "what an operator opened stays open");
}

#[test]
fn time_that_we_were_gone_is_not_the_time_of_what_runs_again() {
    let running = go(&job(), start(), T0, &POLICY).job;
    let waiting = go(&running, ask(1, "which?"), at(1_000), &POLICY).job;
    let later = T0.plus(secs(86_400));
    for cut in [&running, &waiting] {
        let queued = go(cut, Event::Interrupted(End::Unclean), later, &POLICY).job;
        assert_eq!((queued.phase(), machine::alarm(&queued, &POLICY)), (Phase::Queued, None));
        let again = go(&queued, start(), later, &POLICY).job;
        let patient = Policy { silence: None, ..POLICY };
        assert_eq!(machine::alarm(&again, &patient), Some(later.plus(POLICY.total)));
    }
    let resuming = Policy { recovery: Recovery::Resume, silence: None, ..POLICY };
    let resumed = go(&running, Event::Interrupted(End::Unclean), later, &resuming).job;
    assert_eq!(machine::alarm(&resumed, &resuming), Some(later.plus(POLICY.take_up)), "its agent is asked once");
}
