//! A store that an earlier version wrote: it opens, and holds the same before and after.

use std::fs;
use std::path::Path;

use crosspoint_engine::id::Seq;
use crosspoint_engine::job::Phase;
use crosspoint_engine::store::{Filter, Readers, Store};

use crate::rows::whole;
use crate::scratch::Scratch;

fn older() -> Scratch {
    of("schema-7")
}

pub(crate) fn of(schema: &str) -> Scratch {
    let scratch = Scratch::new();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/stores").join(schema).join("jobs.db");
    fs::copy(kept, scratch.database()).expect("it can be copied");
    scratch
}

/// Everything that is known of all jobs, except what their links remember.
fn all(readers: &Readers) -> Vec<(Seq, String)> {
    let page = readers.list(&Filter { limit: 1_000, ..Filter::default() }).expect("it can be listed");
    let seqs = page.jobs.iter().map(crosspoint_engine::job::Job::seq);
    let job = |seq| readers.job_at(seq).expect("it can be read").expect("it is there");
    seqs.map(|seq| (seq, whole(&crosspoint_engine::job::Job { memory: None, ..job(seq) }))).collect()
}

#[test]
fn a_store_of_an_earlier_schema_says_the_same_before_and_after_it_is_brought_forward() {
    for (schema, jobs) in [
        ("schema-7", 60),
        ("schema-8", 3),
        ("schema-10", 3),
        ("schema-12", 5),
        ("schema-13", 4),
        ("schema-14", 3),
        ("schema-15", 6),
    ] {
        let scratch = of(schema);
        let as_it_is = Readers::open(&scratch.database()).expect("it can be read as it is");
        let members = |readers: &Readers| format!("{:?}", readers.members().expect("they can be read"));
        let (before, joined) = (all(&as_it_is), members(&as_it_is));
        assert_eq!(before.len(), jobs, "{schema}");
        assert_eq!(as_it_is.owed_counts().expect("they can be read"), [], "{schema}");
        let (store, readers) = Store::open(&scratch.options()).expect("it opens");
        assert_eq!((all(&readers), members(&readers)), (before, joined), "{schema}");
        drop((store, readers));
    }
}

/// Older versions noted only in a sentence that a request had been put into its directory. The new schema turns that
/// sentence into a memory of the link.
#[test]
fn what_a_sentence_told_of_a_request_in_a_directory_is_remembered() {
    let scratch = older();
    let (store, readers) = Store::open(&scratch.options()).expect("it opens");
    let page = readers.list(&Filter { limit: 1_000, ..Filter::default() }).expect("it can be listed");
    let memories = page.jobs.iter().filter_map(|job| {
        let memory = String::from_utf8_lossy(&job.memory.as_ref()?.0).into_owned();
        Some((job.request.request_id.to_string(), job.phase(), memory))
    });
    let asked = ("n-review-open".to_owned(), Phase::Running, r#"{"asked_in":"/srv/crosspoint/inbox"}"#.to_owned());
    assert_eq!(memories.collect::<Vec<_>>(), [asked]);
    drop(store);
}
