//! Acts and their words, and which readings are remembered.

use super::*;
use crate::id::Seq;

fn job(number: u64) -> JobId {
    JobId::new(Seq(number), Time(0), 0)
}

fn read(who: &Arc<str>, number: u64) -> Habit {
    (who.clone(), Act::Read, job(number))
}

fn minutes(number: i64) -> Time {
    Time(number * 60_000_000)
}

#[test]
fn every_act_is_read_as_it_is_written() {
    for act in Act::ALL {
        assert_eq!(Act::from_word(act.word()), Some(act));
    }
    assert_eq!(Act::ALL.iter().map(|act| act.word()).collect::<BTreeSet<_>>().len(), Act::ALL.len());
    assert_eq!(Act::from_word("submitted"), None);
}

#[test]
fn a_reading_is_known_for_ten_minutes_and_is_that_of_one_reader_and_one_job() {
    let (mut readings, ann, bob) = (Readings::default(), Arc::from("ann"), Arc::from("bob"));
    assert!(!readings.is_known(&read(&ann, 1), minutes(0)));
    readings.note(read(&ann, 1), minutes(0));
    assert!(readings.is_known(&read(&ann, 1), minutes(9)));
    assert!(!readings.is_known(&read(&bob, 1), minutes(9)));
    assert!(!readings.is_known(&read(&ann, 2), minutes(9)));
    assert!(!readings.is_known(&(ann.clone(), Act::Repeat, job(1)), minutes(9)));
    // Reading on does not make the ten minutes longer.
    readings.note(read(&ann, 1), minutes(9));
    assert!(!readings.is_known(&read(&ann, 1), minutes(10)));
}

#[test]
fn a_clock_that_was_set_back_makes_no_reading_known_for_longer() {
    let (mut readings, ann) = (Readings::default(), Arc::from("ann"));
    readings.note(read(&ann, 1), minutes(100));
    assert!(!readings.is_known(&read(&ann, 1), minutes(50)));
}

#[test]
fn only_so_many_readings_are_remembered_and_the_first_are_forgotten_first() {
    let (mut readings, ann) = (Readings::default(), Arc::from("ann"));
    let last = READINGS_MAX as u64 + 5;
    (1..=last).for_each(|number| readings.note(read(&ann, number), minutes(0)));
    assert_eq!((readings.known.len(), readings.order.len()), (READINGS_MAX, READINGS_MAX));
    assert!(!readings.is_known(&read(&ann, 5), minutes(1)));
    assert!(readings.is_known(&read(&ann, 6), minutes(1)) && readings.is_known(&read(&ann, last), minutes(1)));
}
