//! Run agents that break the rules: ids, order, endings, framing, marks of success.

use serde_json::{Value, json};

use crate::support::misbehaving_agents::{Case, Setup};
use crate::support::scripted_agent::{
    After, CHUNKED_STREAM_HEAD, Connection, Request, STREAM_HEAD, answer, chunk, event,
};

/// A case of a stream, without further keys.
macro_rules! case {
    ($name:ident => $ends:literal, $clause:expr) => {
        Case { name: stringify!($name), keys: "", script: $name, ends: $ends, clause: $clause }
    };
}

#[test]
fn whatever_a_stream_says_there_is_one_outcome_and_the_rule_is_on_record() {
    static CASES: [Case; 19] = [
        case!(two_terminal_events => "completed", Some("RUN-6.2")),
        case!(two_terminal_events_that_differ => "completed", Some("RUN-6.2")),
        case!(events_after_the_terminal => "completed", Some("RUN-6.2")),
        case!(no_terminal => "broken_contract", Some("RUN-6.2")),
        case!(no_events_at_all => "broken_contract", Some("RUN-6.2")),
        case!(not_started_first => "completed", Some("RUN-6")),
        case!(wrong_id_in_started => "completed", Some("RUN-9")),
        case!(wrong_id_in_progress => "completed", Some("RUN-9")),
        case!(wrong_id_in_the_terminal => "broken_contract", Some("RUN-9")),
        case!(wrong_id_and_then_the_right_one => "completed", Some("RUN-9")),
        case!(terminal_without_its_fields => "completed", Some("RUN-107")),
        case!(terminal_without_its_fields_and_then_a_good_one => "completed", Some("RUN-107")),
        case!(terminal_without_its_blank_line => "completed", Some("RUN-8.3")),
        case!(data_that_is_no_json => "completed", Some("RUN-8")),
        case!(invalid_utf8_in_progress => "completed", Some("ALL-102")),
        case!(invalid_utf8_in_the_terminal => "broken_contract", Some("ALL-102")),
        case!(invalid_utf8_in_a_name => "completed", None),
        case!(status_error_with_ok_true => "agent_failed", Some("RUN-3.8")),
        case!(stream_of_another_content_type => "completed", Some("RUN-122")),
    ];
    let setup = Setup::start("run", &CASES);
    setup.run_all();
    // No agent was asked twice, or asked for an answer in one piece after a stream had begun.
    for case in &CASES {
        let asked = setup.scripted.requests_of(case.name);
        assert_eq!(asked.len(), 2, "{}: {asked:?}", case.name);
        assert!(asked.iter().all(Request::wants_stream), "{}", case.name);
    }
}

fn by(asked: &Request) -> String {
    asked.final_event(&asked.agent)
}

fn two_terminal_events(asked: &Request, connection: &mut Connection) -> After {
    connection.stream(&[asked.started(), by(asked), by(asked)])
}

fn two_terminal_events_that_differ(asked: &Request, connection: &mut Connection) -> After {
    let failed = json!({
        "task_type": asked.agent, "status": "error", "ok": false, "outputs": {},
        "error": {"code": "TASK_FAILED", "message": "a second thought"},
    });
    connection.stream(&[asked.started(), by(asked), asked.event("complete", failed)])
}

fn events_after_the_terminal(asked: &Request, connection: &mut Connection) -> After {
    connection.stream(&[asked.started(), by(asked), asked.progress(99), asked.event("bye", json!({}))])
}

fn no_terminal(asked: &Request, connection: &mut Connection) -> After {
    connection.stream(&[asked.started(), asked.progress(50)])
}

fn no_events_at_all(_: &Request, connection: &mut Connection) -> After {
    connection.stream(&[])
}

fn not_started_first(asked: &Request, connection: &mut Connection) -> After {
    connection.stream(&[asked.progress(1), by(asked)])
}

fn another_id(mut data: Value) -> Value {
    data["request_id"] = json!("another-one");
    data
}

fn wrong_id_in_started(asked: &Request, connection: &mut Connection) -> After {
    let started = event("started", &another_id(json!({"task_type": asked.agent})));
    connection.stream(&[started, asked.progress(50), by(asked)])
}

fn wrong_id_in_progress(asked: &Request, connection: &mut Connection) -> After {
    connection.stream(&[asked.started(), event("progress", &another_id(json!({"percent": 50}))), by(asked)])
}

fn wrong_id_in_the_terminal(asked: &Request, connection: &mut Connection) -> After {
    connection.stream(&[asked.started(), event("final", &another_id(asked.response(json!({"by": "another agent"}))))])
}

fn wrong_id_and_then_the_right_one(asked: &Request, connection: &mut Connection) -> After {
    let wrong = event("final", &another_id(asked.response(json!({"by": "another agent"}))));
    connection.stream(&[asked.started(), wrong, by(asked)])
}

fn bare(asked: &Request, by: &str) -> String {
    asked.event("complete", json!({"status": "ok", "outputs": {"by": by}}))
}

fn terminal_without_its_fields(asked: &Request, connection: &mut Connection) -> After {
    connection.stream(&[asked.started(), bare(asked, &asked.agent)])
}

fn terminal_without_its_fields_and_then_a_good_one(asked: &Request, connection: &mut Connection) -> After {
    connection.stream(&[asked.started(), bare(asked, "the first"), by(asked)])
}

fn terminal_without_its_blank_line(asked: &Request, connection: &mut Connection) -> After {
    connection.stream(&[asked.started(), by(asked).trim_end().to_owned()])
}

fn data_that_is_no_json(asked: &Request, connection: &mut Connection) -> After {
    connection.stream(&[asked.started(), "event: progress\ndata: half way {\n\n".to_owned(), by(asked)])
}

/// A stream in which every tilde is replaced by a byte that no text has.
fn spoilt(connection: &mut Connection, events: &[String]) -> After {
    let mut bytes = events.concat().into_bytes();
    for byte in &mut bytes {
        if *byte == b'~' {
            *byte = 0xff;
        }
    }
    connection.send(STREAM_HEAD);
    connection.send(bytes);
    After::Close
}

fn invalid_utf8_in_progress(asked: &Request, connection: &mut Connection) -> After {
    spoilt(connection, &[asked.started(), asked.event("progress", json!({"step": "~"})), by(asked)])
}

fn invalid_utf8_in_the_terminal(asked: &Request, connection: &mut Connection) -> After {
    spoilt(connection, &[asked.started(), asked.final_event("~")])
}

fn invalid_utf8_in_a_name(asked: &Request, connection: &mut Connection) -> After {
    spoilt(connection, &[asked.started(), asked.event("pro~gress", json!({"percent": 50})), by(asked)])
}

fn contradiction(asked: &Request) -> Value {
    json!({
        "request_id": asked.id(), "task_type": asked.agent, "status": "error", "ok": true, "success": true,
        "outputs": {}, "error": {"code": "TASK_FAILED", "message": "it did not work"},
    })
}

fn status_error_with_ok_true(asked: &Request, connection: &mut Connection) -> After {
    connection.stream(&[asked.started(), event("final", &contradiction(asked))])
}

fn stream_of_another_content_type(asked: &Request, connection: &mut Connection) -> After {
    connection.send("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n");
    connection.send([asked.started(), by(asked)].concat());
    After::Close
}

#[test]
fn whatever_an_answer_says_there_is_one_outcome_and_the_rule_is_on_record() {
    static CASES: [Case; 14] = [
        case!(one_piece_in_place_of_a_stream => "completed", Some("RUN-122")),
        case!(web_page_in_place_of_a_stream => "broken_contract", Some("RUN-122")),
        case!(good_body_with_500 => "completed", Some("RUN-5.3")),
        case!(good_body_with_500_in_one_piece => "completed", Some("RUN-5.3")),
        case!(rubbish => "broken_contract", Some("ALL-101")),
        case!(rubbish_with_500 => "agent_failed", None),
        case!(empty_body => "broken_contract", Some("ALL-101")),
        case!(nothing_at_all_with_204 => "broken_contract", Some("RUN-122")),
        case!(wrong_id => "broken_contract", Some("RUN-9")),
        case!(contradicts_itself => "agent_failed", Some("RUN-3.8")),
        case!(no_mark_of_success => "broken_contract", Some("RUN-103")),
        case!(outputs_that_are_no_object => "broken_contract", Some("RUN-3.2")),
        case!(invalid_utf8 => "broken_contract", Some("ALL-102")),
        case!(another_content_type => "completed", None),
    ];
    let setup = Setup::start("run", &CASES);
    setup.run_all();
    for case in &CASES {
        let asked = setup.scripted.requests_of(case.name);
        let whole = asked.iter().filter(|asked| !asked.wants_stream()).count();
        assert!(whole <= 2, "{}: {asked:?}", case.name);
    }
}

/// An agent that has only the endpoint for answers in one piece.
fn in_one_piece(asked: &Request, connection: &mut Connection, say: impl FnOnce(&mut Connection) -> After) -> After {
    if asked.wants_stream() {
        return connection.json(404, &json!({"detail": "Not Found"}));
    }
    say(connection)
}

fn one_piece_in_place_of_a_stream(asked: &Request, connection: &mut Connection) -> After {
    connection.json(200, &asked.response(json!({"by": &asked.agent})))
}

fn web_page_in_place_of_a_stream(_: &Request, connection: &mut Connection) -> After {
    connection.send(answer(200, "text/html", b"<!doctype html><title>Welcome</title>"));
    After::Keep
}

fn good_body_with_500(asked: &Request, connection: &mut Connection) -> After {
    connection.json(500, &asked.response(json!({"by": &asked.agent})))
}

fn good_body_with_500_in_one_piece(asked: &Request, connection: &mut Connection) -> After {
    in_one_piece(asked, connection, |connection| connection.json(500, &asked.response(json!({"by": &asked.agent}))))
}

fn rubbish(asked: &Request, connection: &mut Connection) -> After {
    in_one_piece(asked, connection, |connection| {
        connection.send(answer(200, "application/json", b"{\"request_id\": \"1\", <<<"));
        After::Keep
    })
}

fn rubbish_with_500(_: &Request, connection: &mut Connection) -> After {
    connection.send(answer(500, "text/plain", b"Traceback (most recent call last)"));
    After::Keep
}

fn empty_body(asked: &Request, connection: &mut Connection) -> After {
    in_one_piece(asked, connection, |connection| {
        connection.send(answer(200, "application/json", b""));
        After::Keep
    })
}

fn nothing_at_all_with_204(_: &Request, connection: &mut Connection) -> After {
    connection.send("HTTP/1.1 204 No Content\r\n\r\n");
    After::Keep
}

fn wrong_id(asked: &Request, connection: &mut Connection) -> After {
    in_one_piece(asked, connection, |connection| {
        connection.json(200, &another_id(asked.response(json!({"by": "another agent"}))))
    })
}

fn contradicts_itself(asked: &Request, connection: &mut Connection) -> After {
    in_one_piece(asked, connection, |connection| connection.json(200, &contradiction(asked)))
}

fn no_mark_of_success(asked: &Request, connection: &mut Connection) -> After {
    in_one_piece(asked, connection, |connection| {
        connection.json(200, &json!({"request_id": asked.id(), "outputs": {}}))
    })
}

fn outputs_that_are_no_object(asked: &Request, connection: &mut Connection) -> After {
    in_one_piece(asked, connection, |connection| {
        connection.json(200, &json!({"request_id": asked.id(), "status": "ok", "outputs": "done"}))
    })
}

fn invalid_utf8(asked: &Request, connection: &mut Connection) -> After {
    in_one_piece(asked, connection, |connection| {
        let mut body = asked.response(json!({"by": "~"})).to_string().into_bytes();
        body.iter_mut().filter(|byte| **byte == b'~').for_each(|byte| *byte = 0xff);
        connection.send(answer(200, "application/json", &body));
        After::Keep
    })
}

fn another_content_type(asked: &Request, connection: &mut Connection) -> After {
    in_one_piece(asked, connection, |connection| {
        connection.send(answer(200, "text/html", asked.response(json!({"by": &asked.agent})).to_string().as_bytes()));
        After::Keep
    })
}

#[test]
fn whatever_the_framing_is_there_is_one_outcome() {
    static CASES: [Case; 8] = [
        case!(says_continue_first => "completed", None),
        case!(says_early_hints_first => "completed", None),
        case!(switches_protocols => "broken_contract", None),
        case!(is_no_http => "broken_contract", Some("RUN-121")),
        case!(head_without_end => "broken_contract", Some("RUN-121")),
        case!(chunk_with_a_bad_size => "broken_contract", Some("RUN-7")),
        case!(two_lengths => "broken_contract", Some("RUN-121")),
        case!(more_than_its_length => "completed", None),
    ];
    Setup::start("run", &CASES).run_all();
}

fn says_continue_first(asked: &Request, connection: &mut Connection) -> After {
    connection.send("HTTP/1.1 100 Continue\r\n\r\n".repeat(3));
    connection.stream(&[asked.started(), by(asked)])
}

fn says_early_hints_first(asked: &Request, connection: &mut Connection) -> After {
    connection.send("HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n");
    connection.stream(&[asked.started(), by(asked)])
}

fn switches_protocols(_: &Request, connection: &mut Connection) -> After {
    connection.send("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
    After::Close
}

fn is_no_http(_: &Request, connection: &mut Connection) -> After {
    connection.send("SSH-2.0-OpenSSH_9.6\r\n");
    After::Close
}

fn head_without_end(_: &Request, connection: &mut Connection) -> After {
    connection.send("HTTP/1.1 200 OK\r\nx-much: ");
    connection.flood(&[b'a'; 1 << 16], 1 << 30);
    After::Close
}

fn chunk_with_a_bad_size(asked: &Request, connection: &mut Connection) -> After {
    connection.send(CHUNKED_STREAM_HEAD);
    connection.send(chunk(asked.started().as_bytes()));
    connection.send("-1\r\n\r\nzzz\r\n");
    After::Close
}

fn two_lengths(asked: &Request, connection: &mut Connection) -> After {
    let body = asked.response(json!({"by": &asked.agent})).to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    connection.send(format!("{head}content-length: 5\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
    After::Close
}

/// What follows is an unsolicited second answer, which no request may get.
fn more_than_its_length(asked: &Request, connection: &mut Connection) -> After {
    in_one_piece(asked, connection, |connection| {
        connection.json(200, &asked.response(json!({"by": &asked.agent})));
        connection.json(200, &asked.response(json!({"by": "another agent"})))
    })
}
