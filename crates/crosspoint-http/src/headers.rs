//! Headers that the doors of all contracts read.

use axum::http::HeaderMap;
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_exchange::trace::Trace;

/// Reads the `Idempotency-Key` header.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<Box<str>>, Refusal> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=NAME_BYTES_MAX).contains(&key.len()));
    let hint = format!("give 1 to {NAME_BYTES_MAX} visible ASCII characters");
    let unusable = || Refusal::invalid("the Idempotency-Key header cannot be used", hint).clause("ALL-1");
    key.map(|key| Some(key.into())).ok_or_else(unusable)
}

/// Reads the `traceparent` header, and `tracestate` beside it. One that cannot be read counts as missing, as its
/// recommendation says.
pub fn trace(headers: &HeaderMap) -> Option<Trace> {
    let trace = Trace::parse(headers.get("traceparent")?.to_str().ok()?)?;
    let states: Option<Vec<&str>> = headers.get_all("tracestate").iter().map(|value| value.to_str().ok()).collect();
    Some(trace.with_state(&states.unwrap_or_default().join(",")))
}
