//! Admission of work: one way for the doors of all contracts, over any transport.
//!
//! A document and what came beside it go in. A new job, an existing job, or a refusal comes out. Nothing here knows
//! HTTP: [`refusal::document`](super::refusal::document) writes a refusal in the caller's contract, and the server
//! chooses its status.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::exchange::{Differs, Exchange};
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::{Contract, Report};
use crosspoint_engine::core::Rejected;
use crosspoint_engine::job::{Door, Job};
use crosspoint_engine::runtime::{Engine, NewJob, Submitted, Unaccepted, Watch};

use super::answer::Beside;
use super::incoming::{self, Incoming};
use super::refusal::{Refusal, works};
use super::trace::Trace;
use crate::long;

/// Longest name, request id or key, in bytes. All of them are compared, shown and logged whole.
pub(crate) const NAME_BYTES_MAX: usize = 512;

/// The owner of a job: request keys of two callers never clash.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Caller(Arc<str>);

impl Caller {
    /// Without tokens all requests come from the same caller.
    pub(crate) fn everyone() -> Caller {
        Caller::default()
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

impl From<Caller> for Arc<str> {
    fn from(caller: Caller) -> Arc<str> {
        caller.0
    }
}

/// What came beside the document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers {
    pub(crate) caller: Caller,
    /// `Idempotency-Key`
    pub(crate) key: Option<Box<str>>,
    /// `traceparent`
    pub(crate) trace: Option<Trace>,
    /// The work that the caller means by the name in the document.
    pub(crate) work: Option<String>,
    /// How long its caller waits.
    pub(crate) wait: Option<Duration>,
}

/// A request that is a job, and what its caller is told beside it.
pub(crate) struct Admitted {
    pub(crate) watch: Watch,
    /// Whether the job existed before this request.
    pub(crate) joined: bool,
    pub(crate) beside: Beside,
    wait: Option<Duration>,
}

impl Admitted {
    /// Returns the job once it has ended, or in its current state when its caller has waited as long as it wants to.
    pub(crate) async fn ended(&self) -> Arc<Job> {
        match self.wait {
            Some(wait) => self.watch.ended(Instant::now() + wait).await,
            None => self.watch.job(),
        }
    }

    /// Like [`Admitted::ended`], but also returns once the job asks a person.
    pub(crate) async fn settled(&self) -> Arc<Job> {
        match self.wait {
            Some(wait) => self.watch.settled(Instant::now() + wait).await,
            None => self.watch.job(),
        }
    }
}

/// Makes a job of a request, or finds the job that it repeats. All mistakes are reported at once.
pub(crate) async fn admit(
    engine: &Engine,
    contract: Contract,
    document: &Bytes,
    headers: Headers,
) -> Result<Admitted, Refusal> {
    let admitted = admit_unnamed(engine, contract, document, headers).await;
    admitted.map_err(|refusal| about(refusal, contract, document))
}

/// RUN-5.2: a refusal names the request as its caller does, if that could be read.
pub(crate) fn about(refusal: Refusal, contract: Contract, document: &[u8]) -> Refusal {
    let exchange = contract.exchange();
    let [request_id, work] = incoming::names_in(document, [exchange.id, exchange.work]);
    refusal.of_request(request_id).of_work(work)
}

async fn admit_unnamed(
    engine: &Engine,
    contract: Contract,
    document: &Bytes,
    headers: Headers,
) -> Result<Admitted, Refusal> {
    let exchange = contract.exchange();
    let (meant, wait) = (headers.work.clone(), headers.wait);
    let incoming = read(contract, document, headers)?;
    let warnings = incoming.warnings();
    let Incoming { new, is_translated, .. } = incoming;
    let (request_id, work) = (new.request_id.clone().unwrap_or_default(), new.work.clone());
    let submitted = if exchange.work_may_name_agent {
        submit_led(engine, exchange, new, meant.as_deref()).await
    } else {
        engine.submit(new).await
    };
    let submitted = submitted.map_err(|why| unaccepted(engine, exchange, &why, &work, meant.is_some()))?;
    let (watch, joined) = match submitted {
        Submitted::New(watch) => (watch, false),
        Submitted::Repeat(watch) => (watch, true),
    };
    let known_as = (!request_id.is_empty() && request_id != watch.job().request.request_id).then_some(request_id);
    Ok(Admitted { watch, joined, beside: Beside { known_as, warnings, is_translated }, wait })
}

fn read(contract: Contract, document: &Bytes, headers: Headers) -> Result<Incoming, Refusal> {
    let exchange = contract.exchange();
    let incoming = long::look(document.len(), || incoming::read(contract, document, headers));
    let incoming = incoming.map_err(|report| malformed(exchange, *report))?;
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
/// (RUN-5.2). Mistakes in the document itself come before mistakes in its delegation chain.
fn malformed(exchange: &Exchange, report: Report) -> Refusal {
    let kind = exchange.request;
    let malformed = exchange.refusing.malformed;
    let told = report.findings.iter().min_by_key(|finding| malformed(finding).0 != Failure::Invalid);
    let Some(finding) = told else {
        let refusal = Refusal::invalid(format!("the body is no {kind}"), format!("see /schemas/{kind}.json"));
        return refusal.because(report);
    };
    let (failure, code) = malformed(finding);
    let (message, hint) = (format!("{}{}", finding.message, incoming::one_of_all(&report)), finding.hint.clone());
    let is_circle = failure == Failure::Delegation;
    let refusal = if is_circle { Refusal::delegation(message, hint) } else { Refusal::invalid(message, hint) };
    let refusal = code.into_iter().fold(refusal, Refusal::coded);
    let refusal = refusal.clause(finding.clause.id).at(finding.pointer.clone());
    fielded(exchange, refusal).because(report)
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

/// Returns the refusal of a request that the engine did not accept. The engine speaks of jobs, while callers know the
/// members of their own request, so the contract's wording is used.
fn unaccepted(engine: &Engine, exchange: &Exchange, why: &Unaccepted, work: &str, was_meant: bool) -> Refusal {
    let refusing = &exchange.refusing;
    let refusal = Refusal::unaccepted(engine, why);
    let wording = match why {
        Unaccepted::Rejected(Rejected::UnknownWork) if exchange.work_may_name_agent => {
            return unknown_name(engine, exchange, was_meant);
        }
        Unaccepted::Rejected(Rejected::UnknownWork) => refusing.unknown_work,
        Unaccepted::Rejected(Rejected::UnknownAgent) => refusing.unknown_agent,
        Unaccepted::Rejected(Rejected::NotItsWork) => refusing.not_its_work,
        Unaccepted::Conflict(job) => {
            let differs = if *job.request.work == *work { Differs::Input } else { Differs::Work };
            (refusing.conflict)(differs)
        }
        Unaccepted::Rejected(Rejected::Full { .. })
        | Unaccepted::Overloaded
        | Unaccepted::Closed
        | Unaccepted::Lost
        | Unaccepted::Fault(_)
        | Unaccepted::NotTried(_) => return refusal,
    };
    fielded(exchange, refusal.worded(wording))
}

/// Refuses a name that is neither a known work nor the name of an agent.
fn unknown_name(engine: &Engine, exchange: &Exchange, was_meant: bool) -> Refusal {
    let hint = format!("known works: {}", works(engine));
    let wording = exchange.refusing.unknown_work;
    let message = match was_meant {
        false => format!("`{}` is no work and no agent's name", exchange.work),
        true => "the query's `work` is no work and no agent's name".to_owned(),
    };
    let at = wording.at.filter(|_| !was_meant);
    Refusal::unsupported(message, hint).worded(crosspoint_contracts::exchange::Wording { at, ..wording })
}

/// Makes a job of a request whose work may be the name of an agent, or finds the job that it repeats.
async fn submit_led(
    engine: &Engine,
    exchange: &Exchange,
    mut new: NewJob,
    meant: Option<&str>,
) -> Result<Submitted, Unaccepted> {
    let called = new.work.clone();
    if let Some(work) = meant {
        new.work = work.into();
    }
    lead(engine, &mut new);
    let submitted = engine.submit(new.clone()).await;
    let known = match &submitted {
        Ok(Submitted::Repeat(watch)) => watch.job(),
        Err(Unaccepted::Conflict(job)) => job.clone(),
        Ok(Submitted::New(_)) | Err(_) => return submitted,
    };
    let is_same_name = meant.is_none() && is_called(engine, exchange, new.door, &known, &called).await;
    let is_led_alike = known.request.door != new.door || known.request.pinned == new.agent;
    match submitted {
        // A name may lead to another work or agent than it did when the job was made. The request is still the same.
        Err(Unaccepted::Conflict(_)) if is_same_name => {
            new.work = known.request.work.clone();
            engine.submit(new).await
        }
        // Two agents that take the same work are two names, so this is another request.
        Ok(Submitted::Repeat(_)) if !is_same_name && !is_led_alike => Err(Unaccepted::Conflict(known)),
        other => other,
    }
}

/// Resolves a name: it is that of a work, or else that of an agent, to which the job then goes.
fn lead(engine: &Engine, new: &mut NewJob) {
    let agents = engine.agents();
    if agents.iter().any(|agent| agent.spec.works.contains(&new.work)) {
        return;
    }
    let named = agents.iter().find(|agent| agent.spec.name == new.work);
    if let Some((agent, work)) = named.and_then(|agent| Some((agent, agent.spec.works.first()?))) {
        (new.agent, new.work) = (Some(agent.spec.name.clone()), work.clone());
    }
}

/// Whether the request of a job called its work by this name.
async fn is_called(engine: &Engine, exchange: &Exchange, door: Door, job: &Job, name: &str) -> bool {
    if job.request.door != door {
        return false;
    }
    let Ok(Some(document)) = engine.document(job.seq()).await else { return false };
    let [called] = incoming::names_in(&document.0, [exchange.work]);
    called.as_deref() == Some(name)
}
