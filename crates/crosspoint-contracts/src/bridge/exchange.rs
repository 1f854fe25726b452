//! What an exchange in the bridge contract means.

use crate::document::{Document, Options};
use crate::exchange::{
    Asked, Exchange, Holds, Known, Mark, Needs, Part, Place, Refusing, Seconds, TextLimit, Wording, plain_conflict,
    plainly_invalid, says_nothing,
};
use crate::job::{Home, Input, State};
use crate::kind::Kind;
use crate::map::prompt_object;
use crate::printed::TEXT_BYTES_MAX;
use crate::translate::read_jobs;

/// How long a requester waits if its request does not say, in seconds (BRIDGE-110).
const SECONDS_DEFAULT: u32 = 120;

pub(crate) static EXCHANGE: Exchange = Exchange {
    request: Kind::BridgeRequest,
    response: Kind::BridgeResponse,
    asked,
    id: "request_id",
    work: "agent_name",
    names: &[("/request_id", Home::RequestId), ("/agent_name", Home::Work)],
    // BRIDGE-125.
    work_may_name_agent: true,
    ids_are_unique: false,
    input: Some(input),
    input_at: "",
    echoes: &[],
    types: &[],
    seconds_default: Some(SECONDS_DEFAULT),
    seconds: Seconds::Total,
    // The driver that finds the request in a directory goes by the request's age.
    request_has: &[Home::CreatedAt],
    needs: Needs {
        ids: &["request_id"],
        marks: &[
            Mark::word("status", "success", State::Completed),
            Mark::word("status", "error", State::Failed),
            Mark::word("status", "timeout", State::Failed),
        ],
        outputs: &["response"],
    },
    parts: &[Part { path: &["response"], holds: Holds::Output, stand_in: "\"\"" }],
    gives_text: true,
    // BRIDGE-8.2.
    text_limit: Some(TextLimit { bytes_max: TEXT_BYTES_MAX, code: "ResponseTooLarge" }),
    pieces: None,
    code: &["error_type"],
    response_has: &[Known::ReportedAt, Known::Duration],
    details_have: says_nothing,
    question: Place::Home(Home::Question),
    warnings: Place::Carried("warnings"),
    cancelled_is_error: true,
    // BRIDGE-9: a requester has its own fallback, so every answer is a success of HTTP.
    http_status: |_| 200,
    refusing: Refusing {
        malformed: plainly_invalid,
        // The response has to carry the id, and a repeat is recognised by it.
        empty_id: Some("BRIDGE-4.5"),
        too_long: None,
        // BRIDGE-8.
        too_large: Some("RequestTooLarge"),
        unknown_work: Wording { clause: Some("BRIDGE-125"), ..Wording::at("/agent_name") },
        unknown_agent: Wording::at("/context/x_crosspoint/target"),
        not_its_work: Wording::at("/context/x_crosspoint/target"),
        wrong_type: Wording::at(""),
        unspoken: None,
        conflict: plain_conflict,
        names_fields: false,
        carries: true,
    },
};

fn asked<'s>(document: &Document<'s>) -> Option<Asked<'s>> {
    let Document::BridgeRequest(request) = document else { return None };
    Some(Asked { id: Some(request.request_id.get()), input: None, recipient: None, addressed: None })
}

/// Returns what a request gives its agent, as one JSON object: prompt and context, or the object that the work had in
/// another contract and that travelled in them. Returns `None` if the document is no valid request.
///
/// The input cannot be a slice of the document, as in other contracts: it stands in two members, and carried facts
/// stand among the requester's own.
pub fn input(document: &[u8]) -> Option<String> {
    let options = Options { kind: Some(Kind::BridgeRequest), ..Options::default() };
    let (_, jobs) = read_jobs(document, &options);
    let job = jobs.into_iter().next()?;
    Some(match job.input() {
        Input::Object(object) => object.get().to_owned(),
        Input::Prompt(prompt, context) => prompt_object(prompt, context),
        Input::None => "{}".to_owned(),
    })
}
