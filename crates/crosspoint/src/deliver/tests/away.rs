//! Recipients that are away, or gone for good, and servers that stop or crash.

use std::collections::BTreeSet;

use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::recipient::{Does, Listening, TAKES};
use super::*;

/// The recipient has acknowledged, and the server dies before that is on disk.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_acknowledgement_was_lost_comes_again_with_the_same_id() {
    let place = Place::new("crash");
    let answer = Arc::new(Notify::new());
    let waits = answer.clone();
    let there = Listening::new(move |_| Does::Waits(waits.clone())).await;
    place.done().await;
    let first = start(&place, Some(there.url.clone()), 1);
    there.got(1).await;
    // Cut off in the middle, as by a crash: nothing is waited for.
    first.close(Instant::now()).await;
    answer.notify_one();
    assert_eq!(place.owed().await, 1, "the notice stays");
    answer.notify_one();
    let second = start(&place, Some(there.url.clone()), 1);
    let got = there.got(2).await;
    assert_eq!(got[0].text("id"), got[1].text("id"));
    place.until_owed(0).await;
    second.close(Instant::now() + LONG).await;
    place.stop().await;
}

/// More jobs end than the line has room for, over a restart of the engine.
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_that_was_away_is_told_everything_once_it_is_back() {
    const JOBS: usize = 1_500;
    let place = Place::new("away");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let url: Url = format!("http://{address}/base/").parse().expect("an address");
    drop(listener);
    let deliveries = start(&place, Some(url.clone()), 1);
    for _ in 0..JOBS {
        deliveries.follow(NAME, place.submit("echo", &json!({})).await);
    }
    place.until_owed(JOBS as u64).await;
    let standing = deliveries.standings().await.expect("it can be read").remove(0);
    assert_eq!((standing.owed, standing.is_known, standing.callback), (JOBS as u64, true, Some(url.clone())));
    deliveries.close(Instant::now() + LONG).await;
    place.engine.stop(Duration::ZERO).await;

    let place = Place { engine: started(&place.directory), directory: place.directory };
    let listener = TcpListener::bind(address).await.expect("the port is free again");
    let there = Listening::on(listener, |_| TAKES);
    let deliveries = start(&place, Some(url), 1);
    there.got(JOBS).await;
    place.until_owed(0).await;
    let got = there.got(JOBS).await;
    let jobs: BTreeSet<&str> = got.iter().map(|got| got.text("job")).collect();
    assert_eq!((got.len(), jobs.len()), (JOBS, JOBS), "each once");
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_that_cannot_be_reached_is_shown_and_is_told_when_it_is_back() {
    let place = Place::new("back");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let ended = place.done().await;
    place.done().await;
    let deliveries = start(&place, Some(format!("http://{address}/base/").parse().expect("an address")), 1);
    let failing = loop {
        let standing = deliveries.standings().await.expect("it can be read").remove(0);
        assert_eq!(standing.since, Some(ended.outcome().expect("it has ended").at));
        match standing.failing {
            Some(failing) => break failing,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(failing.last, "no connection can be made");
    assert!(failing.next_at > failing.since);
    let there = Listening::on(TcpListener::bind(address).await.expect("the port is free again"), |_| TAKES);
    there.got(2).await;
    place.until_owed(0).await;
    let standing = deliveries.standings().await.expect("it can be read").remove(0);
    assert!(standing.failing.is_none() && standing.owed == 0 && standing.since.is_none());
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_recipient_is_owed_that_is_no_longer_configured_is_kept_and_shown() {
    let place = Place::new("gone");
    let job = place.done().await;
    let deliveries = Deliveries::start(place.engine.clone(), Vec::new(), telling(1));
    deliveries.follow(NAME, place.submit("echo", &json!({})).await);
    place.until_owed(2).await;
    let standing = deliveries.standings().await.expect("it can be read").remove(0);
    assert_eq!((&*standing.name, standing.is_known, standing.owed), (NAME, false, 2));
    assert!(deliveries.owed(&job).await.expect("it can be read").is_some());
    assert_eq!(deliveries.pulled(10, Instant::now() + LONG, &[]).await, Vec::<Bytes>::new());
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}

/// A server that stops does not wait for recipients that are away, nor for pulls that wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_everything_and_keeps_what_is_owed() {
    let place = Place::new("stop");
    let there = Listening::new(|_| Does::Nothing).await;
    place.done().await;
    let deliveries = start(&place, Some(there.url.clone()), 1);
    deliveries.follow(NAME, place.submit("ask", &json!({})).await);
    there.got(1).await;
    let waiting = deliveries.clone();
    let pull = tokio::spawn(async move { while !waiting.pulled(10, Instant::now() + LONG, &[]).await.is_empty() {} });
    let began = Instant::now();
    deliveries.close(began + Duration::from_millis(50)).await;
    pull.await.expect("it ends");
    assert!(began.elapsed() < LONG, "it does not wait for the recipient");
    assert_eq!(place.owed().await, 1);
    there.leave();
    place.stop().await;
}
