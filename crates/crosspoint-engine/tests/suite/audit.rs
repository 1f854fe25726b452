//! The audit: every act of a named holder of a token has one entry, in its own commit, and nothing else has one.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::Question;
use crosspoint_contracts::request::NewJob;
use crosspoint_contracts::time::Time;
use crosspoint_engine::audit::{Act, AuditEntry, Deed};
use crosspoint_engine::core::Batch;
use crosspoint_engine::grant::Role;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::Phase;
use crosspoint_engine::retention::Jumps;
use crosspoint_engine::runtime::{Attempt, Config, Engine, Submitted, Watch};
use crosspoint_engine::store::{Readers, Store};
use uuid::Uuid;

use crate::rows::NOW;
use crate::scratch::Scratch;
use crate::stage::{self, agent, ended, keyed, never, new_job, reaches, stop, until};

const DAY: Duration = Duration::from_secs(86_400);

fn start(scratch: &Scratch) -> Engine {
    stage::start(scratch, vec![agent("echo", stage::echo), agent("never", never), agent("asks", asks)])
}

async fn asks(attempt: Attempt) -> stage::Came {
    let question = Question::of("why?");
    let answer = attempt.ask(question).await;
    stage::success(answer.as_ref().map_or("{}", |answer| answer.get()))
}

fn entries(scratch: &Scratch) -> Vec<AuditEntry> {
    let readers = Readers::open(&scratch.database()).expect("it opens");
    readers.audit(0).expect("it can be read").rows.into_iter().map(|row| row.entry).collect()
}

/// The entries without their times.
fn told(scratch: &Scratch) -> Vec<(String, Act, Option<Uuid>, Option<String>)> {
    let one = |entry: AuditEntry| (entry.who.to_string(), entry.act, entry.job, entry.object.map(Into::into));
    entries(scratch).into_iter().map(one).collect()
}

async fn submit(engine: &Engine, who: &Arc<str>, new: NewJob) -> Watch {
    match engine.by(who).submit(new).await {
        Ok(Submitted::New(watch) | Submitted::Repeat(watch)) => watch,
        Err(unaccepted) => panic!("{unaccepted:?}"),
    }
}

#[tokio::test]
async fn what_the_holder_of_a_token_does_is_written_with_ids_and_names() {
    let scratch = Scratch::new();
    let engine = start(&scratch);
    let (ann, root): (Arc<str>, Arc<str>) = ("ann".into(), "root".into());
    let done = submit(&engine, &ann, keyed("echo", r#"{"secret":1}"#, "r")).await;
    let first = ended(&done).await.id();
    // A caller that goes on repeating is written once in a while.
    for _ in 0..3 {
        submit(&engine, &ann, keyed("echo", r#"{"secret":1}"#, "r")).await;
    }
    let again = engine.by(&root).retry(first, None).await.expect("it can be").expect("it is accepted");
    let Submitted::New(again) = again else { panic!("it is a new job") };
    let second = ended(&again).await.id();
    let asking = submit(&engine, &ann, new_job("asks", "{}")).await;
    let third = reaches(&asking, Phase::Waiting).await.id();
    engine.by(&ann).answer(third, Body::trusted("7".to_owned()), None).await.expect("it is answered");
    let running = submit(&engine, &ann, new_job("never", "{}")).await;
    let fourth = reaches(&running, Phase::Running).await.id();
    engine.by(&root).cancel(fourth).await.expect("it is cancelled");
    for on in [true, false] {
        engine.by(&root).drain("echo", on).await.expect("it is drained");
        engine.by(&root).set_breaker("echo", on).await.expect("it is set");
    }
    engine.by(&root).create_token("bob", Role::Caller, None).await.expect("it is created");
    engine.by(&root).rotate_token("bob", Duration::ZERO, None).await.expect("it is rotated");
    for _ in 0..2 {
        engine.by(&root).revoke_token("bob").await.expect("it is revoked, and stays so");
    }
    engine.by(&root).note(Deed { act: Act::Reload, job: None, object: None }).await.expect("it is written");
    let line = |who: &str, act, job: Option<JobId>, object: Option<&str>| {
        (who.to_owned(), act, job.map(JobId::uuid), object.map(str::to_owned))
    };
    let expected = [
        line("ann", Act::Submit, Some(first), None),
        line("ann", Act::Repeat, Some(first), None),
        line("root", Act::Retry, Some(second), Some(&first.to_string())),
        line("ann", Act::Submit, Some(third), None),
        line("ann", Act::Answer, Some(third), None),
        line("ann", Act::Submit, Some(fourth), None),
        line("root", Act::Cancel, Some(fourth), None),
        line("root", Act::Drain, None, Some("echo")),
        line("root", Act::BreakerOpen, None, Some("echo")),
        line("root", Act::Undrain, None, Some("echo")),
        line("root", Act::BreakerClose, None, Some("echo")),
        line("root", Act::TokenCreate, None, Some("bob")),
        line("root", Act::TokenRotate, None, Some("bob")),
        line("root", Act::TokenRevoke, None, Some("bob")),
        line("root", Act::Reload, None, None),
    ];
    assert_eq!(told(&scratch), expected);
    stop(engine).await;
}

#[tokio::test]
async fn what_is_refused_or_done_without_a_token_leaves_no_entry() {
    let scratch = Scratch::new();
    let engine = start(&scratch);
    let (ann, gone) = (Arc::from("ann"), JobId::new(crosspoint_engine::id::Seq(77), NOW, 1));
    let by = engine.by(&ann);
    let done = stage::submit(&engine, keyed("echo", "{}", "r")).await;
    let id = ended(&done).await.id();
    assert!(by.submit(new_job("unknown", "{}")).await.is_err());
    assert!(by.submit(keyed("never", "{}", "r")).await.is_err(), "it is a conflict");
    assert!(by.cancel(id).await.is_err(), "it has ended");
    assert!(by.cancel(gone).await.is_err());
    assert!(by.answer(id, Body::trusted("1".to_owned()), None).await.is_err());
    assert!(by.retry(gone, None).await.is_err());
    assert!(by.drain("missing", true).await.is_err());
    assert!(by.set_breaker("missing", true).await.is_err());
    assert!(by.forget("missing").await.is_err());
    assert!(by.forget("echo").await.is_err(), "it is configured");
    assert!(by.rotate_token("missing", DAY, None).await.is_err());
    assert!(by.revoke_token("missing").await.is_err());
    assert!(by.create_token("an n", Role::Caller, None).await.is_err());
    engine.create_token(None, "ann", Role::Caller, None).await.expect("it is created");
    assert!(by.create_token("ann", Role::Caller, None).await.is_err(), "the name is taken");
    engine.drain("echo", true).await.expect("it is drained");
    assert_eq!(entries(&scratch), []);
    stop(engine).await;
}

#[tokio::test]
async fn a_reader_of_a_job_is_written_once_in_a_while() {
    let scratch = Scratch::new();
    let engine = start(&scratch);
    let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
    let [one, two] = [1, 2].map(|seq| JobId::new(crosspoint_engine::id::Seq(seq), NOW, 1));
    for _ in 0..3 {
        engine.read_by(&ann, one, "document").await.expect("it is written");
        engine.read_by(&bob, one, "outcome").await.expect("it is written");
        engine.read_by(&ann, two, "events").await.expect("it is written");
    }
    let read = |who: &str, job: JobId, what: &str| (who.to_owned(), Act::Read, Some(job.uuid()), Some(what.to_owned()));
    assert_eq!(told(&scratch), [read("ann", one, "document"), read("bob", one, "outcome"), read("ann", two, "events")]);
    stop(engine).await;
}

/// Writes entries of these days.
fn written(store: &mut Store, days: impl IntoIterator<Item = u32>) {
    let entry = |day: u32| Act::Drain.to(&day.to_string()).by(&"root".into(), NOW.plus(DAY * day));
    let audit = days.into_iter().map(entry).collect();
    store.commit(&Batch { audit, ..Batch::default() }).expect("it commits");
}

fn days(readers: &Readers) -> Vec<(i64, String)> {
    let page = readers.audit(0).expect("it can be read");
    page.rows.into_iter().map(|row| (row.seq, row.entry.object.unwrap_or_default().into())).collect()
}

#[test]
fn entries_go_by_age_and_no_number_is_given_again() {
    let scratch = Scratch::new();
    let (mut store, readers) = Store::open(&scratch.options()).expect("it opens");
    written(&mut store, [1, 2, 9, 3]);
    let purge = |store: &mut Store, day| store.purge_audit(DAY * 5, &Jumps::default(), NOW.plus(DAY * day));
    assert_eq!(purge(&mut store, 5).expect("it can be"), 0);
    assert_eq!(purge(&mut store, 8).expect("it can be"), 3);
    // One that was written while the clock was ahead stays until then, and holds up no other.
    assert_eq!(days(&readers), [(3, "9".to_owned())]);
    assert_eq!(purge(&mut store, 14).expect("it can be"), 1);
    written(&mut store, [14]);
    assert_eq!(days(&readers), [(5, "14".to_owned())]);
}

#[test]
fn entries_go_a_thousand_at_a_time() {
    let scratch = Scratch::new();
    let (mut store, readers) = Store::open(&scratch.options()).expect("it opens");
    written(&mut store, std::iter::repeat_n(1, 2_500));
    let first = readers.audit(0).expect("it can be read");
    assert_eq!((first.rows.len(), first.next), (1_000, Some(1_000)));
    let last = readers.audit(2_000).expect("it can be read");
    assert_eq!((last.rows.len(), last.next), (500, None));
    let mut step = || store.purge_audit(DAY, &Jumps::default(), NOW.plus(DAY * 9)).expect("it can be");
    assert_eq!([step(), step(), step(), step()], [1_000, 1_000, 500, 0]);
}

#[test]
fn a_clock_that_jumped_makes_no_entry_older() {
    let scratch = Scratch::new();
    let (mut store, readers) = Store::open(&scratch.options()).expect("it opens");
    written(&mut store, [0]);
    let micros = i64::try_from((DAY * 400).as_micros()).expect("it fits");
    let now = NOW.plus(DAY * 401);
    let jumps = Jumps::new(vec![(NOW.plus(DAY * 400), micros)]);
    assert_eq!(store.purge_audit(DAY * 365, &jumps, now).expect("it can be"), 0);
    assert_eq!(days(&readers).len(), 1);
    assert_eq!(store.purge_audit(DAY * 365, &Jumps::default(), now).expect("it can be"), 1, "it can tell");
}

#[tokio::test]
async fn a_server_removes_old_entries_and_keeps_the_others() {
    let scratch = Scratch::new();
    let (mut store, _) = Store::open(&scratch.options()).expect("it opens");
    let at = |at: Time, what: &str| Act::Drain.to(what).by(&"root".into(), at);
    let old = std::iter::repeat_n(at(NOW, "old"), 2_500);
    let young = at(crosspoint_engine::wall_clock::now(), "young");
    store.commit(&Batch { audit: old.chain([young]).collect(), ..Batch::default() }).expect("it commits");
    drop(store);
    let config = Config { audit_age: Some(DAY), ..stage::config(&scratch, vec![agent("echo", stage::echo)]) };
    let engine = Engine::start(config).expect("it starts");
    until("the old entries are gone", async || entries(&scratch).len() == 1).await;
    assert_eq!(entries(&scratch)[0].object.as_deref(), Some("young"));
    stop(engine).await;
}
