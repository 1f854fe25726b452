//! Lines of jobs, with the time given.

use std::time::Duration;

use crosspoint_contracts::time::Time;

use super::*;

fn job(seq: u64) -> JobId {
    JobId::new(Seq(seq), Time::default(), 1)
}

/// A line that has nothing in the store.
fn line() -> Line {
    let mut line = Line::behind();
    assert_eq!(line.wants(), Some(None));
    line.filled(&[], true);
    assert_eq!(line.wants(), None);
    line
}

fn numbers(line: &mut Line, now: Instant) -> Vec<u64> {
    std::iter::from_fn(|| line.next(now)).map(|id| id.seq().0).collect()
}

#[test]
fn jobs_come_once_and_in_order() {
    let (mut line, now) = (line(), Instant::now());
    for seq in [3, 1, 3, 2, 1] {
        line.moved(job(seq));
    }
    assert_eq!(numbers(&mut line, now), [3, 1, 2]);
}

#[test]
fn a_job_that_moves_while_it_is_out_comes_again() {
    let (mut line, now) = (line(), Instant::now());
    line.moved(job(1));
    assert_eq!(numbers(&mut line, now), [1]);
    line.moved(job(1));
    assert_eq!(numbers(&mut line, now), [0; 0], "one at a time");
    line.done(job(1));
    assert_eq!(numbers(&mut line, now), [1]);
    line.done(job(1));
    assert_eq!(numbers(&mut line, now), [0; 0]);
}

#[test]
fn a_job_waits_for_its_time_unless_it_is_hurried() {
    let (mut line, now) = (line(), Instant::now());
    let due = now + Duration::from_secs(30);
    line.moved(job(1));
    assert_eq!(numbers(&mut line, now), [1]);
    assert!(line.later(job(1), due));
    line.moved(job(1));
    assert_eq!((numbers(&mut line, now), line.due()), (vec![], Some(due)));
    assert_eq!(numbers(&mut line, due), [1]);
    assert!(line.later(job(1), due + Duration::from_secs(30)));
    line.hurry(job(1), true);
    assert_eq!((numbers(&mut line, due), line.due()), (vec![1], None));
}

#[test]
fn jobs_whose_time_has_come_and_new_ones_take_turns() {
    let (mut line, now) = (line(), Instant::now());
    (1..=4).for_each(|seq| line.moved(job(seq)));
    for seq in numbers(&mut line, now) {
        assert!(line.later(job(seq), now));
    }
    (11..=14).for_each(|seq| line.moved(job(seq)));
    assert_eq!(numbers(&mut line, now), [1, 11, 2, 12, 3, 13, 4, 14]);
}

#[test]
fn a_job_that_is_no_longer_owed_is_nowhere() {
    let (mut line, now) = (line(), Instant::now());
    (1..=3).for_each(|seq| line.moved(job(seq)));
    line.forget(job(2));
    assert_eq!(line.next(now), Some(job(1)));
    line.forget(job(1));
    line.done(job(1));
    assert!(line.later(job(1), now), "it is not put off either");
    assert_eq!(numbers(&mut line, now), [3]);
    assert!(line.later(job(3), now));
    line.forget(job(3));
    assert_eq!((numbers(&mut line, now), line.due()), (vec![], None));
}

#[test]
fn a_job_that_comes_back_is_the_next() {
    let (mut line, now) = (line(), Instant::now());
    (1..=2).for_each(|seq| line.moved(job(seq)));
    assert_eq!(line.next(now), Some(job(1)));
    line.back(job(1));
    assert_eq!(numbers(&mut line, now), [1, 2]);
    assert!(line.later(job(1), now + Duration::from_secs(9)));
    line.back(job(1));
    assert_eq!((numbers(&mut line, now), line.due()), (vec![1], None));
    line.forget(job(1));
    line.back(job(1));
    assert_eq!(numbers(&mut line, now), [0; 0], "one that is no longer owed stays away");
}

/// A hundred thousand jobs are owed. The line never has more than its limit of them, and each comes once.
#[test]
fn a_long_absence_is_read_from_the_store_a_page_at_a_time() {
    const OWED: u64 = 100_000;
    let (mut line, now) = (Line::behind(), Instant::now());
    let mut told = BTreeSet::new();
    // Nothing is taken at first: jobs that end meanwhile are left to the store.
    (0..OWED).for_each(|seq| line.moved(job(seq)));
    while told.len() < OWED as usize {
        while let Some(after) = line.wants() {
            let first = after.map_or(0, |Seq(after)| after + 1);
            let rows = (first..OWED).filter(|seq| !told.contains(seq)).take(PAGE_MAX).map(job);
            let page: Vec<JobId> = rows.collect();
            line.filled(&page, page.len() < PAGE_MAX);
        }
        assert!(line.places.len() <= NEXT_MAX && line.next.len() <= NEXT_MAX);
        let id = line.next(now).expect("there are more");
        assert!(told.insert(id.seq().0), "none comes twice");
        line.done(id);
    }
    assert_eq!(line.next(now), None);
}

#[test]
fn what_was_left_during_a_pass_is_found_by_the_next_one() {
    let (mut line, now) = (Line::behind(), Instant::now());
    assert_eq!(line.wants(), Some(None));
    assert_eq!(line.wants(), None, "one page at a time");
    line.unfilled();
    assert_eq!(line.wants(), Some(None), "a page that could not be read is read again");
    line.filled(&[job(1), job(2)], false);
    assert_eq!(line.wants(), Some(Some(Seq(2))));
    (10..).take(NEXT_MAX).for_each(|seq| line.moved(job(seq)));
    line.filled(&[], true);
    assert_eq!(line.wants(), None, "there is no room");
    assert_eq!(numbers(&mut line, now).len(), NEXT_MAX);
    assert_eq!(line.wants(), Some(None), "two jobs were left");
}

#[test]
fn jobs_that_nobody_named_are_looked_for_in_the_store() {
    let mut line = line();
    (1..=3).for_each(|seq| line.hurry(job(seq), true));
    line.expect(3);
    assert_eq!(line.wants(), None);
    line.expect(4);
    assert_eq!(line.wants(), Some(None));
}

#[test]
fn jobs_that_go_on_hide_none_that_has_ended() {
    let (mut line, now) = (line(), Instant::now());
    line.moved(job(1));
    line.hurry(job(2), false);
    assert_eq!(numbers(&mut line, now), [1, 2]);
    assert!(line.later(job(1), now + Duration::from_secs(300)) && line.later(job(2), now + Duration::from_secs(300)));
    line.expect(1);
    assert_eq!(line.wants(), Some(None), "the one that has ended is in the store");
    line.filled(&[], true);
    line.hurry(job(1), true);
    line.expect(1);
    assert_eq!(line.wants(), None);
}

#[test]
fn the_jobs_that_wait_for_their_time_have_a_limit() {
    let (mut line, now) = (line(), Instant::now());
    for seq in 0..LATER_MAX as u64 {
        line.moved(job(seq));
        assert_eq!(line.next(now), Some(job(seq)));
        assert!(line.later(job(seq), now + Duration::from_secs(1)));
    }
    line.moved(job(1 << 30));
    assert!(line.next(now).is_some());
    assert!(!line.later(job(1 << 30), now));
    assert_eq!(line.wants(), Some(None), "it is left to the store");
}
