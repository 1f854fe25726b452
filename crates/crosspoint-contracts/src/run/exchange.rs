//! What an exchange in the run contract means.

use super::failure;
use crate::content::RawObject;
use crate::document::Document;
use crate::exchange::{
    Asked, Exchange, Holds, Known, Mark, Needs, Part, Place, Refusing, Seconds, Wording, plain_conflict,
    plainly_invalid, says_nothing,
};
use crate::job::{Home, State};
use crate::kind::Kind;

pub(crate) static EXCHANGE: Exchange = Exchange {
    request: Kind::RunRequest,
    response: Kind::RunResponse,
    asked,
    id: "request_id",
    work: "task_type",
    names: &[("/request_id", Home::RequestId), ("/task_type", Home::Work), ("/stage_id", Home::Stage)],
    work_may_name_agent: false,
    ids_are_unique: false,
    input: None,
    input_at: "/inputs",
    echoes: &[],
    types: &[],
    seconds_default: None,
    seconds: Seconds::Total,
    request_has: &[],
    needs: Needs {
        ids: &["request_id"],
        // RUN-3: the status counts more than the other marks, and a mark of failure more than one of success.
        marks: &[
            Mark::word("status", "error", State::Failed),
            Mark::word("status", "ok", State::Completed),
            Mark::word("status", "success", State::Completed),
            Mark::word("status", "degraded", State::Completed),
            Mark::truth("ok", false, State::Failed),
            Mark::truth("success", false, State::Failed),
            Mark::truth("ok", true, State::Completed),
            Mark::truth("success", true, State::Completed),
        ],
        outputs: &["outputs", "data"],
    },
    parts: &[
        Part { path: &["outputs"], holds: Holds::Output, stand_in: "{}" },
        Part { path: &["data"], holds: Holds::Output, stand_in: "{}" },
    ],
    gives_text: false,
    text_limit: None,
    pieces: None,
    code: &["error", "code"],
    // The terminal events of this contract name the work.
    response_has: &[Known::Work],
    details_have: says_nothing,
    question: Place::Member("/question"),
    warnings: Place::Member("/warnings"),
    cancelled_is_error: true,
    http_status: |failure| failure::write(failure).1,
    refusing: Refusing {
        malformed: plainly_invalid,
        empty_id: None,
        too_long: None,
        too_large: None,
        unknown_work: Wording { clause: Some("RUN-5"), ..Wording::at("/task_type") },
        unknown_agent: Wording::at("/x_crosspoint/target"),
        not_its_work: Wording {
            clause: Some("ALL-6"),
            text: Some((
                "the target does not take runs of this task_type",
                "leave `x_crosspoint.target` out, or GET /api/v1/agents for who takes what",
            )),
            ..Wording::at("/x_crosspoint/target")
        },
        wrong_type: Wording::at(""),
        unspoken: None,
        conflict: plain_conflict,
        names_fields: false,
        carries: false,
    },
};

fn asked<'s>(document: &Document<'s>) -> Option<Asked<'s>> {
    let Document::RunRequest(request) = document else { return None };
    Some(Asked {
        id: Some(request.request_id.get()),
        input: request.inputs.map(RawObject::get),
        recipient: None,
        addressed: None,
    })
}
