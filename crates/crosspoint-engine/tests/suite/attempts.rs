//! Attempts that are begun again, given up, repeated or stopped, and attempts that panic.

use std::time::{Duration, Instant};

use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::request::{Backoff, NewJob, Schedule};
use crosspoint_engine::breaker::Breaker;
use crosspoint_engine::core::Mode;
use crosspoint_engine::job::{Origin, Phase};
use crosspoint_engine::machine::Refused;
use crosspoint_engine::policy::{Policy, Recovery, Repeats};
use crosspoint_engine::runtime::{Ahead, Attempt, Config, Denied, Engine, Submitted};
use tokio::sync::mpsc;

use crate::scratch::Scratch;
use crate::stage::{
    self, Agent, agent, ended, events, failed, names, never, new_job, outcome, patience, reaches, start, stop, submit,
    success, with_policy,
};

#[tokio::test]
async fn what_was_under_way_is_done_again_after_a_restart() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("work", never), agent("rest", never)]);
    let running = submit(&engine, new_job("work", r#"{"n":1}"#)).await;
    reaches(&running, Phase::Running).await;
    engine.drain("rest", true).await.expect("there is such an agent");
    let queued = submit(&engine, new_job("rest", r#"{"n":2}"#)).await;
    stop(engine).await;

    let engine = start(&scratch, vec![agent("work", stage::echo), agent("rest", stage::echo)]);
    let running = engine.job(running.job().id()).await.expect("it can be read").expect("it is there");
    let job = ended(&running).await;
    assert_eq!((job.attempts, job.retries, outcome(&job)["outputs"]["n"].as_u64()), (2, 0, Some(1)));
    let expected = ["accepted", "started", "interrupted", "started", "completed"];
    assert_eq!(names(&events(&engine, job.id(), 0).await), expected);
    // The drain that an operator asked for survives the restart too.
    let queued = engine.job(queued.job().id()).await.expect("it can be read").expect("it is there");
    assert_eq!(queued.job().phase(), Phase::Queued);
    let stuck = engine.stuck(&queued.job(), Ahead::Counted).expect("it says why");
    assert_eq!(stuck.reason, "agent rest is paused by an operator");
    engine.drain("rest", false).await.expect("there is such an agent");
    assert_eq!(outcome(&*ended(&queued).await)["outputs"]["n"], 2);
    stop(engine).await;
}

#[tokio::test]
async fn an_attempt_whose_end_is_unknown_fails_after_a_restart() {
    let scratch = Scratch::new();
    let fails = Policy { recovery: Recovery::Fail, ..Policy::default() };
    let agents = || vec![with_policy(agent("once", never), fails.clone()), agent("gone", never)];
    let engine = start(&scratch, agents());
    let once = submit(&engine, new_job("once", "{}")).await.job().id();
    let gone = submit(&engine, new_job("gone", "{}")).await.job().id();
    stop(engine).await;
    // The other agent is no longer configured.
    let engine = start(&scratch, agents().into_iter().take(1).collect());
    for id in [once, gone] {
        let watch = engine.job(id).await.expect("it can be read").expect("it is there");
        let job = ended(&watch).await;
        let failure = job.outcome().and_then(|outcome| outcome.why());
        assert_eq!(failure, Some((Failure::Unavailable, Repeat::Unknown)));
        assert_eq!(job.attempts, 1);
    }
    stop(engine).await;
}

#[tokio::test]
async fn an_engine_that_holds_drives_only_what_is_new() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("work", never)]);
    let old = submit(&engine, new_job("work", "{}")).await.job().id();
    stop(engine).await;
    let held = Config { mode: Mode::Held, ..stage::config(&scratch, vec![agent("work", stage::echo)]) };
    let engine = Engine::start(held).expect("it starts");
    ended(&submit(&engine, new_job("work", "{}")).await).await;
    let job = engine.job(old).await.expect("it can be read").expect("it is there").job();
    assert_eq!((job.phase(), job.events), (Phase::Running, 2));
    stop(engine).await;
}

#[tokio::test]
async fn silence_ends_an_attempt_and_its_task_is_told() {
    let scratch = Scratch::new();
    let (told, mut stopped) = mpsc::unbounded_channel();
    let silent = agent("silent", move |attempt: Attempt| {
        let told = told.clone();
        async move {
            attempt.stopped().await;
            told.send(()).expect("somebody listens");
            failed(Failure::Cancelled, Dispatched::Yes)
        }
    });
    let policy = Policy { silence: Some(Duration::from_millis(20)), ..Policy::default() };
    let engine = start(&scratch, vec![with_policy(silent, policy)]);
    let watch = submit(&engine, new_job("silent", "{}")).await;
    let job = ended(&watch).await;
    let failure = job.outcome().and_then(|outcome| outcome.why());
    assert_eq!(failure, Some((Failure::Timeout, Repeat::Unknown)));
    assert_eq!(stopped.recv().await, Some(()));
    stop(engine).await;
}

#[tokio::test]
async fn the_callers_own_limit_of_time_ends_a_job_that_no_agent_takes() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("work", never)]);
    engine.drain("work", true).await.expect("there is such an agent");
    let mut new = new_job("work", "{}");
    new.limits.total = Some(Duration::from_millis(5));
    let job = ended(&submit(&engine, new).await).await;
    let failure = job.outcome().and_then(|outcome| outcome.why());
    assert_eq!(failure.map(|(failure, _)| failure), Some(Failure::Timeout));
    assert_eq!(job.attempts, 0);
    stop(engine).await;
}

/// An agent that fails the given number of times before it completes.
fn shaky(name: &str, failures: u32, failure: Failure, dispatched: Dispatched, schedule: Schedule) -> Agent {
    let shaky = agent(name, move |attempt: Attempt| async move {
        if attempt.number() <= failures { failed(failure, dispatched) } else { success("{}") }
    });
    with_policy(shaky, Policy { schedule, repeats: Repeats::BeforeStart, ..Policy::default() })
}

#[tokio::test]
async fn a_failed_attempt_is_repeated_as_often_as_the_schedule_says() {
    let scratch = Scratch::new();
    let schedule = Schedule { attempts_max: 3, backoff: Backoff::Exponential, first: Duration::from_millis(2) };
    let engine = start(
        &scratch,
        vec![
            shaky("twice", 2, Failure::Unavailable, Dispatched::No, schedule),
            shaky("always", 9, Failure::Unavailable, Dispatched::No, schedule),
            shaky("begun", 9, Failure::Unavailable, Dispatched::Yes, schedule),
            shaky("says_no", 9, Failure::AgentFailed, Dispatched::Yes, schedule),
        ],
    );
    let run = async |new: NewJob| ended(&submit(&engine, new).await).await;
    let job = run(new_job("twice", "{}")).await;
    assert_eq!((job.phase(), job.attempts, job.retries), (Phase::Completed, 3, 2));
    let expected = ["accepted", "started", "retrying", "started", "retrying", "started", "completed"];
    let entries = events(&engine, job.id(), 0).await;
    assert_eq!(names(&entries), expected);
    for pair in entries.windows(2) {
        if let crosspoint_engine::event::What::Retrying { until, .. } = pair[0].what {
            assert!(pair[1].at >= until, "the pause is kept");
        }
    }
    let job = run(new_job("always", "{}")).await;
    assert_eq!((job.phase(), job.attempts), (Phase::Failed, 3));
    assert_eq!(outcome(&job)["failure"]["repeat"], "safe");
    for work in ["begun", "says_no"] {
        assert_eq!(run(new_job(work, "{}")).await.attempts, 1, "{work} may have been done");
    }
    // A caller that gives a schedule asks for repeats.
    let mut asked = new_job("begun", "{}");
    asked.limits.retry = Some(Schedule { attempts_max: 2, backoff: Backoff::Fixed, first: Duration::from_millis(1) });
    assert_eq!(run(asked).await.attempts, 2);
    stop(engine).await;
}

#[tokio::test]
async fn the_breaker_opens_after_five_and_stays_open_over_a_restart() {
    let scratch = Scratch::new();
    let once = Schedule { attempts_max: 1, backoff: Backoff::Fixed, first: Duration::ZERO };
    let down = |failures| vec![shaky("down", failures, Failure::Unavailable, Dispatched::No, once)];
    let engine = start(&scratch, down(1));
    for count in 1..=5 {
        let standing = engine.agent("down").expect("there is such an agent").standing;
        assert_eq!(standing.breaker, Breaker::Closed { failures: count - 1 });
        ended(&submit(&engine, new_job("down", "{}")).await).await;
    }
    let until = engine.agent("down").expect("there is such an agent").open_until().expect("it is open");
    let waits = submit(&engine, new_job("down", "{}")).await.job();
    assert_eq!(waits.phase(), Phase::Queued);
    let stuck = engine.stuck(&waits, Ahead::Counted).expect("it says why");
    assert_eq!(stuck.reason, format!("agent down's breaker is open until {until}"));
    stop(engine).await;

    let engine = start(&scratch, down(0));
    let standing = engine.agent("down").expect("there is such an agent").standing;
    assert_eq!(standing.breaker, Breaker::Open { until });
    let watch = engine.job(waits.id()).await.expect("it can be read").expect("it is there");
    assert_eq!(watch.job().phase(), Phase::Queued);
    let view = engine.set_breaker("down", false).await.expect("there is such an agent");
    assert_eq!(view.standing.breaker, Breaker::default());
    assert_eq!(ended(&watch).await.phase(), Phase::Completed);
    assert!(matches!(engine.set_breaker("nobody", true).await, Err(Denied::NotFound)));
    stop(engine).await;
}

#[tokio::test]
async fn a_cancel_stops_the_task_and_a_result_that_comes_late_is_a_violation() {
    let scratch = Scratch::new();
    let stubborn = agent("stubborn", |attempt: Attempt| async move {
        attempt.stopped().await;
        success(r#"{"done":"all the same"}"#)
    });
    let engine = start(&scratch, vec![stubborn]);
    let watch = submit(&engine, new_job("stubborn", "{}")).await;
    let id = watch.job().id();
    let job = engine.cancel(id).await.expect("it can be cancelled");
    assert_eq!(job.phase(), Phase::Cancelled);
    let until = patience();
    let violations = loop {
        let found = engine.violations(id).await.expect("it can be read");
        if !found.is_empty() {
            break found;
        }
        assert!(Instant::now() < until, "it was never recorded");
        tokio::task::yield_now().await;
    };
    assert_eq!(violations.len(), 1);
    assert!(violations[0].clause.starts_with("ALL-9"));
    assert_eq!(violations[0].what, "a result came after the job was cancelled");
    // Cancelling a job that is already cancelled succeeds.
    assert_eq!(engine.cancel(id).await.expect("it is cancelled").phase(), Phase::Cancelled);
    assert_eq!(names(&events(&engine, id, 0).await), ["accepted", "started", "cancelled"]);
    stop(engine).await;
}

#[tokio::test]
async fn what_has_ended_cannot_be_cancelled_and_what_waits_can() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("echo", stage::echo)]);
    let done = ended(&submit(&engine, new_job("echo", "{}")).await).await;
    let refused = engine.cancel(done.id()).await;
    assert!(matches!(refused, Err(Denied::Refused(Refused::Ended(Phase::Completed)))));
    assert!(matches!(engine.cancel(crate::rows::id(7)).await, Err(Denied::NotFound)));
    engine.drain("echo", true).await.expect("there is such an agent");
    let queued = submit(&engine, new_job("echo", "{}")).await;
    engine.cancel(queued.job().id()).await.expect("it can be cancelled");
    let job = ended(&queued).await;
    assert_eq!((job.phase(), job.attempts), (Phase::Cancelled, 0));
    engine.drain("echo", false).await.expect("there is such an agent");
    let again = engine.retry(job.id(), Some("again".into())).await.expect("it has ended");
    let Ok(Submitted::New(watch)) = again else { panic!("it is a new job") };
    assert_eq!(watch.job().request.origin, Some(Origin::RetryOf(job.id().uuid())));
    assert_eq!(ended(&watch).await.phase(), Phase::Completed);
    let twice = engine.retry(job.id(), Some("again".into())).await.expect("it has ended");
    let Ok(Submitted::Repeat(same)) = twice else { panic!("it is the same job") };
    assert_eq!(same.job().id(), watch.job().id());
    stop(engine).await;
}

#[tokio::test]
async fn an_agent_that_panics_takes_nothing_down() {
    let scratch = Scratch::new();
    let panics = agent("panics", |attempt: Attempt| async move {
        assert!(attempt.number() == 0, "this agent panics");
        success("{}")
    });
    let at_once = agent("at_once", |attempt: Attempt| {
        assert!(attempt.number() == 0, "this agent panics before it begins");
        stage::echo(attempt)
    });
    let engine = start(&scratch, vec![panics, at_once, agent("echo", stage::echo)]);
    for work in ["panics", "at_once"] {
        let job = ended(&submit(&engine, new_job(work, "{}")).await).await;
        let failure = job.outcome().and_then(|outcome| outcome.why());
        assert_eq!(failure, Some((Failure::Internal, Repeat::Unknown)), "{work}");
    }
    assert_eq!(ended(&submit(&engine, new_job("echo", "{}")).await).await.phase(), Phase::Completed);
    assert_eq!(engine.attempts(), 0);
    stop(engine).await;
}
