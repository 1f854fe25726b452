//! What an exchange in the workflow contract means.

use crate::document::Document;
use crate::exchange::{
    Asked, Exchange, Mark, Needs, Place, Refusing, Seconds, Wording, plain_conflict, plainly_invalid, says_nothing,
};
use crate::job::{Home, State};
use crate::kind::Kind;

pub(crate) static EXCHANGE: Exchange = Exchange {
    request: Kind::WorkflowInput,
    response: Kind::WorkflowOutput,
    asked,
    // An envelope has no id.
    id: "",
    work: "task/action",
    names: &[("/task/action", Home::Work)],
    work_may_name_agent: false,
    ids_are_unique: false,
    input: None,
    input_at: "/task/params",
    echoes: &[],
    types: &[],
    seconds_default: None,
    seconds: Seconds::Total,
    request_has: &[],
    needs: Needs {
        // An envelope has no id.
        ids: &[],
        marks: &[Mark::truth("success", true, State::Completed), Mark::truth("success", false, State::Failed)],
        outputs: &["summary"],
    },
    // Artifacts have other members here than in the native API, so they are read and not cut out.
    parts: &[],
    gives_text: true,
    text_limit: None,
    pieces: None,
    code: &[],
    response_has: &[],
    details_have: says_nothing,
    question: Place::Carried("question"),
    warnings: Place::Carried("warnings"),
    cancelled_is_error: true,
    http_status: |_| 200,
    refusing: Refusing {
        malformed: plainly_invalid,
        empty_id: None,
        too_long: None,
        too_large: None,
        unknown_work: Wording::at("/task/action"),
        unknown_agent: Wording::at(""),
        not_its_work: Wording::at("/task/action"),
        wrong_type: Wording::at(""),
        unspoken: None,
        conflict: plain_conflict,
        names_fields: false,
        carries: true,
    },
};

fn asked<'s>(document: &Document<'s>) -> Option<Asked<'s>> {
    let Document::WorkflowInput(input) = document else { return None };
    Some(Asked { id: None, input: Some(input.task.params.get()), recipient: None, addressed: None })
}
