//! Task agents that break rules: ids, states, polls, questions, lengths.

use std::io::Write;

use serde_json::{Value, json};

use crate::support::misbehaving_agents::{Case, Stage, clauses, one_outcome, peak_mib};
use crate::support::scripted_agent::{After, Asked, Wire, answer};
use crate::support::server::until;

macro_rules! case {
    ($name:ident => $ends:literal, $clause:expr) => {
        case!($name, "" => $ends, $clause)
    };
    ($name:ident, $keys:expr => $ends:literal, $clause:expr) => {
        Case { name: stringify!($name), keys: $keys, script: $name, ends: $ends, clause: $clause }
    };
}

#[test]
fn whatever_a_task_agent_says_there_is_one_outcome_and_the_rule_is_on_record() {
    static CASES: [Case; 21] = [
        case!(another_id => "broken_contract", Some("TASK-121")),
        case!(another_id_in_a_poll => "broken_contract", Some("TASK-121")),
        case!(goes_back_to_pending => "completed", Some("TASK-3")),
        case!(pending_after_its_end => "completed", None),
        case!(unknown_status => "broken_contract", Some("TASK-108")),
        case!(unknown_status_in_a_poll => "broken_contract", Some("TASK-108")),
        case!(result_before_its_end => "broken_contract", Some("TASK-2")),
        case!(completed_without_result => "broken_contract", Some("TASK-2")),
        case!(failed_without_error => "broken_contract", Some("TASK-2.2")),
        case!(result_that_is_no_object => "broken_contract", Some("TASK-109")),
        case!(forgets_what_it_took => "unavailable", Some("TASK-4.2")),
        case!(stumbles_once => "completed", None),
        case!(conflict => "conflict", Some("TASK-5")),
        case!(rubbish => "broken_contract", Some("ALL-101")),
        case!(invalid_utf8 => "broken_contract", Some("ALL-102")),
        case!(nothing_at_all_with_204 => "broken_contract", Some("ALL-101")),
        case!(good_body_with_500 => "completed", Some("TASK-4")),
        case!(another_content_type => "completed", Some("TASK-4")),
        case!(web_page => "broken_contract", Some("ALL-101")),
        case!(is_no_http => "broken_contract", Some("TASK-4.5")),
        case!(polls_are_no_http => "broken_contract", Some("TASK-4.5")),
    ];
    let stage = Stage::of("task", &CASES);
    let came = stage.play();
    for one in &came {
        let asked = stage.scripted.asked(one.name);
        let sent = asked.iter().filter(|asked| asked.path == "/tasks" && asked.id() == one.job["id"]).count();
        assert_eq!(sent, 1, "{} was sent {sent} times", one.name);
    }
}

fn is_poll(asked: &Asked) -> bool {
    asked.method == "GET"
}

/// Takes the task, and answers polls with this, by their number.
fn polled(asked: &Asked, wire: &mut Wire, poll: impl FnOnce(usize) -> Value) -> After {
    if is_poll(asked) {
        return wire.json("200 OK", &poll(asked.turn));
    }
    wire.json("202 Accepted", &asked.task("pending"))
}

fn done(asked: &Asked) -> Value {
    asked.completed(&asked.script)
}

fn of_another(mut task: Value) -> Value {
    task["id"] = json!("00000000-0000-4000-8000-000000000000");
    task
}

fn another_id(asked: &Asked, wire: &mut Wire) -> After {
    wire.json("200 OK", &of_another(done(asked)))
}

fn another_id_in_a_poll(asked: &Asked, wire: &mut Wire) -> After {
    polled(asked, wire, |_| of_another(done(asked)))
}

fn goes_back_to_pending(asked: &Asked, wire: &mut Wire) -> After {
    polled(asked, wire, |turn| match turn {
        0 => asked.task("in_progress"),
        1 => asked.task("pending"),
        _ => done(asked),
    })
}

fn pending_after_its_end(asked: &Asked, wire: &mut Wire) -> After {
    polled(asked, wire, |turn| if turn == 0 { done(asked) } else { asked.task("pending") })
}

fn unknown_status(asked: &Asked, wire: &mut Wire) -> After {
    wire.json("200 OK", &asked.task("thinking"))
}

fn unknown_status_in_a_poll(asked: &Asked, wire: &mut Wire) -> After {
    polled(asked, wire, |_| asked.task("thinking"))
}

fn result_before_its_end(asked: &Asked, wire: &mut Wire) -> After {
    polled(asked, wire, |_| json!({"id": asked.id(), "status": "in_progress", "result": {"by": "nobody"}}))
}

fn completed_without_result(asked: &Asked, wire: &mut Wire) -> After {
    wire.json("200 OK", &asked.task("completed"))
}

fn failed_without_error(asked: &Asked, wire: &mut Wire) -> After {
    wire.json("200 OK", &asked.task("failed"))
}

fn result_that_is_no_object(asked: &Asked, wire: &mut Wire) -> After {
    wire.json("200 OK", &json!({"id": asked.id(), "status": "completed", "result": "done"}))
}

fn forgets_what_it_took(asked: &Asked, wire: &mut Wire) -> After {
    if is_poll(asked) {
        return wire.json("404 Not Found", &json!({"detail": "no such task"}));
    }
    wire.json("202 Accepted", &asked.task("pending"))
}

fn stumbles_once(asked: &Asked, wire: &mut Wire) -> After {
    if is_poll(asked) && asked.turn == 0 {
        return wire.json("500 Internal Server Error", &json!({"detail": "try again"}));
    }
    polled(asked, wire, |_| done(asked))
}

fn conflict(asked: &Asked, wire: &mut Wire) -> After {
    let error =
        json!({"code": "INVALID_FIELD_VALUE", "message": "the id is taken", "recoverable": true, "details": {}});
    wire.json("409 Conflict", &json!({"id": asked.id(), "status": "failed", "error": error}))
}

fn rubbish(_: &Asked, wire: &mut Wire) -> After {
    wire.send(answer("200 OK", "application/json", b"{\"id\": <<<"));
    After::Keep
}

fn invalid_utf8(asked: &Asked, wire: &mut Wire) -> After {
    let mut body = asked.completed("~").to_string().into_bytes();
    body.iter_mut().filter(|byte| **byte == b'~').for_each(|byte| *byte = 0xff);
    wire.send(answer("200 OK", "application/json", &body));
    After::Keep
}

fn nothing_at_all_with_204(_: &Asked, wire: &mut Wire) -> After {
    wire.send("HTTP/1.1 204 No Content\r\n\r\n");
    After::Keep
}

fn good_body_with_500(asked: &Asked, wire: &mut Wire) -> After {
    wire.json("500 Internal Server Error", &done(asked))
}

fn another_content_type(asked: &Asked, wire: &mut Wire) -> After {
    wire.send(answer("200 OK", "text/html", done(asked).to_string().as_bytes()));
    After::Keep
}

fn web_page(_: &Asked, wire: &mut Wire) -> After {
    wire.send(answer("200 OK", "text/html", b"<!doctype html><title>Welcome</title>"));
    After::Keep
}

fn is_no_http(_: &Asked, wire: &mut Wire) -> After {
    wire.send("SSH-2.0-OpenSSH_9.6\r\n");
    After::Close
}

fn polls_are_no_http(asked: &Asked, wire: &mut Wire) -> After {
    if is_poll(asked) {
        return is_no_http(asked, wire);
    }
    wire.json("202 Accepted", &asked.task("pending"))
}

#[test]
fn a_task_that_is_not_heard_of_or_never_ends_is_ended_by_the_clocks() {
    const SILENT: &str = "silence_seconds = 1";
    const SHORT: &str = "total_seconds = 3";
    static CASES: [Case; 5] = [
        case!(silent, SILENT => "timeout", Some("ALL-4")),
        case!(silent_polls, SILENT => "timeout", Some("ALL-4")),
        case!(silent_bodies, SILENT => "timeout", Some("ALL-4")),
        case!(always_stumbles, SILENT => "timeout", Some("ALL-4")),
        case!(never_done, SHORT => "timeout", Some("ALL-4.2")),
    ];
    Stage::of("task", &CASES).play();
}

fn silent(_: &Asked, wire: &mut Wire) -> After {
    wire.until_gone()
}

fn silent_polls(asked: &Asked, wire: &mut Wire) -> After {
    if is_poll(asked) {
        return wire.until_gone();
    }
    wire.json("202 Accepted", &asked.task("pending"))
}

fn silent_bodies(asked: &Asked, wire: &mut Wire) -> After {
    if is_poll(asked) {
        wire.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{");
        return wire.until_gone();
    }
    wire.json("202 Accepted", &asked.task("pending"))
}

fn always_stumbles(asked: &Asked, wire: &mut Wire) -> After {
    if is_poll(asked) {
        return wire.json("500 Internal Server Error", &json!({}));
    }
    wire.json("202 Accepted", &asked.task("pending"))
}

fn never_done(asked: &Asked, wire: &mut Wire) -> After {
    polled(asked, wire, |_| asked.task("in_progress"))
}

/// More than an agent may send, in bytes. The flood stops when the server takes no more.
const MUCH: u64 = 1 << 30;

#[test]
fn a_task_that_is_too_long_is_not_read_to_its_end() {
    static CASES: [Case; 2] =
        [case!(long_answer => "resource_limit", None), case!(long_poll => "resource_limit", None)];
    let stage = Stage::of("task", &CASES);
    stage.play();
    let peak = peak_mib(&stage.server);
    let _ = writeln!(std::io::stdout().lock(), "{peak} MiB at the most");
    assert!(peak < 256, "{peak} MiB");
}

fn long(asked: &Asked, wire: &mut Wire) -> After {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {MUCH}\r\n\r\n");
    wire.send(head + &format!("{{\"id\": \"{}\", \"status\": \"", asked.id()));
    wire.flood(&[b'a'; 1 << 16], MUCH);
    assert!(wire.written < MUCH, "it was read to its end");
    After::Close
}

fn long_answer(asked: &Asked, wire: &mut Wire) -> After {
    long(asked, wire)
}

fn long_poll(asked: &Asked, wire: &mut Wire) -> After {
    if is_poll(asked) {
        return long(asked, wire);
    }
    wire.json("202 Accepted", &asked.task("pending"))
}

#[test]
fn a_question_without_words_is_passed_on_all_the_same() {
    static CASES: [Case; 1] = [case!(asks_nothing => "completed", Some("TASK-2.6"))];
    let stage = Stage::of("task", &CASES);
    let id = stage.server.begin("asks_nothing");
    let job = stage.server.in_state(&id, "waiting");
    assert!(job["question"]["prompt"].is_string(), "{job}");
    let answered = stage.server.post(&format!("/api/v1/jobs/{id}/answer"), &json!({"input": {"go": true}}).to_string());
    assert!([200, 202].contains(&answered.status), "{answered:?}");
    let job = stage.server.ended(&id);
    assert_eq!(job["outcome"]["outputs"], json!({"by": "asks_nothing"}), "{job}");
    one_outcome(&stage.server, &id, "asks_nothing");
    until("it is on record", || clauses(&stage.server.job(&id)).contains(&"TASK-2.6".to_owned()).then_some(()));
    let inputs: Vec<Asked> =
        stage.scripted.asked("asks_nothing").into_iter().filter(|asked| asked.path.ends_with("/input")).collect();
    assert_eq!(inputs.len(), 1, "{inputs:?}");
    assert_eq!(inputs[0].json()["input"], json!({"go": true}));
}

fn asks_nothing(asked: &Asked, wire: &mut Wire) -> After {
    if asked.path.ends_with("/input") {
        return wire.json("200 OK", &done(asked));
    }
    wire.json("202 Accepted", &asked.task("input_required"))
}
