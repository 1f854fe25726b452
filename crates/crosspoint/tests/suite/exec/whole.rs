//! Answers are whole, or say that they are not (ALL-12).

use std::io::{BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::bridge_caller::{self, new_id};
use crate::support::long_texts::{PRINTS, texts_are_whole_at_every_door};
use crate::support::programs::{bash, python};
use crate::support::run_caller;
use crate::support::server::{Answer, Server, head, until};
use crate::support::task_caller;

const AROUND: &str = r#"printf 'Use this:\n{"a": 1}\nand restart.\n'"#;
const PRINTED: &str = "Use this:\n{\"a\": 1}\nand restart.\n";

#[test]
fn long_texts_of_programs_are_whole_at_every_door_also_after_a_kill() {
    let mut server = Server::configured(&python("prints", PRINTS, ""));
    texts_are_whole_at_every_door(&mut server, "prints");
}

#[test]
fn text_around_an_object_is_carried_to_object_contracts_and_whole_for_text_contracts() {
    let mut server = Server::configured(&bash("advise", AROUND, ""));
    let (id, input) = (new_id(), json!({}));
    let job = server.done("advise", &input)["id"].as_str().expect("an id").to_owned();
    for _ in 0..2 {
        let bridge = server.response_to(&bridge_caller::request(&id, "advise", "Help."));
        assert_eq!(bridge["response"], PRINTED);
        let run = server.run_sync(&run_caller::request(&id, "advise", &input)).json();
        assert_eq!((&run["outputs"], &run["x_crosspoint"]["text"]), (&json!({"a": 1}), &json!(PRINTED)), "{run}");
        let task = server.submit_task("?wait=60", &task_caller::request(&id, "advise", &input)).document;
        assert_eq!(task["result"], json!({"a": 1}), "{task}");
        assert_eq!(task["metadata"]["x_crosspoint"]["text"], PRINTED, "{task}");
        let outcome = server.ended(&job)["outcome"].clone();
        assert_eq!((&outcome["outputs"], &outcome["text"]), (&json!({"a": 1}), &json!(PRINTED)));
        server.kill();
        server.restart();
    }
}

#[test]
fn a_long_text_around_an_object_is_carried_as_far_as_it_goes() {
    let script = r#"yes 'a line of text' | head -c "$BYTES"; echo; echo '{"a": 1}'"#;
    let agents = [("some", 3 << 20), ("much", 11 << 20)]
        .map(|(name, bytes)| bash(name, script, &format!("env = {{ BYTES = \"{bytes}\" }}")));
    let server = Server::configured(&agents.concat());
    let whole = |bytes: usize| "a line of text\n".repeat(bytes / 15 + 1)[..bytes].to_owned() + "\n{\"a\": 1}\n";
    let ask = |work: &str| {
        let id = new_id();
        let run = server.run_sync(&run_caller::request(&id, work, &json!({}))).json();
        let native = server.done(work, &json!({}));
        (run, native, server.response_to(&bridge_caller::request(&id, work, "Help.")))
    };
    let (run, native, bridge) = ask("some");
    let text = whole(3 << 20);
    assert_eq!((&run["outputs"], &native["outcome"]["outputs"]), (&json!({"a": 1}), &json!({"a": 1})));
    for (door, shown) in
        [("run", &run["x_crosspoint"]["text"]), ("native", &native["outcome"]["text"]), ("bridge", &bridge["response"])]
    {
        assert!(shown.as_str() == Some(&text), "{door}");
    }
    let (run, native, bridge) = ask("much");
    let text = whole(11 << 20);
    assert_eq!((&run["outputs"], &native["outcome"]["outputs"]), (&json!({"a": 1}), &json!({"a": 1})));
    for (door, shown) in [("run", &run["x_crosspoint"]), ("native", &native["outcome"])] {
        assert_eq!(shown["truncated"]["bytes"], text.len(), "{door}");
        assert!(text.ends_with(shown["text"].as_str().expect("a text")), "{door}");
        let href = shown["truncated"]["href"].as_str().expect("a path");
        assert!(server.get(href).body == text.as_bytes(), "{door}");
    }
    assert_eq!(bridge["error_type"], "ResponseTooLarge");
}

#[test]
fn outputs_by_directive_are_an_object_and_what_was_printed_stays_step_output() {
    let script = r#"echo hello; echo '@crosspoint {"outputs": {"b": 2}}'; echo '{"a": 1}'"#;
    let server = Server::configured(&bash("gives", script, ""));
    let job = server.done("gives", &json!({}));
    assert_eq!(job["outcome"]["outputs"], json!({"b": 2}));
    assert!(job["outcome"].get("text").is_none(), "{job}");
    let bridge = server.response_to(&bridge_caller::request(&new_id(), "gives", "Help."));
    assert_eq!(bridge["response"], r#"{"b":2}"#);
    let run = server.run_sync(&run_caller::request(&new_id(), "gives", &json!({}))).json();
    assert_eq!((&run["outputs"], run.get("x_crosspoint")), (&json!({"b": 2}), None), "{run}");
    let output = server.get(&format!("/api/v1/jobs/{}/output", job["id"].as_str().expect("an id")));
    assert_eq!(output.text(), "hello\n{\"a\": 1}\n");
}

#[test]
fn a_lone_object_is_an_object_alone() {
    let server = Server::configured(&bash("lone", r#"echo; echo '  {"a": 1} '"#, ""));
    let job = server.done("lone", &json!({}));
    assert_eq!((&job["outcome"]["outputs"], job["outcome"].get("text")), (&json!({"a": 1}), None));
    let bridge = server.response_to(&bridge_caller::request(&new_id(), "lone", "Help."));
    assert_eq!(bridge["response"], r#"{"a":1}"#);
}

#[test]
fn bytes_that_are_no_text_are_said_to_be_none_however_many() {
    let script = r#"head -c "$BYTES" /dev/zero | tr '\0' '\377'"#;
    let agents = [("few", 3), ("many", 4 << 20)]
        .map(|(name, bytes)| bash(name, script, &format!("env = {{ BYTES = \"{bytes}\" }}")));
    let server = Server::configured(&agents.concat());
    let few = server.done("few", &json!({}));
    assert_eq!(few["outcome"]["outputs"], json!({"output": "\u{fffd}\u{fffd}\u{fffd}", "output_encoding": "lossy"}));
    let bridge = server.response_to(&bridge_caller::request(&new_id(), "few", "Help."));
    assert_eq!(bridge["response"], "\u{fffd}\u{fffd}\u{fffd}");
    assert_eq!(bridge["metadata"]["x_crosspoint"]["output_encoding"], "lossy", "{bridge}");
    // As text it is three times as long, which is over the limit.
    let many = server.done("many", &json!({}))["outcome"]["outputs"].clone();
    assert_eq!((&many["truncated"]["bytes"], &many["output_encoding"]), (&json!(4 << 20), &json!("lossy")));
    let bridge = server.response_to(&bridge_caller::request(&new_id(), "many", "Help."));
    assert_eq!(bridge["error_type"], "ResponseTooLarge", "{bridge}");
}

#[test]
fn streams_end_with_the_whole_text() {
    let server = Server::configured(&python("prints", PRINTS, ""));
    let input = json!({"bytes": 2 << 20});
    let text = crate::support::long_texts::text(2 << 20);
    let (name, last) = server.run_stream(&run_caller::request("r-1", "prints", &input)).pop().expect("it ends");
    assert!(name == "final" && last["outputs"]["output"].as_str() == Some(&text));
    let task = server.submit_task("?wait=60", &task_caller::request("t-1", "prints", &input));
    assert_eq!(task.document["status"], "completed");
    let events = server.get("/tasks/t-1/events").text();
    let (_, name, task) = task_caller::events(&events).pop().expect("it ends");
    assert!(name == "completed" && task["result"]["output"].as_str() == Some(&text));
    let job = server.job_of_task("t-1")["id"].as_str().expect("an id").to_owned();
    let events = server.get(&format!("/api/v1/jobs/{job}/events")).text();
    let data = events.lines().rfind(|line| line.starts_with("data:")).expect("the last event");
    let last: Value = serde_json::from_str(&data["data:".len()..]).expect("JSON");
    assert!(last["outcome"]["outputs"]["output"].as_str() == Some(&text));
    let listed = server.get("/api/v1/jobs?door=task").json()["jobs"][0]["outcome"].clone();
    assert_eq!((&listed["outputs"], listed["bytes"].as_u64()), (&Value::Null, Some(2 << 20)), "lists say how long");
}

/// Peak memory of a process, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is there");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Whether something of the answer has arrived.
fn is_answered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket can be asked without waiting");
    let arrived = stream.peek(&mut [0]).is_ok_and(|count| count > 0);
    stream.set_nonblocking(false).expect("and with waiting");
    arrived
}

#[test]
fn callers_that_take_nothing_of_long_answers_do_not_fill_the_memory() {
    const CALLERS: usize = 60;
    // As many as there is room for, of 9 MiB each in 128 MiB.
    const ANSWERED: usize = 14;
    let server = Server::configured(&python("prints", PRINTS, ""));
    let bytes = 9 << 20;
    let id = server.done("prints", &json!({"bytes": bytes}))["id"].as_str().expect("an id").to_owned();
    let asking: Vec<TcpStream> = (0..CALLERS)
        .map(|_| {
            let mut stream = server.connect();
            let head = head("GET", &format!("/api/v1/jobs/{id}"), &[], 0);
            stream.write_all(head.as_bytes()).expect("it can be asked");
            stream
        })
        .collect();
    let answered = || asking.iter().filter(|stream| is_answered(stream)).count();
    until("the room is full", || (answered() >= ANSWERED).then_some(()));
    let other = server.done("prints", &json!({"bytes": 9}));
    assert_eq!(other["state"], "completed", "short answers need no room");
    assert_eq!(answered(), ANSWERED, "the others wait");
    let path = format!("/api/v1/jobs/{id}");
    std::thread::scope(|scope| {
        for stream in asking {
            scope.spawn(|| {
                let mut answer = Answer::read(&mut BufReader::new(stream)).expect("it is whole");
                // On a slow machine there was no room in time, and the caller comes again, as it is told.
                for _ in 0..CALLERS {
                    if answer.status == 200 {
                        break;
                    }
                    answer = server.get(&path);
                }
                assert!(answer.body.len() > bytes, "{}", answer.status);
            });
        }
    });
    let peak = peak_kib(server.pid());
    assert!(peak < ((CALLERS * 9) << 10) as u64, "{peak} KiB");
}
