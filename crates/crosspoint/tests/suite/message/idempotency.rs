//! Repeats do no work twice: an agent that has seen a request id answers with what it has stored, and nobody else gets
//! the work meanwhile (MSG-8, ALL-3).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::message_post::{Posted, failed, pulling, pushed, result};
use crate::support::misbehaving_agents::{clauses, one_outcome};
use crate::support::scripted_agent::{After, Connection, unused_address};
use crate::support::server::{Server, until};

/// The answers of an agent by request id, and how often it did anything at all.
#[derive(Default)]
struct Memory {
    answers: Mutex<BTreeMap<String, Value>>,
    done: Mutex<usize>,
}

impl Memory {
    /// Does the work of a request, unless it is done. Returns the answer, and whether it was stored before.
    fn answer(&self, request: &Value) -> (Value, bool) {
        let mut answers = self.answers.lock().expect("nobody panics");
        let id = request["request_id"].as_str().expect("an id").to_owned();
        let known = answers.contains_key(&id);
        let answer = answers.entry(id).or_insert_with(|| {
            *self.done.lock().expect("nobody panics") += 1;
            result(request, "done once")
        });
        (answer.clone(), known)
    }

    fn done(&self) -> usize {
        *self.done.lock().expect("nobody panics")
    }
}

/// An agent that does the work, loses the first answer like this, and has it stored for the next time.
fn forgetful(lose: fn(&mut Connection) -> After) -> (Posted, Arc<Memory>) {
    let memory = Arc::<Memory>::default();
    let kept = memory.clone();
    let agent = Posted::answering(move |request, connection| match kept.answer(request) {
        (answer, true) => connection.json(200, &answer),
        (_, false) => lose(connection),
    });
    (agent, memory)
}

#[test]
fn an_answer_that_is_lost_is_asked_for_again_by_the_same_id_and_the_work_is_done_once() {
    let ways: [fn(&mut Connection) -> After; 3] = [
        |_| After::Close,
        |_| After::Reset,
        |connection| {
            connection.send("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"protocol");
            After::Close
        },
    ];
    for lose in ways {
        let (agent, memory) = forgetful(lose);
        let server = Server::configured(&agent.configuration("helper", ""));
        let id = server.begin("helper");
        let job = server.over(&id);
        assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!("done once"), &json!(2)), "{job:#}");
        assert_eq!(memory.done(), 1);
        let sent = agent.had("work_request");
        assert_eq!((sent.len(), &sent[0]["request_id"]), (2, &sent[1]["request_id"]));
        assert_ne!(sent[0]["message_id"], sent[1]["message_id"]);
        assert!(clauses(&job).is_empty(), "{job:#}");
        assert!(agent.had("error").is_empty(), "it is not told to stop what it gets again");
    }
}

#[test]
fn a_server_that_is_killed_asks_again_by_the_same_id() {
    let (agent, memory) = forgetful(Connection::until_gone);
    let mut server = Server::configured(&agent.configuration("helper", ""));
    let id = server.begin("helper");
    let first = agent.request(1);
    server.kill();
    server.restart();
    let job = server.over(&id);
    assert_eq!((&job["outcome"]["outputs"], memory.done()), (&json!("done once"), 1), "{job:#}");
    let second = agent.request(2);
    assert_eq!(first["request_id"], second["request_id"]);
    assert_ne!(first["message_id"], second["message_id"]);
    assert!(agent.had("error").is_empty(), "{:?}", agent.had("error"));
    one_outcome(&server, &id, "killed");
}

#[test]
fn a_result_that_comes_to_the_next_start_counts() {
    let agent = Posted::taking();
    let mut server = Server::configured(&(agent.configuration("helper", "") + &pulling("puller", "")));
    let id = server.begin("helper");
    let request = agent.request(1);
    server.polled("agent=puller");
    let pulled = server.begin("puller");
    let given = server.pulled("puller");
    server.kill();
    server.restart();
    // The agents went on meanwhile, and may be quicker than the requests of the new start.
    server.takes(&result(&request, "pushed"));
    server.takes(&result(&given, "pulled"));
    assert_eq!(server.over(&id)["outcome"]["outputs"], "pushed");
    let job = server.over(&pulled);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!("pulled"), &json!(1)), "{job:#}");
    assert!(clauses(&job).is_empty() && clauses(&server.job(&id)).is_empty(), "{job:#}");
}

#[test]
fn a_failure_that_comes_to_the_next_start_counts() {
    let agent = Posted::taking();
    let mut server = Server::configured(&agent.configuration("helper", ""));
    for _ in 0..5 {
        let id = server.begin("helper");
        let request =
            until("the request", || agent.had("work_request").into_iter().find(|request| request["request_id"] == *id));
        server.kill();
        server.restart();
        server.takes(&failed(&request, "no disk left"));
        let job = server.job(&id);
        assert_eq!(job["outcome"]["failure"]["code"], "agent_failed", "{job:#}");
        assert!(clauses(&job).is_empty(), "{job:#}");
    }
}

#[test]
fn an_agent_that_was_given_a_message_before_a_restart_is_given_it_again() {
    let mut server = Server::configured(&pulling("puller", ""));
    server.polled("agent=puller");
    let id = server.begin("puller");
    let first = server.pulled("puller");
    server.kill();
    server.restart();
    let second = server.pulled("puller");
    assert_eq!((&first["request_id"], &second["request_id"]), (&json!(id), &json!(id)));
    assert_ne!(first["message_id"], second["message_id"]);
    server.takes(&result(&second, "done"));
    assert_eq!(server.over(&id)["attempts"], 1);
}

#[test]
fn a_repeat_never_goes_to_another_agent_of_the_same_work() {
    let agents = [forgetful(|_| After::Close), forgetful(|_| After::Close)];
    let one = |name: &str, agent: &Posted| agent.configuration(name, "work = [\"dig\"]");
    let server = Server::configured(&(one("first", &agents[0].0) + &one("second", &agents[1].0)));
    let id = server.begin("dig");
    let job = server.over(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!("done once"), &json!(2)), "{job:#}");
    let mut had =
        agents.iter().map(|(agent, memory)| (agent.had("work_request").len(), memory.done())).collect::<Vec<_>>();
    had.sort_unstable();
    assert_eq!(had, [(0, 0), (2, 1)], "one agent has it twice, the other never");
}

#[test]
fn work_whose_agent_has_gone_waits_for_it_although_another_is_free() {
    let address = unused_address();
    let first = Posted::at(address, |_, _| After::Close);
    let second = Posted::saying(|request| result(request, "by the second"));
    let agent = |name: &str, url: &str| pushed(name, url, "work = [\"dig\"]");
    // The first has it alone, and then there is another.
    let mut server = Server::configured(&agent("first", &first.url()));
    let id = server.begin("dig");
    server.in_state(&id, "retrying");
    drop(first);
    server.kill();
    server.configure(&(agent("first", &format!("http://{address}")) + &agent("second", &second.url())));
    server.restart();
    until("it is tried again", || (server.job(&id)["attempts"].as_u64() >= Some(3)).then_some(()));
    assert!(second.had("work_request").is_empty(), "only the first knows whether it was done");
    let _back = Posted::at(address, |request, connection| connection.json(200, &result(request, "by the first")));
    assert_eq!(server.over(&id)["outcome"]["outputs"], "by the first");
}

#[test]
fn work_that_surely_never_began_goes_to_another_agent() {
    let second = Posted::saying(|request| result(request, "by the second"));
    let nobody = format!("http://{}", unused_address());
    let server = Server::configured(
        &(pushed("first", &nobody, "work = [\"dig\"]") + &second.configuration("second", "work = [\"dig\"]")),
    );
    for _ in 0..2 {
        let id = server.begin("dig");
        assert_eq!(server.over(&id)["outcome"]["outputs"], "by the second");
    }
    assert_eq!(second.had("work_request").len(), 2);
}
