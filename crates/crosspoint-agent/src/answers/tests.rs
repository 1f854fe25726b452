//! Tests of the store of answers beside the agent: its file, and lines that an earlier version wrote.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crosspoint_contracts::time::Time;
use uuid::Uuid;

use super::file::AnswerFile;
use super::index::{Index, Noted};
use super::line::{Line, push_json};
use super::seal::{Sealed, is_whole};
use super::{Answers, Keep};
use crate::backend::Name;

mod opened;

/// A path that no other test has.
fn scratch(name: &str) -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("crosspoint-answers-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory can be made");
    directory.join(name)
}

fn line(name: &str, at: Time) -> Sealed {
    let at = at.0;
    let line = format!(
        r#"{{"names":["{name}"],"likeness":"aa","at":{at},"request_id":"{name}","outcome":{{"status":"completed","outputs":{{"a":1}}}}}}"#
    );
    Sealed::of(line.as_bytes())
}

fn append(file: &AnswerFile, index: &Mutex<Index>, name: &str, at: Time) {
    let places = file.append(&[&line(name, at)]).expect("it can be written");
    index.lock().expect("it is free").note(vec![name.into()], places[0], Noted::Ended);
}

#[test]
fn lines_without_the_job_are_read() {
    let line = line("c\ntask\nt-1".escape_default().to_string().as_str(), Time(7));
    let line = is_whole(line.bytes()).expect("it is whole");
    let kept = Line::read(line).expect("it is a line").into_kept();
    assert_eq!((kept.at, kept.started_at()), (Time(7), Some(Time(7))));
    assert_eq!(kept.outcome.outputs.as_ref().map(crosspoint_contracts::content::Body::get), Some(r#"{"a":1}"#));
    assert!(kept.asked().is_none(), "what the job was is not known");
}

#[test]
fn a_file_that_cannot_be_shortened_is_left_alone_for_a_minute() {
    let (path, now) = (scratch("x.a"), crate::clock::now());
    let keep = Keep { bytes: 300, ..Keep::default() };
    let (file, index, _) = AnswerFile::open(&path, keep, now).expect("it opens");
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
    assert_eq!(index.lock().expect("it is free").names(), ["d"]);
    append(&file, &index, "e", now);
    let (_, index, _) = {
        drop(file);
        AnswerFile::open(&path, keep, now).expect("it opens")
    };
    assert_eq!(index.names(), ["d", "e"]);
}

#[tokio::test]
async fn an_outcome_is_owed_until_it_was_told() {
    let (path, now) = (scratch("answers"), crate::clock::now());
    let ids = [1, 2, 3].map(Uuid::from_u128);
    let owed = |id: Uuid, to: &str| {
        let (name, at) = (Name::of_job(id).text().escape_default().to_string(), now.0);
        let job = format!(r#"{{"id":"{id}","door":"message","caller":"","work":"w","owed_to":"{to}"}}"#);
        let line = format!(
            r#"{{"names":["{name}"],"likeness":"aa","at":{at},"request_id":"r","job":{job},"outcome":{{"status":"completed"}}}}"#
        );
        Sealed::of(line.as_bytes())
    };
    let lines = [owed(ids[0], "http://one/"), owed(ids[1], "http://one/"), owed(ids[2], "http://other/")];
    let answers = Answers::open(&path, Keep::default()).expect("it opens");
    answers.file.append(&lines.each_ref()).expect("it can be written");
    answers.close().await;
    let answers = Answers::open(&path, Keep::default()).expect("it opens");
    answers.told(ids[0]);
    answers.told(Uuid::from_u128(4));
    answers.close().await;
    let answers = Answers::open(&path, Keep::default()).expect("it opens");
    assert_eq!(answers.take_owed("http://one/"), [ids[1]]);
    assert!(answers.take_owed("http://one/").is_empty(), "it is told once");
    assert_eq!(answers.take_owed("http://other/"), [ids[2]]);
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
        answers.index.lock().expect("it is free").note(vec![name.text().into()], places[1], Noted::Ended);
    }
    assert!(answers.read_now(&names[0]).is_none());
    assert!(answers.read_now(&names[1]).is_some());
}

#[test]
fn a_line_break_between_the_parts_of_an_answer_ends_no_line() {
    let mut line = Vec::new();
    push_json(&mut line, "{\n  \"a\": \"b\\n\"\n}");
    assert_eq!(String::from_utf8(line).as_deref(), Ok("{   \"a\": \"b\\n\" }"));
}

fn begin(file: &AnswerFile, index: &Mutex<Index>, name: &str, at: Time) {
    let at = at.0;
    let begun = format!(r#"{{"names":["{name}"],"likeness":"aa","at":{at},"request_id":"{name}"}}"#);
    let places = file.append(&[&Sealed::of(begun.as_bytes())]).expect("it can be written");
    index.lock().expect("it is free").note(vec![name.into()], places[0], Noted::Open);
}

#[test]
fn work_under_way_stays_noted_however_often_the_file_is_shortened() {
    let (path, now) = (scratch("answers"), crate::clock::now());
    let keep = Keep { bytes: 600, ..Keep::default() };
    let (file, index, _) = AnswerFile::open(&path, keep, now).expect("it opens");
    let index = Mutex::new(index);
    // One began longer ago than answers are kept.
    begin(&file, &index, "old", now);
    begin(&file, &index, "pay", now);
    let later = now.plus(keep.age + Duration::from_secs(1));
    let bytes = || std::fs::metadata(&path).expect("it is there").len();
    let (mut longest, mut shortened) = (0, 0);
    for number in 0..40 {
        append(&file, &index, &format!("r-{number}"), later);
        longest = longest.max(bytes());
        let before = bytes();
        file.shorten(&index, later).expect("it can be shortened");
        shortened += u32::from(bytes() < before);
    }
    assert!(shortened > 3 && shortened < 20, "{shortened} times");
    assert!(longest < 1_200, "{longest}");
    for name in ["old", "pay", "r-39"] {
        assert!(index.lock().expect("it is free").place(name).is_some(), "{name}");
    }
    // Once its answer is there, it is as any other.
    append(&file, &index, "pay", later);
    for number in 40..60 {
        append(&file, &index, &format!("r-{number}"), later);
        file.shorten(&index, later).expect("it can be shortened");
    }
    let index = index.lock().expect("it is free");
    assert!(index.place("pay").is_none() && index.place("old").is_some());
}

#[test]
fn a_damaged_line_is_read_as_a_request_whose_answer_is_not_known() {
    let (path, now) = (scratch("answers"), crate::clock::now());
    let (file, index, _) = AnswerFile::open(&path, Keep::default(), now).expect("it opens");
    let index = Mutex::new(index);
    for name in ["a", "b", "c", "d"] {
        append(&file, &index, name, now);
    }
    drop(file);
    let text = std::fs::read_to_string(&path).expect("it is there");
    let text =
        text.replace(r#""request_id":"b""#, r#""reqvest_id":"b""#).replace(r#"{"names":["c"]"#, r#"{"nomes":["c"]"#);
    // As an editor of another system writes it, which leaves out the last line end.
    std::fs::write(&path, text.trim_end().replace('\n', "\r\n")).expect("it can be written");
    let (file, index, _) = AnswerFile::open(&path, Keep::default(), now).expect("it opens");
    assert_eq!(index.names(), ["a", "b", "d"]);
    let read = |name: &str| file.read(index.place(name).expect("it is there"));
    assert!(read("a").is_ok() && read("b").is_err() && read("d").is_ok());
    let index = Mutex::new(index);
    append(&file, &index, "e", now);
    drop(file);
    let (_, index, _) = AnswerFile::open(&path, Keep::default(), now).expect("it opens");
    assert_eq!(index.names(), ["a", "b", "d", "e"]);
}
