//! Lists of jobs: filtered, paged and searched, without a gap or a repeat.

use std::sync::Arc;

use crosspoint_contracts::Contract;
use crosspoint_contracts::outcome::Status;
use crosspoint_contracts::request::Door;
use crosspoint_engine::event::Entry;
use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::job::{Job, Phase, Request};
use crosspoint_engine::store::{Filter, Readers};

use crate::rows::{self, DOCUMENT, batch, end, fresh};
use crate::scratch::Scratch;
use crate::store::open;

/// Walks through all pages. Returns the numbers found, in the order they came, and the number of pages.
fn walk(readers: &Readers, filter: &Filter) -> (Vec<u64>, usize) {
    let mut filter = filter.clone();
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let page = readers.list(&filter).expect("it can be read");
        assert!(page.jobs.len() <= filter.limit);
        found.extend(page.jobs.iter().map(|job| job.seq().0));
        pages += 1;
        assert!(pages < 100_000, "the walk must come to an end");
        let Some(next) = page.next.map(JobId::seq) else { return (found, pages) };
        assert!(filter.before.is_none_or(|before| next < before), "every page goes further down");
        filter.before = Some(next);
    }
}

/// Jobs of several kinds, by their number.
fn mixed(seq: u64) -> (Job, Vec<Entry>) {
    let door = if seq.is_multiple_of(5) { Door::Contract(Contract::Task) } else { Door::Native };
    let work = if seq.is_multiple_of(3) { "rare" } else { "w" };
    let pinned = seq.is_multiple_of(7).then(|| "pinned".into());
    let mut job = Job::accepted(Arc::new(Request { door, work: work.into(), pinned, ..rows::request(seq) }));
    if seq.is_multiple_of(2) {
        return (job, Vec::new());
    }
    job.agent = Some("worker".into());
    let status = Status::ALL[usize::try_from(seq / 2 % 3).expect("it is small")];
    let last = end(&mut job, status, r#"{"status":"s"}"#);
    (job, vec![last])
}

#[test]
fn lists_are_filtered_and_paged_without_a_gap_or_a_repeat() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    let jobs: Vec<(Job, Vec<Entry>)> = (1..=210).map(mixed).collect();
    let write = |(job, entries): &(Job, Vec<Entry>)| fresh(job.clone(), DOCUMENT.as_bytes(), entries.clone());
    store.commit(&batch(jobs.iter().map(write))).expect("it commits");
    let all = Filter::default();
    let mut filters = vec![
        all.clone(),
        Filter { work: Some("rare".to_owned()), ..all.clone() },
        Filter { work: Some("none".to_owned()), ..all.clone() },
        Filter { agent: Some("worker".to_owned()), ..all.clone() },
        Filter { agent: Some("pinned".to_owned()), ..all.clone() },
        Filter { door: Some(Door::Contract(Contract::Task)), ..all.clone() },
        Filter {
            door: Some(Door::Contract(Contract::Task)),
            work: Some("rare".to_owned()),
            phase: Some(Phase::Failed),
            ..all.clone()
        },
    ];
    filters.extend(Phase::ALL.map(|phase| Filter { phase: Some(phase), ..all.clone() }));
    for filter in filters {
        let wanted = |job: &Job| {
            filter.phase.is_none_or(|phase| job.phase() == phase)
                && filter.work.as_deref().is_none_or(|work| &*job.request.work == work)
                && filter.agent.as_deref().is_none_or(|agent| job.agent_or_pinned() == Some(agent))
                && filter.door.is_none_or(|door| job.request.door == door)
        };
        let expected: Vec<u64> =
            jobs.iter().rev().map(|(job, _)| job).filter(|job| wanted(job)).map(|job| job.seq().0).collect();
        for limit in [1, 2, 7, 50, 209, 210, 211, 500] {
            assert_eq!(walk(&readers, &Filter { limit, ..filter.clone() }).0, expected, "{filter:?} by {limit}");
        }
        // From the middle, and from numbers that no job has.
        for before in [0, 1, 2, 100, 211, u64::MAX] {
            let found = walk(&readers, &Filter { limit: 50, before: Some(Seq(before)), ..filter.clone() }).0;
            assert!(found.iter().eq(expected.iter().filter(|seq| **seq < before)), "{filter:?} before {before}");
        }
    }
}

#[test]
fn a_search_among_many_is_several_short_reads_and_finds_everything() {
    let scratch = Scratch::new();
    let (mut store, readers) = open(&scratch);
    let total: u64 = 25_000;
    let rare = [1, 2, 4_999, 14_999, 15_000, 15_001, 24_999];
    for from in (1..=total).step_by(5_000) {
        let one = |seq: u64| {
            let work = if rare.contains(&seq) { "rare" } else { "w" };
            let request = Request { work: work.into(), ..rows::request(seq) };
            fresh(Job::accepted(Arc::new(request)), b"{}", Vec::new())
        };
        store.commit(&batch((from..from + 5_000).map(one))).expect("it commits");
    }
    let filter = Filter { work: Some("rare".to_owned()), limit: 50, ..Filter::default() };
    let first = readers.list(&filter).expect("it can be read");
    // The first read looks at the 10,000 youngest jobs and no further.
    assert_eq!(first.jobs.iter().map(|job| job.seq().0).collect::<Vec<u64>>(), [24_999, 15_001]);
    assert_eq!(first.next.map(JobId::seq), Some(Seq(15_001)));
    let (found, pages) = walk(&readers, &filter);
    assert_eq!(found, rare.iter().rev().copied().collect::<Vec<u64>>());
    assert_eq!(pages, 3);
    let (nothing, pages) = walk(&readers, &Filter { work: Some("none".to_owned()), limit: 1, ..Filter::default() });
    assert_eq!((nothing, pages), (Vec::new(), 3));
    let (everything, _) = walk(&readers, &Filter { limit: 500, ..Filter::default() });
    assert!(everything.into_iter().eq((1..=total).rev()));
    drop(store);
    let loaded = open(&scratch).0.load().expect("it loads");
    assert_eq!((loaded.jobs.len() as u64, loaded.keys.len() as u64, loaded.last_seq), (total, total, Seq(total)));
}
