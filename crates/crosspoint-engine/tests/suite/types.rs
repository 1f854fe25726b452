//! Agents with types, and requests that are addressed to one (MSG-18).

use std::sync::Arc;

use crosspoint_contracts::request::Priority;
use crosspoint_engine::core::{Origin, Rejected, Reply, Room, Share, Spec};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::{Job, Phase, Request};

use crate::made::{T0, request};
use crate::scratch::Scratch;
use crate::stage::{self, ended, new_job, stop, submit};
use crate::town::{Town, agent, origin};

fn typed(name: &str, agent_type: Option<&str>, concurrency: u32) -> Spec {
    Spec { agent_type: agent_type.map(Into::into), ..agent(name, &["work"], concurrency) }
}

fn addressed(to: Option<&str>) -> Request {
    Request { addressed: to.map(Into::into), ..request(0, "work") }
}

#[test]
fn what_is_addressed_to_a_type_goes_to_agents_of_it_and_to_those_without() {
    for (to, takers) in [(Some("coder"), ["coder", "any"]), (Some("tester"), ["tester", "any"])] {
        let mut town = Town::new(vec![
            typed("coder", Some("coder"), 1),
            typed("tester", Some("tester"), 1),
            typed("any", None, 1),
        ]);
        let jobs: Vec<Seq> = (0..3).map(|_| town.submit(addressed(to))).collect();
        let mut with: Vec<_> = jobs.iter().filter_map(|seq| town.with(*seq)).collect();
        with.sort_unstable();
        let mut takers = takers.to_vec();
        takers.sort_unstable();
        assert_eq!(with, takers, "the third waits, although an agent of another type is free");
        town.submit(addressed(None));
        assert_eq!(["coder", "tester", "any"].map(|name| town.running(name)), [1; 3], "it names no type");
    }
}

#[test]
fn what_no_agent_of_its_type_takes_is_refused_and_a_named_agent_is_no_exception() {
    let mut town = Town::new(vec![typed("coder", Some("coder"), 1), agent("other", &["rest"], 1)]);
    let refused = |town: &mut Town, request| {
        let Reply::Rejected(why) = town.try_submit(request) else { return None };
        Some(why)
    };
    assert_eq!(refused(&mut town, addressed(Some("tester"))), Some(Rejected::WrongType));
    let pinned = |name: &str, to| Request { pinned: Some(name.into()), ..addressed(to) };
    assert_eq!(refused(&mut town, pinned("coder", Some("tester"))), Some(Rejected::WrongType));
    assert_eq!(refused(&mut town, pinned("other", Some("tester"))), Some(Rejected::NotItsWork));
    assert_eq!(
        refused(&mut town, Request { work: "unheard".into(), ..addressed(Some("tester")) }),
        Some(Rejected::UnknownWork)
    );
    assert_eq!(refused(&mut town, pinned("coder", Some("coder"))), None);
    let mut town = Town::new(vec![typed("coder", Some("coder"), 1), typed("any", None, 1)]);
    assert_eq!(refused(&mut town, addressed(Some("tester"))), None, "an agent without a type takes any");
    assert_eq!(refused(&mut town, pinned("coder", Some("tester"))), Some(Rejected::WrongType));
}

#[test]
fn priorities_and_age_decide_over_all_types() {
    let mut town = Town::new(vec![typed("any", None, 1)]);
    let first = town.submit(addressed(None));
    let with = |to, priority| Request { priority, ..addressed(to) };
    let jobs = [
        town.submit(with(Some("b"), Priority::Normal)),
        town.submit(with(None, Priority::High)),
        town.submit(with(Some("a"), Priority::High)),
        town.submit(with(Some("a"), Priority::Normal)),
    ];
    let (mut last, mut went) = (first, Vec::new());
    for _ in jobs {
        town.finish(last);
        last = town.dispatched()[0];
        went.push(last);
    }
    assert_eq!(went, [1, 2, 0, 3].map(|index: usize| jobs[index]));
}

#[test]
fn a_suspect_goes_only_to_agents_of_its_type() {
    let mut job = Job::accepted(Arc::new(Request { addressed: Some("tester".into()), ..request(1, "work") }));
    job.cut_short = 2;
    let agents = vec![typed("coder", Some("coder"), 1), typed("tester", Some("tester"), 1)];
    let mut town = Town::of(Origin { jobs: vec![job], last_seq: Seq(1), alive_at: Some(T0), ..origin(agents) });
    town.core.settle(T0, &mut town.batch);
    assert_eq!(town.with(Seq(1)).as_deref(), Some("tester"));
}

#[test]
fn a_job_takes_the_share_of_the_only_agent_of_its_type() {
    let agents = vec![typed("coder", Some("coder"), 1), typed("tester", Some("tester"), 1)];
    let room = Room { jobs: 9, of_work: 9, of_agent: 1, of_caller: 9 };
    let mut town = Town::of(Origin { room, ..origin(agents) });
    town.submit(addressed(Some("coder")));
    let full = town.try_submit(addressed(Some("coder")));
    assert!(matches!(full, Reply::Rejected(Rejected::Full { share: Share::Agent, most: 1 })), "{full:?}");
    town.submit(addressed(Some("tester")));
    town.submit(addressed(None));
}

#[tokio::test]
async fn a_job_says_for_which_type_it_waits_and_what_it_is_addressed_to_survives_a_restart() {
    let scratch = Scratch::new();
    let coder = |agent_type: &str| {
        let (spec, link) = stage::agent("work", stage::echo);
        vec![(Spec { agent_type: Some(agent_type.into()), ..spec }, link)]
    };
    let engine = stage::start(&scratch, coder("coder"));
    engine.drain("work", true).await.expect("there is such an agent");
    let mut new = new_job("work", "{}");
    new.addressed = Some("coder".into());
    new.echo = Some(r#"{"task_id":"t-1"}"#.into());
    let id = submit(&engine, new).await.job().id();
    stop(engine).await;
    // The operator has given the agent another type meanwhile.
    let engine = stage::start(&scratch, coder("tester"));
    engine.drain("work", false).await.expect("there is such an agent");
    let watch = engine.job(id).await.expect("it can be read").expect("it is there");
    assert_eq!(watch.job().phase(), Phase::Queued);
    let stuck = engine.stuck(&watch.job(), crosspoint_engine::runtime::Ahead::Counted).expect("it says why");
    assert_eq!(stuck.reason, "no agent takes work for type coder");
    stop(engine).await;
    let engine = stage::start(&scratch, coder("coder"));
    let watch = engine.job(id).await.expect("it can be read").expect("it is there");
    let job = ended(&watch).await;
    assert_eq!((job.phase(), job.request.addressed.as_deref()), (Phase::Completed, Some("coder")));
    assert_eq!(job.request.echo.as_deref(), Some(r#"{"task_id":"t-1"}"#));
    // An operator's repeat goes to the same type, and its answers repeat the same.
    let again = engine.retry(id, None).await.expect("it has ended").expect("it is accepted");
    let crosspoint_engine::runtime::Submitted::New(again) = again else { panic!("it is a new job") };
    let again = ended(&again).await;
    assert_eq!((&again.request.addressed, &again.request.echo), (&job.request.addressed, &job.request.echo));
    stop(engine).await;
}
