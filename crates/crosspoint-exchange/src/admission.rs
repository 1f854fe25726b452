//! Admission of work: one way for the doors of all contracts, over any transport.
//!
//! A document and what came beside it go in. A new job, an existing job, or a refusal comes out. Nothing here knows
//! HTTP: [`document`](super::refusal::document) writes a refusal in the caller's contract, and the server
//! chooses its status.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::exchange::{Differs, Exchange};
use crosspoint_contracts::failure::{Failure, Repeat};
use crosspoint_contracts::request::{Door, NewJob};
use crosspoint_contracts::{Contract, Finding, Report};

pub use super::caller::Caller;

use super::answer::Beside;
use super::backend::{Agent, Backend, Followed, Submitted, Unaccepted};
use super::echo::Echo;
use super::incoming::{self, Incoming};
use super::refusal::{Refusal, types_for, works, works_like};
use super::trace::Trace;

/// Longest name, request id or key, in bytes. All of them are compared, shown and logged whole.
pub const NAME_BYTES_MAX: usize = 512;

/// What came beside the document.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// The caller that sent the request.
    pub caller: Caller,
    /// `Idempotency-Key`
    pub key: Option<Box<str>>,
    /// `traceparent` and `tracestate`
    pub trace: Option<Trace>,
    /// The work that the caller means by the name in the document.
    pub work: Option<String>,
    /// The agent that the caller names beside the document.
    pub agent: Option<Arc<str>>,
    /// How long its caller waits.
    pub wait: Option<Duration>,
    /// Types of agents that the operator added to those of the contract.
    pub agent_types: Arc<[Box<str>]>,
    /// The recipient that is to be told of the outcome.
    pub notify: Option<Arc<str>>,
}

/// A request that was read and can be submitted.
pub struct Reading {
    incoming: Incoming,
    caller: Caller,
    contract: Contract,
    document: Bytes,
    /// The work that is meant, where the caller says it beside the document.
    meant: Option<String>,
    /// The agent that the caller names beside the document.
    named: Option<Arc<str>>,
    wait: Option<Duration>,
    agent_types: Arc<[Box<str>]>,
}

/// A request that became a job, and what its caller gets to see of it.
pub struct Admitted<J> {
    /// The job.
    pub job: J,
    /// Whether the job existed before this request.
    pub joined: bool,
    /// What the caller is told beside the job.
    pub beside: Beside,
    /// How long the caller waits for the outcome.
    pub wait: Option<Duration>,
}

impl Reading {
    /// Returns the job that the request asks for, for a backend that is not asked by [`submit`].
    pub fn into_new(self) -> NewJob {
        self.incoming.new
    }
}

/// Reads a request. A refusal lists all mistakes at once.
pub fn read(contract: Contract, document: &Bytes, headers: Headers) -> Result<Reading, Refusal> {
    let (meant, wait, agent_types) = (headers.work.clone(), headers.wait, headers.agent_types.clone());
    let (caller, named) = (headers.caller.clone(), headers.agent.clone());
    let incoming = read_incoming(contract, document, headers);
    let incoming = incoming.map_err(|refusal| about(refusal, contract, document, &agent_types))?;
    Ok(Reading { incoming, caller, contract, document: document.clone(), meant, named, wait, agent_types })
}

/// Makes a job of a request that was read, or finds the job that it repeats.
pub async fn submit<B: Backend>(backend: &B, reading: Reading) -> Result<Admitted<B::Job>, Refusal> {
    let Reading { incoming, caller, contract, document, meant, named, wait, agent_types } = reading;
    let exchange = contract.exchange();
    let warnings = incoming.warnings();
    let Incoming { new, is_translated, .. } = incoming;
    let (request_id, work) = (new.request_id.clone().unwrap_or_default(), new.work.clone());
    let echo = new.echo.clone();
    let submitted = if exchange.work_may_name_agent {
        submit_led((backend, &caller), exchange, new, meant.as_deref()).await
    } else {
        backend.submit(&caller, new).await
    };
    let submitted = submitted.map_err(|why| {
        let agents = backend.agents();
        let refusal = match &named {
            Some(named) => unaccepted_by::<B>(&agents, exchange, why, &work, named),
            None => unaccepted::<B>(&agents, exchange, why, &work, meant.is_some()),
        };
        about(refusal.knowing(&agents), contract, &document, &agent_types)
    })?;
    let (job, joined) = match submitted {
        Submitted::New(job) => (job, false),
        Submitted::Repeat(job) => (job, true),
    };
    let (known_as, echo) = {
        let now = job.now();
        let known = B::Job::snapshot(&now);
        let known_as = (!request_id.is_empty() && *request_id != *known.request_id).then_some(request_id);
        (known_as, echo.filter(|echo| known.echo != Some(&**echo)))
    };
    Ok(Admitted { job, joined, beside: Beside { known_as, echo, warnings, is_translated, stuck: None }, wait })
}

/// RUN-5.2: a refusal names the caller's own id of the request and its work, and repeats what every answer repeats,
/// where they could be read. `agent_types` are the types that the operator added.
pub fn about(refusal: Refusal, contract: Contract, document: &[u8], agent_types: &[Box<str>]) -> Refusal {
    let exchange = contract.exchange();
    let [request_id, work] = incoming::names_in(document, [exchange.id, exchange.work]);
    refusal.of_request(request_id).of_work(work).echoing(Echo::of(contract, document, agent_types))
}

fn read_incoming(contract: Contract, document: &Bytes, headers: Headers) -> Result<Incoming, Refusal> {
    let exchange = contract.exchange();
    let incoming = incoming::read(contract, document, headers);
    let incoming = incoming.map_err(|report| unspoken(exchange, malformed(exchange, *report), document))?;
    if let Some(clause) = exchange.refusing.empty_id
        && incoming.new.request_id.as_deref().is_none_or(str::is_empty)
    {
        let refusal = Refusal::invalid(format!("`{}` is empty", exchange.id), "use a UUID");
        return Err(refusal.clause(clause).at(format!("/{}", exchange.id)));
    }
    match incoming.name_over(NAME_BYTES_MAX) {
        Some(pointer) => Err(too_long(exchange, pointer)),
        None => Ok(incoming),
    }
}

/// Refuses a document that breaks its contract. The refusal is for one mistake, and the others are listed with it
/// (RUN-5.2). A version that is not spoken comes first, because the rest may be right in that version. Mistakes in the
/// document itself come before mistakes in its delegation chain.
fn malformed(exchange: &Exchange, report: Report) -> Refusal {
    let kind = exchange.request;
    let malformed = exchange.refusing.malformed;
    let rank = |finding: &Finding| match malformed(finding).0 {
        Failure::Unsupported => 0,
        Failure::Invalid => 1,
        Failure::Timeout
        | Failure::Unavailable
        | Failure::Unauthenticated
        | Failure::ResourceLimit
        | Failure::AgentFailed
        | Failure::Cancelled
        | Failure::Delegation
        | Failure::Conflict
        | Failure::BrokenContract
        | Failure::Internal => 2,
    };
    let first = report.findings.iter().min_by_key(|finding| rank(finding));
    let Some(finding) = first else {
        let refusal = Refusal::invalid(format!("the body is no {kind}"), format!("see /schemas/{kind}.json"));
        return refusal.because(report);
    };
    let (failure, code) = malformed(finding);
    let (message, hint) = (format!("{}{}", finding.message, incoming::one_of_all(&report)), finding.hint.clone());
    let refusal = match failure {
        Failure::Delegation => Refusal::delegation(message, hint),
        Failure::Unsupported => Refusal::unsupported(message, hint),
        Failure::Invalid
        | Failure::Timeout
        | Failure::Unavailable
        | Failure::Unauthenticated
        | Failure::ResourceLimit
        | Failure::AgentFailed
        | Failure::Cancelled
        | Failure::Conflict
        | Failure::BrokenContract
        | Failure::Internal => Refusal::invalid(message, hint),
    };
    let refusal = code.into_iter().fold(refusal, Refusal::coded);
    let refusal = refusal.clause(finding.clause.id).at(finding.pointer.clone());
    fielded(exchange, refusal).because(report)
}

/// Names the versions of both sides, if the request is in one that is not spoken.
fn unspoken(exchange: &Exchange, refusal: Refusal, document: &[u8]) -> Refusal {
    match &exchange.refusing.unspoken {
        Some(unspoken) if refusal.failure() == Failure::Unsupported => {
            let [version] = incoming::names_in(document, [unspoken.member]);
            refusal.saying((unspoken.words)(version.as_deref()))
        }
        Some(_) | None => refusal,
    }
}

/// Refuses a name that is longer than the server takes. No clause says so: the limit is ours.
fn too_long(exchange: &Exchange, pointer: &'static str) -> Refusal {
    let message = format!("`{}` has more than {NAME_BYTES_MAX} bytes", &pointer[1..]);
    let hint =
        "give it a shorter name: the contract sets no limit, but this server compares, shows and logs names whole";
    let refusal = exchange.refusing.too_long.into_iter().fold(Refusal::invalid(message, hint), Refusal::coded);
    fielded(exchange, refusal.at(pointer))
}

fn fielded(exchange: &Exchange, refusal: Refusal) -> Refusal {
    if exchange.refusing.names_fields { refusal.naming_field() } else { refusal }
}

/// A refusal in the words of the contract. Backends know jobs; callers know the members of their own request.
fn unaccepted<B: Backend>(
    agents: &[Agent],
    exchange: &Exchange,
    why: Unaccepted<B::Job>,
    work: &str,
    was_meant: bool,
) -> Refusal {
    let refusing = &exchange.refusing;
    let wording = match &why {
        Unaccepted::UnknownWork if exchange.work_may_name_agent => {
            return unknown_name(agents, exchange, work, was_meant);
        }
        Unaccepted::UnknownWork => {
            let refusal = why.refusal(agents).with_repeat(Repeat::Never, works_like(agents, work));
            return fielded(exchange, refusal.worded(refusing.unknown_work));
        }
        Unaccepted::UnknownAgent => refusing.unknown_agent,
        Unaccepted::NotItsWork => refusing.not_its_work,
        Unaccepted::WrongType => {
            let refusal = fielded(exchange, why.refusal(agents).worded(refusing.wrong_type));
            let hint = types_for(agents, work).map(|types| format!("agents of these types take it: {types}"));
            return match hint {
                Some(hint) => refusal.with_repeat(Repeat::Never, hint),
                None => refusal,
            };
        }
        Unaccepted::Conflict(job) => {
            let now = job.now();
            let first = B::Job::snapshot(&now);
            let differs = if *first.work == *work { Differs::Input } else { Differs::Work };
            let own = conflict_without_jobs::<B>(first.request_id);
            let refusal = own.unwrap_or_else(|| why.refusal(agents));
            return fielded(exchange, refusal.worded((refusing.conflict)(differs)));
        }
        Unaccepted::TwoJobs => (refusing.conflict)(Differs::Job),
        Unaccepted::TooManyNames => (refusing.conflict)(Differs::Names),
        Unaccepted::Refused(_) => return why.refusal(agents),
        Unaccepted::Mismatch(report) => return malformed(exchange, report.clone()),
    };
    fielded(exchange, why.refusal(agents).worded(wording))
}

/// Returns the refusal where callers know no jobs: by the id of the request that came first.
fn conflict_without_jobs<B: Backend>(first: &str) -> Option<Refusal> {
    let message = || format!("this request key is that of request {first}, which has other work or another input");
    let hint = "use a new request id or Idempotency-Key for other work";
    B::JOBS_AT.is_none().then(|| Refusal::conflict(message(), hint).clause("ALL-1"))
}

/// The same, where the request names the agent beside the document: an agent that is not there is a place that is not
/// there, and the works of one that is there are what may be asked of it.
fn unaccepted_by<B: Backend>(
    agents: &[Agent],
    exchange: &Exchange,
    why: Unaccepted<B::Job>,
    work: &str,
    named: &str,
) -> Refusal {
    let is_unknown = matches!(why, Unaccepted::UnknownAgent);
    let its_work = matches!(why, Unaccepted::NotItsWork | Unaccepted::UnknownWork)
        .then(|| agents.iter().find(|agent| *agent.name == *named))
        .flatten();
    let refusal = unaccepted::<B>(agents, exchange, why, work, false);
    match its_work {
        Some(agent) => refusal.with_repeat(Repeat::Never, format!("it takes {}", works(std::slice::from_ref(agent)))),
        None if is_unknown => refusal.nowhere(),
        None => refusal,
    }
}

/// The name is neither that of a work nor that of an agent.
fn unknown_name(agents: &[Agent], exchange: &Exchange, name: &str, was_meant: bool) -> Refusal {
    let hint = if was_meant { format!("known works: {}", works(agents)) } else { works_like(agents, name) };
    let wording = exchange.refusing.unknown_work;
    let message = match was_meant {
        false => format!("`{}` is no work and no agent's name", exchange.work),
        true => "the query's `work` is no work and no agent's name".to_owned(),
    };
    let at = wording.at.filter(|_| !was_meant);
    Refusal::unsupported(message, hint).worded(crosspoint_contracts::exchange::Wording { at, ..wording })
}

/// Makes a job of a request whose work may be the name of an agent, or finds the job that it repeats.
async fn submit_led<B: Backend>(
    (backend, caller): (&B, &Caller),
    exchange: &Exchange,
    mut new: NewJob,
    meant: Option<&str>,
) -> Result<Submitted<B::Job>, Unaccepted<B::Job>> {
    let called = new.work.clone();
    if let Some(work) = meant {
        new.work = work.into();
    }
    lead(&backend.agents(), &mut new);
    let submitted = backend.submit(caller, new.clone()).await;
    let known = match &submitted {
        Ok(Submitted::Repeat(job)) | Err(Unaccepted::Conflict(job)) => job.clone(),
        Ok(Submitted::New(_)) | Err(_) => return submitted,
    };
    let (work, is_led_alike) = {
        let now = known.now();
        let snapshot = B::Job::snapshot(&now);
        let is_led_alike = snapshot.door != new.door || snapshot.pinned == new.agent.as_deref();
        (Arc::<str>::from(snapshot.work), is_led_alike)
    };
    let is_same_name = meant.is_none() && is_called(backend, exchange, new.door, &known, &called).await;
    match submitted {
        // A name may lead elsewhere now than it did when the job was made. That is no other request.
        Err(Unaccepted::Conflict(_)) if is_same_name => {
            new.work = work;
            backend.submit(caller, new).await
        }
        // And two agents that take the same work are two names.
        Ok(Submitted::Repeat(_)) if !is_same_name && !is_led_alike => Err(Unaccepted::Conflict(known)),
        other => other,
    }
}

/// A name is that of a work, or else that of an agent, which then gets the job.
fn lead(agents: &[Agent], new: &mut NewJob) {
    if agents.iter().any(|agent| agent.works.contains(&new.work)) {
        return;
    }
    let named = agents.iter().find(|agent| agent.name == new.work);
    if let Some((agent, work)) = named.and_then(|agent| Some((agent, agent.works.first()?))) {
        (new.agent, new.work) = (Some(agent.name.clone()), work.clone());
    }
}

/// Whether the request that a job came as calls its work by this name.
async fn is_called<B: Backend>(backend: &B, exchange: &Exchange, door: Door, job: &B::Job, name: &str) -> bool {
    if B::Job::snapshot(&job.now()).door != door {
        return false;
    }
    let Some(document) = backend.document(job).await else { return false };
    let [called] = incoming::names_in(&document.0, [exchange.work]);
    called.as_deref() == Some(name)
}
