//! What talking in the demo contract means.

use crate::content::RawObject;
use crate::document::Document;
use crate::exchange::{
    Asked, Exchange, Holds, Mark, Needs, Part, Place, Refusing, Seconds, Wording, plain_conflict, plainly_invalid,
    says_nothing,
};
use crate::job::{Home, State};
use crate::kind::Kind;

pub(crate) static EXCHANGE: Exchange = Exchange {
    request: Kind::DemoAsk,
    response: Kind::DemoAnswer,
    asked,
    id: "id",
    work: "work",
    names: &[("/id", Home::RequestId), ("/work", Home::Work)],
    work_may_name_agent: false,
    ids_are_unique: false,
    input: None,
    input_at: "/input",
    echoes: &[],
    types: &[],
    seconds_default: None,
    seconds: Seconds::Total,
    request_has: &[],
    needs: Needs {
        ids: &["id"],
        marks: &[Mark::truth("ok", true, State::Completed), Mark::truth("ok", false, State::Failed)],
        outputs: &["output"],
    },
    parts: &[Part { path: &["output"], holds: Holds::Output, stand_in: "{}" }],
    gives_text: false,
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
        unknown_work: Wording::at("/work"),
        unknown_agent: Wording::at("/x_crosspoint/target"),
        not_its_work: Wording::at("/x_crosspoint/target"),
        wrong_type: Wording::at(""),
        unspoken: None,
        conflict: plain_conflict,
        names_fields: false,
        carries: true,
    },
};

fn asked<'s>(document: &Document<'s>) -> Option<Asked<'s>> {
    let Document::DemoAsk(ask) = document else { return None };
    let input = ask.input.map(RawObject::get);
    Some(Asked { id: Some(ask.id.get()), input, recipient: None, addressed: None })
}
