//! Reading the path and the query of a request.

use std::time::Duration;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use crosspoint_contracts::{Contract, Kind};
use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::job::{Door, Phase};
use crosspoint_engine::store::Filter;

use super::App;
use super::refusal::Refusal;
use super::submit::NAME_BYTES_MAX;
use crate::translation::AGENT_DEFAULT;

pub(super) const LIST_DEFAULT: usize = 50;
pub(super) const LIST_MAX: usize = 500;

/// The job that a path names.
pub(super) struct Id(pub(super) JobId);

/// The agent that a path names.
pub(super) struct Name(pub(super) String);

impl FromRequestParts<App> for Id {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Id, Refusal> {
        let Path(text) = Path::<String>::from_request_parts(parts, app).await.map_err(|_| Refusal::no_such_job())?;
        // A text that is not an id is not the id of any job.
        text.parse().map(Id).map_err(|_| Refusal::no_such_job())
    }
}

impl FromRequestParts<App> for Name {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Name, Refusal> {
        let Path(name) = Path::<String>::from_request_parts(parts, app).await.map_err(|_| Refusal::no_such_agent())?;
        Ok(Name(name))
    }
}

/// `?wait=S`: longest time for which the caller wants to wait for the outcome.
pub(super) struct Wait(pub(super) Option<Duration>);

impl FromRequestParts<App> for Wait {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Wait, Refusal> {
        let mut wait = None;
        for (name, value) in parameters(&parts.uri)? {
            match name.as_str() {
                "wait" => wait = Some(seconds(&value, app.0.wait_max)?),
                _ => return Err(unknown("wait")),
            }
        }
        Ok(Wait(wait))
    }
}

/// `?wait=S&work=NAME`: how long a requester wants to wait, and the work that it means by the agent's name in the
/// request.
#[derive(Default)]
pub(super) struct Asking {
    pub(super) wait: Option<Duration>,
    pub(super) work: Option<String>,
}

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

/// `?after=N`: the number of the last event that the caller has. `?follow=false`: only the events that exist now.
#[derive(Default)]
pub(super) struct Events {
    pub(super) after: Option<u32>,
    pub(super) only_past: bool,
}

pub(super) fn events(uri: &Uri) -> Result<Events, Refusal> {
    let mut events = Events::default();
    for (name, value) in parameters(uri)? {
        match name.as_str() {
            "after" => events.after = Some(value.parse().map_err(|_| wrong("after", "the number of an event"))?),
            "follow" => {
                events.only_past = !truth("follow", &value)?;
            }
            _ => return Err(unknown("after, follow")),
        }
    }
    Ok(events)
}

fn doors() -> Vec<&'static str> {
    Door::all().map(Door::name).collect()
}

/// Reads which jobs to list. A misspelled filter is refused: otherwise the caller would trust a list of other jobs.
pub(super) fn filter(uri: &Uri) -> Result<Filter, Refusal> {
    let mut filter = Filter { limit: LIST_DEFAULT, ..Filter::default() };
    for (name, value) in parameters(uri)? {
        match name.as_str() {
            "state" => filter.phase = Some(word("state", &value, Phase::from_name, &Phase::ALL.map(Phase::name))?),
            "door" => filter.door = Some(word("door", &value, Door::from_name, &doors())?),
            "work" => filter.work = Some(value),
            "agent" => filter.agent = Some(value),
            "before" => filter.before = Some(Seq(value.parse().map_err(|_| wrong("before", "`next` of a list"))?)),
            "limit" => filter.limit = limit(&value)?,
            _ => return Err(unknown("state, work, agent, door, before, limit")),
        }
    }
    Ok(filter)
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

fn truth(name: &str, value: &str) -> Result<bool, Refusal> {
    value.parse().map_err(|_| wrong(name, "true or false"))
}

pub(super) fn parameters(uri: &Uri) -> Result<Vec<(String, String)>, Refusal> {
    if uri.query().is_none() {
        return Ok(Vec::new());
    }
    let query = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let Query(parameters) =
        query.map_err(|_| Refusal::invalid("the query cannot be read", "write it as name=value&name=value"))?;
    Ok(parameters)
}

fn seconds(value: &str, max: Duration) -> Result<Duration, Refusal> {
    let seconds = value.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let within = seconds.filter(|seconds| *seconds <= max);
    within.ok_or_else(|| wrong("wait", &format!("a number of seconds from 0 to {}", max.as_secs_f64())))
}

fn limit(value: &str) -> Result<usize, Refusal> {
    let within = value.parse().ok().filter(|limit| (1..=LIST_MAX).contains(limit));
    within.ok_or_else(|| wrong("limit", &format!("a number from 1 to {LIST_MAX}")))
}

fn word<T>(name: &str, value: &str, read: fn(&str) -> Option<T>, words: &[&str]) -> Result<T, Refusal> {
    read(value).ok_or_else(|| wrong(name, &format!("one of {}", words.join(", "))))
}

fn wrong(name: &str, must_be: &str) -> Refusal {
    Refusal::invalid(format!("the query's `{name}` is not {must_be}"), format!("give {name} as {must_be}"))
}

fn unknown(known: &str) -> Refusal {
    Refusal::invalid("the query has a parameter that is not known here", format!("known here: {known}"))
}
