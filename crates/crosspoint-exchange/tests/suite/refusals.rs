//! Refusals at the door of the message contract: each is a whole error message, and its context says what is true.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::request::{Door, NewJob};
use crosspoint_contracts::{Contract, Kind};
use crosspoint_exchange::admission::{self, Caller, Headers};
use crosspoint_exchange::backend::{Agent, Backend, Denied, Followed, Submitted, Unaccepted, Whole};
use crosspoint_exchange::refusal::{self, Limit, Refusal, Situation, TokenStatus};
use crosspoint_exchange::snapshot::{Snapshot, State};
use futures_util::FutureExt;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::made::{REQUEST, TASK, TRACE, faultless, faultless_among, snapshot, work_request};

const NOW: &str = "2027-01-15T08:00:00Z";

fn written(refusal: &Refusal) -> Value {
    faultless(&refusal::document(refusal, Contract::Message, Uuid::from_u128(7), NOW), Kind::MessageError)
}

/// Refuses a request that is there to be read.
fn about(refusal: Refusal, document: &Value) -> Value {
    written(&admission::about(refusal, Contract::Message, document.to_string().as_bytes(), &[]))
}

/// Refuses a document that breaks the contract.
fn broken(document: &[u8]) -> Refusal {
    let Err(refusal) = admission::read(Contract::Message, &Bytes::copy_from_slice(document), Headers::default()) else {
        panic!("it is accepted")
    };
    refusal
}

fn context(message: &Value) -> &Value {
    &message["payload"]["error_context"]
}

#[test]
fn a_refusal_repeats_the_ids_and_goes_the_other_way() {
    let message = about(Refusal::internal(), &work_request());
    assert_eq!((&message["request_id"], &message["trace_id"]), (&json!(REQUEST), &json!(TRACE)));
    assert_eq!((&message["from_agent"], &message["to_agent"]), (&json!("infra"), &json!("research")));
    assert_eq!((&context(&message)["task_id"], &message["timestamp"]), (&json!(TASK), &json!(NOW)));
    assert_eq!(message["payload"]["error_code"], 5900);
    assert_eq!(message["x_custom_fields"], json!({}), "there is nothing to carry");
    assert_ne!(message["message_id"], work_request()["message_id"]);
    assert_eq!(context(&message)["repeat"], "unknown");
}

/// Whatever the reason, with and without a request that can be read.
#[test]
fn every_refusal_is_a_whole_message() {
    let second = Duration::from_secs(1);
    let all: [fn(Duration) -> Refusal; 18] = [
        |_| Refusal::invalid("a \"message\"", "a hint"),
        |_| Refusal::invalid("in a field", "a hint").at("/payload/hints").naming_field(),
        |_| Refusal::not_found("nothing", "a hint"),
        |_| Refusal::no_such_job(),
        |_| Refusal::wrong_method("PUT"),
        |_| Refusal::foreign("not here", "go there"),
        |_| Refusal::conflict("another", "a hint"),
        |_| Refusal::untimely("not now", "a hint"),
        |_| Refusal::unsupported("nobody", "a hint"),
        |_| Refusal::delegation("a circle", "a hint"),
        |_| Refusal::too_large(1),
        |time| Refusal::too_slow("body", Limit::BodySeconds, time),
        |_| Refusal::unavailable("away", "a hint").over(Limit::StoreBytes),
        |_| Refusal::ended(),
        |time| Refusal::waited("j", time),
        |_| Refusal::leaving("j"),
        |_| Refusal::internal(),
        |_| Refusal::full(Limit::Jobs, 1),
    ];
    for refuse in all {
        let bare = written(&refuse(second));
        let message = about(refuse(second), &work_request());
        assert_eq!(message["payload"]["error_code"], bare["payload"]["error_code"]);
        assert_eq!(
            (&message["request_id"], &context(&message)["task_id"]),
            (&json!(REQUEST), &json!(TASK)),
            "{message}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_made_up_and_said_to_be() {
    for nothing in [&b""[..], b"[]", b"{", b"\xff", br#"{"request_id": 7, "trace_id": "x", "from_agent": "Code"}"#] {
        let message = written(&broken(nothing));
        assert_eq!(message["payload"]["error_code"], 5003);
        assert_eq!((&message["from_agent"], &message["to_agent"]), (&json!("orchestrator"), &json!("orchestrator")));
        let carried = &message["x_custom_fields"]["x_crosspoint"];
        assert!(carried["warnings"][0].as_str().is_some_and(|it| it.contains("generated")), "{message}");
    }
    // A document that is cut off gives what came before.
    let whole = work_request().to_string();
    let cut = &whole.as_bytes()[..whole.len() - 3];
    let message = written(&broken(cut));
    assert_eq!((&message["request_id"], &message["trace_id"]), (&json!(REQUEST), &json!(TRACE)));
    let mut odd = work_request();
    (odd["request_id"], odd["payload"]["task_id"]) = (json!("mine"), json!("also mine"));
    let message = written(&broken(odd.to_string().as_bytes()));
    assert_eq!(context(&message)["task_id"], Value::Null, "an id that is none is not repeated as one");
    assert_eq!(message["x_custom_fields"]["x_crosspoint"]["request_id"], "mine");
}

#[test]
fn an_invalid_message_names_its_field() {
    let mut request = work_request();
    request["payload"]["work_type"] = json!(7);
    let message = written(&broken(request.to_string().as_bytes()));
    assert_eq!(message["payload"]["error_code"], 5003);
    assert_eq!(context(&message)["validation_error"], message["payload"]["error_message"]);
    assert_eq!(context(&message)["field_name"], "payload.work_type");
    let mut request = work_request();
    request["payload"].as_object_mut().expect("an object").remove("task_id");
    assert_eq!(context(&written(&broken(request.to_string().as_bytes())))["field_name"], "payload.task_id");
    assert_eq!(context(&written(&broken(b"no JSON")))["field_name"], Value::Null);
    // A body that is too large is a mistake of the request.
    let message = about(Refusal::too_large(1_000), &work_request());
    assert_eq!((&message["payload"]["error_code"], &context(&message)["field_name"]), (&json!(5003), &Value::Null));
}

/// MSG-10.3: whatever else is wrong with it.
#[test]
fn a_message_in_another_version_is_unsupported_and_both_lists_are_named() {
    let mut request = work_request();
    (request["protocol_version"], request["payload"]) = (json!("2.0"), json!({"work_type": "deploy", "v2": []}));
    let agents = [agent("a", &["deploy", "build"]), agent("b", &["build"])];
    let message = written(&broken(request.to_string().as_bytes()).knowing(&agents));
    assert_eq!(message["payload"]["error_code"], 5006);
    let words = message["payload"]["error_message"].as_str().expect("words");
    assert!(words.contains("\"1.0\"") && words.contains("\"2.0\""), "{words}");
    assert_eq!((&message["protocol_version"], &message["request_id"]), (&json!("1.0"), &json!(REQUEST)));
    assert_eq!(context(&message)["work_type_requested"], "deploy");
    assert_eq!(context(&message)["supported_types"], json!(["build", "deploy"]));
    assert_eq!(context(&message)["clause"], "MSG-10.2");
}

#[test]
fn a_limit_is_named_with_what_it_allows() {
    let message = about(Refusal::full(Limit::JobsPerWork, 10), &work_request());
    assert_eq!(message["payload"]["error_code"], 5005);
    let context = context(&message);
    assert_eq!((&context["limit_name"], &context["repeat"]), (&json!("jobs_per_work"), &json!("safe")));
    assert_eq!((&context["available"], &context["required"]), (&json!(0), &json!(1)));
}

#[test]
fn a_refused_token_says_what_is_wrong_with_it() {
    let words = ["missing", "malformed", "unknown", "expired", "expired", "revoked", "wrong_agent", "wrong_scope"];
    for (status, word) in TokenStatus::ALL.into_iter().zip(words) {
        let refusal = Refusal::unauthenticated("infra-1", status);
        let situation =
            if status == TokenStatus::WrongScope { Situation::WrongScope } else { Situation::Unauthenticated };
        assert_eq!(refusal.situation(), situation);
        let message = about(refusal, &work_request());
        assert_eq!(message["payload"]["error_code"], 5004);
        assert_eq!(context(&message)["agent_id"], "infra-1");
        assert_eq!((&context(&message)["token_status"], &context(&message)["repeat"]), (&json!(word), &json!("never")));
    }
    for (refusal, named) in [
        (Refusal::wrong_scope("infra-1", "admin"), "a token for admin"),
        (Refusal::wrong_agent("infra-1", "infra-2"), "the agent infra-2"),
    ] {
        let message = about(refusal, &work_request());
        assert!(context(&message)["hint"].as_str().is_some_and(|hint| hint.contains(named)), "{message}");
    }
    let foreign = about(Refusal::foreign("not here", "go there"), &work_request());
    assert_eq!(context(&foreign)["token_status"], "wrong_scope");
}

#[test]
fn what_is_away_or_late_says_since_when() {
    let message = about(Refusal::stopping(), &work_request());
    assert_eq!(message["payload"]["error_code"], 5002);
    assert_eq!(context(&message)["agent_id"], "orchestrator");
    assert_eq!(context(&message)["last_heartbeat"], Value::Null);
    let message = about(Refusal::waited("j", Duration::from_secs(3)), &work_request());
    assert_eq!(message["payload"]["error_code"], 5001);
    assert_eq!((&context(&message)["attempted_retries"], &context(&message)["last_attempt"]), (&json!(0), &json!(NOW)));
}

#[test]
fn types_that_the_operator_added_are_repeated_too() {
    let mut request = work_request();
    (request["from_agent"], request["to_agent"]) = (json!("lab"), json!("gpu"));
    let types = [Box::from("lab"), Box::from("gpu")];
    let bytes = request.to_string();
    let refusal = admission::about(Refusal::internal(), Contract::Message, bytes.as_bytes(), &types);
    let text = refusal::document(&refusal, Contract::Message, Uuid::from_u128(7), NOW);
    let message = faultless_among(&text, Kind::MessageError, &["lab", "gpu"]);
    assert_eq!((&message["from_agent"], &message["to_agent"]), (&json!("gpu"), &json!("lab")));
}

fn agent(name: &str, works: &[&str]) -> Agent {
    Agent { name: name.into(), works: works.iter().map(|work| Arc::from(*work)).collect(), agent_type: None }
}

type Why = fn(NewJob) -> Unaccepted<Known>;

/// A side that takes no work, for this reason.
#[derive(Clone)]
struct Closed(Why);

/// A job that is there already.
#[derive(Clone)]
struct Known(Arc<NewJob>);

impl Backend for Closed {
    type Job = Known;
    type Room = ();

    async fn submit(&self, _: &Caller, new: NewJob) -> Result<Submitted<Known>, Unaccepted<Known>> {
        Err((self.0)(new))
    }

    async fn find(&self, _: Door, _: &Caller, _: &str) -> Result<Option<Known>, Refusal> {
        Ok(None)
    }

    async fn answer(&self, _: &Caller, _: &Known, _: Body, _: Instant) -> Result<Arc<NewJob>, Denied> {
        Err(Denied::NotFound)
    }

    async fn cancel(&self, _: &Caller, _: &Known) -> Result<(), Denied> {
        Err(Denied::NotFound)
    }

    async fn document(&self, _: &Known) -> Option<Block> {
        None
    }

    async fn with_text(&self, now: Arc<NewJob>) -> Result<Whole<Closed>, Refusal> {
        Ok(Whole { now, room: None })
    }

    fn agents(&self) -> Vec<Agent> {
        vec![agent("a", &["build", "test"]), agent("b", &["test"])]
    }
}

impl Followed for Known {
    type Now = Arc<NewJob>;

    fn now(&self) -> Arc<NewJob> {
        self.0.clone()
    }

    fn snapshot(now: &Arc<NewJob>) -> Snapshot<'_> {
        snapshot(now, State::Queued)
    }

    async fn ended(&self, _: Instant) -> Arc<NewJob> {
        self.0.clone()
    }

    async fn settled(&self, _: Instant) -> Arc<NewJob> {
        self.0.clone()
    }

    async fn moved(&self, _: &Arc<NewJob>, _: Instant) -> Arc<NewJob> {
        self.0.clone()
    }
}

#[test]
fn work_that_is_not_accepted_says_why_in_the_words_of_the_contract() {
    let reasons: [(Why, i64, &str, &str); 5] = [
        (|_| Unaccepted::UnknownWork, 5006, "/payload/work_type", "ALL-6"),
        (|_| Unaccepted::WrongType, 5006, "/to_agent", "MSG-18"),
        (|_| Unaccepted::NotItsWork, 5006, "/payload/work_type", "ALL-6"),
        (|_| Unaccepted::UnknownAgent, 5006, "/x_custom_fields/x_crosspoint/target", "ALL-6"),
        (|new| Unaccepted::Conflict(Known(Arc::new(new))), 5903, "", "ALL-1"),
    ];
    for (why, code, at, clause) in reasons {
        let bytes = Bytes::from(work_request().to_string());
        let reading =
            admission::read(Contract::Message, &bytes, Headers::default()).unwrap_or_else(|_| panic!("valid"));
        let refused = admission::submit(&Closed(why), reading).now_or_never().expect("it is ready");
        let message = written(&refused.err().expect("it is refused"));
        assert_eq!(message["payload"]["error_code"], code, "{message}");
        assert_eq!(context(&message)["at"].as_str().unwrap_or_default(), at, "{message}");
        assert_eq!((&context(&message)["clause"], &context(&message)["task_id"]), (&json!(clause), &json!(TASK)));
        if code == 5006 {
            assert_eq!(context(&message)["work_type_requested"], "deploy");
            assert_eq!(context(&message)["supported_types"], json!(["build", "test"]));
        }
    }
}

/// There may be a million works. A refusal has room for some of them.
#[test]
fn the_list_of_works_has_a_limit() {
    let many: Vec<String> = (0..10_000).map(|number| format!("work-{number:05}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let refusal = Refusal::unsupported("no", "no").knowing(&[agent("a", &many)]);
    assert_eq!(context(&about(refusal, &work_request()))["supported_types"].as_array().map(Vec::len), Some(100));
    let long = ["x".repeat(9_000)];
    let refusal = Refusal::unsupported("no", "no").knowing(&[agent("a", &[&long[0]])]);
    assert_eq!(context(&about(refusal, &work_request()))["supported_types"], json!([]));
}
