//! Jobs that have other jobs done as their stages, and take their steps up again after a restart.

use std::sync::{Arc, Mutex};

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Question};
use crosspoint_contracts::request::{Key, NewJob};
use crosspoint_engine::core::{Rejected, Room};
use crosspoint_engine::job::{Job, Origin, Phase};
use crosspoint_engine::policy::{Policy, Recovery};
use crosspoint_engine::runtime::{Attempt, Config, Engine, Limits, Unaccepted, Watch};
use tokio::sync::Semaphore;

use crate::scratch::Scratch;
use crate::stage::{
    Agent, Came, agent, config, echo, ended, events, gated, names, never, new_job, outcome, patience, reaches, start,
    stop, submit, success, until, with_policy,
};

/// The request of a stage; the same number is the same stage.
fn stage_request(attempt: &Attempt, number: usize, work: &str) -> NewJob {
    let key = Key::Other(format!("{}/{number}", attempt.job().id()).into());
    NewJob { key, ..new_job(work, &format!(r#"{{"n":{number}}}"#)) }
}

/// Has two stages done, one after the other, and stores each as a step. Steps that are stored are not done again.
async fn two_stages(attempt: Attempt) -> Came {
    let mut done = 0;
    attempt.steps(|_| done += 1).await.expect("they can be read");
    for number in done..2 {
        let work = ["first", "second"][number];
        let watch = attempt.stage(work, stage_request(&attempt, number, work), None).await.expect("it is accepted");
        let job = watch.ended(patience()).await;
        if attempt.step(Body::of(&job.id().to_string())).await.is_err() {
            return std::future::pending().await;
        }
    }
    success(r#"{"stages":2}"#)
}

/// The agent of such jobs: its attempts are taken up where they are.
fn runner() -> Agent {
    with_policy(agent("runner", two_stages), Policy { recovery: Recovery::Resume, ..Policy::default() })
}

/// Waits for a stage of this job that is under way, and returns it.
async fn stage_under_way(engine: &Engine, parent: &Watch) -> Watch {
    let id = parent.job().id().uuid();
    let found = || engine.find_live(|job: &Job| job.request.child_of() == Some(id) && job.phase() == Phase::Running);
    until("a stage is under way", async || found().is_some()).await;
    found().expect("it is there")
}

#[tokio::test]
async fn stages_are_jobs_that_know_where_they_came_from() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![runner(), agent("first", echo), agent("second", echo)]);
    let run = ended(&submit(&engine, new_job("runner", "{}")).await).await;
    assert_eq!(outcome(&run)["outputs"]["stages"], 2);
    let entries = events(&engine, run.id(), 0).await;
    assert_eq!(names(&entries), ["accepted", "started", "step", "step", "completed"]);
    let page = engine.list(crosspoint_engine::store::Filter { limit: 10, ..Default::default() }).await;
    let mut stages: Vec<Job> = page.expect("they can be read").jobs;
    stages.retain(|job| job.request.origin.is_some());
    let origins: Vec<Option<Origin>> = stages.iter().map(|job| job.request.origin.clone()).collect();
    let child = |stage: &str| Some(Origin::ChildOf { parent: run.id().uuid(), stage: stage.into() });
    assert_eq!(origins, [child("second"), child("first")]);
    stop(engine).await;
}

#[tokio::test]
async fn a_finished_stage_is_not_done_again_after_a_restart() {
    let scratch = Scratch::new();
    let starts = Arc::new(Mutex::new(Vec::new()));
    let counting = |name: &'static str| {
        let starts = starts.clone();
        agent(name, move |attempt: Attempt| {
            starts.lock().expect("no test panics here").push(name);
            echo(attempt)
        })
    };
    let engine = start(&scratch, vec![runner(), counting("first"), agent("second", never)]);
    let run = submit(&engine, new_job("runner", "{}")).await;
    until("the first stage is a step", async || run.job().events >= 3).await;
    let second = stage_under_way(&engine, &run).await.job().id();
    stop(engine).await;
    let engine = start(&scratch, vec![runner(), counting("first"), counting("second")]);
    let run = engine.job(run.job().id()).await.expect("it can be read").expect("it is there");
    let run = ended(&run).await;
    assert_eq!((run.phase(), run.attempts), (Phase::Completed, 1), "its one attempt was taken up");
    assert_eq!(*starts.lock().expect("no test panics here"), ["first", "second"]);
    let second = engine.job(second).await.expect("it can be read").expect("it is there").job();
    assert_eq!((second.phase(), second.attempts), (Phase::Completed, 2), "it is the same job, begun again");
    stop(engine).await;
}

/// Jobs with stages that fill the room would otherwise wait for each other for ever.
#[tokio::test]
async fn there_is_room_for_the_stage_of_a_job_that_was_accepted() {
    let scratch = Scratch::new();
    let agents = vec![runner(), agent("first", echo), agent("second", echo)];
    let limits = Limits { room: Room::of(1), ..Limits::default() };
    let engine = Engine::start(Config { limits, ..config(&scratch, agents) }).expect("it starts");
    let run = ended(&submit(&engine, new_job("runner", "{}")).await).await;
    assert_eq!(run.phase(), Phase::Completed);
    stop(engine).await;
}

#[tokio::test]
async fn a_stage_ends_with_the_job_that_has_it_done_in_the_same_commit() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![runner(), agent("first", never), agent("second", echo)]);
    let run = submit(&engine, new_job("runner", "{}")).await;
    let stage = stage_under_way(&engine, &run).await;
    engine.cancel(run.job().id()).await.expect("it can be cancelled");
    // The commit of the one is the commit of the other: nothing is waited for.
    let stage = engine.job(stage.job().id()).await.expect("it can be read").expect("it is there").job();
    assert_eq!((run.job().phase(), stage.phase()), (Phase::Cancelled, Phase::Cancelled));
    stop(engine).await;
}

#[tokio::test]
async fn a_job_that_has_ended_gets_no_stage() {
    let scratch = Scratch::new();
    let gate = Arc::new(Semaphore::new(0));
    let (refused, mut refusals) = tokio::sync::mpsc::unbounded_channel();
    let open = gate.clone();
    let late = agent("late", move |attempt: Attempt| {
        let (open, refused) = (open.clone(), refused.clone());
        async move {
            open.acquire().await.expect("it stays").forget();
            let stage = attempt.stage("first", stage_request(&attempt, 0, "first"), None).await;
            let _ = refused.send(stage.err());
            success("{}")
        }
    });
    let engine = start(&scratch, vec![late, gated("first", &Arc::new(Semaphore::new(0)))]);
    let run = submit(&engine, new_job("late", "{}")).await;
    reaches(&run, Phase::Running).await;
    engine.cancel(run.job().id()).await.expect("it can be cancelled");
    gate.add_permits(1);
    let refusal = refusals.recv().await.expect("it was tried");
    assert!(matches!(refusal, Some(Unaccepted::Rejected(Rejected::ParentEnded))), "{refusal:?}");
    stop(engine).await;
}

#[tokio::test]
async fn a_job_that_waits_for_its_stage_is_as_stuck_as_the_stage() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![runner(), agent("first", echo), agent("second", echo)]);
    engine.drain("first", true).await.expect("there is such an agent");
    let run = submit(&engine, new_job("runner", "{}")).await;
    let id = run.job().id().uuid();
    let found = || engine.find_live(|job: &Job| job.request.child_of() == Some(id));
    until("the stage is in the queue", async || found().is_some()).await;
    // As long after as an agent may say nothing without being remarked on.
    let mut job = (*run.job()).clone();
    if let crosspoint_engine::job::State::Running(running) = &mut job.state {
        running.heard_at = crosspoint_contracts::time::Time::default();
    }
    let stuck = engine.stuck(&job, crosspoint_engine::runtime::Ahead::Counted).expect("it says why");
    assert_eq!(stuck.reason, "stage first: agent first is paused by an operator");
    engine.drain("first", false).await.expect("there is such an agent");
    assert_eq!(ended(&run).await.phase(), Phase::Completed);
    stop(engine).await;
}

/// The agents of a stage may be those of another process, which goes on with it.
#[tokio::test]
async fn a_stage_whose_agent_is_not_here_is_left_as_it_is() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![runner(), agent("first", never), agent("second", echo)]);
    let run = submit(&engine, new_job("runner", "{}")).await.job().id();
    let first = stage_under_way(&engine, &engine.job(run).await.expect("it is read").expect("it is there")).await;
    let first = first.job().id();
    stop(engine).await;
    let engine = start(&scratch, vec![runner(), agent("second", echo)]);
    let watch = engine.job(run).await.expect("it can be read").expect("it is there");
    let stage = stage_under_way(&engine, &watch).await.job();
    assert_eq!((stage.id(), stage.attempts), (first, 1));
    let says = || engine.stuck(&watch.job(), crosspoint_engine::runtime::Ahead::Counted).map(|stuck| stuck.reason);
    let why = "agent first was given it, and is not configured here";
    until("the job says why", async || says().is_some_and(|reason| reason.contains(why))).await;
    stop(engine).await;
    let engine = start(&scratch, vec![runner(), agent("first", echo), agent("second", echo)]);
    let run = engine.job(run).await.expect("it can be read").expect("it is there");
    assert_eq!(ended(&run).await.phase(), Phase::Completed);
    let first = engine.job(first).await.expect("it can be read").expect("it is there").job();
    assert_eq!((first.phase(), first.attempts), (Phase::Completed, 2), "it is the same job, begun again");
    stop(engine).await;
}

/// A stage that asks is shown with the job at once: nothing else may happen before it is answered.
#[tokio::test]
async fn a_job_whose_stage_asks_names_the_stage() {
    let scratch = Scratch::new();
    let asks = agent("first", |attempt: Attempt| async move {
        let answer = attempt.ask(Question::of("\"Which?\"")).await;
        answer.map_err(|_| Failed::of(Failure::Cancelled, Dispatched::Yes))?;
        success("{}")
    });
    let engine = start(&scratch, vec![runner(), asks, agent("second", echo)]);
    let run = submit(&engine, new_job("runner", "{}")).await;
    until("its stage asks", async || engine.resting_stage(&run.job()).is_some()).await;
    let stage = engine.resting_stage(&run.job()).expect("it asks");
    let stuck = engine.stuck(&run.job(), crosspoint_engine::runtime::Ahead::Left).expect("it says why");
    assert_eq!((stuck.stage, stuck.reason.as_str()), (Some(stage.id()), "stage first: waiting for a person's answer"));
    engine.answer(stage.id(), Body::of(&"this one")).await.expect("it is asked");
    assert_eq!(ended(&run).await.phase(), Phase::Completed);
    assert!(engine.stage_of(&run.job()).is_none(), "no stage is under way");
    stop(engine).await;
}

/// Has stages done whose steps are stored with the stage that follows.
async fn chained(attempt: Attempt) -> Came {
    let mut step = None;
    for number in 0..2 {
        let work = ["first", "second"][number];
        let new = stage_request(&attempt, number, work);
        let watch = attempt.stage(work, new, step.take()).await.expect("it is accepted");
        watch.ended(patience()).await;
        step = Some(Body::of(&number));
    }
    success("{}")
}

#[tokio::test]
async fn a_step_is_stored_with_the_stage_that_it_led_to_and_once() {
    let scratch = Scratch::new();
    let runner = with_policy(agent("runner", chained), Policy { recovery: Recovery::Resume, ..Policy::default() });
    let engine = start(&scratch, vec![runner, agent("first", echo), agent("second", never)]);
    let run = submit(&engine, new_job("runner", "{}")).await;
    let is_second = |job: &Job| *job.request.work == *"second";
    until("the second stage is under way", async || engine.find_live(is_second).is_some()).await;
    // The commit of the stage is the commit of the step: nothing is waited for.
    assert_eq!(run.job().events, 3, "accepted, started, step");
    stop(engine).await;
    let runner = with_policy(agent("runner", chained), Policy { recovery: Recovery::Resume, ..Policy::default() });
    let engine = start(&scratch, vec![runner, agent("first", echo), agent("second", echo)]);
    let run = engine.job(run.job().id()).await.expect("it can be read").expect("it is there");
    let run = ended(&run).await;
    let entries = events(&engine, run.id(), 0).await;
    assert_eq!(names(&entries), ["accepted", "started", "step", "completed"], "it is there once");
    stop(engine).await;
}
