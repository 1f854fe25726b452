//! Following a stream that another program writes: which events count, and what is a violation.

use crosspoint_contracts::run::{Breach, EventData, Follower, Meaning, Role, StreamWriter, Violation};
use crosspoint_contracts::sse::Event;

use crate::corpus;
use crate::stream_life::{RESULT, STARTED, events_of, findings, writer, writer_refusal};

fn event(name: &str, data: &str) -> Event {
    events_of(format!("event: {name}\ndata: {data}\n\n").as_bytes()).remove(0)
}

/// How a follower classifies each event, in one letter, and the clauses that it reports as broken.
fn followed(events: &[(&str, &str)]) -> Vec<(char, Vec<&'static str>)> {
    let mut follower = Follower::new("r");
    let hear = |(name, data): &(&str, &str)| {
        let heard = follower.hear(event(name, data));
        let meaning = match heard.meaning {
            Meaning::News(_) => 'n',
            Meaning::Outcome(_) => 'o',
            Meaning::Held => 'h',
            Meaning::Nothing => '-',
        };
        (meaning, heard.violations.iter().map(|violation| violation.clause.id).collect())
    };
    events.iter().map(hear).collect()
}

#[test]
fn the_first_terminal_event_with_all_required_fields_counts() {
    let incomplete = r#"{"request_id": "r", "task_type": "t", "status": "ok"}"#;
    let of_another = RESULT.replace("\"r\"", "\"s\"");
    let story = [
        ("started", STARTED),
        ("complete", incomplete),
        ("done", "[]"),
        ("done", "{"),
        ("done", &of_another),
        ("progress", "1"),
        ("complete", RESULT),
        ("final", RESULT),
        ("final", incomplete),
        ("progress", "2"),
    ];
    let expected: [(char, &[&str]); 10] = [
        ('n', &[]),
        ('-', &["RUN-109"]),
        ('-', &["RUN-124"]),
        ('-', &["RUN-8"]),
        ('-', &["RUN-9"]),
        ('n', &[]),
        ('o', &[]),
        ('-', &["RUN-6.2"]),
        ('-', &["RUN-109", "RUN-6.2"]),
        ('-', &["RUN-6.2"]),
    ];
    for (heard, expected) in followed(&story).iter().zip(expected) {
        assert_eq!((heard.0, heard.1.as_slice()), expected);
    }
}

/// What it lacks is a violation, and the outcome stands (RUN-7.2).
#[test]
fn without_a_complete_one_the_first_that_says_how_the_run_ended_counts() {
    let silent = r#"{"request_id": "r", "task_type": "t", "outputs": {}}"#;
    let unnamed = r#"{"request_id": "r", "status": "ok", "outputs": {"n": 1}}"#;
    let failed = r#"{"ok": false, "error": "no"}"#;
    let story = [("started", STARTED), ("final", silent), ("final", unnamed), ("done", failed)];
    let expected: [(char, &[&str]); 4] = [
        ('n', &[]),
        ('-', &["RUN-108"]),
        ('h', &["RUN-107"]),
        ('-', &["RUN-108", "RUN-107", "RUN-106", "RUN-109", "RUN-3.12", "RUN-6.2"]),
    ];
    for (heard, expected) in followed(&story).iter().zip(expected) {
        let (mut found, mut wanted) = (heard.1.clone(), expected.1.to_vec());
        found.sort_unstable();
        wanted.sort_unstable();
        assert_eq!((heard.0, found), (expected.0, wanted));
    }
    let mut follower = Follower::new("r");
    for (name, data) in story {
        follower.hear(event(name, data));
    }
    let (held, unended) = follower.end();
    assert_eq!((held.map(|event| event.data).as_deref(), unended), (Some(unnamed), None));
    // A failure needs no outputs, and an id that is missing is that of the request.
    assert_eq!(followed(&[("started", STARTED), ("done", failed)])[1].0, 'h');
    assert_eq!(followed(&[("started", STARTED), ("done", &unnamed.replace("\"r\"", "\"s\""))])[1].0, '-');
    // A complete one counts, whatever came before.
    assert_eq!(followed(&[("started", STARTED), ("done", unnamed), ("final", RESULT)])[2].0, 'o');
}

#[test]
fn news_without_a_start_is_news_and_a_violation() {
    let story = [("progress", "1"), ("mine", "{}"), ("progress", r#"{"request_id": "s"}"#), ("final", RESULT)];
    let expected = [('n', vec!["RUN-6"]), ('n', vec![]), ('-', vec!["RUN-9"]), ('o', vec![])];
    assert_eq!(followed(&story), expected);
    assert_eq!(followed(&[("final", RESULT)]), [('o', vec!["RUN-6"])]);
    assert_eq!(followed(&[("final", "{}")])[0].1.last(), Some(&"RUN-6"));
}

/// All required fields are present, and something else is broken: the run has ended.
#[test]
fn an_outcome_with_an_error_counts_and_is_not_typed() {
    let data = RESULT.replacen('{', r#"{"error": {"code": 5, "message": "m"}, "#, 1);
    let mut follower = Follower::new("r");
    follower.hear(event("started", STARTED));
    let heard = follower.hear(event("final", &data));
    let Meaning::Outcome(outcome) = heard.meaning else { panic!("it has all required fields") };
    assert_eq!(
        heard.violations.iter().map(|violation| violation.clause.id).collect::<Vec<_>>(),
        ["RUN-3.8", "RUN-3.5"]
    );
    assert!(outcome.read().is_none());
    assert_eq!(follower.end(), (None, None));
}

#[test]
fn an_outcome_is_typed() {
    let mut follower = Follower::new("r");
    let Meaning::Outcome(outcome) = follower.hear(event("done", RESULT)).meaning else { panic!("it is complete") };
    let Some(EventData::Terminal(terminal)) = outcome.read() else { panic!("it has no error") };
    assert!(terminal.response.succeeded());
}

/// A required field is reported as missing even if thousands of other errors would push it off the list.
#[test]
fn many_errors_do_not_hide_a_missing_field() {
    let repeated = r#""a": 1, "#.repeat(10_002);
    let data = format!(r#"{{{repeated}"request_id": "r", "task_type": "t", "status": "ok"}}"#);
    assert_eq!(followed(&[("started", STARTED), ("final", &data)])[1].0, '-');
}

#[test]
fn violations_and_debug_output_never_quote_content() {
    const SECRET: &str = "Mustermann";
    let data = format!(r#"{{"{SECRET}": 1, "{SECRET}": "{SECRET}", "status": "{SECRET}", "error": "{SECRET}"}}"#);
    let mut follower = Follower::new("r");
    for name in ["started", "progress", "final", SECRET] {
        let heard = follower.hear(event(name, &data));
        assert!(!format!("{heard:?}").contains(SECRET), "{heard:?}");
    }
    let writer = StreamWriter::new("r", SECRET).expect("both are there");
    assert!(!format!("{writer:?} {}", writer_refusal(&data)).contains(SECRET));
}

/// RUN-7: whenever a run's upstream dies, the run's own stream gets one terminal event.
#[test]
fn a_run_whose_upstream_dies_still_gets_its_terminal_event() {
    let upstream = format!("event: started\ndata: {STARTED}\n\nevent: progress\ndata: 1\n\nevent: final\ndata: {{\"re");
    for events in 0..=3 {
        let mut follower = Follower::new("r");
        let mut writer = writer();
        let mut out = Vec::new();
        for event in events_of(upstream.as_bytes()).into_iter().take(events) {
            match follower.hear(event).meaning {
                Meaning::News(event) if event.role() == Role::Progress => {
                    writer.progress(&mut out, &event.data).expect("it runs");
                }
                Meaning::News(_) | Meaning::Nothing => {}
                Meaning::Outcome(_) | Meaning::Held => panic!("it has none"),
            }
        }
        // Only where there was no terminal event at all is that said.
        let unended = (events < 3).then(|| Violation::from(Breach::NoTerminal));
        assert_eq!(follower.end(), (None, unended));
        writer.fail(&mut out, "AGENT_UNAVAILABLE", "the \"agent\"\nwent away \u{1f600}\u{0}").expect("it runs");
        failed_as_it_should(&out);
    }
}

fn failed_as_it_should(stream: &[u8]) {
    assert_eq!(findings(stream), []);
    let events = events_of(stream);
    let last = events.last().and_then(|event| event.data.as_deref()).expect("it has data");
    let said: serde_json::Value = serde_json::from_slice(last).expect("it is JSON");
    let expected = serde_json::json!({
        "request_id": "r", "task_type": "t", "status": "error", "ok": false, "outputs": {},
        "artifacts": [], "provenance": {}, "usage": {}, "warnings": [],
        "error": { "code": "AGENT_UNAVAILABLE", "message": "the \"agent\"\nwent away \u{1f600}\u{0}" }
    });
    assert_eq!(said, expected);
}

/// A follower reports the same as the judge of documents for every golden and broken stream, except for the number of
/// terminal events, because not every one counts.
#[test]
fn follower_and_judge_agree() {
    let cases = corpus::golden().into_iter().chain(corpus::broken());
    // The faults of these streams are outside all events, where a follower does not look.
    let outside = ["ALL-102-stream", "RUN-105-empty"];
    let is_stream = |case: &corpus::Case| case.path.extension().is_some_and(|extension| extension == "sse");
    let streams = cases.filter(|case| is_stream(case) && !outside.contains(&case.stem()));
    let mut compared = 0;
    for case in streams {
        let path = case.path.display();
        let (heard, has_outcome) = heard_of(&case.bytes);
        let judged = findings(&case.bytes);
        let judged: Vec<&str> = judged.iter().map(|finding| finding.clause.id).filter(|id| *id != "RUN-6.2").collect();
        assert_eq!(heard, judged, "{path}");
        assert!(has_outcome || !case.read().report.is_valid(), "{path}");
        compared += 1;
    }
    assert!(compared > 10);
}

/// The clauses that a follower reports as broken, without RUN-6.2, and whether it saw an outcome.
fn heard_of(stream: &[u8]) -> (Vec<&'static str>, bool) {
    let events = events_of(stream);
    let mut follower = Follower::new(&first_request_id(&events));
    let mut violations = Vec::new();
    let mut outcomes = 0;
    for event in events {
        let heard = follower.hear(event);
        outcomes += usize::from(matches!(heard.meaning, Meaning::Outcome(_)));
        violations.extend(heard.violations.iter().map(|violation| violation.clause.id));
    }
    violations.retain(|id| *id != "RUN-6.2");
    let (held, unended) = follower.end();
    assert!(outcomes <= 1 && (outcomes == 0 || (held.is_none() && unended.is_none())));
    (violations, outcomes == 1)
}

fn first_request_id(events: &[Event]) -> String {
    let id = |event: &Event| {
        let data: serde_json::Value = serde_json::from_slice(event.data.as_deref()?).ok()?;
        Some(data.get("request_id")?.as_str()?.to_owned())
    };
    events.iter().find_map(id).unwrap_or_default()
}
