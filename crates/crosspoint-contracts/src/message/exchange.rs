//! What an exchange in the message contract means.

use crate::content::RawObject;
use crate::document::Document;
use crate::exchange::{
    Asked, Exchange, Holds, Known, Mark, Needs, Part, Place, Refusing, Wording, plain_conflict, plainly_invalid,
};
use crate::failure::Failure;
use crate::job::{Home, State};
use crate::kind::Kind;

pub(crate) static EXCHANGE: Exchange = Exchange {
    request: Kind::WorkRequest,
    response: Kind::WorkResult,
    asked,
    id: "request_id",
    work: "payload/work_type",
    names: &[("/request_id", Home::RequestId), ("/payload/work_type", Home::Work)],
    work_may_name_agent: false,
    ids_are_unique: false,
    input: None,
    input_at: "/payload/parameters",
    seconds_default: None,
    request_has: &[],
    needs: Needs {
        // MSG-17: the task counts more than the request, because deployed agents renew ids.
        ids: &["payload/task_id", "request_id"],
        marks: &[
            Mark::word("type", "error", State::Failed),
            Mark::word("type", "work_status", State::Running),
            Mark::word("payload/status", "success", State::Completed),
            Mark::word("payload/status", "completed", State::Completed),
            Mark::word("payload/status", "failed", State::Failed),
            Mark::word("payload/status", "cancelled", State::Cancelled),
        ],
        outputs: &["payload/output"],
    },
    parts: &[Part { path: &["payload", "output"], holds: Holds::Output, stand_in: "\"\"" }],
    gives_text: true,
    text_limit: None,
    code: &["payload", "error_code"],
    response_has: &[Known::ReportedAt, Known::Duration],
    // ALL-5: in `x_custom_fields.x_crosspoint` of a paused status.
    question: Place::Carried("question"),
    warnings: Place::Carried("warnings"),
    cancelled_is_error: true,
    http_status,
    refusing: Refusing {
        malformed: plainly_invalid,
        empty_id: None,
        too_long: None,
        too_large: None,
        unknown_work: Wording::at("/payload/work_type"),
        unknown_agent: Wording::at("/x_custom_fields/x_crosspoint/target"),
        not_its_work: Wording::at("/payload/work_type"),
        conflict: plain_conflict,
        names_fields: false,
        carries: true,
    },
};

fn asked<'s>(document: &Document<'s>) -> Option<Asked<'s>> {
    let Document::WorkRequest(message) = document else { return None };
    let input = message.payload.parameters.map(RawObject::get);
    Some(Asked { id: Some(message.request_id.get()), input })
}

/// MSG-13, MSG-17: an answer on the same connection is a success of HTTP, however the work went. Only a refused token
/// has a status of its own.
fn http_status(failure: Failure) -> u16 {
    if failure == Failure::Unauthenticated { 401 } else { 200 }
}
