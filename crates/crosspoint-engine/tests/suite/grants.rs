//! Grants: on disk before they are published, published before anybody is told, and tokens nowhere.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::time::Time;
use crosspoint_engine::audit::Act;
use crosspoint_engine::core::Batch;
use crosspoint_engine::grant::{Digest, Former, Grant, Role, Unusable};
use crosspoint_engine::job::Job;
use crosspoint_engine::keys::Salt;
use crosspoint_engine::runtime::{Engine, Ungranted};
use crosspoint_engine::store::{Fault, Filter, Readers, Store};
use crosspoint_engine::wall_clock;

use crate::rows::NOW;
use crate::scratch::Scratch;
use crate::stage::{self, agent, stop};
use crate::unwritable::sql;

const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) fn grant(name: &str, token: &str) -> Grant {
    Grant {
        name: name.into(),
        role: Role::Caller,
        digest: Digest::of(Salt::default(), token),
        created_at: NOW,
        expires_at: None,
        revoked_at: None,
        former: None,
    }
}

/// Adds a grant to a batch, and an entry for every job that the batch accepts.
pub(crate) fn audited(mut batch: Batch) -> Batch {
    let accepted = batch.jobs.values().filter(|written| written.accepted.is_some()).map(|written| written.job.id());
    batch.audit = accepted.map(|id| Act::Submit.to_job(id).by(&"ann".into(), NOW)).collect();
    let name = format!("grant of {}", batch.jobs.len());
    // The same names come again, so that rows are also overwritten.
    let until = Time(batch.jobs.keys().next().map_or(0, |seq| seq.0.cast_signed()));
    let former = Some(Former { digest: Digest::of(Salt::default(), "former"), until });
    batch.grants.insert(name.as_str().into(), Arc::new(Grant { former, ..grant(&name, "token") }));
    batch
}

/// Everything that a store holds of grants and of the audit. Every job in it was accepted by a batch of [`audited`].
pub(crate) fn who(readers: &Readers) -> String {
    let audit = readers.audit(0).expect("it can be read");
    assert_eq!((audit.unread, audit.next), (Vec::new(), None));
    let jobs = readers.list(&Filter { limit: 10_000, ..Filter::default() }).expect("they can be read").jobs;
    let is_told = |job: &Job| audit.rows.iter().filter(|row| row.entry.job == Some(job.id().uuid())).count() == 1;
    assert!(jobs.iter().all(is_told), "every job has its entry");
    format!("{:?}\n{:?}", readers.grants().expect("they can be read"), audit.rows)
}

fn judged(engine: &Engine, token: &str) -> Result<String, Unusable> {
    engine.grants().judge(&engine.digest(token), wall_clock::now()).map(|grant| grant.name.to_string())
}

fn start(scratch: &Scratch) -> Engine {
    stage::start(scratch, vec![agent("echo", stage::echo)])
}

#[test]
fn a_grant_is_read_as_it_was_written() {
    let scratch = Scratch::new();
    let (mut store, readers) = Store::open(&scratch.options()).expect("it opens");
    let plain = grant("plain", "1");
    let former = Some(Former { digest: Digest::of(Salt::default(), "0"), until: Time(7) });
    let worker = Grant { role: Role::Agent("a".into()), former, ..grant("worker", "2") };
    let (expires_at, revoked_at) = (Some(Time(8)), Some(Time(9)));
    let admin = Grant { role: Role::Admin, expires_at, revoked_at, ..grant("admin", "3") };
    let all = [admin, plain.clone(), worker];
    for grant in &all {
        let grants = [(grant.name.clone(), Arc::new(grant.clone()))].into();
        store.commit(&Batch { grants, ..Batch::default() }).expect("it commits");
    }
    assert_eq!(readers.grants().expect("they can be read"), all);
    assert_eq!(store.load().expect("it loads").grants, all);
    let rotated = Grant { digest: Digest::of(Salt::default(), "4"), former: all[2].former, ..plain };
    let grants = [(rotated.name.clone(), Arc::new(rotated.clone()))].into();
    store.commit(&Batch { grants, ..Batch::default() }).expect("it commits");
    assert_eq!(readers.grants().expect("they can be read")[1], rotated);
}

#[tokio::test]
async fn a_token_is_good_from_its_creation_until_it_is_revoked_also_after_a_restart() {
    let scratch = Scratch::new();
    let engine = start(&scratch);
    assert!(engine.grants().is_empty());
    let (grant, first) = engine.create_token(None, "ann", Role::Caller, Some(HOUR)).await.expect("it is created");
    assert_eq!(grant.expires_at.map(|at| at.since(grant.created_at)), Some(HOUR));
    assert_eq!(judged(&engine, first.get()), Ok("ann".to_owned()));
    let (_, worker) = engine.create_token(None, "w", Role::Agent("echo".into()), None).await.expect("it is created");
    let (_, second) = engine.rotate_token(None, "ann", HOUR, None).await.expect("it is rotated");
    let (_, third) = engine.rotate_token(None, "w", Duration::ZERO, None).await.expect("it is rotated");
    engine.revoke_token(None, "w").await.expect("it is revoked");
    let expected = [
        (first.get(), Ok("ann".to_owned())),
        (second.get(), Ok("ann".to_owned())),
        (worker.get(), Err(Unusable::Revoked)),
        (third.get(), Err(Unusable::Revoked)),
        ("guessed", Err(Unusable::Unknown)),
    ];
    for (token, due) in &expected {
        assert_eq!(judged(&engine, token), *due);
    }
    let grants = engine.grants();
    stop(engine).await;
    let engine = start(&scratch);
    assert_eq!(engine.grants(), grants);
    for (token, due) in &expected {
        assert_eq!(judged(&engine, token), *due, "after a restart");
    }
    stop(engine).await;
}

#[tokio::test]
async fn a_name_is_given_once_and_what_was_revoked_is_not_rotated() {
    let scratch = Scratch::new();
    let engine = start(&scratch);
    let create = async |name: &str, expires| engine.create_token(None, name, Role::Admin, expires).await.map(drop);
    create("ann", None).await.expect("it is created");
    let revoked = engine.revoke_token(None, "ann").await.expect("it is revoked");
    assert!(matches!(create("ann", None).await, Err(Ungranted::NameTaken)), "also of one that was revoked");
    assert!(matches!(create("an n", None).await, Err(Ungranted::BadName)));
    let nameless = engine.create_token(None, "carl", Role::Agent("".into()), None).await;
    assert!(matches!(nameless, Err(Ungranted::BadName)));
    let rotate = async |name| engine.rotate_token(None, name, HOUR, None).await.map(drop);
    assert!(matches!(rotate("ann").await, Err(Ungranted::Unusable(Unusable::Revoked))));
    assert!(matches!(rotate("carl").await, Err(Ungranted::NotFound)));
    assert!(matches!(engine.revoke_token(None, "carl").await, Err(Ungranted::NotFound)));
    assert_eq!(engine.revoke_token(None, "ann").await.expect("again"), revoked, "the first time counts");
    stop(engine).await;
}

/// What has expired is renewed by another token, and the expired one is not.
#[tokio::test]
async fn a_rotation_counts_the_time_of_a_token_anew() {
    let scratch = Scratch::new();
    let engine = start(&scratch);
    let length = |grant: &Grant| grant.expires_at.map(|at| at.since(grant.created_at));
    let (_, first) = engine.create_token(None, "ann", Role::Caller, Some(Duration::ZERO)).await.expect("it is created");
    assert_eq!(judged(&engine, first.get()), Err(Unusable::Expired));
    let (grant, second) = engine.rotate_token(None, "ann", HOUR, Some(HOUR)).await.expect("it is rotated");
    assert_eq!((length(&grant), grant.overlap_until(grant.created_at)), (Some(HOUR), None));
    assert_eq!(judged(&engine, first.get()), Err(Unusable::Replaced));
    assert_eq!(judged(&engine, second.get()), Ok("ann".to_owned()));
    let (grant, third) = engine.rotate_token(None, "ann", HOUR * 2, None).await.expect("it is rotated");
    assert_eq!(length(&grant), Some(HOUR), "as long as before, from now on");
    let until = grant.overlap_until(grant.created_at).expect("both are good");
    assert!(Some(until) <= grant.expires_at, "the former one is not good for longer than it was");
    assert_eq!(judged(&engine, first.get()), Err(Unusable::Unknown), "only one former token is known");
    assert_eq!(judged(&engine, second.get()), Ok("ann".to_owned()));
    assert_eq!(judged(&engine, third.get()), Ok("ann".to_owned()));
    stop(engine).await;
}

#[tokio::test]
async fn a_token_is_neither_in_the_files_of_the_store_nor_printed() {
    let scratch = Scratch::new();
    let engine = start(&scratch);
    let (grant, token) = engine.create_token(None, "ann", Role::Caller, None).await.expect("it is created");
    let (_, next) = engine.rotate_token(None, "ann", HOUR, None).await.expect("it is rotated");
    assert_ne!(token.get(), next.get());
    for token in [&token, &next] {
        assert!(
            token.get().len() == 32
                && token.get().bytes().all(|byte| b"abcdefghijklmnopqrstuvwxyz0123456789".contains(&byte))
        );
        let shown = format!("{token:?} {grant:?} {:?}", engine.grants());
        assert!(!shown.contains(token.get()), "{shown}");
        for file in [scratch.database(), scratch.log()] {
            let bytes = fs::read(file).expect("it is there");
            assert!(!bytes.windows(32).any(|window| window == token.get().as_bytes()));
        }
    }
    stop(engine).await;
}

/// A grant that cannot be written is not published, and leaves no entry; the one before stays.
#[tokio::test]
async fn what_is_not_on_disk_is_not_published() {
    let scratch = Scratch::new();
    let engine = start(&scratch);
    let who: Arc<str> = "root".into();
    let (_, token) = engine.create_token(Some(&who), "ann", Role::Caller, None).await.expect("it is created");
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE ON token BEGIN SELECT RAISE(ABORT, 'no'); END";
    sql(&scratch, refuse);
    let before = engine.grants();
    let rotated = engine.rotate_token(Some(&who), "ann", Duration::ZERO, None).await;
    assert!(matches!(rotated, Err(Ungranted::Fault(_))), "{rotated:?}");
    let revoked = engine.revoke_token(Some(&who), "ann").await;
    assert!(matches!(revoked, Err(Ungranted::Fault(_))), "{revoked:?}");
    assert_eq!(engine.grants(), before);
    assert_eq!(judged(&engine, token.get()), Ok("ann".to_owned()));
    sql(&scratch, "DROP TRIGGER refuse");
    engine.revoke_token(Some(&who), "ann").await.expect("it is revoked");
    assert_eq!(judged(&engine, token.get()), Err(Unusable::Revoked));
    let readers = Readers::open(&scratch.database()).expect("it opens");
    let acts: Vec<Act> = readers.audit(0).expect("it can be read").rows.iter().map(|row| row.entry.act).collect();
    assert_eq!(acts, [Act::TokenCreate, Act::TokenRevoke]);
    stop(engine).await;
}

/// Where there is no room, the core is not made anew at once: what it decided last must not be seen.
#[tokio::test]
async fn a_grant_for_which_there_is_no_room_is_not_published() {
    let scratch = Scratch::new();
    let engine = Engine::start(stage::bounded(&scratch, Vec::new(), 1)).expect("it starts");
    // Entries of this name fill the store.
    let who: Arc<str> = "r".repeat(8_000).into();
    let mut tokens = 0;
    let fault = loop {
        match engine.create_token(Some(&who), &format!("t{tokens}"), Role::Caller, None).await {
            Ok(_) => tokens += 1,
            Err(Ungranted::Fault(fault)) => break fault,
            Err(other) => panic!("{other:?}"),
        }
        assert!(tokens < 1_000, "it must come to an end");
    };
    assert!(matches!(*fault, Fault::Full { .. }), "{fault}");
    assert_eq!((engine.grants().len(), engine.grants().get(&format!("t{tokens}"))), (tokens, None));
    let readers = Readers::open(&scratch.database()).expect("it opens");
    assert_eq!(readers.grants().expect("they can be read").len(), tokens);
    assert_eq!(readers.audit(0).expect("it can be read").rows.len(), tokens, "each has its entry");
    stop(engine).await;
}
