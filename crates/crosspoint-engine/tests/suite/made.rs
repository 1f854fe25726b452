//! Short constructors of jobs, policies and events for tests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Progress, Question, Success};
use crosspoint_contracts::request::{Door, Key, Limits, Priority, Schedule};
use crosspoint_contracts::time::Time;
use crosspoint_engine::event::What;
use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::job::{Job, Request};
use crosspoint_engine::machine::{Action, Event, Step, step};
use crosspoint_engine::policy::{Policy, Recovery, Repeats};

/// When all stories begin.
pub(crate) const T0: Time = Time(1_700_000_000_000_000);

/// The time `millis` milliseconds into the story.
pub(crate) fn at(millis: u64) -> Time {
    T0.plus(Duration::from_millis(millis))
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An agent that may be silent for 30 s and be asked again, and whose jobs may take 100 s and print 10 bytes.
pub(crate) const POLICY: Policy = Policy {
    silence: Some(Duration::from_secs(30)),
    total: Duration::from_secs(100),
    repeats: Repeats::Always,
    recovery: Recovery::Rerun,
    take_up: Duration::from_secs(20),
    cut_short_max: None,
    schedule: Schedule::DEFAULT,
    output_bytes_max: 10,
};

pub(crate) fn request(seq: u64, work: &str) -> Request {
    Request {
        id: JobId::new(Seq(seq), T0, seq),
        origin: None,
        door: Door::Native,
        caller: "".into(),
        request_id: format!("r{seq}").into(),
        key: Key::RequestId,
        work: work.into(),
        pinned: None,
        addressed: None,
        priority: Priority::Normal,
        limits: Limits::default(),
        trace: None,
        echo: None,
        notify: None,
        accepted_at: T0,
        input: 0..0,
    }
}

pub(crate) fn job() -> Job {
    Job::accepted(Arc::new(request(1, "work")))
}

pub(crate) fn job_with(limits: Limits) -> Job {
    Job::accepted(Arc::new(Request { limits, ..request(1, "work") }))
}

pub(crate) fn body(text: &str) -> Body {
    Body::of(&text)
}

pub(crate) fn block(text: &'static str) -> Block {
    Block(Bytes::from_static(text.as_bytes()))
}

pub(crate) fn start() -> Event {
    Event::Start { agent: "agent".into() }
}

pub(crate) fn done(attempt: u32) -> Event {
    done_with(attempt, "done")
}

pub(crate) fn done_with(attempt: u32, outputs: &str) -> Event {
    Event::Finish { attempt, result: Ok(Success::of(body(outputs))) }
}

pub(crate) fn failed(attempt: u32, failure: Failure, dispatched: Dispatched) -> Event {
    Event::Finish { attempt, result: Err(Failed::of(failure, dispatched)) }
}

/// The attempt ends because the worker that ran it died.
pub(crate) fn dead(attempt: u32) -> Event {
    Event::Finish { attempt, result: Err(Failed::dead("It died.")) }
}

pub(crate) fn ask(attempt: u32, question: &str) -> Event {
    Event::Ask { attempt, question: Question::read(body(question)), answered: None }
}

pub(crate) fn answer(text: &str) -> Event {
    Event::Answer { answer: body(text), to: None }
}

pub(crate) fn progress(attempt: u32, percent: f64) -> Event {
    Event::Progress { attempt, progress: Progress { percent: Some(percent), step: None, document: None, began: None } }
}

pub(crate) fn output(attempt: u32, offset: u64, text: &'static str) -> Event {
    Event::Output { attempt, offset, block: block(text) }
}

/// Takes one step that must not be refused.
pub(crate) fn go(job: &Job, event: Event, now: Time, policy: &Policy) -> Step {
    step(job, event, now, policy).expect("the story has no refusals")
}

/// The job after some events, each at its time.
pub(crate) fn after(job: Job, events: impl IntoIterator<Item = (Time, Event)>, policy: &Policy) -> Job {
    events.into_iter().fold(job, |job, (now, event)| go(&job, event, now, policy).job)
}

/// The entries that a step stores, as names with the details that tell them apart.
pub(crate) fn entries(step: &Step) -> Vec<String> {
    step.entries.iter().map(|entry| format!("{} {}", entry.n, told(&entry.what))).collect()
}

fn told(what: &What) -> String {
    let name = what.name();
    match what {
        What::Accepted => name.to_owned(),
        What::Started { attempt, agent } => format!("{name}({attempt}, {agent})"),
        What::Progress(progress) => format!("{name}({:?})", progress.percent),
        What::Output { attempt, offset, block } => format!("{name}({attempt}, {offset}+{})", block.0.len()),
        What::Asked { question } => format!("{name}({})", question.json().get()),
        What::Answered { answer } => format!("{name}({})", answer.get()),
        What::Step { step } => format!("{name}({})", step.get()),
        What::Retrying { attempt, failure, until } => {
            format!("{name}({attempt}, {failure}, {:.1} s)", until.since(T0).as_secs_f64())
        }
        What::Interrupted { attempt } => format!("{name}({attempt})"),
        What::Ended(outcome) => match outcome.why() {
            Some((failure, repeat)) => format!("{name}({failure}, repeat {})", repeat.name()),
            None => name.to_owned(),
        },
    }
}

/// The actions that a step asks for.
pub(crate) fn actions(step: &Step) -> Vec<String> {
    let one = |action: &Action| match action {
        Action::Dispatch { attempt } => format!("dispatch {attempt}"),
        Action::Resume { attempt } => format!("resume {attempt}"),
        Action::Stop { attempt } => format!("stop {attempt}"),
        Action::Deliver { attempt, answer } => format!("deliver {attempt} {}", answer.get()),
        Action::Mark { agent, mark } => format!("mark {agent} {mark:?}"),
    };
    step.actions.iter().map(one).collect()
}
