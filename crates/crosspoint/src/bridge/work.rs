//! One request, answered through a server: its document goes in at the bridge door, and what comes out is the response.
//!
//! The request's id is its key, so it can be handed in as often as it takes: the job is done once. A failure of the
//! agent is an answer like any other (BRIDGE-9), and so is a refusal that will not change. If the server itself is
//! away, that is neither: then there is no answer yet.

use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_bridge::request::Request;
use crosspoint_bridge::response;
use crosspoint_contracts::document::Document;
use crosspoint_contracts::json::{Levels, Tape, Value, quoted};
use crosspoint_contracts::{Kind, Options, read};
use reqwest::StatusCode;
use serde::Deserialize;

use crate::client::{Client, Failed, HandedIn, Job, segment};

const PATH: &str = "/api/v1/bridge";

/// How long one hand-in waits for the outcome, in seconds: less than the client takes for silence.
const WAIT_SECONDS: u32 = 25;

const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Most bytes that are read of an answer. What is written has a lower limit; this one only bounds the memory of this
/// process.
const ANSWER_BYTES_MAX: usize = 64 << 20;

#[derive(Deserialize)]
struct Identity {
    store: String,
}

/// Returns which store the server keeps its jobs in: a request that was begun there must be ended there.
pub(crate) async fn store_of(client: &Client) -> Result<String, Failed> {
    let text = client.get(PATH).await?;
    Ok(client.read::<Identity>(&text)?.store)
}

/// A response as it is to be written, and the job that it came of, if there was one.
pub(crate) struct Answered {
    pub(crate) document: String,
    pub(crate) job: Option<String>,
}

/// Hands the request in until there is a response, and reports the job as soon as there is one. Fails when the server
/// has been away for `away_max`.
pub(crate) async fn answered(
    client: &Client,
    request: &Request,
    work: Option<&str>,
    away_max: Duration,
    mut accepted: impl FnMut(&Job),
) -> Result<Answered, Failed> {
    let work = work.map(|work| format!("&work={}", segment(work))).unwrap_or_default();
    let document = Bytes::from(request.document.clone());
    let (mut client, mut pause) = (client.clone(), PAUSE_FIRST);
    let (mut away_since, mut wait) = (None, 0);
    loop {
        let path = format!("{PATH}?wait={wait}{work}");
        let failed = match client.hand_in(&path, document.clone(), ANSWER_BYTES_MAX).await {
            Ok(HandedIn { status: StatusCode::ACCEPTED, answer, .. }) => {
                let job = String::from_utf8(answer).ok().and_then(|body| Job::read(body).ok());
                accepted(&job.ok_or_else(|| client.not_ours())?);
                (away_since, pause, wait) = (None, PAUSE_FIRST, WAIT_SECONDS);
                continue;
            }
            Ok(HandedIn { status: StatusCode::PAYLOAD_TOO_LARGE, .. }) => {
                return Ok(Answered { document: too_large_for_server(request), job: None });
            }
            Ok(HandedIn { status, answer, job }) if status == StatusCode::OK || is_final(status) => {
                let id = &request.request_id;
                let answer = if is_final(status) { addressed(id, answer) } else { answer };
                let document = of_request(id, answer).ok_or_else(|| client.not_ours())?;
                return Ok(Answered { document, job });
            }
            Ok(HandedIn { status, answer, .. }) => client.refused(status, &answer),
            Err(failed) if failed.passes() => failed,
            Err(failed) => return Err(failed),
        };
        let since = *away_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= away_max {
            return Err(failed);
        }
        tokio::time::sleep(pause).await;
        client.look_again();
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Whether sending it again would give the same.
fn is_final(status: StatusCode) -> bool {
    let passes = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status);
    status.is_client_error() && !passes
}

/// Returns a refusal with the id of the request that it refuses. A server that did not read the request that far made
/// one up.
fn addressed(request_id: &str, body: Vec<u8>) -> Vec<u8> {
    let tape = Tape::scan(&body).ok();
    let id = tape.as_ref().and_then(|tape| tape.root()?.get("request_id")).map(Value::span);
    match id {
        Some((start, end)) => [&body[..start], quoted(request_id).as_bytes(), &body[end..]].concat(),
        None => body,
    }
}

/// Returns the response as it is to be written, if it answers this request.
fn of_request(request_id: &str, body: Vec<u8>) -> Option<String> {
    let options = Options { kind: Some(Kind::BridgeResponse), levels: Levels::Wrapped, ..Options::default() };
    if body.len() >= ANSWER_BYTES_MAX {
        return Some(too_large(request_id, 0.0));
    }
    let Some(Document::BridgeResponse(response)) = read(&body, &options).document else { return None };
    if response.request_id.get() != request_id {
        return None;
    }
    let seconds = response.duration_seconds;
    // BRIDGE-8.2 counts the text, and not how it is spelled in the file.
    let fits = response.response.0.as_ref().is_none_or(|text| text.decode().len() <= response::BYTES_MAX);
    Some(if fits { String::from_utf8(body).ok()? } else { too_large(request_id, seconds) })
}

/// BRIDGE-8.2
fn too_large(request_id: &str, seconds: f64) -> String {
    let message = format!("The response is longer than the {} bytes that it may have.", response::BYTES_MAX);
    response::error(request_id, "ResponseTooLarge", &message, &now(), seconds)
}

/// BRIDGE-8
pub(crate) fn request_too_large(request_id: &str, length: u64) -> String {
    let message = format!(
        "The request is {length} bytes long, and at most {} are read. Pass large content by path.",
        crosspoint_bridge::request::BYTES_MAX
    );
    response::error(request_id, "RequestTooLarge", &message, &now(), 0.0)
}

/// The answer when the server takes less than other servers do. It says so before it has read the request's id.
fn too_large_for_server(request: &Request) -> String {
    let message = format!(
        "The request is {} bytes long, and the server takes less (`body_bytes` in its [limits]). Pass large content by path.",
        request.document.len()
    );
    response::error(&request.request_id, "RequestTooLarge", &message, &now(), 0.0)
}

/// The current time, in the format of responses.
pub(crate) fn now() -> String {
    crosspoint_engine::wall_clock::now().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_as_long_as_its_text_however_that_is_spelled() {
        for (bytes, fits) in [(response::BYTES_MAX, true), (response::BYTES_MAX + 1, false)] {
            // In the file each of them takes two bytes.
            let document = response::success("mine", &"\n".repeat(bytes), "2026-01-01T00:00:00Z", 1.0);
            let written = of_request("mine", document.clone().into_bytes()).expect("it is an answer");
            assert_eq!(written == document, fits, "{bytes} bytes");
            assert_eq!(written.contains("ResponseTooLarge"), !fits, "{bytes} bytes");
        }
    }

    #[test]
    fn a_refusal_is_of_the_request_that_it_refuses() {
        let refusal = response::error("made-up", "invalid_request", "No.", "2026-01-01T00:00:00Z", 0.0);
        assert_eq!(of_request("mine", refusal.clone().into_bytes()), None, "an answer to another request is none");
        let document = of_request("mine", addressed("mine", refusal.clone().into_bytes()));
        assert_eq!(document, Some(refusal.replace("made-up", "mine")));
        for other in ["not found", "{}", r#"{"request_id": 1}"#] {
            assert_eq!(of_request("mine", addressed("mine", other.into())), None, "{other}");
        }
    }
}
