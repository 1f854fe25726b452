//! Callers of the message contract, told by its documents.

use crosspoint_contracts::{Kind, Options, read};
use crosspoint_exchange::admission::Headers;
use crosspoint_exchange::incoming;
use crosspoint_http::door::message::CONTRACT;

use super::recipient::{Listening, TAKES};
use super::*;
use crate::deliver::message;

const REQUEST: &str = "550e8400-e29b-41d4-a716-446655440003";
const TASK: &str = "550e8400-e29b-41d4-a716-446655440004";

/// A request of a caller that is told later.
async fn request(place: &Place, work: &str, parameters: &Value) -> Watch {
    let document = json!({
        "protocol_version": "1.0", "message_id": "550e8400-e29b-41d4-a716-446655440001", "from_agent": "orchestrator",
        "to_agent": "code", "timestamp": "2026-01-19T04:21:04Z", "trace_id": "550e8400-e29b-41d4-a716-446655440002",
        "request_id": REQUEST, "type": "work_request",
        "payload": { "task_id": TASK, "work_type": work, "parameters": parameters, "hints": {} },
    });
    let headers = Headers { notify: Some(NAME.into()), ..Headers::default() };
    let incoming = incoming::read(CONTRACT, &Bytes::from(document.to_string()), headers);
    let new = incoming.unwrap_or_else(|report| panic!("{report:?}")).new;
    let (Submitted::New(watch) | Submitted::Repeat(watch)) = place.engine.submit(new).await.expect("it is accepted");
    watch
}

fn start(place: &Place, callback: Option<Url>) -> Arc<Deliveries> {
    Deliveries::start(place.engine.clone(), vec![recipient(callback)], message::telling(&place.engine))
}

/// Checks that a message has nothing wrong about it, and the ids of the caller.
fn checked(message: &Value) -> &str {
    let kind = match message["type"].as_str() {
        Some("work_status") => Kind::WorkStatus,
        Some("work_result") => Kind::WorkResult,
        Some("error") => Kind::MessageError,
        other => panic!("{other:?}"),
    };
    let report = read(message.to_string().as_bytes(), &Options { kind: Some(kind), ..Options::default() }).report;
    assert!(report.findings.is_empty(), "{report:?} in {message}");
    assert_eq!((&message["request_id"], &message["to_agent"]), (&json!(REQUEST), &json!("orchestrator")), "{message}");
    message["message_id"].as_str().expect("it is a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_is_told_by_messages_of_its_contract() {
    let (place, there) = (Place::new("message"), Listening::new(|_| TAKES).await);
    let deliveries = start(&place, Some(there.url.clone()));
    deliveries.follow(NAME, request(&place, "slow_echo", &json!({ "seconds": 0.3 })).await);
    there.until(|got| got.text("type") == "work_result").await;
    place.until_owed(0).await;
    let got = there.got(2).await;
    assert!(got[0].head.starts_with("post /base/api/agent/message "), "{}", got[0].head);
    let mut ids: Vec<&str> = got.iter().map(|got| checked(&got.body)).collect();
    assert!(got[..got.len() - 1].iter().all(|got| got.text("type") == "work_status"));
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "each message has its own id");
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_pulls_acknowledges_by_any_id() {
    for by in ["message_id", REQUEST, TASK] {
        let place = Place::new("ids");
        let job = request(&place, "fail", &json!({})).await.ended(Instant::now() + LONG).await;
        assert!(job.outcome().is_some());
        let deliveries = start(&place, None);
        let messages = deliveries.pulled(10, Instant::now(), &[]).await;
        let message: Value = serde_json::from_slice(&messages[0]).expect("JSON");
        let own = checked(&message).to_owned();
        let ack = if by == "message_id" { own } else { by.to_owned() };
        assert_eq!(deliveries.pulled(10, Instant::now(), &[ack]).await.len(), 0);
        assert_eq!(place.owed().await, 0, "{by}");
        deliveries.close(Instant::now() + LONG).await;
        place.stop().await;
    }
}

/// MSG-9: what is over 1 MiB goes out in blocks before the result, which has the end of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_text_is_told_in_pieces_at_an_address_and_by_pulls() {
    let (place, there) = (Place::new("long"), Listening::new(|_| TAKES).await);
    let text = "0123456789abcde\u{e4}".repeat(100_000);
    let job = request(&place, "echo", &json!({ "text": text })).await.ended(Instant::now() + LONG).await;
    let deliveries = start(&place, None);
    let pulled = deliveries.pulled(100, Instant::now(), &[]).await;
    deliveries.close(Instant::now() + LONG).await;
    let deliveries = start(&place, Some(there.url.clone()));
    place.until_owed(0).await;
    let sent = there.got(pulled.len()).await;
    let pulled: Vec<Value> = pulled.iter().map(|it| serde_json::from_slice(it).expect("JSON")).collect();
    assert_eq!(sent.into_iter().map(|got| got.body).collect::<Vec<_>>(), pulled, "they are the same, each time");
    let ids: std::collections::BTreeSet<&str> = pulled.iter().map(checked).collect();
    assert_eq!(ids.len(), pulled.len());
    let (result, pieces) = pulled.split_last().expect("there are some");
    let gathered: String = pieces.iter().filter_map(|piece| piece["payload"]["step"]["output"].as_str()).collect();
    let output = result["payload"]["output"].as_str().expect("it is a text");
    assert!(gathered.contains(&text) && gathered.ends_with(output) && output.len() <= 1 << 20);
    assert!(pieces.len() >= 7 && job.outcome().is_some());
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}
