//! Agents that come and go, as the core and the engine see them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Question, Success};
use crosspoint_engine::breaker::{self, Breaker};
use crosspoint_engine::core::{
    AgentCommand, Command, Grip, MEMBERS_MAX, Member, Origin, Presence, Rejected, Reply, Spec,
};
use crosspoint_engine::job::{Job, Phase};
use crosspoint_engine::machine::Event;
use crosspoint_engine::policy::{Policy, Recovery, Repeats};
use crosspoint_engine::runtime::{Ahead, Config, Engine, Handed, Heard, Instruction, PullQueues, Unjoined};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::made::{body, dead, request};
use crate::scratch::Scratch;
use crate::stage::{self, ended, new_job, outcome, reaches, stop, submit};
use crate::town::{Town, agent, origin};

const LEASE: Duration = Duration::from_secs(15);

fn member(name: &str, works: &[&str]) -> Member {
    let policy = Policy { recovery: Recovery::Resume, ..Policy::DEFAULT };
    Member { spec: Spec { policy, ..agent(name, works, 0) }, lease: LEASE, left_at: None, registration: None }
}

fn joins(name: &str, works: &[&str]) -> Command {
    Command::Join(Arc::new(member(name, works)))
}

fn takes(name: &str, capacity: u32) -> Command {
    Command::Agent(name.into(), AgentCommand::Capacity(capacity))
}

fn forget(name: &str) -> Command {
    Command::Agent(name.into(), AgentCommand::Forget)
}

#[test]
fn work_is_unknown_before_its_agent_joins_waits_while_it_is_away_and_goes_to_it_as_it_has_room() {
    let mut town = Town::new(vec![agent("settled", &["other"], 1)]);
    assert!(matches!(town.try_submit(request(0, "work")), Reply::Rejected(Rejected::UnknownWork)));
    assert!(matches!(town.tell(&takes("late", 1)), Reply::NoSuchAgent));
    assert!(matches!(town.tell(&joins("late", &["work"])), Reply::Done));
    let jobs: Vec<_> = (0..3).map(|_| town.submit_work("work")).collect();
    assert_eq!(town.with(jobs[0]), None, "it is known, and away");
    town.tell(&takes("late", 2));
    assert_eq!(town.dispatched(), jobs[..2]);
    town.tell(&takes("late", 1));
    town.finish(jobs[0]);
    assert_eq!(town.with(jobs[2]), None, "what it has is all that it takes now");
    town.finish(jobs[1]);
    assert_eq!(town.with(jobs[2]).as_deref(), Some("late"));
}

#[test]
fn a_configured_agent_neither_joins_nor_leaves_and_wins_over_one_that_joined() {
    let mut town = Town::new(vec![agent("settled", &["work"], 1)]);
    for command in [joins("settled", &["other"]), forget("settled")] {
        assert!(matches!(town.tell(&command), Reply::Configured), "{command:?}");
    }
    let present = BTreeMap::from([("both".into(), 7)]);
    let mut town = Town::of(Origin {
        members: vec![member("both", &["joined"])],
        present,
        ..origin(vec![agent("both", &["work"], 1)])
    });
    assert_eq!(town.core.agent("both").map(|agent| (agent.capacity(), agent.joined)), Some((1, None)));
    assert!(matches!(town.try_submit(request(0, "joined")), Reply::Rejected(Rejected::UnknownWork)));
}

#[test]
fn joining_again_is_nothing_new_and_otherwise_changes_what_it_takes() {
    let mut town = Town::new(vec![]);
    town.tell(&joins("a", &["one"]));
    assert_eq!(town.batch.members.len(), 1);
    town.tell(&takes("a", 2));
    let first = town.submit_work("one");
    town.tell(&joins("a", &["one"]));
    assert!(town.batch.is_empty(), "nothing to write");
    town.tell(&joins("a", &["two"]));
    assert_eq!(town.with(first).as_deref(), Some("a"), "what it has goes on");
    assert!(matches!(town.try_submit(request(0, "one")), Reply::Rejected(Rejected::UnknownWork)));
    let second = town.submit_work("two");
    assert_eq!(town.with(second).as_deref(), Some("a"));
}

#[test]
fn an_agent_is_forgotten_only_when_it_is_away_and_has_nothing() {
    let mut town = Town::new(vec![]);
    town.tell(&joins("a", &["work"]));
    town.tell(&takes("a", 1));
    let job = town.submit_work("work");
    assert!(matches!(town.tell(&forget("a")), Reply::Present), "it is there");
    town.tell(&takes("a", 0));
    assert!(matches!(town.tell(&forget("a")), Reply::Present), "it has work");
    town.happens(job, dead(1));
    town.tell(&Command::Agent("a".into(), AgentCommand::Drain(true)));
    assert!(matches!(town.tell(&forget("a")), Reply::Done));
    assert!(town.batch.members.get("a").is_some_and(Option::is_none) && town.batch.agents.is_empty());
    assert!(matches!(town.tell(&forget("a")), Reply::NoSuchAgent));
    assert!(matches!(town.try_submit(request(0, "work")), Reply::Rejected(Rejected::UnknownWork)));
    town.tell(&joins("a", &["work"]));
    assert!(!town.standing("a").drained, "whoever joins under the name begins anew");
}

#[test]
fn there_are_only_so_many_and_the_dead_open_no_breaker() {
    let mut town = Town::new(vec![]);
    for number in 0..MEMBERS_MAX {
        assert!(matches!(town.tell(&joins(&format!("a{number}"), &["work"])), Reply::Done));
    }
    assert!(matches!(town.tell(&joins("another", &["work"])), Reply::Crowded));
    town.tell(&takes("a0", 8));
    let jobs: Vec<_> = (0..8).map(|_| town.submit_work("work")).collect();
    town.tell(&takes("a0", 0));
    jobs.iter().for_each(|seq| drop(town.happens(*seq, dead(1))));
    assert!(jobs.iter().all(|seq| town.job(*seq).phase() == Phase::Retrying));
    assert_eq!(town.standing("a0").breaker, Breaker::Closed { failures: 0 });
}

/// Pull queues that pass on the jobs that they are given, and what they are told about them, to the test.
struct Queues {
    given: UnboundedSender<Handed>,
    told: UnboundedSender<(Arc<Job>, u32, Instruction)>,
}

impl PullQueues for Queues {
    fn give(&self, handed: Vec<Handed>) {
        // A test that is over looks at nothing more.
        handed.into_iter().for_each(|one| drop(self.given.send(one)));
    }

    fn instruct(&self, job: &Arc<Job>, attempt: u32, instruction: Instruction) {
        drop(self.told.send((job.clone(), attempt, instruction)));
    }
}

/// The test's side of the pull queues.
struct Worker {
    given: UnboundedReceiver<Handed>,
    told: UnboundedReceiver<(Arc<Job>, u32, Instruction)>,
}

impl Worker {
    /// Waits for the next job that is queued.
    async fn next(&mut self) -> Handed {
        let given = tokio::time::timeout_at(stage::patience().into(), self.given.recv()).await;
        given.expect("something is given").expect("the engine runs")
    }

    async fn next_told(&mut self) -> (Arc<Job>, u32, Instruction) {
        let told = tokio::time::timeout_at(stage::patience().into(), self.told.recv()).await;
        told.expect("something is told").expect("the engine runs")
    }
}

fn open(scratch: &Scratch) -> (Engine, Worker) {
    let ((give, given), (tell, told)) = (unbounded_channel(), unbounded_channel());
    let queues = Arc::new(Queues { given: give, told: tell });
    let config = Config { queues: Some(queues), ..stage::config(scratch, vec![]) };
    (Engine::start(config).expect("it starts"), Worker { given, told })
}

fn done(outputs: &str) -> Result<Success, Failed> {
    Ok(Success::of(body(outputs)))
}

#[tokio::test]
async fn what_an_agent_that_joined_has_is_taken_up_after_a_restart() {
    let scratch = Scratch::new();
    let (engine, mut worker) = open(&scratch);
    engine.join(member("late", &["work"])).await.expect("it joins");
    engine.set_capacity("late", 1).await.expect("it is there");
    let watch = submit(&engine, new_job("work", r#"{"n":1}"#)).await;
    let handed = worker.next().await;
    assert_eq!((handed.attempt, handed.resumed), (1, None));
    assert!(handed.input().is_some_and(|input| *input == *br#"{"n":1}"#));
    let queued = submit(&engine, new_job("work", r#"{"n":2}"#)).await;
    stop(engine).await;

    let (engine, mut worker) = open(&scratch);
    let handed = worker.next().await;
    assert_eq!((handed.attempt, handed.resumed), (1, Some(LEASE)), "whoever has it has so long to say so");
    let queued = engine.job(queued.job().id()).await.expect("it can be read").expect("it is there");
    let agent = engine.agent("late").expect("its work is known");
    let since = agent.away_since().expect("it is away");
    let stuck = engine.stuck(&queued.job(), Ahead::Counted).expect("it says why");
    assert_eq!(stuck.reason, format!("agent late is away since {since}"));
    let inputs = engine.inputs(vec![handed.job.clone()]).await.expect("they can be read");
    assert_eq!(inputs[0].as_ref().map(|input| input.get().to_owned()).as_deref(), Some(r#"{"n":1}"#));
    let id = handed.job.id();
    let late: Arc<str> = "late".into();
    let finish = |result| vec![(id, Grip::Holds, Event::Finish { attempt: 1, result })];
    assert_eq!(engine.report(&late, finish(done("yes"))).await.as_deref(), Some(&[Heard::Taken][..]));
    assert_eq!(engine.report(&late, finish(done("yes"))).await.as_deref(), Some(&[Heard::Gone][..]));
    let watch = engine.job(watch.job().id()).await.expect("it can be read").expect("it is there");
    assert_eq!(outcome(&*ended(&watch).await)["outputs"], "yes");
    engine.set_capacity("late", 1).await.expect("it is there");
    assert_eq!(worker.next().await.job.id(), queued.job().id());
    stop(engine).await;
}

#[tokio::test]
async fn a_worker_is_told_of_stops_and_answers() {
    let scratch = Scratch::new();
    let (engine, mut worker) = open(&scratch);
    engine.join(member("late", &["work"])).await.expect("it joins");
    engine.set_capacity("late", 4).await.expect("it is there");
    let watch = submit(&engine, new_job("work", "{}")).await;
    let (id, attempt) = (worker.next().await.job.id(), 1);
    let asks = Event::Ask { attempt, question: Question::read(body("which?")), answered: None };
    assert_eq!(
        engine.report(&"late".into(), vec![(id, Grip::Holds, asks)]).await.as_deref(),
        Some(&[Heard::Taken][..])
    );
    reaches(&watch, Phase::Waiting).await;
    engine.answer(id, body("that")).await.expect("it waits for one");
    let (job, _, told) = worker.next_told().await;
    assert_eq!((told, job.answers.len()), (Instruction::Answered, 1));
    engine.cancel(id).await.expect("it can be cancelled");
    assert_eq!(worker.next_told().await.2, Instruction::Stop);
    let finish = Event::Finish { attempt, result: done("late") };
    let late = vec![(id, Grip::Lost, Event::Heard { attempt }), (id, Grip::Lost, finish)];
    assert_eq!(engine.report(&"late".into(), late).await.as_deref(), Some(&[Heard::Gone, Heard::Gone][..]));
    stop(engine).await;
}

#[tokio::test]
async fn what_is_settled_at_joining_survives_and_what_is_forgotten_does_not() {
    let scratch = Scratch::new();
    let (engine, _) = open(&scratch);
    let policy = Policy {
        silence: Some(Duration::from_secs(7)),
        total: Duration::from_secs(77),
        repeats: Repeats::Always,
        recovery: Recovery::ResumeOnce,
        output_bytes_max: 777,
        take_up: LEASE,
        ..Policy::DEFAULT
    };
    let kept = member("kept", &["one", "two"]);
    let kept = Member { spec: Spec { policy: policy.clone(), ..kept.spec }, ..kept };
    engine.join(kept).await.expect("it joins");
    engine.join(member("gone", &["three"])).await.expect("it joins");
    engine.set_capacity("kept", 3).await.expect("it is there");
    assert!(matches!(engine.forget("kept").await, Err(Unjoined::Present)));
    engine.forget("gone").await.expect("it is away");
    assert!(matches!(engine.forget("gone").await, Err(Unjoined::NotFound)));
    stop(engine).await;
    let (engine, _) = open(&scratch);
    let agents = engine.agents();
    assert_eq!(agents.len(), 1);
    let kept = &agents[0];
    assert_eq!((&*kept.spec.name, &kept.spec.policy, kept.capacity()), ("kept", &policy, 0));
    assert_eq!(kept.spec.works, ["one".into(), "two".into()]);
    let joined = kept.joined.expect("it has joined");
    assert_eq!(joined.lease, LEASE);
    assert!(matches!(joined.presence, Presence::Away { .. }), "nobody is there at a start");
    stop(engine).await;
}

#[tokio::test]
async fn failures_that_an_agent_reports_open_its_breaker() {
    let scratch = Scratch::new();
    let (engine, mut worker) = open(&scratch);
    let repeatable = member("late", &["work"]);
    let policy = Policy { repeats: Repeats::Always, ..repeatable.spec.policy.clone() };
    engine.join(Member { spec: Spec { policy, ..repeatable.spec }, ..repeatable }).await.expect("it joins");
    engine.set_capacity("late", 16).await.expect("it is there");
    for _ in 0..breaker::FAILURES_MAX {
        submit(&engine, new_job("work", "{}")).await;
        let id = worker.next().await.job.id();
        let result = Err(Failed::of(Failure::Unavailable, Dispatched::Yes));
        engine
            .report(&"late".into(), vec![(id, Grip::Holds, Event::Finish { attempt: 1, result })])
            .await
            .expect("it is told");
    }
    let agent = engine.agent("late").expect("it is there");
    assert!(!agent.standing.breaker.is_closed(), "those that are there and do not do it are another matter");
    stop(engine).await;
}
