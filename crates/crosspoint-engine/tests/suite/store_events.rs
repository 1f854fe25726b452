//! Events of jobs in the store: their order, and where reading may begin.

use bytes::Bytes;
use crosspoint_contracts::content::Block;
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::outcome::Status;
use crosspoint_contracts::reply::{Progress, Question};
use crosspoint_contracts::time::Time;
use crosspoint_engine::event::{Entry, What};
use crosspoint_engine::id::Seq;

use crate::rows::{self, DOCUMENT, NOW, batch, end, fresh, note, stepped, whole_entry};
use crate::scratch::Scratch;
use crate::store::{HARD, body, events, open};

/// One event of every kind except acceptance and the end.
fn happenings() -> Vec<What> {
    let progress = |percent, step: Option<&str>| {
        What::Progress(Progress { percent, step: step.map(body), document: None, began: None })
    };
    let block = |bytes: &'static [u8]| Block(Bytes::from_static(bytes));
    vec![
        What::Started { attempt: 1, agent: HARD.into() },
        progress(Some(12.5), Some(r#""Größe""#)),
        progress(None, Some(r#""nur Text""#)),
        progress(Some(0.0), None),
        What::Output { attempt: 1, offset: 0, block: block(b"\x00\xff not UTF-8 \xf0") },
        What::Output { attempt: 1, offset: 4 << 30, block: block(b"") },
        What::Asked { question: Question::read(body(r#"{"prompt":"?"}"#)) },
        What::Answered { answer: body(" [1,\n2] ") },
        What::Step { step: body(" {\"step\":\n2} ") },
        What::Retrying { attempt: 1, failure: Failure::Unavailable, until: Time(NOW.0 + 1) },
        What::Interrupted { attempt: 2 },
    ]
}

/// All events of a job after number `after`, as a follower would put them together.
#[test]
fn events_come_in_order_from_anywhere_and_the_outcome_is_last() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    let mut jobs = [rows::job(1), rows::job(2), rows::job(3)];
    let mut expected: [Vec<Entry>; 3] = Default::default();
    store
        .commit(&batch(jobs.iter().map(|job| fresh(job.clone(), DOCUMENT.as_bytes(), Vec::new()))))
        .expect("it commits");
    // Batches of every size, in which the events of several jobs are interleaved.
    for round in 0..40_usize {
        let mut written = Vec::new();
        for (at, job) in jobs.iter_mut().enumerate() {
            let some = happenings().into_iter().cycle().skip(round).take((round + at) % 4);
            let entries: Vec<Entry> = some.map(|what| note(job, what)).collect();
            expected[at].extend(entries.clone());
            if !entries.is_empty() {
                written.push(stepped(job.clone(), entries));
            }
        }
        store.commit(&batch(written)).expect("it commits");
    }
    for (job, expected) in jobs.iter_mut().zip(&mut expected) {
        let last = end(job, Status::Completed, r#"{"status":"completed"}"#);
        expected.push(last.clone());
        store.commit(&batch([stepped(job.clone(), vec![last])])).expect("it commits");
    }
    for (job, expected) in jobs.iter().zip(&expected) {
        for after in 1..job.events {
            let found: Vec<String> = events(&readers, job.seq(), after).iter().map(whole_entry).collect();
            let rest: Vec<String> = expected.iter().filter(|entry| entry.n > after).map(whole_entry).collect();
            assert_eq!(found, rest, "after {after}");
        }
        assert!(expected.iter().map(|entry| entry.n).eq(2..=job.events));
        assert_eq!(readers.event_places(job.seq(), job.events).expect("it can be read"), Vec::<i64>::new());
    }
}

#[test]
fn events_of_two_openings_are_one_chain() {
    let scratch = Scratch::new();
    let mut job = rows::job(1);
    for opening in 0..5 {
        let (mut store, _) = open(&scratch);
        let entries: Vec<Entry> = happenings().into_iter().map(|what| note(&mut job, what)).collect();
        let written = match opening {
            0 => fresh(job.clone(), DOCUMENT.as_bytes(), entries),
            _ => stepped(job.clone(), entries),
        };
        store.commit(&batch([written])).expect("it commits");
    }
    let (_store, readers) = open(&scratch);
    assert!(events(&readers, Seq(1), 1).iter().map(|entry| entry.n).eq(2..=56));
}
