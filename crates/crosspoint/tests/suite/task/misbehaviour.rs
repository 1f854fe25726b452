//! Task agents that break rules: ids, states, polls, questions, lengths.

use std::io::Write;

use serde_json::{Value, json};

use crate::support::misbehaving_agents::{Case, Setup, clauses, one_outcome, peak_mib};
use crate::support::scripted_agent::{After, Connection, Request, answer};
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
        case!(result_before_its_end => "completed", Some("TASK-2")),
        case!(completed_without_result => "broken_contract", Some("TASK-2")),
        case!(failed_without_error => "agent_failed", Some("TASK-2.2")),
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
    let setup = Setup::start("task", &CASES);
    let ended = setup.run_all();
    for one in &ended {
        let asked = setup.scripted.requests_of(one.name);
        let sent = asked.iter().filter(|asked| asked.path == "/tasks" && asked.id() == one.job["id"]).count();
        assert_eq!(sent, 1, "{} was sent {sent} times", one.name);
    }
}

fn is_poll(asked: &Request) -> bool {
    asked.method == "GET"
}

/// Takes the task, and answers polls with this, by their number.
fn polled(asked: &Request, connection: &mut Connection, poll: impl FnOnce(usize) -> Value) -> After {
    if is_poll(asked) {
        return connection.json(200, &poll(asked.turn));
    }
    connection.json(202, &asked.task("pending"))
}

fn done(asked: &Request) -> Value {
    asked.completed(&asked.agent)
}

fn of_another(mut task: Value) -> Value {
    task["id"] = json!("00000000-0000-4000-8000-000000000000");
    task
}

fn another_id(asked: &Request, connection: &mut Connection) -> After {
    connection.json(200, &of_another(done(asked)))
}

fn another_id_in_a_poll(asked: &Request, connection: &mut Connection) -> After {
    polled(asked, connection, |_| of_another(done(asked)))
}

fn goes_back_to_pending(asked: &Request, connection: &mut Connection) -> After {
    polled(asked, connection, |turn| match turn {
        0 => asked.task("in_progress"),
        1 => asked.task("pending"),
        _ => done(asked),
    })
}

fn pending_after_its_end(asked: &Request, connection: &mut Connection) -> After {
    polled(asked, connection, |turn| if turn == 0 { done(asked) } else { asked.task("pending") })
}

fn unknown_status(asked: &Request, connection: &mut Connection) -> After {
    connection.json(200, &asked.task("thinking"))
}

fn unknown_status_in_a_poll(asked: &Request, connection: &mut Connection) -> After {
    polled(asked, connection, |_| asked.task("thinking"))
}

/// As long as the status says that the task goes on, it does, whatever else is there.
fn result_before_its_end(asked: &Request, connection: &mut Connection) -> After {
    polled(asked, connection, |turn| match turn {
        0 => json!({"id": asked.id(), "status": "in_progress", "result": {"by": "too early"}}),
        _ => done(asked),
    })
}

fn completed_without_result(asked: &Request, connection: &mut Connection) -> After {
    connection.json(200, &asked.task("completed"))
}

fn failed_without_error(asked: &Request, connection: &mut Connection) -> After {
    connection.json(200, &asked.task("failed"))
}

fn result_that_is_no_object(asked: &Request, connection: &mut Connection) -> After {
    connection.json(200, &json!({"id": asked.id(), "status": "completed", "result": "done"}))
}

fn forgets_what_it_took(asked: &Request, connection: &mut Connection) -> After {
    if is_poll(asked) {
        return connection.json(404, &json!({"detail": "no such task"}));
    }
    connection.json(202, &asked.task("pending"))
}

fn stumbles_once(asked: &Request, connection: &mut Connection) -> After {
    if is_poll(asked) && asked.turn == 0 {
        return connection.json(500, &json!({"detail": "try again"}));
    }
    polled(asked, connection, |_| done(asked))
}

fn conflict(asked: &Request, connection: &mut Connection) -> After {
    let error =
        json!({"code": "INVALID_FIELD_VALUE", "message": "the id is taken", "recoverable": true, "details": {}});
    connection.json(409, &json!({"id": asked.id(), "status": "failed", "error": error}))
}

fn rubbish(_: &Request, connection: &mut Connection) -> After {
    connection.send(answer(200, "application/json", b"{\"id\": <<<"));
    After::Keep
}

fn invalid_utf8(asked: &Request, connection: &mut Connection) -> After {
    let mut body = asked.completed("~").to_string().into_bytes();
    body.iter_mut().filter(|byte| **byte == b'~').for_each(|byte| *byte = 0xff);
    connection.send(answer(200, "application/json", &body));
    After::Keep
}

fn nothing_at_all_with_204(_: &Request, connection: &mut Connection) -> After {
    connection.send("HTTP/1.1 204 No Content\r\n\r\n");
    After::Keep
}

fn good_body_with_500(asked: &Request, connection: &mut Connection) -> After {
    connection.json(500, &done(asked))
}

fn another_content_type(asked: &Request, connection: &mut Connection) -> After {
    connection.send(answer(200, "text/html", done(asked).to_string().as_bytes()));
    After::Keep
}

fn web_page(_: &Request, connection: &mut Connection) -> After {
    connection.send(answer(200, "text/html", b"<!doctype html><title>Welcome</title>"));
    After::Keep
}

fn is_no_http(_: &Request, connection: &mut Connection) -> After {
    connection.send("SSH-2.0-OpenSSH_9.6\r\n");
    After::Close
}

fn polls_are_no_http(asked: &Request, connection: &mut Connection) -> After {
    if is_poll(asked) {
        return is_no_http(asked, connection);
    }
    connection.json(202, &asked.task("pending"))
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
    Setup::start("task", &CASES).run_all();
}

fn silent(_: &Request, connection: &mut Connection) -> After {
    connection.until_gone()
}

fn silent_polls(asked: &Request, connection: &mut Connection) -> After {
    if is_poll(asked) {
        return connection.until_gone();
    }
    connection.json(202, &asked.task("pending"))
}

fn silent_bodies(asked: &Request, connection: &mut Connection) -> After {
    if is_poll(asked) {
        connection.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{");
        return connection.until_gone();
    }
    connection.json(202, &asked.task("pending"))
}

fn always_stumbles(asked: &Request, connection: &mut Connection) -> After {
    if is_poll(asked) {
        return connection.json(500, &json!({}));
    }
    connection.json(202, &asked.task("pending"))
}

fn never_done(asked: &Request, connection: &mut Connection) -> After {
    polled(asked, connection, |_| asked.task("in_progress"))
}

/// More than an agent may send, in bytes. The flood stops when the server takes no more.
const MUCH: u64 = 1 << 30;

#[test]
fn a_task_that_is_too_long_is_not_read_to_its_end() {
    static CASES: [Case; 2] =
        [case!(long_answer => "resource_limit", None), case!(long_poll => "resource_limit", None)];
    let setup = Setup::start("task", &CASES);
    setup.run_all();
    let peak = peak_mib(&setup.server);
    let _ = writeln!(std::io::stdout().lock(), "{peak} MiB at the most");
    assert!(peak < 256, "{peak} MiB");
}

fn long(asked: &Request, connection: &mut Connection) -> After {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {MUCH}\r\n\r\n");
    connection.send(head + &format!("{{\"id\": \"{}\", \"status\": \"", asked.id()));
    connection.flood(&[b'a'; 1 << 16], MUCH);
    assert!(connection.written < MUCH, "it was read to its end");
    After::Close
}

fn long_answer(asked: &Request, connection: &mut Connection) -> After {
    long(asked, connection)
}

fn long_poll(asked: &Request, connection: &mut Connection) -> After {
    if is_poll(asked) {
        return long(asked, connection);
    }
    connection.json(202, &asked.task("pending"))
}

#[test]
fn a_question_without_words_is_passed_on_all_the_same() {
    static CASES: [Case; 1] = [case!(asks_nothing => "completed", Some("TASK-2.6"))];
    let setup = Setup::start("task", &CASES);
    let id = setup.server.begin("asks_nothing");
    let job = setup.server.in_state(&id, "waiting");
    assert!(job["question"]["prompt"].is_string(), "{job}");
    let answered = setup.server.post(&format!("/api/v1/jobs/{id}/answer"), &json!({"input": {"go": true}}).to_string());
    assert!([200, 202].contains(&answered.status), "{answered:?}");
    let job = setup.server.ended(&id);
    assert_eq!(job["outcome"]["outputs"], json!({"by": "asks_nothing"}), "{job}");
    one_outcome(&setup.server, &id, "asks_nothing");
    until("it is on record", || clauses(&setup.server.job(&id)).contains(&"TASK-2.6".to_owned()).then_some(()));
    let inputs: Vec<Request> =
        setup.scripted.requests_of("asks_nothing").into_iter().filter(|asked| asked.path.ends_with("/input")).collect();
    assert_eq!(inputs.len(), 1, "{inputs:?}");
    assert_eq!(inputs[0].json()["input"], json!({"go": true}));
}

fn asks_nothing(asked: &Request, connection: &mut Connection) -> After {
    if asked.path.ends_with("/input") {
        return connection.json(200, &done(asked));
    }
    connection.json(202, &asked.task("input_required"))
}
