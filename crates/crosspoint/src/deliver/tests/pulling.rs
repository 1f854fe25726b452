//! Recipients that pull.

use super::recipient::{Listening, REFUSES};
use super::*;

async fn pulled(deliveries: &Deliveries, max: usize, acks: &[&str]) -> Vec<Value> {
    let acks: Vec<String> = acks.iter().map(|ack| (*ack).to_owned()).collect();
    let messages = deliveries.pulled(max, Instant::now(), &acks).await;
    messages.iter().map(|message| serde_json::from_slice(message).expect("JSON")).collect()
}

fn ids(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["id"].as_str().unwrap_or_default()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_pulls_what_it_is_owed_and_acknowledges_it() {
    let place = Place::new("pull");
    let (first, second) = (place.done().await, place.done().await);
    let deliveries = start(&place, None, 2);
    let one = pulled(&deliveries, 1, &[]).await;
    assert_eq!((one.len(), &one[0]["part"]), (1, &json!("1")));
    let rest = pulled(&deliveries, 10, &[]).await;
    assert_eq!(rest.len(), 3);
    assert_eq!(pulled(&deliveries, 10, &[]).await, Vec::<Value>::new(), "nothing comes twice within its time");
    assert_eq!(place.owed().await, 2);
    pulled(&deliveries, 0, &[ids(&rest)[0], "unknown"]).await;
    assert_eq!(place.owed().await, 1, "the last message of the first job");
    pulled(&deliveries, 0, &[&second.request.request_id]).await;
    assert_eq!(place.owed().await, 0);
    assert!(deliveries.owed(&first).await.expect("it can be read").is_none());
    assert_eq!(deliveries.numbers().remove(0).results[3], ("pulled", 4));
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_that_waits_gets_the_states_and_the_outcome() {
    let place = Place::new("wait");
    let deliveries = start(&place, None, 1);
    let waiting = deliveries.clone();
    let pull = tokio::spawn(async move {
        let (mut states, mut acks) = (Vec::new(), Vec::new());
        while states.last() != Some(&"completed".to_owned()) {
            for message in waiting.pulled(10, Instant::now() + LONG, &acks).await {
                let message: Value = serde_json::from_slice(&message).expect("JSON");
                let text = |member: &str| message[member].as_str().unwrap_or_default().to_owned();
                acks.push(text("id"));
                states.push(text("state"));
            }
        }
        waiting.pulled(10, Instant::now(), &acks).await;
        states
    });
    let watch = place.submit("ask", &json!({})).await;
    deliveries.follow(NAME, watch.clone());
    let asking = watch.settled(Instant::now() + LONG).await;
    place.engine.answer(asking.id(), Body::trusted("\"yes\"".to_owned())).await.expect("it is taken");
    let states = pull.await.expect("it ends");
    assert_eq!(states.iter().filter(|state| *state == "completed").count(), 1, "{states:?}");
    assert_eq!(place.owed().await, 0);
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_acknowledged_by_a_pull_is_not_sent_to_the_address_any_more() {
    let (place, there) = (Place::new("both"), Listening::new(|_| REFUSES).await);
    let job = place.done().await;
    let deliveries = start(&place, Some(there.url.clone()), 1);
    let got = there.got(1).await;
    let messages = pulled(&deliveries, 10, &[]).await;
    assert_eq!(ids(&messages), [got[0].text("id")], "the same message");
    pulled(&deliveries, 10, &["task"]).await;
    assert_eq!(place.owed().await, 0);
    assert!(deliveries.recipients[NAME].outbox().stumbled(job.id()).is_none());
    assert!(deliveries.recipients[NAME].outbox().next(Instant::now() + LONG).is_none());
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_as_many_messages_as_were_asked_for_and_not_too_many_bytes() {
    let place = Place::new("bytes");
    for _ in 0..5 {
        place.done().await;
    }
    let big = |job: &Job| Bytes::from(format!("{}{}", document(job, "big"), " ".repeat(5 << 20)));
    let telling = Telling { outcome: Box::new(move |job| vec![big(job)]), ..telling(1) };
    let deliveries = Deliveries::start(place.engine.clone(), vec![recipient(None)], telling);
    for _ in 0..5 {
        assert_eq!(deliveries.pulled(2, Instant::now(), &[]).await.len(), 1);
    }
    assert_eq!(deliveries.pulled(2, Instant::now(), &[]).await.len(), 0);
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}
