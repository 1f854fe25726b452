//! How programs interpret an answer.

use crosspoint_bridge::ask::{Answer, Asked, Run, Status, Unusable};
use crosspoint_bridge::{Pair, Question, response};

use crate::scratch::Scratch;

/// The answer in a document, with `ID` in place of the request's id.
fn answer(document: &str) -> Answer {
    let scratch = Scratch::new();
    let run = Run::begin(scratch.path()).expect("it is there");
    let question = Question::new("agent", "Do it.");
    run.try_ask(&question).expect("it can be asked");
    let id = scratch.request(Pair::PLAIN).expect("it waits").request_id;
    response::write(&scratch.open(), Pair::PLAIN, &document.replace("ID", &id)).expect("it can be written");
    match run.try_ask(&question).expect("it is answered") {
        Asked::Answered(answer) => *answer,
        Asked::NeedsAgent => panic!("nobody took the answer"),
    }
}

fn success(text: &str) -> Answer {
    answer(&response::success("ID", text, "2026-01-01T00:00:00Z", 1.5))
}

#[test]
fn the_text_may_be_anything_and_json_is_asked_for() {
    let markdown = success("# Title\n\n- ✅ \"quoted\"\n");
    assert_eq!((markdown.ended(), markdown.text()), (Status::Success, Ok("# Title\n\n- ✅ \"quoted\"\n")));
    match markdown.json() {
        Err(Unusable::NotJson { offset: 0, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(success(" {\"a\": [1]}\n").json(), Ok("{\"a\": [1]}"));
    assert!(!format!("{:?}", success("secret")).contains("secret"));
}

#[test]
fn a_failure_is_an_answer() {
    let failed = answer(&response::error("ID", "agent_failed", "It broke.", "2026-01-01T00:00:00Z", 2.0));
    assert_eq!(failed.ended(), Status::Error);
    let why = failed.text().expect_err("there is no text");
    assert_eq!((why.error_type.as_str(), why.to_string().as_str()), ("agent_failed", "It broke. (agent_failed)"));
    assert!(matches!(failed.json(), Err(Unusable::Failed(_))), "which is another error than that of the text");
}

/// BRIDGE-3.4
#[test]
fn an_error_of_the_type_timeout_is_a_timeout() {
    let spelled = response::error("ID", "timeout", "It took too long.", "2026-01-01T00:00:00Z", 2.0);
    let said = spelled.replace("\"status\":\"error\"", "\"status\":\"timeout\"");
    assert_eq!((answer(&spelled).ended(), answer(&spelled).status), (Status::Timeout, Status::Error));
    assert_eq!(answer(&said).ended(), Status::Timeout);
}
