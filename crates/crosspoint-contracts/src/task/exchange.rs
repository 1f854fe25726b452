//! What an exchange in the task contract means.

use super::failure;
use crate::document::Document;
use crate::exchange::{
    Asked, Differs, Exchange, Holds, Known, Mark, Needs, Part, Place, Refusing, Seconds, Wording, says_nothing,
};
use crate::job::{Home, State};
use crate::kind::Kind;

pub(crate) static EXCHANGE: Exchange = Exchange {
    request: Kind::TaskRequest,
    response: Kind::TaskResponse,
    asked,
    id: "id",
    work: "type",
    names: &[("/id", Home::RequestId)],
    work_may_name_agent: false,
    // TASK-5.
    ids_are_unique: true,
    input: None,
    input_at: "/payload",
    echoes: &[],
    types: &[],
    seconds_default: None,
    seconds: Seconds::Total,
    // TASK-8: every hop is a span, even where the caller gave none.
    request_has: &[Home::Trace],
    needs: Needs {
        ids: &["id"],
        marks: &[
            Mark::word("status", "pending", State::Queued),
            Mark::word("status", "in_progress", State::Running),
            Mark::word("status", "input_required", State::Waiting),
            Mark::word("status", "completed", State::Completed),
            Mark::word("status", "failed", State::Failed),
            Mark::word("status", "cancelled", State::Cancelled),
        ],
        outputs: &["result"],
    },
    parts: &[
        Part { path: &["result"], holds: Holds::Output, stand_in: "{}" },
        Part { path: &["artifacts"], holds: Holds::Artifacts, stand_in: "[]" },
    ],
    gives_text: false,
    text_limit: None,
    pieces: None,
    code: &["error", "code"],
    response_has: &[Known::StartedAt, Known::ReportedAt, Known::Duration, Known::Agent, Known::Retries],
    details_have: says_nothing,
    question: Place::Home(Home::Question),
    warnings: Place::Carried("warnings"),
    // Cancelled is a status of its own, without an error.
    cancelled_is_error: false,
    // TASK-4: the HTTP status does not tell that a task has ended.
    http_status: |_| 200,
    refusing: Refusing {
        malformed: |finding| {
            let (failure, code) = failure::of_finding(finding);
            (failure, Some(code))
        },
        empty_id: None,
        too_long: Some("INVALID_FIELD_VALUE"),
        too_large: None,
        unknown_work: Wording { code: Some("CAPABILITY_NOT_FOUND"), ..Wording::at("/type") },
        unknown_agent: Wording {
            code: Some("AGENT_NOT_FOUND"),
            clause: Some("TASK-1.5"),
            ..Wording::at("/routing/target")
        },
        not_its_work: Wording {
            code: Some("CAPABILITY_NOT_FOUND"),
            clause: Some("TASK-122"),
            text: Some((
                "the target does not take tasks of this type",
                "leave `routing.target` out, or GET /api/v1/agents for who takes what",
            )),
            ..Wording::at("/type")
        },
        wrong_type: Wording::at(""),
        unspoken: None,
        conflict,
        names_fields: true,
        carries: false,
    },
};

fn asked<'s>(document: &Document<'s>) -> Option<Asked<'s>> {
    let Document::TaskRequest(request) = document else { return None };
    Some(Asked { id: Some(request.id.get()), input: Some(request.payload.get()), recipient: None, addressed: None })
}

/// TASK-5.
fn conflict(differs: Differs) -> Wording {
    let other = "use a new id for another task; the one that there is goes on as it is";
    let (at, message) = match differs {
        Differs::Job => ("/id", "this Idempotency-Key is that of one task, and this id that of another"),
        Differs::Names => {
            ("/id", "the task of this id, or of this Idempotency-Key, has as many ids and keys as a task may have")
        }
        Differs::Work => ("/type", "this id, or this Idempotency-Key, is that of a task with another `type`"),
        Differs::Input => ("/payload", "this id, or this Idempotency-Key, is that of a task with another `payload`"),
    };
    let hint = match differs {
        Differs::Work | Differs::Input => other,
        Differs::Job => "send the id and the Idempotency-Key of one task, or new ones for another task",
        Differs::Names => {
            "ask for the task by an id that it was given, or use a new id and Idempotency-Key for another task"
        }
    };
    Wording {
        code: Some("INVALID_FIELD_VALUE"),
        clause: Some("TASK-5"),
        text: Some((message, hint)),
        ..Wording::at(at)
    }
}
