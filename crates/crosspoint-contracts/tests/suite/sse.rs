//! Server-sent events: the events are the same however the bytes are cut.

use crosspoint_contracts::sse::{self, Event, Limits, Reader, TooLarge};
use crosspoint_contracts::{Kind, Options};
use proptest::prelude::*;

fn whole(bytes: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut reader = Reader::new(Limits::default());
    reader.push(bytes, &mut events).expect("within limits");
    reader.finish(&mut events).expect("within limits");
    events
}

fn summary(bytes: &[u8]) -> Vec<(Option<String>, Option<String>, bool)> {
    let text = |data: Vec<u8>| String::from_utf8(data).expect("UTF-8");
    whole(bytes).into_iter().map(|event| (event.name, event.data.map(text), event.terminated)).collect()
}

fn event(name: &str, data: &str, terminated: bool) -> (Option<String>, Option<String>, bool) {
    (Some(name.to_owned()), Some(data.to_owned()), terminated)
}

#[test]
fn line_ends_are_equal() {
    let expected = vec![event("started", "{\"a\":\n1}", true), event("final", "{}", true)];
    for end in ["\n", "\r", "\r\n"] {
        let source = ["event: started", "data: {\"a\":", "data: 1}", "", "event:final", "data:{}", "", ""].join(end);
        assert_eq!(summary(source.as_bytes()), expected, "{end:?}");
    }
}

#[test]
fn byte_order_mark_comments_and_unknown_fields_are_framing() {
    let source = b"\xef\xbb\xbf: hi\n\nretry: 10\nid: 7\nevent: a\nfoo: bar\n:\ndata: 1\n\n";
    let events = whole(source);
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((event.name.as_deref(), event.id.as_deref(), event.retry), (Some("a"), Some("7"), Some(10)));
    assert_eq!(event.data.as_deref(), Some(b"1".as_slice()));
}

#[test]
fn a_byte_order_mark_is_only_one_at_the_start() {
    let events = whole(b"data: 1\n\n\xef\xbb\xbfdata: 2\n\n");
    assert_eq!(events.len(), 1);
}

#[test]
fn an_unterminated_tail_is_given_and_marked() {
    for tail in ["event: final\ndata: {}", "event: final\ndata: {}\n"] {
        assert_eq!(summary(tail.as_bytes()), vec![event("final", "{}", false)], "{tail:?}");
    }
}

#[test]
fn an_event_without_data_is_given() {
    assert_eq!(summary(b"event: progress\n\n"), vec![(Some("progress".to_owned()), None, true)]);
}

#[test]
fn a_block_of_only_id_or_retry_is_no_event() {
    assert_eq!(summary(b"retry: 3000\n\nid: 1\n\nevent: a\ndata: 1\n\nretry: 5"), vec![event("a", "1", true)]);
    assert_eq!(whole(b"retry: +5\ndata: 1\n\n")[0].retry, None);
}

#[test]
fn a_line_without_colon_is_a_field_without_value() {
    assert_eq!(summary(b"event: a\ndata\ndata\n\n"), vec![event("a", "\n", true)]);
}

#[test]
fn sizes_are_bounded() {
    let limits = Limits { line_bytes_max: 16, event_bytes_max: 24, event_lines_max: 3 };
    let feed = |pieces: &[&[u8]]| {
        let mut reader = Reader::new(limits);
        let mut events = Vec::new();
        pieces.iter().try_for_each(|piece| reader.push(piece, &mut events)).map(|()| events.len())
    };
    assert_eq!(feed(&[b"data: 0123456789\n\n"]), Ok(1));
    assert_eq!(feed(&[b"data: 0123456789a\n\n"]), Err(TooLarge::Line(16)));
    assert_eq!(feed(&[b"data: 01234", b"56789", b"abc"]), Err(TooLarge::Line(16)));
    assert_eq!(feed(&[b"data: 0123456789\ndata: 0123456789\ndata: 01\n"]), Ok(0));
    assert_eq!(feed(&[b"data: 0123456789\ndata: 0123456789\ndata: 012\n"]), Err(TooLarge::Event(24)));
    assert_eq!(feed(&[b"data\ndata\ndata\n\ndata\n"]), Ok(1));
    assert_eq!(feed(&[b"data\ndata\ndata\ndata\n"]), Err(TooLarge::Lines(3)));
}

#[test]
fn what_is_written_is_read_again() {
    let mut out = Vec::new();
    sse::event(&mut out, "started", Some(1), "{}").expect("the name is plain");
    sse::comment(&mut out);
    sse::event(&mut out, "final", None, "{\"a\":\r\n 1,\r \"b\":\n2}").expect("the name is plain");
    assert_eq!(summary(&out), vec![event("started", "{}", true), event("final", "{\"a\":\n 1,\n \"b\":\n2}", true)]);
    assert_eq!(whole(&out)[0].id.as_deref(), Some("1"));
}

#[test]
fn a_name_cannot_smuggle_in_another_field() {
    let mut out = Vec::new();
    assert_eq!(sse::event(&mut out, "a\ndata: evil", None, "{}"), Err(sse::LineBreak));
    assert_eq!(out, b"");
}

/// A near miss gets the hint that mends it.
#[test]
fn hints_name_the_mistake() {
    let options = Options { kind: Some(Kind::RunStream), ..Options::default() };
    let hints = |source: &str| {
        let report = crosspoint_contracts::read(source.as_bytes(), &options).report;
        report.findings.into_iter().map(|finding| finding.hint.into_owned()).collect::<Vec<_>>()
    };
    let terminal = r#"{"request_id": "r", "task_type": "t", "status": "ok", "outputs": {}}"#;
    let started = r#"{"request_id": "r", "task_type": "t"}"#;
    let capitals = format!("event: Started\ndata: {started}\n\nevent: Final\ndata: {terminal}\n\n");
    assert_eq!(
        hints(&capitals),
        [
            "Spell it exactly like this, with one space: event: started.",
            "Spell it exactly like this, with one space: event: final.",
        ]
    );
    let unnamed =
        format!("event: started\ndata: {started}\n\ndata: {}\n\n", terminal.replacen('{', "{\"type\": \"done\", ", 1));
    assert_eq!(hints(&unnamed), ["Write above the data line: event: done."]);
    assert_eq!(hints(&capitals.replace("event: ", "event:  ").to_lowercase()), hints(&capitals));
    assert!(hints("HTTP/1.1 200 OK\r\n\r\n")[0].contains("HTTP head"));
    assert!(hints("Event: started\nData: {}\n\n")[0].contains("lower case"));
    assert!(hints("{}")[0].contains("This is JSON"));
}

/// Pieces that hit the corner cases: every line end, fields, comments, marks, multi-byte text.
fn stream_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"event: final".to_vec()),
        Just(b"data: {\"a\": 1}".to_vec()),
        Just(b"data:".to_vec()),
        Just(b"id: 4".to_vec()),
        Just(b": c".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just("data: \u{1f600}é".as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(bytes in stream_bytes(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.sort_unstable();
        let mut reader = Reader::new(Limits::default());
        let mut events = Vec::new();
        let mut from = 0;
        for to in places.into_iter().chain([bytes.len()]) {
            reader.push(&bytes[from..to], &mut events).expect("within limits");
            from = to;
        }
        reader.finish(&mut events).expect("within limits");
        prop_assert_eq!(events, whole(&bytes));
    }

    #[test]
    fn places_of_data_are_places_in_the_stream(bytes in stream_bytes()) {
        for event in whole(&bytes) {
            for (offset, byte) in event.data.iter().flatten().enumerate() {
                // A line feed that joins two data lines stands for the line end of the first.
                if *byte != b'\n' {
                    prop_assert_eq!(bytes[event.stream_offset(offset)], *byte);
                }
            }
        }
    }
}
