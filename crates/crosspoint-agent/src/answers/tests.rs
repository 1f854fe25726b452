//! Tests of the store of answers beside the agent: its file, and lines that an earlier version wrote.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crosspoint_contracts::time::Time;
use uuid::Uuid;

use super::file::{AnswerFile, Index, note};
use super::line::Line;
use super::{Answers, Keep};
use crate::backend::Name;

/// A path that no other test has.
fn scratch(name: &str) -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("crosspoint-answers-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory can be made");
    directory.join(name)
}

fn line(name: &str, at: Time) -> Vec<u8> {
    let at = at.0;
    format!(r#"{{"names":["{name}"],"likeness":"aa","at":{at},"request_id":"{name}","outcome":{{"status":"completed","outputs":{{"a":1}}}}}}"#).into_bytes()
}

fn append(file: &AnswerFile, index: &Mutex<Index>, name: &str, at: Time) {
    let places = file.append(&[&line(name, at)]).expect("it can be written");
    note(&mut index.lock().expect("it is free"), &[name.into()], places[0], false);
}

#[test]
fn lines_without_the_job_are_read() {
    let line = line("c\ntask\nt-1".escape_default().to_string().as_str(), Time(7));
    let kept = Line::read(&line).expect("it is a line").into_kept();
    assert_eq!((kept.at, kept.started_at()), (Time(7), Some(Time(7))));
    assert_eq!(kept.outcome.outputs.as_ref().map(crosspoint_contracts::content::Body::get), Some(r#"{"a":1}"#));
    assert!(kept.asked().is_none(), "what the job was is not known");
}

#[test]
fn a_file_that_cannot_be_shortened_is_left_alone_for_a_minute() {
    let (path, now) = (scratch("x.a"), crate::clock::now());
    let keep = Keep { bytes: 300, ..Keep::default() };
    let (file, index) = AnswerFile::open(&path, keep, now).expect("it opens");
    let index = Mutex::new(index);
    let bytes = || std::fs::metadata(&path).expect("it is there").len();
    // Another store may be `x.b`: the name of the new file is this one's own.
    let beside = path.with_file_name("x.a.new");
    std::fs::create_dir(&beside).expect("it can be made");
    for name in ["a", "b", "c", "d"] {
        append(&file, &index, name, now);
    }
    let before = bytes();
    assert!(before > 300);
    assert!(file.shorten(&index, now).is_err());
    std::fs::remove_dir(&beside).expect("it can be removed");
    file.shorten(&index, now.plus(Duration::from_secs(59))).expect("nothing is tried");
    assert_eq!(bytes(), before);
    file.shorten(&index, now.plus(Duration::from_secs(60))).expect("it can be shortened");
    assert!(bytes() <= 150);
    let kept: Vec<Box<str>> = index.lock().expect("it is free").keys().cloned().collect();
    assert_eq!(kept, ["d".into()]);
    append(&file, &index, "e", now);
    let (_, index) = {
        drop(file);
        AnswerFile::open(&path, keep, now).expect("it opens")
    };
    assert_eq!(index.keys().map(|name| &**name).collect::<Vec<_>>(), ["d", "e"]);
}

#[test]
fn the_answer_of_another_request_is_never_read_for_it() {
    let (path, now) = (scratch("answers"), crate::clock::now());
    let answers = Answers::open(&path, Keep::default()).expect("it opens");
    let names = [1, 2].map(|number| Name::of_job(Uuid::from_u128(number)));
    let lines = names.clone().map(|name| line(&name.text().escape_default().to_string(), now));
    let places = answers.file.append(&[&lines[0], &lines[1]]).expect("it can be written");
    // Both have the place of the second, as a file that was just shortened may have another line of the same length
    // there.
    for name in &names {
        note(&mut answers.index.lock().expect("it is free"), &[name.text().into()], places[1], false);
    }
    assert!(answers.read_now(&names[0]).is_none());
    assert!(answers.read_now(&names[1]).is_some());
}
