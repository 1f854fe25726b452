//! Jobs with more events than one page holds.

use crosspoint_contracts::reply::Progress;
use crosspoint_engine::event::What;
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::Phase;
use crosspoint_engine::store::Store;

use crate::rows::{self, DOCUMENT, batch, fresh, note};
use crate::scratch::Scratch;
use crate::stage::{self, agent, ended, new_job, reaches, submit};

#[test]
fn a_long_history_is_found_in_pages() {
    const EVENTS: u32 = 10_000;
    let scratch = Scratch::new();
    let (mut store, readers) = Store::open(&scratch.options()).expect("it opens");
    let mut job = rows::job(1);
    let progress = |n: u32| {
        What::Progress(Progress { percent: Some(f64::from(n % 100)), step: None, document: None, began: None })
    };
    let entries = (0..EVENTS).map(|n| note(&mut job, progress(n))).collect();
    store.commit(&batch([fresh(job, DOCUMENT.as_bytes(), entries)])).expect("it commits");
    let (mut pages, mut places, mut from) = (0, Vec::new(), None);
    loop {
        let page = readers.some_event_places(Seq(1), 1, from).expect("it can be read");
        assert!(page.places.len() <= 4_096, "one read is short");
        pages += 1;
        places.extend(page.places);
        from = page.rest;
        if from.is_none() {
            break;
        }
    }
    assert!(pages >= 3, "{pages}");
    places.reverse();
    assert_eq!(places, readers.event_places(Seq(1), 1).expect("it can be read"));
    assert_eq!(places.len(), EVENTS as usize);
}

#[tokio::test]
async fn a_follower_of_a_long_history_is_told_all_of_it() {
    let scratch = Scratch::new();
    let printing = agent("print", |mut attempt: crosspoint_engine::runtime::Attempt| async move {
        for _ in 0..5_000 {
            attempt.output(bytes::Bytes::from_static(b"x")).await.expect("it goes on");
        }
        stage::success("{}")
    });
    let engine = stage::start(&scratch, vec![printing]);
    let watch = submit(&engine, new_job("print", "{}")).await;
    reaches(&watch, Phase::Running).await;
    let id = ended(&watch).await.id();
    let told = stage::events(&engine, id, 0).await;
    assert_eq!(stage::names(&told).iter().filter(|name| **name == "output").count(), 5_000);
    stage::stop(engine).await;
}
