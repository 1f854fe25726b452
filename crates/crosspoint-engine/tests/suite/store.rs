//! What is committed is what is loaded: every field of every job, every event, and nothing twice.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::Contract;
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::outcome::{Outcome, Status};
use crosspoint_contracts::reply::{Failed, Given, Progress, Question, Success};
use crosspoint_contracts::request::{Backoff, Door, Key, Limits, Priority, Schedule};
use crosspoint_contracts::time::Time;
use crosspoint_engine::breaker::Breaker;
use crosspoint_engine::core::{Batch, Standing};
use crosspoint_engine::event::{Entry, Violation, What};
use crosspoint_engine::id::{JobId, SEQ_MAX, Seq};
use crosspoint_engine::job::{Answered, Ending, Job, Origin, Request, Running, State};
use crosspoint_engine::store::{Fault, Filter, Readers, Store};

use crate::rows::{self, DOCUMENT, NOW, batch, end, fresh, note, stepped, whole, whole_entry};
use crate::scratch::Scratch;

/// Text that is hard on columns: letters outside ASCII, quotes, a NUL, the end of a plane, an emoji.
pub(crate) const HARD: &str = "Prüfung «日本語» '\"; \0 \u{10ffff} 🦀";

pub(crate) fn open(scratch: &Scratch) -> (Store, Readers) {
    Store::open(&scratch.options()).expect("it opens")
}

pub(crate) fn body(text: &str) -> Body {
    Body::read(text.to_owned()).expect("it is JSON")
}

/// A job with a value in every field, in the given state.
pub(crate) fn full(seq: u64, state: State) -> Job {
    let hard: Arc<str> = HARD.into();
    let variety = usize::try_from(seq).expect("it is small");
    let backoffs = [Backoff::Exponential, Backoff::Linear, Backoff::Fixed];
    let retry = Schedule {
        attempts_max: 7,
        backoff: backoffs[variety % backoffs.len()],
        first: Duration::from_micros(1_500_001),
    };
    let keys = [Key::None, Key::RequestId, Key::Other(HARD.into()), Key::Other("".into())];
    let request = Request {
        origin: Some(match variety % 3 {
            0 => Origin::RetryOf(rows::id(seq + 100).uuid()),
            _ => Origin::ChildOf { parent: rows::id(seq + 100).uuid(), stage: HARD.into() },
        }),
        door: Door::all().nth(variety % (1 + Contract::ALL.len())).expect("there are so many"),
        caller: hard.clone(),
        request_id: format!("{HARD}{seq}").into(),
        key: keys[variety % keys.len()].clone(),
        work: hard.clone(),
        pinned: Some(hard.clone()),
        addressed: Some(hard.clone()),
        echo: Some(HARD.into()),
        notify: Some(hard.clone()),
        priority: Priority::ALL[variety % Priority::ALL.len()],
        limits: Limits {
            total: Some(Duration::from_micros(3_600_000_001)),
            attempt: Some(Duration::from_micros(60_000_001)),
            silence: Some(Duration::from_millis(1)),
            output_bytes: Some(u64::from(u32::MAX) + 1),
            memory_bytes: Some(u64::from(u32::MAX) + 2),
            retry: Some(retry),
        },
        trace: (variety % 2 == 0).then(|| HARD.into()),
        ..rows::request(seq)
    };
    let question = body(r#"{"prompt":"Größe?","schema":{"type":"string"}}"#);
    Job {
        state,
        updated_at: Time(NOW.0 + 5),
        agent: Some(hard),
        attempts: 3,
        retries: 2,
        begun: true,
        stays: variety.is_multiple_of(2),
        started_at: Some(Time(NOW.0 + 1)),
        waited: Duration::from_micros(77),
        progress: Some(Arc::new(Progress {
            percent: Some(33.25),
            step: Some(body(r#""Schritt \u0000 二""#)),
            document: None,
            began: None,
        })),
        output_bytes: 4 << 30,
        answers: Arc::new(vec![
            Answered { question: Question::read(question.clone()), answer: body("null") },
            Answered { question: Question::read(question), answer: body(r#"{"ü":[1, 2]}"#) },
        ]),
        memory: Some(Block(Bytes::from_static(b"\0 remembered \xff"))),
        events: 17,
        ..Job::accepted(Arc::new(request))
    }
}

fn states() -> Vec<State> {
    let running =
        Running { attempt: 3, heard_at: Time(NOW.0 + 5), timed_from: Time(NOW.0 + 5), asked: 1, taken_up_at: None };
    let ended = |status| State::Ended(rows::outcome(status, r#"{"status":"s","outputs":{"ü":1}}"#));
    let mut states = vec![State::Queued, State::Running(running)];
    states.extend(Failure::ALL.map(|after| State::Retrying { until: Time(NOW.0 + 99), after }));
    states.push(State::Waiting { running, question: Question::read(body(r#"{"prompt":"日本?"}"#)) });
    states.extend(Status::ALL.map(ended));
    states.extend(texts_cut_short().map(|outcome| State::Ended(Arc::new(Ending::new(Time(NOW.0 + 9), outcome)))));
    states
}

/// Outcomes whose text lacks a part, of a success and of a failure.
fn texts_cut_short() -> [Outcome; 2] {
    let success = Success { whole_bytes: Some(9_000_000), ..Success::of(body(r#""its end""#)) };
    let Success { outputs, text, .. } = success.clone();
    let given = Given { outputs, text, whole_bytes: Some(9_000_001), ..Given::default() };
    let failed = Failed { given: given.if_any(), ..Failed::of(Failure::AgentFailed, Dispatched::Yes) };
    [Outcome::completed(success), Outcome::failed(failed, Repeat::Never)]
}

/// The event that goes with an end.
fn ending(job: &Job) -> Vec<Entry> {
    let entry = |outcome| Entry { n: job.events, at: Time(NOW.0 + 9), what: What::Ended(outcome) };
    job.outcome().cloned().map(entry).into_iter().collect()
}

#[test]
fn every_field_survives_in_every_state() {
    let scratch = Scratch::new();
    let jobs: Vec<Job> = states().into_iter().zip(1..).map(|(state, seq)| full(seq, state)).collect();
    {
        let (mut store, readers) = open(&scratch);
        let write = |job: &Job| fresh(job.clone(), DOCUMENT.as_bytes(), ending(job));
        store.commit(&batch(jobs.iter().map(write))).expect("it commits");
        for job in &jobs {
            let found = readers.job(job.id()).expect("it can be read").expect("it is there");
            assert_eq!(whole(&found), whole(job));
        }
    }
    let (store, readers) = open(&scratch);
    let loaded = store.load().expect("it loads");
    let live: Vec<&Job> = jobs.iter().filter(|job| job.outcome().is_none()).collect();
    assert_eq!(loaded.jobs.len(), live.len());
    for (found, job) in loaded.jobs.iter().zip(live) {
        assert_eq!(whole(found), whole(job));
    }
    assert_eq!(loaded.last_seq, Seq(jobs.len() as u64));
    for job in &jobs {
        let found = readers.job_at(job.seq()).expect("it can be read").expect("it is there");
        assert_eq!(whole(&found), whole(job));
        let owner = rows::hash(job).and_then(|hash| loaded.keys.find(hash, &[]));
        assert_eq!(owner, (job.request.key != Key::None).then(|| job.seq()));
    }
}

#[test]
fn a_job_is_written_over_by_every_later_state() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    store.commit(&batch([fresh(rows::job(1), DOCUMENT.as_bytes(), Vec::new())])).expect("it commits");
    let plain = readers.job(rows::id(1)).expect("it can be read").expect("it is there");
    assert_eq!(whole(&plain), whole(&rows::job(1)));
    for state in states().into_iter().filter(|state| !matches!(state, State::Ended(_))) {
        // The request never changes, so that of the first job stays.
        let job = Job { request: rows::job(1).request, ..full(1, state) };
        store.commit(&batch([stepped(job.clone(), Vec::new())])).expect("it commits");
        let found = readers.job(job.id()).expect("it can be read").expect("it is there");
        assert_eq!(whole(&found), whole(&job));
    }
}

pub(crate) fn events(readers: &Readers, seq: Seq, after: u32) -> Vec<Entry> {
    let places = readers.event_places(seq, after).expect("it can be read");
    let mut entries = readers.events_at(seq, &places).expect("it can be read");
    entries.extend(readers.ending(seq).expect("it can be read"));
    entries
}

/// Everything that a store holds, to check that a refused batch changed nothing.
fn everything(store: &Store, readers: &Readers) -> String {
    let loaded = store.load().expect("it loads");
    let page = readers.list(&Filter { limit: 1_000, ..Filter::default() }).expect("it can be read");
    let mut all = format!("{:?} {:?} {}\n", loaded.last_seq, loaded.standings, loaded.keys.len());
    for job in &page.jobs {
        let entries: Vec<String> = events(readers, job.seq(), 0).iter().map(whole_entry).collect();
        let violations = readers.violations(job.seq()).expect("it can be read");
        all += &format!("{} {entries:?} {violations:?}\n", whole(job));
    }
    all
}

#[test]
fn a_second_outcome_is_impossible_and_takes_its_whole_batch_with_it() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    let mut ended = rows::job(1);
    let first = end(&mut ended, Status::Completed, r#"{"status":"completed","outputs":1}"#);
    let jobs =
        [fresh(ended.clone(), DOCUMENT.as_bytes(), vec![first]), fresh(rows::job(2), DOCUMENT.as_bytes(), Vec::new())];
    store.commit(&batch(jobs)).expect("it commits");
    let before = everything(&store, &readers);
    for status in Status::ALL {
        let mut again = ended.clone();
        let second = end(&mut again, status, r#"{"status":"other"}"#);
        let mut other = rows::job(2);
        let started = note(&mut other, What::Started { attempt: 1, agent: "a".into() });
        let new = fresh(rows::job(3), DOCUMENT.as_bytes(), Vec::new());
        // The batch has something innocent both before and after the job in question.
        let mut bad = batch([stepped(again, vec![second]), stepped(other, vec![started]), new]);
        bad.agents.insert("a".into(), Standing { drained: true, ..Standing::default() });
        bad.violations.push((Seq(1), NOW, Violation { clause: "ALL-9", level: Level::Error, what: "never".into() }));
        assert!(store.commit(&bad).is_err());
        assert_eq!(everything(&store, &readers), before);
    }
    let mut other = rows::job(2);
    let started = note(&mut other, What::Started { attempt: 1, agent: "a".into() });
    store.commit(&batch([stepped(other, vec![started])])).expect("the store goes on");
    assert_eq!(events(&readers, Seq(2), 1).len(), 1);
    drop(store);
    let (store, readers) = open(&scratch);
    assert_eq!(store.load().expect("it loads").jobs.len(), 1);
    let kept = readers.job(ended.id()).expect("it can be read").expect("it is there");
    assert_eq!(whole(&kept), whole(&ended));
}

#[test]
fn two_outcomes_in_one_batch_are_as_impossible() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    let mut job = rows::job(1);
    let entries = vec![
        end(&mut job, Status::Completed, r#"{"status":"completed"}"#),
        end(&mut job, Status::Failed, r#"{"status":"failed"}"#),
    ];
    assert!(store.commit(&batch([fresh(job.clone(), DOCUMENT.as_bytes(), entries)])).is_err());
    assert!(readers.job(job.id()).expect("it can be read").is_none());
    // Nor may the same number be written twice.
    store.commit(&batch([fresh(rows::job(1), DOCUMENT.as_bytes(), Vec::new())])).expect("it commits");
    assert!(store.commit(&batch([fresh(rows::job(1), b"{}", Vec::new())])).is_err());
    assert_eq!(readers.document(Seq(1)).expect("it can be read").expect("it is there").0, DOCUMENT.as_bytes());
}

#[test]
fn documents_come_back_byte_for_byte() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    let every_byte: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    // Around the size of a page, where a row begins to need a second one.
    let sizes = [0, 1, 4_000, 4_050, 4_060, 4_061, 4_062, 4_090, 4_096, 4_097, 8_192, 100_000];
    let written = |(seq, bytes): (u64, &usize)| fresh(rows::job(seq), &every_byte[..*bytes], Vec::new());
    store.commit(&batch((1..).zip(&sizes).map(written))).expect("it commits");
    store.commit(&batch([fresh(rows::job(20), &every_byte.repeat(100), Vec::new())])).expect("it commits");
    for (seq, bytes) in (1..).zip(sizes) {
        let document = readers.document(Seq(seq)).expect("it can be read").expect("it is there");
        assert!(document.0 == every_byte[..bytes], "{bytes} bytes");
    }
    let large = readers.document(Seq(20)).expect("it can be read").expect("it is there");
    assert!(large.0 == every_byte.repeat(100));
}

#[test]
fn what_is_not_there_is_not_found() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    assert!(readers.list(&Filter { limit: 9, ..Filter::default() }).expect("it can be read").jobs.is_empty());
    store.commit(&batch([fresh(rows::job(1), DOCUMENT.as_bytes(), Vec::new())])).expect("it commits");
    // The right number, but with the random bits or the time of another id.
    let strangers = [
        JobId::new(Seq(1), NOW, 1),
        JobId::new(Seq(1), Time(NOW.0 + 1_000_000), 0x9e37_79b9),
        JobId::of_row(Seq(0), uuid::Uuid::nil()),
        JobId::of_row(Seq(SEQ_MAX), uuid::Uuid::max()),
        rows::id(2),
    ];
    for stranger in strangers {
        assert!(readers.job(stranger).expect("it can be read").is_none(), "{stranger}");
    }
    assert!(readers.job(rows::id(1)).expect("it can be read").is_some());
    for seq in [0, 2, SEQ_MAX, u64::MAX].map(Seq) {
        assert!(readers.job_at(seq).expect("it can be read").is_none());
        assert!(readers.document(seq).expect("it can be read").is_none());
        assert!(readers.ending(seq).expect("it can be read").is_none());
        assert!(readers.event_places(seq, 0).expect("it can be read").is_empty());
        assert!(readers.violations(seq).expect("it can be read").is_empty());
    }
    assert!(readers.ending(Seq(1)).expect("it can be read").is_none());
}

#[test]
fn violations_are_kept_by_job_in_order() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    let jobs = [1, 2].map(|seq| crate::rows::fresh(crate::rows::job(seq), b"{}", Vec::new()));
    store.commit(&crate::rows::batch(jobs)).expect("it commits");
    for round in 0..3 {
        let mut batch = Batch::default();
        for seq in [1, 2, 1] {
            let violation = Violation {
                clause: "ALL-9",
                level: Level::Error,
                what: "a result came again after the outcome".into(),
            };
            batch.violations.push((Seq(seq), Time(NOW.0 + round), violation));
        }
        store.commit(&batch).expect("it commits");
    }
    drop(store);
    let (_store, readers_anew) = open(&scratch);
    for readers in [readers, readers_anew] {
        let found = readers.violations(Seq(1)).expect("it can be read");
        assert!(found.iter().map(|found| found.at.0 - NOW.0).eq([0, 0, 1, 1, 2, 2]));
        assert!(found.iter().all(|found| found.clause == "ALL-9"));
        assert_eq!(readers.violations(Seq(2)).expect("it can be read").len(), 3);
    }
}

#[test]
fn standings_of_agents_survive_and_are_written_over() {
    let scratch = Scratch::new();
    let breakers = [
        Breaker::Closed { failures: 0 },
        Breaker::Closed { failures: 4 },
        Breaker::Open { until: Time(NOW.0 + 60_000_000) },
        Breaker::Open { until: Time::NEVER },
        Breaker::HalfOpen,
    ];
    // Each agent has each standing at some time.
    for turn in 0..2 * breakers.len() {
        let standing = |at: usize| Standing {
            breaker: breakers[(at + turn) % breakers.len()],
            drained: (at + turn).is_multiple_of(2),
        };
        let names: Vec<Arc<str>> = (0..breakers.len()).map(|at| format!("{at}{HARD}").into()).collect();
        let expected: Vec<(Arc<str>, Standing)> = names.into_iter().zip((0..).map(standing)).collect();
        {
            let (mut store, _) = open(&scratch);
            let batch = Batch { agents: expected.iter().cloned().collect(), ..Batch::default() };
            store.commit(&batch).expect("it commits");
        }
        let (store, _) = open(&scratch);
        let mut found = store.load().expect("it loads").standings;
        found.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(found, expected);
    }
}

#[test]
fn readers_see_what_is_committed_and_never_wait_for_the_writer() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    for seq in 1..=20 {
        store.commit(&batch([fresh(rows::job(seq), DOCUMENT.as_bytes(), Vec::new())])).expect("it commits");
        // At once, over more connections than are kept, from several threads.
        let seen = std::thread::scope(|scope| {
            let look = || readers.job(rows::id(seq)).expect("it can be read").is_some();
            let threads: Vec<_> = (0..12).map(|_| scope.spawn(look)).collect();
            threads.into_iter().all(|thread| thread.join().expect("nobody panics"))
        });
        assert!(seen);
    }
}

#[test]
fn an_empty_batch_writes_nothing() {
    let scratch = Scratch::new();
    let (mut store, _readers) = open(&scratch);
    let before = std::fs::metadata(scratch.log()).expect("the log is there").len();
    store.commit(&Batch::default()).expect("there is nothing to commit");
    assert_eq!(std::fs::metadata(scratch.log()).expect("the log is there").len(), before);
    let refused = Store::open(&scratch.options()).err();
    assert!(matches!(refused, Some(Fault::InUse { .. })));
}
