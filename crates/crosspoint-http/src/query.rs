//! What stands after the question mark of a path.

use std::time::Duration;

use axum::extract::Query;
use axum::http::Uri;
use crosspoint_exchange::refusal::Refusal;

/// `?after=N`: the number of the last event that the caller has. `?follow=false`: only the events that exist now.
#[derive(Default)]
pub struct Events {
    /// The number of the last event that the caller has.
    pub after: Option<u32>,
    /// Whether only events are wanted that have happened already.
    pub only_past: bool,
}

/// Reads `?after=N&follow=BOOL`.
pub fn events(uri: &Uri) -> Result<Events, Refusal> {
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

/// Reads `true` or `false`.
pub fn truth(name: &str, value: &str) -> Result<bool, Refusal> {
    value.parse().map_err(|_| wrong(name, "true or false"))
}

/// Reads the names and values of a query.
pub fn parameters(uri: &Uri) -> Result<Vec<(String, String)>, Refusal> {
    if uri.query().is_none() {
        return Ok(Vec::new());
    }
    let query = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let Query(parameters) =
        query.map_err(|_| Refusal::invalid("the query cannot be read", "write it as name=value&name=value"))?;
    Ok(parameters)
}

/// Reads a number of seconds.
pub fn seconds(value: &str, max: Duration) -> Result<Duration, Refusal> {
    let seconds = value.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let within = seconds.filter(|seconds| *seconds <= max);
    within.ok_or_else(|| wrong("wait", &format!("a number of seconds from 0 to {}", max.as_secs_f64())))
}

/// Reads one of several words.
pub fn word<T>(name: &str, value: &str, read: fn(&str) -> Option<T>, words: &[&str]) -> Result<T, Refusal> {
    read(value).ok_or_else(|| wrong(name, &format!("one of {}", words.join(", "))))
}

/// A parameter has a value that it cannot have.
pub fn wrong(name: &str, must_be: &str) -> Refusal {
    Refusal::invalid(format!("the query's `{name}` is not {must_be}"), format!("give {name} as {must_be}"))
}

/// A parameter is not known here.
pub fn unknown(known: &str) -> Refusal {
    Refusal::invalid("the query has a parameter that is not known here", format!("known here: {known}"))
}

/// Reads `?wait=S`: how long the caller waits for the outcome.
pub fn wait(uri: &Uri, max: Duration) -> Result<Option<Duration>, Refusal> {
    let mut wait = None;
    for (name, value) in parameters(uri)? {
        match name.as_str() {
            "wait" => wait = Some(seconds(&value, max)?),
            _ => return Err(unknown("wait")),
        }
    }
    Ok(wait)
}
