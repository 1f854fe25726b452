//! Callers: who is told by name, and what others learn of how they ask.

use serde_json::{Value, json};

use crate::support::message_sender::{ADDED_TYPE, asking, cancelling, message, sample};
use crate::support::server::Server;

const CALLERS: &str = "[[caller]]\nname = \"gardener\"\n[[caller]]\nname = \"other\"\n";

fn warnings(document: &Value) -> Vec<String> {
    let listed = document["x_custom_fields"]["x_crosspoint"]["warnings"].as_array();
    listed.into_iter().flatten().map(|warning| warning.as_str().expect("a text").to_owned()).collect()
}

#[test]
fn a_caller_without_a_token_is_known_by_its_name_and_told() {
    let server = Server::configured(&(sample("echo", "dig", "") + CALLERS));
    let mut request = asking("dig", &json!({}));
    request["from_agent"] = json!(ADDED_TYPE);
    let said = server.say(&request);
    assert_eq!((said.status, warnings(&said.document)), (202, Vec::new()), "{:?}", said.answer);
    let told = server.polled(&format!("agent={ADDED_TYPE}&wait=60"));
    assert_eq!(told[0]["request_id"], request["request_id"], "{told:?}");
}

#[test]
fn a_request_of_none_of_the_callers_warns_that_no_caller_is_told() {
    let server = Server::configured(&(sample("echo", "dig", "") + &sample("ask", "approve", "") + CALLERS));
    // Work that waits for a person has not ended when its request is answered.
    let request = asking("approve", &json!({}));
    let said = server.say(&request);
    let warned = warnings(&said.document);
    assert_eq!((said.status, warned.len()), (202, 1), "{:?}", said.answer);
    assert!(warned[0].starts_with("MSG-17.4: `from_agent` is not the name of a [[caller]]"), "{warned:?}");
    // A caller that waits has its answer there.
    assert_eq!(warnings(&server.outcome_of(&asking("dig", &json!({}))).document), Vec::<String>::new());
    let alone = Server::configured(&sample("ask", "approve", ""));
    assert_eq!(warnings(&alone.say(&request).document), Vec::<String>::new(), "without callers there is no warning");
}

#[test]
fn a_misspelled_member_is_kept_with_a_warning() {
    let server = Server::configured(&sample("ask", "dig", ""));
    let mut request = asking("dig", &json!({}));
    let payload = request["payload"].as_object_mut().expect("an object");
    payload.remove("parameters");
    payload.insert("paramters".to_owned(), json!({"depth": 1}));
    let said = server.say(&request);
    let warning = "MSG-3: `payload` has no `parameters`, but a member of nearly that name, which is kept and not used";
    assert_eq!((said.status, warnings(&said.document)), (202, vec![warning.to_owned()]), "{:?}", said.answer);
    let mut open = asking("dig", &json!({}));
    open["payload"]["parameter_set"] = json!(1);
    assert_eq!(warnings(&server.say(&open).document), Vec::<String>::new(), "a payload is open");
}

#[test]
fn what_cannot_be_cancelled_says_how_to_cancel() {
    let server = Server::configured(&sample("ask", "approve", ""));
    let refused = server.say(&cancelling(&asking("approve", &json!({}))));
    assert_eq!((refused.status, refused.message()), (404, "no work of yours is known by this id"));
    assert!(refused.context()["hint"].as_str().is_some_and(|hint| hint.contains("work_request of yours")));
    let request = asking("approve", &json!({}));
    assert_eq!(server.say(&request).status, 202);
    let mut other = message("error", &json!({"error_code": 5900, "error_message": "Stop", "error_context": {}}));
    other["request_id"] = request["request_id"].clone();
    let refused = server.say(&other);
    assert_eq!(refused.status, 404, "{:?}", refused.answer);
    assert!(refused.context()["hint"].as_str().is_some_and(|hint| hint.contains("`error_code` 5901")));
}
