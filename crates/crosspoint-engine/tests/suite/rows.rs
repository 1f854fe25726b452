//! Jobs and batches for the store, made by hand: any job in any state, as the core would write it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::outcome::{Outcome, Status};
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::request::{Door, Key, Limits, Priority};
use crosspoint_contracts::time::Time;
use crosspoint_engine::core::{Batch, Command, Core, Mode, Origin, Room, Spec, Submission, Written};
use crosspoint_engine::event::{Entry, What};
use crosspoint_engine::id::{Ids, JobId, Seq};
use crosspoint_engine::job::{Ending, Job, Request, State};
use crosspoint_engine::keys::{Hash, Hashes, Keys};
use crosspoint_engine::machine::End;
use crosspoint_engine::policy::Policy;
use crosspoint_engine::retention::{Ended, Jumps, Rule};

/// When the jobs made here are accepted: a moment of 2026.
pub(crate) const NOW: Time = Time(1_770_000_000_123_456);

/// The document of every job for which a test gives no other.
pub(crate) const DOCUMENT: &str = r#"{"work":"w","input":{"a":1}}"#;

pub(crate) fn id(seq: u64) -> JobId {
    JobId::new(Seq(seq), NOW, seq.wrapping_mul(0x9e37_79b9))
}

pub(crate) fn request(seq: u64) -> Request {
    Request {
        id: id(seq),
        origin: None,
        door: Door::Native,
        caller: "".into(),
        request_id: format!("r{seq}").into(),
        key: Key::RequestId,
        work: "w".into(),
        pinned: None,
        addressed: None,
        priority: Priority::Normal,
        limits: Limits::default(),
        trace: None,
        echo: None,
        notify: None,
        accepted_at: NOW,
        input: 20..27,
    }
}

pub(crate) fn job(seq: u64) -> Job {
    Job::accepted(Arc::new(request(seq)))
}

pub(crate) fn hash(job: &Job) -> Option<Hash> {
    (job.request.key != Key::None).then(|| Hash(job.seq().0 ^ 0xf0f0_f0f0_f0f0_f0f0))
}

/// What is written of a new job. Only the core can make one, so the core is given the request and its job is then
/// replaced.
pub(crate) fn fresh(job: Job, document: &[u8], entries: Vec<Entry>) -> Written {
    // No other job is there that it could be a stage of.
    let request = Request { origin: None, ..Request::clone(&job.request) };
    let name = request.pinned.clone().unwrap_or_else(|| "a".into());
    let contract = "builtin".into();
    let spec = Spec {
        name,
        contract,
        agent_type: None,
        awaited: false,
        works: vec![request.work.clone()],
        concurrency: 0,
        waiting_max: 1,
        policy: Policy::default(),
    };
    let mut core = Core::new(Origin {
        agents: vec![spec],
        members: Vec::new(),
        present: BTreeMap::new(),
        grants: Vec::new(),
        standings: Vec::new(),
        jobs: Vec::new(),
        keys: Keys::default(),
        last_seq: Seq(0),
        ids: Ids::PLAIN,
        ended: Ended::new(Rule::FOR_EVER, Jumps::default()),
        unrepaired: Vec::new(),
        room: Room { jobs: 1, of_work: 1, of_agent: 1, of_caller: 1 },
        mode: Mode::Serve,
        end: End::Clean,
        visited: std::collections::BTreeSet::new(),
        alive_at: None,
        now: NOW,
    });
    let document = Block(Bytes::copy_from_slice(document));
    let hash = hash(&job);
    let submission = Submission {
        request,
        nameless: false,
        hashes: Hashes { key: hash, alias: None },
        others: Vec::new(),
        repeats: None,
        document,
        step: None,
    };
    let mut batch = Batch::default();
    core.apply(&Command::Submit(Arc::new(submission)), NOW, &mut batch);
    let (_, mut written) = batch.jobs.pop_first().expect("the core accepts it");
    written.job = Arc::new(job);
    written.entries = entries;
    written
}

/// What is written of a job that is already stored.
pub(crate) fn stepped(job: Job, entries: Vec<Entry>) -> Written {
    Written { job: Arc::new(job), accepted: None, entries }
}

pub(crate) fn batch(written: impl IntoIterator<Item = Written>) -> Batch {
    let mut batch = Batch::default();
    for written in written {
        batch.touched.insert(written.job.seq());
        batch.jobs.insert(written.job.seq(), written);
    }
    batch
}

pub(crate) fn outcome(status: Status, body: &str) -> Arc<Ending> {
    let body = Body::trusted(body.to_owned());
    let failed = |failure, repeat| {
        let failed = Failed::of(failure, Dispatched::Yes);
        Outcome::failed(Failed { details: Some(body.clone()), ..failed }, repeat)
    };
    let outcome = match status {
        Status::Completed => Outcome::completed(Success::of(body)),
        Status::Failed => failed(Failure::Timeout, Repeat::Unknown),
        Status::Cancelled => failed(Failure::Cancelled, Repeat::Never),
    };
    Arc::new(Ending::new(Time(NOW.0 + 9), outcome))
}

/// Appends an event to a job and returns it.
pub(crate) fn note(job: &mut Job, what: What) -> Entry {
    job.events += 1;
    Entry { n: job.events, at: Time(NOW.0 + i64::from(job.events)), what }
}

/// Ends a job and returns its last event.
pub(crate) fn end(job: &mut Job, status: Status, body: &str) -> Entry {
    let outcome = outcome(status, body);
    job.state = State::Ended(outcome.clone());
    note(job, What::Ended(outcome))
}

/// Everything about a job, including content, so that two jobs can be compared.
pub(crate) fn whole(job: &Job) -> String {
    let body = |body: &Body| body.get().to_owned();
    let state = match &job.state {
        State::Waiting { question, .. } => format!("asks {}", body(question.json())),
        State::Ended(ending) => format!("ended with {}", outcome_shown(ending)),
        State::Queued | State::Running(_) | State::Retrying { .. } | State::Poisoned => String::new(),
    };
    let progress = job.progress.as_ref().map(|progress| (progress.percent, progress.step.as_ref().map(body)));
    let answers: Vec<(String, String)> =
        job.answers.iter().map(|answered| (body(answered.question.json()), body(&answered.answer))).collect();
    let memory = job.memory.as_ref().map(|memory| String::from_utf8_lossy(&memory.0));
    format!("{job:#?}\n{state}\n{progress:?}\n{answers:?}\n{memory:?}")
}

/// Everything about an event, including content.
pub(crate) fn whole_entry(entry: &Entry) -> String {
    let body = |body: &Body| body.get().to_owned();
    let text = match &entry.what {
        What::Progress(progress) => {
            let document = progress.document.as_ref().map(|said| (said.kind, body(&said.document)));
            format!("{:?} {:?} {document:?}", progress.percent, progress.step.as_ref().map(body))
        }
        What::Output { block, .. } => String::from_utf8_lossy(&block.0).into_owned(),
        What::Asked { question } => body(question.json()),
        What::Answered { answer } => body(answer),
        What::Step { step } => body(step),
        What::Ended(ending) => outcome_shown(ending).to_string(),
        What::Accepted | What::Started { .. } | What::Retrying { .. } | What::Interrupted { .. } => String::new(),
    };
    format!("{} {} {:?} {text}", entry.n, entry.what.name(), entry)
}

/// The parts of an outcome, including content.
pub(crate) fn outcome_shown(ending: &Ending) -> serde_json::Value {
    let json = |body: &Body| serde_json::from_str::<serde_json::Value>(body.get()).expect("a part is JSON");
    let mut shown = serde_json::json!({
        "status": ending.status.name(),
        "outputs": ending.outputs.as_ref().map(json),
        "artifacts": ending.artifacts.as_ref().map_or(serde_json::json!([]), json),
    });
    if let Some(reason) = &ending.reason {
        let sentence = || reason.failure.sentence().into();
        shown["failure"] = serde_json::json!({
            "code": reason.failure.name(),
            "message": reason.message.as_ref().map_or_else(sentence, json),
            "repeat": reason.repeat.name(),
        });
        for (name, part) in [("details", &reason.details), ("own_code", &reason.code)] {
            part.iter().for_each(|part| shown["failure"][name] = json(part));
        }
    }
    for (name, part) in [("text", ending.text()), ("usage", ending.usage.clone())] {
        part.iter().for_each(|part| shown[name] = json(part));
    }
    if let Some(said) = &ending.document {
        shown["said"] = serde_json::json!({"kind": said.kind.name(), "document": json(&said.document)});
    }
    shown
}
