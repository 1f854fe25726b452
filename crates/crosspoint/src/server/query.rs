//! Reading the path and the query of a request.

use std::time::Duration;

use axum::extract::{FromRequestParts, Path};
use axum::http::Uri;
use axum::http::request::Parts;
use crosspoint_contracts::request::Door;
use crosspoint_contracts::{Contract, Kind};
use crosspoint_engine::id::{Ids, JobId};
use crosspoint_engine::job::Phase;
use crosspoint_engine::store::Filter;
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::Refused;
use crosspoint_http::door::Asking;
use crosspoint_http::query::{parameters, seconds, truth, unknown, wait, word, wrong};

use super::App;
use crate::translation::AGENT_DEFAULT;

pub(super) const LIST_DEFAULT: usize = 50;
pub(super) const LIST_MAX: usize = 500;

/// The job that a path names.
pub(super) struct Id(pub(super) JobId);

/// The agent that a path names.
pub(super) struct Name(pub(super) String);

impl FromRequestParts<App> for Id {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Id, Refused> {
        let Path(text) = Path::<String>::from_request_parts(parts, app).await.map_err(|_| Refusal::no_such_job())?;
        // A text that is not an id is not the id of any job.
        app.engine().job_id(&text).map(Id).ok_or_else(|| Refusal::no_such_job().into())
    }
}

impl FromRequestParts<App> for Name {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Name, Refused> {
        let Path(name) = Path::<String>::from_request_parts(parts, app).await.map_err(|_| Refusal::no_such_agent())?;
        Ok(Name(name))
    }
}

/// `?wait=S`: longest time for which the caller wants to wait for the outcome.
pub(super) struct Wait(pub(super) Option<Duration>);

impl FromRequestParts<App> for Wait {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Wait, Refused> {
        Ok(Wait(wait(&parts.uri, app.0.wait_max)?))
    }
}

/// Reads `?wait=S&work=NAME`: how long a requester waits, and the work that is meant by the agent's name.
pub(super) fn asking(uri: &Uri, wait_max: Duration) -> Result<Asking, Refusal> {
    let mut asking = Asking::default();
    for (name, value) in parameters(uri)? {
        match name.as_str() {
            "wait" => asking.wait = Some(seconds(&value, wait_max)?),
            "work" if (1..=NAME_BYTES_MAX).contains(&value.len()) => asking.work = Some(value),
            "work" => return Err(wrong("work", &format!("a name of 1 to {NAME_BYTES_MAX} bytes"))),
            _ => return Err(unknown("wait, work")),
        }
    }
    Ok(asking)
}

fn doors() -> Vec<&'static str> {
    Door::all().map(Door::name).collect()
}

/// Reads which jobs to list, and behind which job the list goes on. A misspelled filter is refused: otherwise the
/// caller would trust a list of other jobs.
pub(super) fn filter(uri: &Uri, ids: &Ids) -> Result<(Filter, Option<JobId>), Refusal> {
    let (mut filter, mut before) = (Filter { limit: LIST_DEFAULT, ..Filter::default() }, None);
    for (name, value) in parameters(uri)? {
        match name.as_str() {
            "state" => filter.phase = Some(word("state", &value, Phase::from_name, &Phase::ALL.map(Phase::name))?),
            "door" => filter.door = Some(word("door", &value, Door::from_name, &doors())?),
            "work" => filter.work = Some(value),
            "agent" => filter.agent = Some(value),
            "before" => before = Some(ids.parse(&value).ok_or_else(|| wrong("before", "`next` of a list"))?),
            "limit" => filter.limit = limit(&value)?,
            _ => return Err(unknown("state, work, agent, door, before, limit")),
        }
    }
    Ok((filter, before))
}

/// How a document is to be judged.
#[derive(Default)]
pub(super) struct Judging {
    pub(super) kind: Option<Kind>,
    pub(super) inner_json: bool,
    pub(super) agent_types: Vec<String>,
    pub(super) strict: bool,
}

pub(super) fn judging(uri: &Uri) -> Result<Judging, Refusal> {
    let mut judging = Judging::default();
    for (name, value) in parameters(uri)? {
        match name.as_str() {
            "kind" => judging.kind = Some(word("kind", &value, Kind::from_name, &Kind::ALL.map(Kind::name))?),
            "inner" if value == "json" => judging.inner_json = true,
            "inner" => return Err(wrong("inner", "json")),
            "agent_type" => judging.agent_types.push(agent_type(value)?),
            "strict" => judging.strict = truth("strict", &value)?,
            _ => return Err(unknown("kind, inner, agent_type, strict")),
        }
    }
    Ok(judging)
}

/// Into what a document is to be translated.
pub(super) struct Translating {
    pub(super) to: Contract,
    pub(super) kind: Option<Kind>,
    pub(super) agent: String,
    pub(super) agent_types: Vec<String>,
    pub(super) carry: bool,
    pub(super) strict: bool,
}

pub(super) fn translating(uri: &Uri) -> Result<Translating, Refusal> {
    let (mut to, mut kind, mut agent) = (None, None, AGENT_DEFAULT.to_owned());
    let (mut agent_types, mut carry, mut strict) = (Vec::new(), true, false);
    for (name, value) in parameters(uri)? {
        match name.as_str() {
            "to" => to = Some(word("to", &value, Contract::from_name, &Contract::ALL.map(Contract::name))?),
            "kind" => kind = Some(word("kind", &value, Kind::from_name, &Kind::ALL.map(Kind::name))?),
            "agent" => agent = value,
            "agent_type" => agent_types.push(agent_type(value)?),
            "carry" => carry = truth("carry", &value)?,
            "strict" => strict = truth("strict", &value)?,
            _ => return Err(unknown("to, kind, agent, agent_type, carry, strict")),
        }
    }
    let missing = || wrong("to", &format!("one of {}", Contract::ALL.map(Contract::name).join(", ")));
    Ok(Translating { to: to.ok_or_else(missing)?, kind, agent, agent_types, carry, strict })
}

fn agent_type(value: String) -> Result<String, Refusal> {
    if value.trim().is_empty() { Err(wrong("agent_type", "the name of an agent type")) } else { Ok(value) }
}

fn limit(value: &str) -> Result<usize, Refusal> {
    let within = value.parse().ok().filter(|limit| (1..=LIST_MAX).contains(limit));
    within.ok_or_else(|| wrong("limit", &format!("a number from 1 to {LIST_MAX}")))
}
