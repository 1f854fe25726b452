//! Configured agents that are away and come back.

use crosspoint_engine::core::{AgentCommand, Command, Presence, Reply, Spec};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::Phase;
use crosspoint_engine::runtime::{Ahead, Unjoined};

use crate::made::secs;
use crate::scratch::Scratch;
use crate::stage::{self, ended, never, new_job, reaches, stop, submit};
use crate::town::{Town, agent};

fn takes(name: &str, capacity: u32) -> Command {
    Command::Agent(name.into(), AgentCommand::Capacity(capacity))
}

#[test]
fn a_configured_agent_that_is_away_keeps_what_it_has_and_gets_no_more() {
    let mut town = Town::new(vec![agent("a", &["work"], 2)]);
    assert_eq!(town.core.agent("a").and_then(|agent| agent.seen), None, "nobody watches it, and it gets work");
    let jobs: Vec<Seq> = (0..2).map(|_| town.submit_work("work")).collect();
    assert!(matches!(town.tell(&takes("a", 0)), Reply::Done));
    assert!(town.batch.is_empty(), "its presence is not stored");
    let waits = town.submit_work("work");
    town.finish(jobs[0]);
    assert_eq!((town.with(jobs[1]).as_deref(), town.with(waits)), (Some("a"), None));
    let since = town.core.agent("a").and_then(|agent| agent.seen);
    town.now = town.now.plus(secs(5));
    town.tell(&takes("a", 0));
    assert_eq!(town.core.agent("a").and_then(|agent| agent.seen), since, "it has been away all the time");
    town.tell(&takes("a", 9));
    assert_eq!(town.with(waits).as_deref(), Some("a"));
    town.submit_work("work");
    assert_eq!(town.running("a"), 2, "it takes no more than it is configured for");
    town.finish(jobs[1]);
    town.tell(&takes("a", 1));
    town.submit_work("work");
    assert_eq!(town.running("a"), 2, "what it has is more than it takes now");
    assert_eq!(town.core.agent("a").map(|agent| (agent.capacity(), agent.joined)), Some((1, None)));
}

#[test]
fn an_awaited_agent_gets_no_work_before_it_was_heard_of() {
    let mut town = Town::new(vec![Spec { awaited: true, ..agent("a", &["work"], 2) }]);
    let seq = town.submit_work("work");
    let since = town.now;
    assert_eq!(town.core.agent("a").and_then(|agent| agent.seen), Some(Presence::Away { since }));
    assert_eq!(town.with(seq), None, "its work is known all the same");
    town.tell(&takes("a", 2));
    assert_eq!(town.with(seq).as_deref(), Some("a"));
}

#[tokio::test]
async fn an_agent_that_is_away_is_shown_and_says_why_its_jobs_wait() {
    let scratch = Scratch::new();
    let awaited = || {
        let (spec, link) = stage::agent("late", stage::echo);
        vec![(Spec { awaited: true, concurrency: 3, ..spec }, link), stage::agent("never", never)]
    };
    let engine = stage::start(&scratch, awaited());
    let watch = submit(&engine, new_job("late", "{}")).await;
    let view = engine.agent("late").expect("there is such an agent");
    let since = view.away_since().expect("it was not heard of");
    assert_eq!((view.capacity(), view.joined), (0, None));
    let stuck = engine.stuck(&watch.job(), Ahead::Counted).expect("it says why");
    assert_eq!(stuck.reason, format!("agent late is away since {since}"));
    engine.set_capacity("late", 2).await.expect("it is there");
    assert_eq!(ended(&watch).await.phase(), Phase::Completed);
    let view = engine.agent("late").expect("there is such an agent");
    assert_eq!((view.capacity(), view.away_since()), (2, None));
    assert!(matches!(engine.set_capacity("nobody", 1).await, Err(Unjoined::NotFound)));

    // Another agent is never awaited, goes away, and its attempt goes on.
    let running = submit(&engine, new_job("never", "{}")).await;
    reaches(&running, Phase::Running).await;
    engine.set_capacity("never", 0).await.expect("there is such an agent");
    let waits = submit(&engine, new_job("never", "{}")).await;
    assert_eq!((running.job().phase(), waits.job().phase()), (Phase::Running, Phase::Queued));
    stop(engine).await;
    let engine = stage::start(&scratch, awaited());
    assert!(engine.agent("late").is_some_and(|view| view.away_since().is_some()), "it was not heard of again");
    assert!(engine.agent("never").is_some_and(|view| view.away_since().is_none()), "that is not stored");
    let waits = engine.job(waits.job().id()).await.expect("it can be read").expect("it is there");
    reaches(&waits, Phase::Running).await;
    stop(engine).await;
}
