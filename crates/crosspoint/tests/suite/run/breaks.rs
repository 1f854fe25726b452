//! Run agents whose connection breaks: at every byte of an answer, before the first byte, and for a while.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::thread;

use serde_json::{Value, json};

use crate::support::misbehaving_agents::{clauses, one_outcome, stream, terminal};
use crate::support::scripted_agent::{
    After, CHUNKED_STREAM_HEAD, Connection, Request, STREAM_HEAD, ScriptedAgent, answer, chunk, configuration,
    unused_address,
};
use crate::support::server::Server;

/// Number of cuts made at one agent. Even with the cuts that are made twice, its jobs do not open its breaker before
/// the last of them, however they end.
const CUTS_AN_AGENT: usize = 3;

/// One in this many cuts is made a second time, for a caller of the run door.
const STREAMED_CUTS: usize = 8;

/// Number of callers at once.
const CALLERS: usize = 8;

/// How an answer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// In one piece, with a length.
    Whole,
    /// As a stream that ends with its connection.
    Stream,
    /// As a stream in chunks.
    Chunked,
}

impl Form {
    const ALL: [Form; 3] = [Form::Whole, Form::Stream, Form::Chunked];

    fn name(self) -> &'static str {
        match self {
            Form::Whole => "whole",
            Form::Stream => "stream",
            Form::Chunked => "chunked",
        }
    }

    /// The whole answer.
    fn bytes(self, asked: &Request) -> Vec<u8> {
        let events = asked.started() + &asked.final_event("it");
        match self {
            Form::Whole => answer(200, "application/json", asked.response(json!({"by": "it"})).to_string().as_bytes()),
            Form::Stream => (STREAM_HEAD.to_owned() + &events).into_bytes(),
            Form::Chunked => [CHUNKED_STREAM_HEAD.as_bytes(), &chunk(events.as_bytes()), &chunk(b"")].concat(),
        }
    }

    /// From this byte on the result is complete and may count. With the last byte it must count.
    fn enough(self, asked: &Request) -> usize {
        let all = self.bytes(asked);
        match self {
            Form::Whole => all.len(),
            // The blank line is missing, and the event is read all the same (RUN-8.3).
            Form::Stream => all.len() - "\n\n".len(),
            Form::Chunked => all.len() - "\n\n\r\n0\r\n\r\n".len(),
        }
    }
}

/// One answer that is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    form: Form,
    at: usize,
    after: After,
}

/// The request says where the agent breaks off its answer.
fn break_off(asked: &Request, connection: &mut Connection) -> After {
    // After a dropped connection its health is asked for (MSG-7).
    if asked.method == "GET" {
        return connection.json(404, &json!({}));
    }
    let inputs = &asked.json()["inputs"];
    let form = Form::ALL.into_iter().find(|form| inputs["form"] == form.name()).expect("it has a form");
    if asked.wants_stream() && form == Form::Whole {
        return connection.json(404, &json!({}));
    }
    let at = usize::try_from(inputs["at"].as_u64().expect("a number")).expect("it fits");
    let all = form.bytes(asked);
    connection.send(&all[..at.min(all.len())]);
    if inputs["reset"] == true { After::Reset } else { After::Close }
}

/// A request like those that the agents will get, to find out how long its answer is.
fn sample(work: &str) -> Request {
    let body = json!({"request_id": "00000000-0000-4000-8000-000000000000", "task_type": work});
    Request::sample("/agents/run/stream", &body)
}

fn agent_of(number: usize) -> String {
    format!("cut{:04}", number / CUTS_AN_AGENT)
}

#[test]
fn an_answer_that_breaks_off_at_any_byte_gives_one_outcome_and_the_agent_is_asked_once() {
    let like = sample("cut0000");
    let cuts = Form::ALL.into_iter().flat_map(|form| (0..=form.bytes(&like).len()).map(move |at| (form, at)));
    let ways = [After::Reset, After::Close];
    let cuts: Vec<Cut> = cuts.flat_map(|(form, at)| ways.map(|after| Cut { form, at, after })).collect();
    let scripted = ScriptedAgent::start_many(break_off);
    let agents = (0..cuts.len()).step_by(CUTS_AN_AGENT).map(agent_of);
    let server = Server::configured(&agents.map(|name| scripted.agent("run", &name, "")).collect::<String>());
    let next = Mutex::new(cuts.iter().copied().enumerate());
    let came = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                while let Some((number, cut)) = { next.lock().expect("no thread panics with it").next() } {
                    let ended = judge(&server, &agent_of(number), cut, &like);
                    *came.lock().expect("no thread panics with it").entry((cut.form.name(), ended)).or_insert(0) += 1;
                }
            });
        }
    });
    let came: BTreeMap<(&str, String), usize> = came.into_inner().expect("no thread panics with it");
    let mut table = format!("\n{} answers cut\n", cuts.len());
    for ((form, ended), count) in &came {
        table += &format!("{form:<8} {ended:<40} {count}\n");
    }
    let _ = std::io::stdout().lock().write_all(table.as_bytes());
    asked_once(&scripted);
}

/// Has one job broken off, and checks the result.
fn judge(server: &Server, work: &str, cut: Cut, like: &Request) -> String {
    let input = json!({"form": cut.form.name(), "at": cut.at, "reset": cut.after == After::Reset});
    let body = json!({"work": work, "input": input, "limits": {"attempts": 1}});
    let accepted = server.post("/api/v1/jobs?wait=60", &body.to_string()).json();
    let id = accepted["id"].as_str().expect("an id");
    let job = server.job(id);
    let about = format!("{cut:?}: {job}");
    one_outcome(server, id, &about);
    let (enough, all) = (cut.form.enough(like), cut.form.bytes(like).len());
    if cut.after == After::Reset && cut.at.is_multiple_of(STREAMED_CUTS) {
        let request = json!({"request_id": format!("{cut:?}"), "task_type": work, "inputs": input});
        let last = terminal(&stream(server, &request));
        assert!(
            last["status"] == if cut.at < enough { "error" } else { "ok" } || (enough..all).contains(&cut.at),
            "{last}"
        );
    }
    let outcome = &job["outcome"];
    if outcome["status"] == "completed" {
        assert!(cut.at >= enough, "half an answer counted: {about}");
        assert_eq!(outcome["outputs"], json!({"by": "it"}), "{about}");
        return "completed".to_owned();
    }
    assert!(cut.at < all, "all was said, and it did not count: {about}");
    let failure = &outcome["failure"];
    assert!(["broken_contract", "unavailable"].map(Value::from).contains(&failure["code"]), "{about}");
    assert_eq!(failure["repeat"], "unknown", "the work may have begun: {about}");
    let mut found = clauses(&job);
    found.dedup();
    assert!(!found.is_empty(), "{about}");
    format!("{} {}", failure["code"].as_str().unwrap_or_default(), found.join(" "))
}

/// Checks that work that may have begun is not begun again, and that the other endpoint is not tried after the first.
fn asked_once(scripted: &ScriptedAgent) {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for asked in scripted.requests().into_iter().filter(|asked| asked.method == "POST") {
        let refused = asked.wants_stream() && asked.json()["inputs"]["form"] == Form::Whole.name();
        *times.entry(asked.id()).or_default() += usize::from(!refused);
    }
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn an_agent_that_is_not_there_yet_is_tried_again_because_nothing_can_have_begun() {
    let scripted = ScriptedAgent::start_many(|asked, connection| match asked.turn {
        0 => connection.json(503, &json!({})),
        _ => connection.stream(&[asked.started(), asked.final_event("it")]),
    });
    let absent = configuration("absent", "run", &format!("http://{}", unused_address()), "");
    let server = Server::configured(&(absent + &scripted.agent("run", "busy", "")));
    let (awaited, busy) = (server.begin("absent"), server.begin("busy"));
    let refused = server.done("absent", &json!({}));
    let failure = &refused["outcome"]["failure"];
    assert_eq!((&failure["code"], &failure["repeat"]), (&json!("unavailable"), &json!("safe")), "{refused}");
    let busy = server.ended(&busy);
    assert_eq!((&busy["outcome"]["status"], &busy["attempts"]), (&json!("completed"), &json!(2)), "{busy}");
    let ids: Vec<String> = scripted.requests_of("busy").iter().map(Request::id).collect();
    assert!(ids.iter().all(|id| busy["id"] == *id), "every attempt carries the job's id: {ids:?}");
    server.in_state(&awaited, "retrying");
    server.cancel(&awaited);
}
