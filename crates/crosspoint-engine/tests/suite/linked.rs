//! Agents that joined and are reached by a link, not by the pull queues.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crosspoint_contracts::content::Block;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_engine::core::{AgentCommand, Command, Member, Reply, Spec};
use crosspoint_engine::job::Phase;
use crosspoint_engine::policy::{Policy, Recovery, Repeats};
use crosspoint_engine::runtime::{Attempt, Config, Engine, Handed, Instruction, Link, PullQueues, Unjoined};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::made::dead;
use crate::scratch::Scratch;
use crate::stage::{self, Agent, ended, names, new_job, outcome, patience, reaches, stop, submit, until};
use crate::town::{Town, agent};

const LINKED: &str = "linked";

fn member(name: &str, works: &[&str], registration: &str) -> Member {
    let policy = Policy { recovery: Recovery::Resume, ..Policy::DEFAULT };
    let spec = Spec { contract: LINKED.into(), policy, ..agent(name, works, 0) };
    let registration = Some(Block(registration.to_owned().into()));
    Member { spec, lease: Duration::from_secs(15), left_at: None, registration }
}

/// Which members a link was made for, and which attempts it was given.
#[derive(Clone, Default)]
struct Made(Arc<Mutex<Vec<String>>>);

impl Made {
    fn note(&self, what: String) {
        self.0.lock().expect("nobody panics here").push(what);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("nobody panics here"))
    }
}

/// Pull queues that no attempt of these tests may reach.
struct NoQueues(UnboundedSender<Arc<str>>);

impl PullQueues for NoQueues {
    fn give(&self, handed: Vec<Handed>) {
        handed.iter().for_each(|one| drop(self.0.send(one.job.request.work.clone())));
    }

    fn instruct(&self, _: &Arc<crosspoint_engine::job::Job>, _: u32, _: Instruction) {}
}

fn open<R>(
    scratch: &Scratch,
    made: &Made,
    agents: Vec<Agent>,
    run: fn(String, Attempt) -> R,
) -> (Engine, UnboundedReceiver<Arc<str>>)
where
    R: Future<Output = stage::Came> + Send + 'static,
{
    let (give, given) = unbounded_channel();
    let made = made.clone();
    let member_link = move |member: &Member| -> Option<Arc<dyn Link>> {
        let said = String::from_utf8_lossy(&member.registration.as_ref()?.0).into_owned();
        made.note(format!("{} {said}", member.spec.name));
        Some(stage::agent(&member.spec.name, move |attempt| run(said.clone(), attempt)).1)
    };
    let config = Config {
        queues: Some(Arc::new(NoQueues(give))),
        member_link: Some(Arc::new(member_link)),
        ..stage::config(scratch, agents)
    };
    (Engine::start(config).expect("it starts"), given)
}

/// Says over which link it was reached.
async fn says(said: String, attempt: Attempt) -> stage::Came {
    drop(attempt.input().await);
    stage::success(&format!(r#"{{"said":"{said}"}}"#))
}

async fn waits(_: String, attempt: Attempt) -> stage::Came {
    attempt.remember("sent").await.expect("it can be remembered");
    stage::never(attempt).await
}

/// Says whether it takes an attempt up, and what is remembered of it.
async fn resumes(_: String, attempt: Attempt) -> stage::Came {
    let memory = attempt.memory().map(|memory| String::from_utf8_lossy(memory).into_owned());
    stage::success(&format!(r#"{{"said":"{} {memory:?}"}}"#, attempt.is_resumed()).replace("\"sent\"", "sent"))
}

#[tokio::test]
async fn the_link_of_a_member_has_its_attempts_and_is_made_anew_only_when_the_member_changes() {
    let (scratch, made) = (Scratch::new(), Made::default());
    let (engine, mut queued) = open(&scratch, &made, vec![], says);
    engine.join(member("far", &["dig"], "first")).await.expect("it joins");
    assert_eq!(made.take(), ["far first"]);
    engine.set_capacity("far", 1).await.expect("it is there");
    engine.set_capacity("far", 0).await.expect("it is there");
    engine.set_capacity("far", 2).await.expect("it is there");
    engine.join(member("far", &["dig"], "first")).await.expect("it joins again");
    assert_eq!(made.take(), [] as [&str; 0], "nothing has changed but its presence");
    let said =
        async |work: &str| outcome(&*ended(&submit(&engine, new_job(work, "{}")).await).await)["outputs"].clone();
    assert_eq!(said("dig").await["said"], "first");
    engine.join(member("far", &["dig", "sow"], "second")).await.expect("it registers again");
    assert_eq!(made.take(), ["far second"]);
    assert_eq!(said("sow").await["said"], "second");
    let members = engine.members();
    assert_eq!(members.len(), 1);
    assert_eq!((&*members[0].spec.name, members[0].left_at), ("far", None));
    assert!(members[0].registration.as_ref().is_some_and(|said| *said.0 == *b"second"));

    // An agent without a link has its work at the pull queues.
    let pulling = Member { registration: None, ..member("near", &["pull"], "") };
    engine.join(pulling).await.expect("it joins");
    engine.set_capacity("near", 1).await.expect("it is there");
    submit(&engine, new_job("pull", "{}")).await;
    let given = tokio::time::timeout_at(patience().into(), queued.recv()).await.expect("it is given");
    assert_eq!(given.as_deref(), Some("pull"));
    engine.set_capacity("far", 0).await.expect("it is there");
    engine.forget("far").await.expect("it is away");
    assert_eq!(engine.members().len(), 1, "only the other one");
    stop(engine).await;
    assert!(queued.try_recv().is_err(), "no attempt of the linked agent was queued");
}

#[tokio::test]
async fn a_member_with_a_link_is_known_after_a_restart_and_its_attempts_are_taken_up() {
    let (scratch, made) = (Scratch::new(), Made::default());
    let (engine, _queued) = open(&scratch, &made, vec![], waits);
    let mut far = member("far", &["dig"], "said");
    far.spec.agent_type = Some("digger".into());
    far.spec.concurrency = 7;
    far.spec.policy.repeats = Repeats::SameAgent;
    engine.join(far.clone()).await.expect("it joins");
    engine.set_capacity("far", 1).await.expect("it is there");
    let watch = submit(&engine, new_job("dig", "{}")).await;
    until("it is remembered", async || watch.job().memory.is_some()).await;
    stop(engine).await;

    let (engine, _queued) = open(&scratch, &made, vec![], resumes);
    assert_eq!(made.take(), ["far said", "far said"], "once at joining, once at the start");
    let members = engine.members();
    let found = &members[0];
    assert_eq!((found.spec.agent_type.as_deref(), found.spec.concurrency), (Some("digger"), 7));
    assert_eq!((&*found.spec.contract, found.spec.policy.repeats), (LINKED, Repeats::SameAgent));
    assert_eq!((&found.registration, found.lease), (&far.registration, far.lease));
    let watch = engine.job(watch.job().id()).await.expect("it can be read").expect("it is there");
    let job = ended(&watch).await;
    assert_eq!((job.attempts, &outcome(&job)["outputs"]["said"]), (1, &"true Some(sent)".into()));
    assert!(engine.agent("far").is_some_and(|view| view.away_since().is_some()), "until it is heard of");
    stop(engine).await;
}

#[test]
fn a_name_is_not_taken_over_from_an_agent_of_another_contract_that_is_there_or_has_work() {
    let joins = |contract: &str| {
        let far = member("far", &["dig"], "said");
        Command::Join(Arc::new(Member { spec: Spec { contract: contract.into(), ..far.spec }, ..far }))
    };
    let takes = |capacity| Command::Agent("far".into(), AgentCommand::Capacity(capacity));
    let mut town = Town::new(vec![]);
    town.tell(&joins("pull"));
    town.tell(&takes(1));
    let seq = town.submit_work("dig");
    assert!(matches!(town.tell(&joins(LINKED)), Reply::OtherContract), "it is there");
    town.tell(&takes(0));
    assert!(matches!(town.tell(&joins(LINKED)), Reply::OtherContract), "it has work");
    assert!(matches!(town.tell(&joins("pull")), Reply::Done));
    town.happens(seq, dead(1));
    assert!(matches!(town.tell(&joins(LINKED)), Reply::Done));
    assert_eq!(town.core.agent("far").map(|agent| &*agent.spec.contract), Some(LINKED));
}

#[tokio::test]
async fn taking_a_name_over_is_refused() {
    let (scratch, made) = (Scratch::new(), Made::default());
    let (engine, _queued) = open(&scratch, &made, vec![], says);
    engine.join(member("far", &["dig"], "first")).await.expect("it joins");
    engine.set_capacity("far", 1).await.expect("it is there");
    let mut other = member("far", &["dig"], "other");
    other.spec.contract = "pull".into();
    assert!(matches!(engine.join(other).await, Err(Unjoined::OtherContract)));
    assert_eq!(made.take(), ["far first"], "nothing has changed");
    stop(engine).await;
}

#[tokio::test]
async fn an_attempt_that_a_link_withdraws_is_begun_elsewhere_and_nobody_is_blamed() {
    let scratch = Scratch::new();
    let (gone, mut told) = unbounded_channel();
    let leaves = stage::agent("work", move |attempt: Attempt| {
        let gone = gone.clone();
        async move {
            assert_eq!(attempt.watch().map(|watch| watch.job().id()), Some(attempt.job().id()));
            let (tell, away) = tokio::sync::oneshot::channel();
            gone.send(tell).expect("somebody listens");
            // The agent is away before the link lets go of the attempt.
            away.await.expect("somebody tells");
            attempt.withdraw();
            stage::failed(Failure::Unavailable, Dispatched::Yes)
        }
    });
    let (spec, link) = stage::agent("work", stage::echo);
    let policy = Policy { repeats: Repeats::SameAgent, ..Policy::default() };
    let leaves = (Spec { name: "leaves".into(), policy: policy.clone(), ..leaves.0 }, leaves.1);
    let stays = (Spec { name: "stays".into(), awaited: true, policy, ..spec }, link);
    let engine = stage::start(&scratch, vec![leaves, stays]);
    let watch = submit(&engine, new_job("work", "{}")).await;
    let away = told.recv().await.expect("it has begun");
    engine.set_capacity("leaves", 0).await.expect("there is such an agent");
    away.send(()).expect("it listens");
    reaches(&watch, Phase::Queued).await;
    engine.set_capacity("stays", 1).await.expect("there is such an agent");
    let job = ended(&watch).await;
    assert_eq!((job.phase(), job.attempts, job.retries, job.begun), (Phase::Completed, 2, 0, false));
    assert_eq!(job.agent.as_deref(), Some("stays"), "it never began, so it may go to any agent");
    let entries = stage::events(&engine, job.id(), 0).await;
    assert_eq!(names(&entries), ["accepted", "started", "interrupted", "started", "completed"]);
    let standing = engine.agent("leaves").expect("there is such an agent").standing;
    assert_eq!(standing.breaker, crosspoint_engine::breaker::Breaker::default());
    stop(engine).await;
}
