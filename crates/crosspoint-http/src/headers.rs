//! Headers that the doors of all contracts read.

use axum::http::HeaderMap;
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_exchange::trace::Trace;

/// Reads the `Idempotency-Key` header.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<Box<str>>, Refusal> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    // Which of several keys is meant cannot be told, and the wrong one is another job.
    if values.any(|other| other != value) {
        let hint = "send one Idempotency-Key header";
        return Err(Refusal::invalid("there are Idempotency-Key headers that differ", hint).clause("ALL-1"));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(values: &[&'static str]) -> Result<Option<Box<str>>, String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("Idempotency-Key", axum::http::HeaderValue::from_static(value));
        }
        idempotency_key(&headers).map_err(|refusal| String::from_utf8_lossy(&refusal.body()).into_owned())
    }

    #[test]
    fn keys_that_differ_are_refused_and_equal_ones_are_one() {
        assert_eq!(key(&[]), Ok(None));
        assert_eq!(key(&["a"]), Ok(Some("a".into())));
        assert_eq!(key(&["a", "a"]), Ok(Some("a".into())));
        for differing in [&["a", "b"][..], &["a", "a", "b"], &["a", ""]] {
            let refusal = key(differing).expect_err("it cannot be told which is meant");
            assert!(refusal.contains("headers that differ") && refusal.contains("invalid"), "{refusal}");
        }
        assert!(key(&[""]).is_err(), "an empty one cannot be used");
    }
}
