//! Jobs that no process drives, and that a caller submits again: they are taken up as at a start that drives
//! everything.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::clause::Level;
use crosspoint_engine::breaker::{self, Breaker, Health};
use crosspoint_engine::core::{AgentCommand, Command, Effect, Mode, Origin, Reply, Spec, Standing};
use crosspoint_engine::event::Violation;
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::{Job, Phase};
use crosspoint_engine::machine::Action;
use crosspoint_engine::policy::{Policy, Recovery};
use crosspoint_engine::runtime::{Ahead, Config, Engine, Submitted, Watch};

use crate::made::{POLICY, T0, go, request, start};
use crate::scratch::Scratch;
use crate::stage::{self, ended, events, keyed, names, never, outcome, reaches, stop, submit};
use crate::town::{Town, agent, origin};

/// A running job and a waiting one, neither of them driven; the agent does one at a time.
fn held(policy: Policy) -> Town {
    let job = |seq| Job::accepted(Arc::new(request(seq, "work")));
    let mut running = go(&job(1), start(), T0, &policy).job;
    running.agent = Some("a".into());
    let agents = vec![Spec { policy, ..agent("a", &["work"], 1) }];
    let mode = Mode::Held;
    Town::of(Origin { jobs: vec![running, job(2)], last_seq: Seq(2), mode, ..origin(agents) })
}

fn take_up(town: &mut Town, seq: u64) -> Reply {
    town.tell(&Command::TakeUp(town.job(Seq(seq)).id()))
}

#[test]
fn a_held_job_that_is_taken_up_is_done_again_and_the_others_are_left_alone() {
    let mut town = held(POLICY);
    assert!(matches!(take_up(&mut town, 1), Reply::Job(job) if job.seq() == Seq(1)));
    assert_eq!(town.dispatched(), [Seq(1)]);
    assert_eq!((town.job(Seq(1)).attempts, town.job(Seq(1)).retries), (2, 0), "what was cut short is no failure");
    assert_eq!(town.batch.jobs[&Seq(1)].entries.len(), 2, "interrupted and started");
    assert_eq!(town.running("a"), 1, "it has its place");
    // Taking it up again does nothing.
    take_up(&mut town, 1);
    assert!(town.batch.is_empty() && town.batch.effects.is_empty() && town.batch.taken.is_empty());
    town.finish(Seq(1));
    assert_eq!(town.running("a"), 0);
    assert_eq!((town.dispatched(), town.job(Seq(2)).phase()), (vec![], Phase::Queued), "nobody asked for it");
    take_up(&mut town, 2);
    assert_eq!(town.dispatched(), [Seq(2)]);
    let unknown = town.tell(&Command::TakeUp(request(1, "work").id));
    assert!(matches!(unknown, Reply::NotLive), "it has ended: {unknown:?}");
}

#[test]
fn a_job_that_was_taken_up_is_repeated_and_times_out_like_any_other() {
    let mut town = held(POLICY);
    take_up(&mut town, 1);
    assert_eq!(town.core.alarm(town.now), Some(T0.plus(Duration::from_secs(30))), "its silence is watched");
    town.now = T0.plus(Duration::from_secs(30));
    town.tell(&Command::Violation(Seq(1), Violation { clause: "ALL-3", level: Level::Error, what: "x".into() }));
    assert_eq!(town.job(Seq(1)).phase(), Phase::Retrying);
}

/// The caller's process was stopped, by Ctrl-C for example: the time until the job is taken up does not count.
#[test]
fn the_callers_limit_counts_from_when_it_is_taken_up() {
    let mut limited = request(2, "work");
    limited.limits.total = Some(Duration::from_secs(120));
    let agents = vec![agent("a", &["work"], 1)];
    let jobs = vec![Job::accepted(Arc::new(limited))];
    let mut town = Town::of(Origin { jobs, last_seq: Seq(2), mode: Mode::Held, ..origin(agents) });
    town.now = T0.plus(Duration::from_secs(10_000));
    take_up(&mut town, 2);
    assert_eq!(town.dispatched(), [Seq(2)]);
    assert_eq!(town.job(Seq(2)).phase(), Phase::Running);
    town.now = town.now.plus(Duration::from_secs(121));
    town.tell(&Command::Violation(Seq(2), Violation { clause: "ALL-3", level: Level::Error, what: "x".into() }));
    assert!(town.batch.jobs[&Seq(2)].job.outcome().is_some(), "and then it ends it");
}

#[test]
fn what_is_taken_up_is_recovered_as_at_a_start() {
    let mut resumed = held(Policy { recovery: Recovery::Resume, ..POLICY });
    // Longer than the attempt may be silent, and shorter than the job may take.
    resumed.now = T0.plus(Duration::from_secs(50));
    take_up(&mut resumed, 1);
    assert!(matches!(&resumed.batch.effects[..], [Effect::Job { action: Action::Resume { attempt: 1 }, .. }]));
    assert_eq!(resumed.job(Seq(1)).running().map(|running| running.heard_at), Some(resumed.now));
    assert_eq!(resumed.running("a"), 1, "and no more work fits beside it");
    take_up(&mut resumed, 2);
    assert_eq!(resumed.dispatched(), []);
    let mut lost = held(Policy { recovery: Recovery::Fail, ..POLICY });
    assert!(matches!(take_up(&mut lost, 1), Reply::NotLive));
    assert!(lost.batch.jobs[&Seq(1)].job.outcome().is_some(), "nobody can know what became of it");
}

#[test]
fn nothing_is_taken_up_while_we_rest() {
    let mut town = held(POLICY);
    town.tell(&Command::Rest);
    let reply = take_up(&mut town, 1);
    assert!(matches!(reply, Reply::Job(job) if job.phase() == Phase::Running));
    assert!(town.batch.is_empty() && town.batch.taken.is_empty());
    assert_eq!(town.core.mode(), Mode::HeldBefore { first: Seq(3), taken: [].into() });
}

#[test]
fn a_core_made_anew_knows_what_was_taken_up() {
    let mut town = held(POLICY);
    take_up(&mut town, 2);
    let jobs = [1, 2].map(|seq| (*town.job(Seq(seq))).clone()).to_vec();
    let agents = vec![agent("a", &["work"], 1)];
    let mut anew = Town::of(Origin { jobs, last_seq: Seq(2), mode: town.core.mode(), ..origin(agents) });
    assert_eq!(anew.running("a"), 1);
    anew.finish(Seq(2));
    assert_eq!(anew.dispatched(), []);
    let third = anew.submit_work("work");
    assert_eq!(anew.dispatched(), [third]);
}

#[test]
fn the_health_check_that_died_with_its_process_is_made_again_for_a_job_that_is_taken_up() {
    let half_open = Standing { breaker: Breaker::HalfOpen, drained: false };
    let job = Job::accepted(Arc::new(request(1, "work")));
    let standings = vec![("a".into(), half_open)];
    let agents = vec![agent("a", &["work"], 1)];
    let held = Origin { jobs: vec![job], standings, last_seq: Seq(1), mode: Mode::Held, ..origin(agents) };
    let mut town = Town::of(held);
    let checked = breaker::Event::Checked(Health::Well);
    take_up(&mut town, 1);
    assert!(matches!(&town.batch.effects[..], [Effect::Check { .. }]), "{:?}", town.batch.effects);
    town.tell(&Command::Agent("a".into(), AgentCommand::Breaker(checked)));
    assert_eq!(town.dispatched(), [Seq(1)]);
}

/// An engine where no server runs, with an agent that does what it is given.
fn holding(scratch: &Scratch) -> Engine {
    let held = Config { mode: Mode::Held, ..stage::config(scratch, vec![stage::agent("work", stage::echo)]) };
    Engine::start(held).expect("it starts")
}

async fn repeat(engine: &Engine, request_id: &str) -> Watch {
    match engine.submit(keyed("work", r#"{"n":1}"#, request_id)).await {
        Ok(Submitted::Repeat(watch)) => watch,
        Ok(Submitted::New(_)) => panic!("it is a repeat"),
        Err(unaccepted) => panic!("{unaccepted:?}"),
    }
}

#[tokio::test]
async fn a_repeat_of_a_held_job_has_it_done_and_no_other() {
    let scratch = Scratch::new();
    let engine = stage::start(&scratch, vec![stage::agent("work", never)]);
    let wanted = submit(&engine, keyed("work", r#"{"n":1}"#, "wanted")).await;
    let other = submit(&engine, keyed("work", r#"{"n":1}"#, "other")).await;
    reaches(&wanted, Phase::Running).await;
    reaches(&other, Phase::Running).await;
    stop(engine).await;
    let engine = holding(&scratch);
    let is_held =
        |job: &Job| engine.stuck(job, Ahead::Left).is_some_and(|stuck| stuck.reason.contains("no server is running"));
    assert!(is_held(&wanted.job()) && is_held(&other.job()));
    let again = repeat(&engine, "wanted").await;
    assert!(!is_held(&again.job()), "also before it has ended");
    let job = ended(&again).await;
    assert_eq!((job.id(), job.attempts, &outcome(&job)["outputs"]["n"]), (wanted.job().id(), 2, &1.into()));
    let expected = ["accepted", "started", "interrupted", "started", "completed"];
    assert_eq!(names(&events(&engine, job.id(), 0).await), expected);
    let left = engine.job(other.job().id()).await.expect("it can be read").expect("it is there").job();
    assert!(left.phase() == Phase::Running && left.events == 2 && is_held(&left), "{left:?}");
    // A job that has ended answers with its outcome, as always.
    assert_eq!(repeat(&engine, "wanted").await.job().attempts, 2);
    stop(engine).await;
}

#[tokio::test]
async fn repeats_that_come_together_take_a_job_up_once() {
    let scratch = Scratch::new();
    let engine = stage::start(&scratch, vec![stage::agent("work", never)]);
    reaches(&submit(&engine, keyed("work", r#"{"n":1}"#, "r")).await, Phase::Running).await;
    stop(engine).await;
    let engine = holding(&scratch);
    for watch in futures_util::future::join_all((0..8).map(|_| repeat(&engine, "r"))).await {
        assert_eq!(ended(&watch).await.attempts, 2);
    }
    stop(engine).await;
}

#[tokio::test]
async fn an_engine_that_rests_keeps_a_held_job_for_another_engine() {
    let scratch = Scratch::new();
    let engine = stage::start(&scratch, vec![stage::agent("work", never)]);
    reaches(&submit(&engine, keyed("work", r#"{"n":1}"#, "r")).await, Phase::Running).await;
    stop(engine).await;
    let engine = holding(&scratch);
    engine.rest().await;
    let job = repeat(&engine, "r").await.job();
    assert_eq!((job.phase(), job.events), (Phase::Running, 2));
    stop(engine).await;
    let engine = holding(&scratch);
    assert_eq!(ended(&repeat(&engine, "r").await).await.attempts, 2);
    stop(engine).await;
}
