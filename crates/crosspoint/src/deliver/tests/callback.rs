//! Recipients that are told at their addresses.

use super::recipient::{Does, Listening, REFUSES, TAKES};
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_is_told_each_state_in_order_and_the_outcome_once() {
    let (place, there) = (Place::new("order"), Listening::new(|_| TAKES).await);
    let deliveries = start(&place, Some(there.url.clone()), 1);
    let watch = place.submit("slow_echo", &json!({ "seconds": 0.4 })).await;
    deliveries.follow(NAME, watch.clone());
    let ended = watch.ended(Instant::now() + LONG).await;
    there.until(|got| got.text("state") == "completed").await;
    place.until_owed(0).await;
    deliveries.close(Instant::now() + LONG).await;
    let got = there.got(3).await;
    let states: Vec<&str> = got.iter().map(|got| got.text("state")).collect();
    assert!(states[..states.len() - 1].iter().all(|state| *state == "running"), "{states:?}");
    assert_eq!(states.iter().filter(|state| **state == "completed").count(), 1, "{states:?}");
    let mut ids: Vec<&str> = got.iter().map(|got| got.text("id")).collect();
    ids.dedup();
    assert_eq!(ids.len(), got.len(), "nothing is told twice");
    let head = &got[0].head;
    assert!(head.starts_with("post /base/inbox http/1.1") && head.contains("content-type: application/json"), "{head}");
    let trace = format!("traceparent: 00-{}-", ended.id().uuid().simple());
    assert!(head.contains(&trace), "{head}");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_refused_is_sent_again_with_the_same_id() {
    let place = Place::new("refused");
    let times = AtomicU32::new(0);
    let rule = move |_: &recipient::Got| match times.fetch_add(1, Ordering::Relaxed) {
        0 => Does::Answers("307 Temporary Redirect\r\nlocation: /base/login"),
        _ => TAKES,
    };
    let there = Listening::new(rule).await;
    place.done().await;
    let deliveries = start(&place, Some(there.url.clone()), 1);
    let got = there.got(2).await;
    assert!(got.iter().all(|message| message.text("id") == got[0].text("id")), "{got:?}");
    assert!(got.iter().all(|message| message.head.starts_with("post /base/inbox ")), "no redirect is followed");
    place.until_owed(0).await;
    let results = deliveries.numbers().remove(0).results;
    assert_eq!(results, [("acknowledged", 1), ("refused", 1), ("unanswered", 0), ("pulled", 0)]);
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_job_whose_messages_are_refused_holds_no_other_up() {
    let place = Place::new("one");
    let poison = place.done().await.id().to_string();
    let refused = poison.clone();
    let there = Listening::new(move |got| if got.text("job") == refused { REFUSES } else { TAKES }).await;
    let deliveries = start(&place, Some(there.url.clone()), 1);
    there.got(1).await;
    for _ in 0..40 {
        deliveries.follow(NAME, place.submit("echo", &json!({})).await);
    }
    place.until_owed(1).await;
    there.until_times(3, move |got| got.text("job") == poison).await;
    let job = place.engine.owed(NAME, None, 10).await.expect("it can be read").remove(0).id;
    let job = place.engine.job(job).await.expect("it can be read").expect("it is there").job();
    let owed = deliveries.owed(&job).await.expect("it can be read").expect("it is owed");
    let failing = owed.failing.expect("it says why");
    assert!((2..=3).contains(&failing.tries) && failing.last == "it answered with status 500", "{}", failing.tries);
    assert_eq!((&*owed.to, owed.since), (NAME, job.outcome().expect("it has ended").at));
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_that_never_answers_is_given_up_and_one_that_never_ends_has_acknowledged() {
    let place = Place::new("slow");
    let times = AtomicU32::new(0);
    let rule = move |_: &recipient::Got| match times.fetch_add(1, Ordering::Relaxed) {
        0 => Does::Nothing,
        _ => Does::Goes,
    };
    let there = Listening::new(rule).await;
    place.done().await;
    let times = Times { answer_max: Duration::from_millis(50), ..TIMES };
    let recipients = vec![recipient(Some(there.url.clone()))];
    let deliveries = Deliveries::start_with(place.engine.clone(), recipients, telling(1), times);
    there.got(2).await;
    place.until_owed(0).await;
    assert_eq!(deliveries.numbers().remove(0).results[2], ("unanswered", 1));
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_were_taken_are_not_sent_again() {
    let place = Place::new("parts");
    let times = AtomicU32::new(0);
    let is_third = move |_: &recipient::Got| times.fetch_add(1, Ordering::Relaxed) == 2;
    let there = Listening::new(move |got| if is_third(got) { REFUSES } else { TAKES }).await;
    place.done().await;
    let deliveries = start(&place, Some(there.url.clone()), 4);
    let parts: Vec<String> = there.got(5).await.iter().map(|got| got.text("part").to_owned()).collect();
    assert_eq!(parts, ["1", "2", "3", "3", "4"]);
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_is_presented_and_never_printed() {
    let (place, there) = (Place::new("token"), Listening::new(|_| TAKES).await);
    std::fs::write(place.directory.join("t"), "s3cret").expect("it can be written");
    let toml = format!("[[caller]]\nname = \"{NAME}\"\ncallback = \"{}\"\ntoken_file = \"t\"\n", there.url);
    let file = place.directory.join("callers.toml");
    std::fs::write(&file, toml).expect("it can be written");
    let config = Config::load(&Flags { config: Some(file), ..Flags::default() }).expect("it can be read");
    assert!(!format!("{config:?}").contains("s3cret"));
    place.done().await;
    let recipients = config.callers.iter().map(Recipient::from).collect();
    let deliveries = Deliveries::start(place.engine.clone(), recipients, telling(1));
    assert!(there.got(1).await[0].head.contains("authorization: bearer s3cret"));
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}

/// The caller went away as soon as its job was on disk, so that nobody named the job.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_nobody_named_is_found_in_the_store() {
    let (place, there) = (Place::new("missed"), Listening::new(|_| TAKES).await);
    let times = Times { count_max: Duration::from_millis(100), missed_after: Duration::ZERO, ..TIMES };
    let recipients = vec![recipient(Some(there.url.clone()))];
    let deliveries = Deliveries::start_with(place.engine.clone(), recipients, telling(1), times);
    place.done().await;
    place.until_owed(0).await;
    let missed = place.done().await;
    place.until_owed(0).await;
    let got = there.got(2).await;
    let is_end = |got: &&recipient::Got| got.text("job") == missed.id().to_string() && got.text("state") == "completed";
    assert_eq!(got.iter().filter(is_end).count(), 1);
    deliveries.close(Instant::now() + LONG).await;
    place.stop().await;
}
