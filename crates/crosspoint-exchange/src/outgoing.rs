//! The request to an agent: the caller's document in the agent's contract.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body, Json};
use crosspoint_contracts::exchange::{Exchange, Place};
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::job::{Canonical, Home};
use crosspoint_contracts::json::{Tape, Value, quoted};
use crosspoint_contracts::map::{Carrying, WriteContext};
use crosspoint_contracts::reply::{Failed, Question};
use crosspoint_contracts::request::{Door, Priority};
use crosspoint_contracts::time::Time;
use crosspoint_contracts::translate::{self, Homeless};
use crosspoint_contracts::{Contract, NATIVE_REQUEST, Options, Reading, delegation, read_jobs};
use uuid::Uuid;

use super::incoming::{is_for_type, names_of};
use super::trace::Trace;

/// The name under which a person's answer is carried.
pub const ANSWER: &str = "answer";

/// The name under which the question is carried that a person has answered, as the agent wrote it.
pub const ANSWER_TO: &str = "answer_to";

/// What the operator has configured about requests to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOptions {
    /// The contract that the agent speaks.
    pub contract: Contract,
    /// The agent's name.
    pub agent: String,
    /// The name of this server in a delegation chain.
    pub server: String,
    /// The `mode` if the caller gives none (RUN-2).
    pub mode: Option<String>,
    /// Whether members without a field in the agent's contract are carried.
    pub carry: bool,
    /// The agent's type, if it has one (MSG-18).
    pub agent_type: Option<String>,
    /// Types of agents that the operator added to those of the contracts.
    pub agent_types: Arc<[Box<str>]>,
}

/// One attempt of a job, as it is given to an agent.
#[derive(Clone, Debug)]
pub struct Assignment<'a> {
    /// The job's id, which the agent knows the request by (ALL-2).
    pub id: Uuid,
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// The door that the job came through.
    pub door: Door,
    /// The caller's id for the job.
    pub request_id: &'a str,
    /// The work that is asked for.
    pub work: &'a str,
    /// Which jobs go first.
    pub priority: Priority,
    /// Longest time that the caller allows for the whole job.
    pub seconds_max: Option<Duration>,
    /// How much of that time is left.
    pub time_left: Option<Duration>,
    /// The job's place in its caller's trace, as W3C Trace Context spells it.
    pub trace: Option<&'a str>,
    /// When the job was accepted.
    pub accepted_at: Time,
    /// The document that the job came as.
    pub document: &'a Block,
    /// The input of a job that came through the native door; `None` if it cannot be read.
    pub input: Option<Bytes>,
    /// The id of the message, in contracts where each message has one: a new one for each sending (MSG-5.2).
    pub message_id: Uuid,
    /// The time of sending.
    pub now: Time,
    /// The question of an agent that has the request already, and a person's answer to it, for contracts that have no
    /// other place for it.
    pub answer: Option<(&'a Question, &'a Body)>,
}

/// A request on its way to an agent.
pub struct Outgoing {
    /// The document.
    pub text: Bytes,
    /// The span of this attempt.
    pub trace: Trace,
    /// What could not be written because carrying is off: names of known members, and a count of the caller's own
    /// members.
    pub lost: Option<String>,
}

/// Writes the request of one attempt.
///
/// Every attempt carries the job's id as the id of the request (ALL-2), the attempt's span below the caller's (TASK-8),
/// this server at the end of the delegation chain (TASK-9), and what is left of the caller's time.
pub fn request(job: &Assignment<'_>, options: &AgentOptions) -> Result<Outgoing, Failed> {
    let Asking { mut canonical, addressed, is_for_type, types } = canonical(job, options)?;
    let trace = Trace::of_attempt(job.id, job.trace, job.attempt);
    let exchange = options.contract.exchange();
    if exchange.request_has.contains(&Home::Trace) || canonical.get(Home::Trace).is_some() {
        trace_along(&mut canonical, &trace, job.trace.is_some());
    }
    delegate(&mut canonical, options, is_for_type)?;
    if let Some(left) = job.time_left {
        hand_on(&mut canonical, left);
    }
    if exchange.request_has.contains(&Home::CreatedAt) && canonical.get(Home::CreatedAt).is_none() {
        canonical.put(Home::CreatedAt, Json::string(&job.accepted_at.to_string()));
    }
    if let Some(mode) = options.mode.as_ref().filter(|_| canonical.get(Home::Mode).is_none()) {
        canonical.put(Home::Mode, Json::string(mode));
    }
    if let Some((question, answer)) = job.answer {
        canonical.place(options.contract, Place::Carried(ANSWER), Json::new(answer.get()));
        canonical.place(options.contract, Place::Carried(ANSWER_TO), Json::new(question.json().get()));
    }
    let now = job.now.to_string();
    let plain = super::write_context(job.id, &now);
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    let context = WriteContext {
        message_id: job.message_id,
        known_as: Some(job.id),
        carrying: if options.carry { Carrying::On } else { Carrying::Off },
        agent_types: &types,
        agent_type: options.agent_type.as_deref().or(addressed.as_deref()).unwrap_or(plain.agent_type),
        ..plain
    };
    let written = translate::write(&canonical, options.contract, &context)
        .map_err(|_| not_sent(Failure::Invalid, "The request cannot be written in the agent's contract."))?;
    let lost = if options.carry { None } else { lost(&written.homeless) };
    Ok(Outgoing { text: written.into_text().into(), trace, lost })
}

/// What a caller asks for.
struct Asking<'d> {
    canonical: Canonical<'d>,
    /// The type of agent that the work is for.
    addressed: Option<String>,
    /// Whether the target is a type of agents, and no agent.
    is_for_type: bool,
    /// Types of agents that the contracts themselves do not have.
    types: Vec<String>,
}

/// Returns the caller's document as a canonical job.
fn canonical<'d>(job: &Assignment<'d>, options: &AgentOptions) -> Result<Asking<'d>, Failed> {
    let mut types: Vec<String> = options.agent_types.iter().map(ToString::to_string).collect();
    types.extend(options.agent_type.clone());
    // A job that came as no document of a contract is described by its own fields.
    let Some(contract) = job.door.contract() else {
        return Ok(Asking { canonical: native(job)?, addressed: None, is_for_type: false, types });
    };
    let exchange = contract.exchange();
    let (mut reading, mut jobs) = read(job, exchange, &types);
    if jobs.is_empty() && !exchange.types.is_empty() {
        // The types that the document names were known when it arrived, even if the operator has removed them since.
        types.extend(names_of(&job.document.0, exchange.types).into_iter().flatten());
        (reading, jobs) = read(job, exchange, &types);
    }
    // The document was valid when it arrived. Only a store that was changed from outside can hold another.
    let unreadable = || not_sent(Failure::Internal, "The stored document cannot be read.");
    let mut canonical = jobs.into_iter().next().ok_or_else(unreadable)?;
    // BRIDGE-125: the caller's name for an agent may lead to a work of another name.
    if canonical.work().is_none_or(|work| work != *job.work) {
        canonical.put(Home::Work, Json::string(job.work));
    }
    let target = canonical.get(Home::Target).and_then(Json::text);
    let asked = reading.document.as_ref().and_then(exchange.asked);
    let addressed = asked.and_then(|asked| asked.addressed).filter(|to| target.as_ref() == Some(to));
    let addressed = addressed.map(Cow::into_owned);
    Ok(Asking { is_for_type: is_for_type(&canonical), canonical, addressed, types })
}

/// Reads the caller's document, in which agents of these types may be named.
fn read<'d>(job: &Assignment<'d>, exchange: &Exchange, types: &[String]) -> (Reading<'d>, Vec<Canonical<'d>>) {
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    let options = Options { kind: Some(exchange.request), agent_types: &types, ..Options::default() };
    read_jobs(&job.document.0, &options)
}

fn native<'d>(job: &Assignment<'d>) -> Result<Canonical<'d>, Failed> {
    let unreadable = || not_sent(Failure::Internal, "The stored input cannot be read.");
    let input = job.input.clone().ok_or_else(unreadable)?;
    let input = String::from_utf8(input.into()).map_err(|_| unreadable())?;
    let mut canonical = Canonical::made(NATIVE_REQUEST, None);
    canonical.put(Home::RequestId, Json::string(job.request_id));
    canonical.put(Home::Work, Json::string(job.work));
    if job.priority != Priority::default() {
        canonical.put(Home::Priority, Json::string(job.priority.name()));
    }
    if let Some(total) = job.seconds_max {
        canonical.put(Home::SecondsMax, Json::new(total.as_secs_f64().to_string()));
    }
    // ALL-8: agents of these contracts get objects.
    match input.trim_start().as_bytes().first() {
        Some(b'{') => canonical.put(Home::Input, Json::new(input)),
        Some(b'"') => canonical.put(Home::Prompt, Json::new(input)),
        Some(_) | None => canonical.put(Home::Input, Json::new(format!("{{\"input\":{input}}}"))),
    };
    Ok(canonical)
}

/// TASK-8: continues the trace, one span deeper. If the caller's ids have another form and no header came, they stay.
fn trace_along(canonical: &mut Canonical<'_>, trace: &Trace, followed: bool) {
    if followed || canonical.get(Home::Trace).is_none() {
        canonical.put(Home::Trace, Json::string(&trace.trace_id));
    }
    canonical.put(Home::Span, Json::string(&trace.span_id));
}

/// TASK-9: adds this server to the chain, and hands the work to the agent. The target of work that is for a type of
/// agents is that type.
fn delegate(canonical: &mut Canonical<'_>, options: &AgentOptions, is_for_type: bool) -> Result<(), Failed> {
    let mut chain = chain(canonical);
    if chain.contains(&options.agent) {
        return Err(refused(delegation::CYCLE, "The agent is in the delegation chain already."));
    }
    if chain.len() >= delegation::CHAIN_MAX {
        return Err(refused(delegation::TOO_LONG, "The delegation chain is as long as it may be."));
    }
    chain.push(options.server.clone());
    let chain: Vec<String> = chain.iter().map(|name| quoted(name)).collect();
    canonical.put(Home::DelegationChain, Json::new(format!("[{}]", chain.join(","))));
    // An agent that the caller named knows itself by that name. Other agents may not know our name for them.
    if canonical.get(Home::Target).is_some() && !is_for_type {
        canonical.put(Home::Target, Json::string(&options.agent));
    }
    Ok(())
}

/// Returns the agents that have had the work.
fn chain(canonical: &Canonical<'_>) -> Vec<String> {
    let Some(held) = canonical.get(Home::DelegationChain) else { return Vec::new() };
    let Ok(tape) = Tape::scan(held.get().as_bytes()) else { return Vec::new() };
    let names = tape.root().into_iter().flat_map(Value::items);
    names.filter_map(|name| Some(name.text()?.decode().into_owned())).collect()
}

/// Writes what is left of the caller's time, in whole seconds. The caller's own number stays if no whole second has
/// passed.
fn hand_on(canonical: &mut Canonical<'_>, left: Duration) {
    let given: Option<f64> = canonical.get(Home::SecondsMax).and_then(|held| held.get().parse().ok());
    let left = left.as_secs_f64().ceil().max(1.0);
    // 0 means no limit, as it did when the request was read.
    if given.is_none_or(|given| given > left || given == 0.0) {
        canonical.put(Home::SecondsMax, Json::new(left.to_string()));
    }
}

/// Describes what was lost. Names of a caller's own members may be content, so they are only counted.
fn lost(homeless: &[Homeless]) -> Option<String> {
    let mut all: Vec<&str> = Vec::new();
    let mut theirs = 0_usize;
    for one in homeless {
        match one {
            // The agent knows the request by the job's id.
            Homeless::Known(name) if [Home::RequestId, Home::TaskId].iter().any(|id| *name == id.name()) => {}
            Homeless::Known(name) => all.push(name),
            Homeless::Own(_) => theirs += 1,
        }
    }
    let theirs = (theirs > 0).then(|| format!("{theirs} members that are not known"));
    all.extend(theirs.as_deref());
    (!all.is_empty()).then(|| format!("not carried, because the agent's configuration says so: {}", all.join(", ")))
}

fn refused(code: &str, message: &str) -> Failed {
    not_sent(Failure::Delegation, message).coded(code)
}

/// A failure before anything was sent.
fn not_sent(failure: Failure, message: &str) -> Failed {
    Failed::said(failure, Dispatched::No, message)
}
