//! The life of a stream: its state machine, and its writer.

use std::fmt::Write as _;

use crosspoint_contracts::report::Finding;
use crosspoint_contracts::run::{Breach, Follower, Life, Meaning, Refused, Role, StreamWriter};
use crosspoint_contracts::sse::{Event, Limits, Reader};
use crosspoint_contracts::{Document, Kind, Options};
use proptest::prelude::*;

#[test]
fn every_state_and_role() {
    let mut matrix = String::new();
    for life in Life::ALL {
        for role in Role::ALL {
            let (next, breach) = life.step(role);
            let breach = breach.map_or_else(String::new, |breach| format!(" {breach:?}"));
            writeln!(matrix, "{life:?} + {role:?} = {next:?}{breach}").expect("it is a string");
        }
        writeln!(matrix, "{life:?} + end: {:?}", life.end()).expect("it is a string");
    }
    let expected = "\
New + Started = Running
New + Progress = Running NotStartedFirst
New + Terminal = Ended NotStartedFirst
New + Other = Running NotStartedFirst
New + end: Some(NoTerminal)
Running + Started = Running
Running + Progress = Running
Running + Terminal = Ended
Running + Other = Running
Running + end: Some(NoTerminal)
Ended + Started = Ended AfterTerminal
Ended + Progress = Ended AfterTerminal
Ended + Terminal = Ended SecondTerminal
Ended + Other = Ended AfterTerminal
Ended + end: None
";
    assert_eq!(matrix, expected);
}

#[test]
fn names_say_the_role_and_case_counts() {
    for (name, role) in [("started", Role::Started), ("progress", Role::Progress), ("Final", Role::Other)] {
        assert_eq!(Role::of(name), role, "{name}");
    }
    assert!(["final", "complete", "done"].iter().all(|name| Role::of(name) == Role::Terminal));
}

pub(crate) const STARTED: &str = r#"{"request_id": "r", "task_type": "t"}"#;
pub(crate) const RESULT: &str = r#"{"request_id": "r", "task_type": "t", "status": "ok", "outputs": {"n": 1}}"#;

pub(crate) fn writer() -> StreamWriter {
    StreamWriter::new("r", "t").expect("both are there")
}

pub(crate) fn findings(stream: &[u8]) -> Vec<Finding> {
    let options = Options { kind: Some(Kind::RunStream), ..Options::default() };
    crosspoint_contracts::read(stream, &options).report.findings
}

fn ids(refused: &Refused) -> Vec<&'static str> {
    let Refused::Faulty(report) = refused else { panic!("{refused:?}") };
    report.findings.iter().map(|finding| finding.clause.id).collect()
}

#[test]
fn the_terminal_event_we_write_is_final() {
    let mut out = Vec::new();
    let mut writer = writer();
    writer.started(&mut out).expect("it is new");
    writer.comment(&mut out).expect("it runs");
    writer.progress(&mut out, "7").expect("it runs");
    writer.finish(&mut out, RESULT).expect("it runs");
    let expected =
        format!("event: started\ndata: {STARTED}\n\n:\n\nevent: progress\ndata: 7\n\nevent: final\ndata: {RESULT}\n\n");
    assert_eq!(String::from_utf8(out).expect("it is UTF-8"), expected);
}

#[test]
fn what_has_not_started_is_started_first() {
    let mut streams = [Vec::new(), Vec::new(), Vec::new()];
    let [progress, finish, fail] = &mut streams;
    writer().progress(progress, "null").expect("it is new");
    writer().finish(finish, RESULT).expect("it is new");
    writer().fail(fail, "TIMEOUT", "no answer in time").expect("it is new");
    let start = format!("event: started\ndata: {STARTED}\n\n");
    for stream in streams {
        assert!(stream.starts_with(start.as_bytes()) && stream.len() > start.len());
    }
}

#[test]
fn nothing_is_written_after_the_terminal_event() {
    let mut out = Vec::new();
    let mut writer = writer();
    writer.finish(&mut out, RESULT).expect("it is new");
    let written = out.clone();
    let late = |breach| Err(Refused::Ended(breach));
    assert_eq!(writer.started(&mut out), late(Breach::AfterTerminal));
    assert_eq!(writer.progress(&mut out, "1"), late(Breach::AfterTerminal));
    assert_eq!(writer.comment(&mut out), late(Breach::AfterTerminal));
    assert_eq!(writer.finish(&mut out, RESULT), late(Breach::SecondTerminal));
    assert_eq!(writer.fail(&mut out, "TIMEOUT", "late"), late(Breach::SecondTerminal));
    assert_eq!(out, written);
}

#[test]
fn started_is_written_once() {
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    writer().started(&mut once).expect("it is new");
    let mut writer = writer();
    writer.started(&mut twice).expect("it is new");
    writer.started(&mut twice).expect("it runs");
    assert_eq!(once, twice);
}

#[test]
fn data_that_would_be_found_fault_with_leaves_no_byte() {
    let mut out = Vec::new();
    let mut writer = writer();
    let refused = writer.finish(&mut out, r#"{"request_id": "r"}"#).expect_err("it lacks three fields");
    assert_eq!(ids(&refused), ["RUN-108", "RUN-107", "RUN-109"]);
    assert_eq!(refused.to_string(), "the event's data breaks RUN-107, RUN-108, RUN-109");
    for (data, clause) in [
        (RESULT.replace("\"r\"", "\"s\""), "RUN-9"),
        (RESULT.replace("\"ok\"", "\"degraded\""), "RUN-3.7"),
        (RESULT.replace("\"ok\"", "\"fine\""), "RUN-3"),
        ("[]".to_owned(), "RUN-124"),
        ("{".to_owned(), "RUN-8"),
    ] {
        assert_eq!(ids(&writer.finish(&mut out, &data).expect_err("it is faulty")), [clause], "{data}");
    }
    let other_task = writer.finish(&mut out, &RESULT.replace("\"t\"", "\"u\""));
    assert_eq!(other_task, Err(Refused::OtherTask));
    for (data, clause) in
        [("", "RUN-8"), (r#"{"a": 1, "a": 2}"#, "ALL-103"), (r#"{"request_id": "s"}"#, "RUN-9"), ("1e999", "ALL-105")]
    {
        assert_eq!(ids(&writer.progress(&mut out, data).expect_err("it is faulty")), [clause], "{data}");
    }
    assert_eq!((out, writer.life()), (Vec::new(), Life::New));
}

#[test]
fn a_stream_answers_a_request_that_has_both_names() {
    for (request_id, task_type) in [("", "t"), ("r", "")] {
        assert_eq!(StreamWriter::new(request_id, task_type).err(), Some(Refused::Nameless));
    }
}

#[test]
fn line_breaks_in_data_become_data_lines() {
    let mut out = Vec::new();
    let mut writer = writer();
    writer.progress(&mut out, "{\r\n\"step\":\r\"a\\n\"\n}\n").expect("it is JSON");
    writer.finish(&mut out, &RESULT.replace(", ", ",\n  ")).expect("it is JSON");
    assert_eq!(findings(&out), []);
    let Some(Document::RunStream(stream)) = crosspoint_contracts::read(&out, &Options::default()).document else {
        panic!("not a stream")
    };
    assert_eq!(stream.events[1].data, "{\n\"step\":\n\"a\\n\"\n}\n");
    let raw_break = writer_refusal("{\"step\": \"a\nb\"}");
    assert_eq!(ids(&raw_break), ["RUN-8"]);
}

pub(crate) fn writer_refusal(progress: &str) -> Refused {
    writer().progress(&mut Vec::new(), progress).expect_err("it is faulty")
}

pub(crate) fn events_of(stream: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut reader = Reader::new(Limits::default());
    reader.push(stream, &mut events).expect("within limits");
    reader.finish(&mut events).expect("within limits");
    events
}

fn role() -> impl Strategy<Value = Role> {
    proptest::sample::select(Role::ALL.to_vec())
}

/// One call to a writer. Its arguments may be refused.
#[derive(Clone, Debug)]
enum Call {
    Started,
    Progress(String),
    Comment,
    Finish(String),
    Fail(String, String),
}

fn call() -> impl Strategy<Value = Call> {
    let data = proptest::sample::select(vec![
        "1",
        "null",
        "\"a\"",
        "[\r\n1,\r2]",
        " {\n}\n",
        "{",
        "",
        "{\"request_id\": \"s\"}",
        "{\"a\":1,\"a\":2}",
        "\u{feff}1",
        "1e999",
    ]);
    let result = proptest::sample::select(vec![
        "{}",
        "{\"request_id\": ID, \"task_type\": TASK, \"status\": \"ok\",\r\n\"outputs\": {}}",
        "{\"request_id\": ID, \"task_type\": TASK, \"status\": \"ok\", \"data\": {}}",
        "{\"request_id\": \"s\", \"task_type\": TASK, \"status\": \"ok\", \"outputs\": {}}",
    ]);
    prop_oneof![
        Just(Call::Started),
        data.prop_map(|data| Call::Progress(data.to_owned())),
        any::<String>().prop_map(Call::Progress),
        Just(Call::Comment),
        result.prop_map(|data| Call::Finish(data.to_owned())),
        (any::<String>(), any::<String>()).prop_map(|(code, message)| Call::Fail(code, message)),
    ]
}

impl Call {
    fn make(&self, writer: &mut StreamWriter, out: &mut Vec<u8>, names: &(String, String)) -> Result<(), Refused> {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Call::Started => writer.started(out),
            Call::Progress(data) => writer.progress(out, data),
            Call::Comment => writer.comment(out),
            Call::Finish(data) => {
                writer.finish(out, &data.replace("ID", &quoted(&names.0)).replace("TASK", &quoted(&names.1)))
            }
            Call::Fail(code, message) => writer.fail(out, code, message),
        }
    }
}

fn name() -> impl Strategy<Value = String> {
    any::<String>().prop_filter("names are not empty", |name| !name.is_empty())
}

proptest! {
    /// The contract's own words, without a machine: the first event is `started`, exactly one is terminal, and that one
    /// is the last.
    #[test]
    fn the_machine_keeps_the_contract(roles in proptest::collection::vec(role(), 0..8)) {
        let (life, breaches) = roles.iter().fold((Life::New, Vec::new()), |(life, mut breaches), role| {
            let (next, breach) = life.step(*role);
            breaches.extend(breach);
            (next, breaches)
        });
        let terminals = roles.iter().filter(|role| **role == Role::Terminal).count();
        let keeps = roles.first() == Some(&Role::Started) && terminals == 1 && roles.last() == Some(&Role::Terminal);
        prop_assert_eq!(breaches.is_empty() && life.end().is_none(), keeps);
        let count = |breach| breaches.iter().filter(|found| **found == breach).count();
        let after = roles.iter().skip_while(|role| **role != Role::Terminal).skip(1).count();
        prop_assert_eq!(count(Breach::SecondTerminal), terminals.saturating_sub(1));
        prop_assert_eq!(count(Breach::SecondTerminal) + count(Breach::AfterTerminal), after);
        prop_assert_eq!(life.end().is_some(), terminals == 0);
    }

    /// A finished stream has no findings, for any sequence of calls to the writer. A call writes everything or nothing.
    #[test]
    fn any_calls_give_a_faultless_stream(names in (name(), name()), calls in proptest::collection::vec(call(), 0..8)) {
        let mut writer = StreamWriter::new(&names.0, &names.1).expect("both are there");
        let mut out = Vec::new();
        for call in &calls {
            let (before, life) = (out.len(), writer.life());
            if call.make(&mut writer, &mut out, &names).is_err() {
                prop_assert_eq!((out.len(), writer.life()), (before, life));
            }
        }
        if writer.life() != Life::Ended {
            writer.fail(&mut out, "CANCELLED", "it was cancelled").expect("it has not ended");
        }
        prop_assert_eq!(findings(&out), []);
        let mut follower = Follower::new(&names.0);
        let heard: Vec<_> = events_of(&out).into_iter().map(|event| follower.hear(event)).collect();
        prop_assert!(heard.iter().all(|heard| heard.violations.is_empty()));
        prop_assert!(matches!(heard.last().map(|heard| &heard.meaning), Some(Meaning::Outcome(_))));
    }
}
