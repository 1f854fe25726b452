//! Agents of the run contract: what they are sent, and what their answers lead to.

use std::sync::{Arc, Mutex, mpsc};

use crosspoint_engine::breaker::Breaker;
use crosspoint_engine::core::{Batch, Standing};
use crosspoint_engine::store::{Options, Store};
use serde_json::{Value, json};

use crate::support::programs::violations;
use crate::support::run_agent::{Call, held_streams};
use crate::support::scripted_agent::{After, Request, ScriptedAgent, configuration, event, unused_address};
use crate::support::server::{PATIENCE, Server, until};

/// A run agent that answers every stream like this, and a server that uses it.
pub(crate) fn serving(
    keys: &str,
    stream: impl Fn(&Request) -> String + Send + Sync + 'static,
) -> (ScriptedAgent, Server) {
    let service = ScriptedAgent::start(move |asked, connection| connection.events(stream(asked)));
    let server = Server::configured(&service.far(keys));
    (service, server)
}

pub(crate) fn id(job: &Value) -> String {
    job["id"].as_str().expect("an id").to_owned()
}

pub(crate) fn failure(job: &Value) -> (&str, &str) {
    let failure = &job["outcome"]["failure"];
    (failure["code"].as_str().expect("a code"), failure["repeat"].as_str().expect("a word"))
}

pub(crate) fn clauses(job: &Value) -> Vec<&str> {
    let list = job["violations"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|one| one["clause"].as_str().expect("a clause")).collect()
}

#[test]
fn progress_arrives_while_it_runs_and_everything_it_said_is_kept() {
    let (service, calls) = held_streams();
    let server = Server::configured(&service.far("work = [\"LIT\"]"));
    let body = json!({"work": "LIT", "input": {"q": "Łódź"}, "limits": {"seconds": 100}});
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = server.request("POST", "/api/v1/jobs", &[("traceparent", parent)], body.to_string().as_bytes());
    let id = id(&answer.json());
    let call = calls.next();
    let asked = &call.request;
    assert_eq!((asked.path.as_str(), asked.id()), ("/agents/run/stream", id.clone()));
    assert_eq!(
        (asked.header("accept"), asked.header("content-type")),
        (Some("text/event-stream"), Some("application/json"))
    );
    assert_eq!((&asked.json()["task_type"], &asked.json()["inputs"]), (&json!("LIT"), &json!({"q": "Łódź"})));
    assert_eq!(asked.json()["budgets"], json!({"max_seconds": 100}), "the deadline is handed on");
    assert_eq!(asked.json().get("mode"), None, "an absent mode is not filled in");
    let trace = asked.header("traceparent").expect("a trace");
    assert!(trace.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && trace != parent, "{trace}");
    call.say(asked.started());
    call.say(event("progress", &json!({"percent": 40, "step": "Look it up", "papers": 3})));
    let seen = until("progress", || Some(server.job(&id)).filter(|job| job["progress"]["percent"] == 40.0));
    assert_eq!((&seen["progress"]["step"], &seen["state"]), (&json!("Look it up"), &json!("running")));
    let mut response = asked.response(json!({"papers": ["ä", 2.50]}));
    (response["grounding"], response["tenant"]) = (json!({"citations": ["[1]"]}), json!({"own": true}));
    call.say(event("final", &response));
    // The stream is still open: the job does not wait for its end.
    let job = server.ended(&id);
    assert_eq!((&job["state"], &job["outcome"]["outputs"]), (&json!("completed"), &json!({"papers": ["ä", 2.5]})));
    let said = &job["outcome"]["said"]["document"];
    assert_eq!((&said["tenant"], &said["grounding"]), (&response["tenant"], &response["grounding"]));
    drop(call);
    assert_eq!(clauses(&server.job(&id)), Vec::<&str>::new());
}

#[test]
fn without_a_stream_the_whole_answer_is_asked_for_and_that_is_remembered() {
    for status in [404, 405, 501] {
        let service = ScriptedAgent::start(move |asked, connection| match asked.path.as_str() {
            "/agents/run/sync" => connection.json(200, &asked.response(json!({"by": "sync"}))),
            _ => connection.json(status, &json!({"detail": "Not Found"})),
        });
        let server = Server::configured(&service.far("mode = \"LIVE\""));
        for _ in 0..2 {
            let job = server.done("far", &json!({}));
            assert_eq!((&job["outcome"]["outputs"], clauses(&job)), (&json!({"by": "sync"}), vec![]), "{job}");
        }
        assert_eq!(service.paths(), ["/agents/run/stream", "/agents/run/sync", "/agents/run/sync"]);
        let asked = service.requests();
        assert_eq!(asked[0].body, asked[1].body, "it is the same request");
        assert_eq!((asked[1].header("accept"), &asked[1].json()["mode"]), (Some("application/json"), &json!("LIVE")));
    }
}

#[test]
fn where_neither_endpoint_is_the_caller_is_not_blamed() {
    let service = ScriptedAgent::start(|_, connection| connection.json(404, &json!({"detail": "Not Found"})));
    let server = Server::configured(&service.far(""));
    let job = server.done("far", &json!({}));
    assert_eq!((failure(&job), clauses(&job)), (("unsupported", "never"), vec!["RUN-121"]), "{job}");
}

#[test]
fn connections_are_used_again() {
    let (service, server) = serving("", |asked| asked.stream(json!({})));
    for _ in 0..50 {
        assert_eq!(server.done("far", &json!({}))["state"], "completed");
    }
    let connections = service.connections();
    assert!(connections <= 5, "{connections} connections for 50 jobs");
}

#[test]
fn no_more_jobs_are_with_it_at_a_time_than_it_may_have() {
    let (service, calls) = held_streams();
    let mut server = Server::configured(&service.far("concurrency = 2"));
    let jobs: Vec<String> = (0..5).map(|_| server.begin("far")).collect();
    let mut open = vec![calls.next(), calls.next()];
    let agent = server.get("/api/v1/agents/far").json();
    assert_eq!((&agent["running"], &agent["concurrency"]), (&json!(2), &json!(2)), "{agent}");
    assert_eq!(server.get("/api/v1/jobs?state=queued").json()["jobs"].as_array().map(Vec::len), Some(3));
    for left in (0..jobs.len()).rev() {
        let call = open.remove(0);
        call.say(call.request.stream(json!({})));
        if left >= 2 {
            open.push(calls.next());
        }
    }
    for id in &jobs {
        assert_eq!(server.ended(id)["state"], "completed");
    }
    // Anything that was sent too early has arrived once nothing can be sent any more.
    for _ in 0..3 {
        server.begin("far");
    }
    let open = [calls.next(), calls.next()];
    server.kill();
    open.iter().for_each(Call::closed);
    assert!(calls.none(), "a third was sent");
}

#[test]
fn a_token_is_presented_and_is_shown_nowhere() {
    const TOKEN: &str = "s3cret-token-of-the-agent";
    let service = ScriptedAgent::start(|asked, connection| match asked.header("authorization") {
        Some(value) if value == format!("Bearer {TOKEN}") => connection.events(asked.stream(json!({}))),
        _ => connection.json(401, &json!({"detail": "who are you?"})),
    });
    let mut server = Server::with(&service.far(""), &["--log", "debug"]);
    let refused = server.done("far", &json!({}));
    assert_eq!(failure(&refused), ("unavailable", "never"), "{refused}");
    std::fs::write(server.directory().join("token"), format!("{TOKEN}\n")).expect("it can be written");
    server.configure(&service.far("token_file = \"token\""));
    assert!(server.stop().success());
    server.restart();
    assert_eq!(server.done("far", &json!({}))["state"], "completed");
    let mut show = crate::support::program::crosspoint(&["config", "show"]);
    let shown = show.current_dir(server.directory()).env_remove("HOME").env_remove("XDG_CONFIG_HOME").output();
    let shown = String::from_utf8(shown.expect("it runs").stdout).expect("text");
    assert!(shown.contains("token_file = \"token\"") && !shown.contains(TOKEN), "{shown}");
    let agent = server.get("/api/v1/agents/far").text();
    let log = server.log();
    assert!(log.contains("the agent answered"), "{log}");
    assert!(!agent.contains(TOKEN) && !log.contains(TOKEN), "{agent}\n{log}");
    assert!(server.stop().success());
    for file in std::fs::read_dir(server.data()).expect("there is data").flatten() {
        let bytes = std::fs::read(file.path()).expect("it can be read");
        assert!(!bytes.windows(TOKEN.len()).any(|some| some == TOKEN.as_bytes()), "{:?}", file.path());
    }
}

#[test]
fn what_may_not_be_carried_is_listed_on_the_job() {
    let (service, server) = serving("carry = false", |asked| asked.stream(json!({})));
    let body = json!({"work": "far", "request_id": "mine", "priority": "high"});
    let id = id(&server.submit(&body.to_string()));
    assert_eq!(server.ended(&id)["state"], "completed");
    let job = server.job(&id);
    assert_eq!(clauses(&job), ["ALL-129"]);
    assert!(violations(&job)[0].contains("priority"), "{job}");
    assert_eq!(service.requests()[0].json().get("x_crosspoint"), None);
}

#[test]
fn to_cancel_a_job_closes_its_connection() {
    let (service, calls) = held_streams();
    let server = Server::configured(&service.far(""));
    let id = server.begin("far");
    let call = calls.next();
    server.cancel(&id);
    call.closed();
}

#[test]
fn silence_ends_a_stream_and_comments_are_life() {
    let (service, calls) = held_streams();
    let server = Server::configured(&service.far("silence_seconds = 2"));
    let (silent, alive) = (server.begin("far"), server.begin("far"));
    let (first, second) = (calls.next(), calls.next());
    let (silent_call, alive_call) = if first.request.id() == silent { (first, second) } else { (second, first) };
    silent_call.say(silent_call.request.started());
    until("the silent one is given up", || {
        alive_call.say(": here\n");
        server.job(&silent)["outcome"].is_object().then_some(())
    });
    assert_eq!(failure(&server.job(&silent)), ("timeout", "unknown"));
    silent_call.closed();
    assert_eq!(server.job(&alive)["state"], "running", "bytes are life");
    alive_call.say(format!("\n{}", alive_call.request.stream(json!({}))));
    assert_eq!(server.ended(&alive)["state"], "completed");
}

#[test]
fn an_answer_in_one_piece_may_take_longer_than_silence_does() {
    let (finish, finished) = mpsc::channel();
    let finished = Mutex::new(finished);
    let service = ScriptedAgent::start(move |asked, connection| {
        if asked.path == "/agents/run/stream" {
            return connection.json(404, &json!({}));
        }
        finished.lock().expect("not poisoned").recv_timeout(PATIENCE).expect("the test says when");
        connection.json(200, &asked.response(json!({"late": true})))
    });
    let (silent, calls) = held_streams();
    let keys = "silence_seconds = 0.5";
    let beside = silent.far(keys).replace("far", "silent");
    let server = Server::configured(&(service.far(keys) + &beside));
    let id = server.begin("far");
    until("it is asked", || service.paths().contains(&"/agents/run/sync".to_owned()).then_some(()));
    // If a job that began later has been silent for too long, so has this one.
    let other = server.begin("silent");
    let call = calls.next();
    assert_eq!(failure(&server.ended(&other)), ("timeout", "unknown"));
    drop(call);
    finish.send(()).expect("it waits");
    let job = server.ended(&id);
    assert_eq!(job["outcome"]["outputs"], json!({"late": true}), "{job}");
}

#[test]
fn what_our_own_death_cut_short_is_unknown_and_is_repeated_only_where_that_is_allowed() {
    for repeatable in [false, true] {
        let (service, calls) = held_streams();
        let keys = if repeatable { "repeatable = true" } else { "" };
        let mut server = Server::configured(&service.far(keys));
        let id = server.begin("far");
        let first = calls.next();
        server.kill();
        first.closed();
        server.restart();
        if repeatable {
            let again = calls.next();
            assert_eq!(again.request.id(), first.request.id());
            again.say(again.request.stream(json!({})));
            assert_eq!(server.ended(&id)["state"], "completed");
        } else {
            assert_eq!(failure(&server.ended(&id)), ("unavailable", "unknown"));
            assert!(server.stop().success());
            assert!(calls.none(), "it was not sent again");
        }
    }
}

#[test]
fn an_agent_that_is_not_there_yet_gets_the_work_when_it_is() {
    let address = unused_address();
    let server = Server::configured(&configuration("far", "run", &format!("http://{address}"), ""));
    let id = server.begin("far");
    server.in_state(&id, "retrying");
    let service = ScriptedAgent::at(address, |asked, connection| connection.events(asked.stream(json!({}))));
    let job = server.ended(&id);
    assert_eq!(job["state"], "completed", "{job}");
    assert_eq!(service.requests()[0].id(), id);
}

#[test]
fn a_breaker_that_is_half_open_asks_whether_the_agent_is_ready() {
    let both = &["/health/ready", "/health"][..];
    // The last is an agent that was written from the contract's document alone, which names no such endpoints.
    for (ready, alive, asked_for) in
        [(200, 200, &["/health/ready"][..]), (404, 200, both), (405, 200, both), (404, 404, both)]
    {
        let address = unused_address();
        let mut server = Server::configured(&configuration("far", "run", &format!("http://{address}"), ""));
        for _ in 0..5 {
            assert_eq!(failure(&server.done("far", &json!({}))), ("unavailable", "safe"));
        }
        assert_eq!(server.get("/api/v1/agents/far").json()["breaker"]["state"], "open");
        assert!(server.stop().success());
        time_is_up(&server);
        let service = ScriptedAgent::at(address, move |asked, connection| match asked.path.as_str() {
            "/health/ready" => connection.json(ready, &json!({"status": "ready"})),
            "/health" => connection.json(alive, &json!({"status": "ok"})),
            _ => connection.events(asked.stream(json!({}))),
        });
        server.restart();
        assert_eq!(server.done("far", &json!({}))["state"], "completed");
        let mut expected = asked_for.to_vec();
        expected.push("/agents/run/stream");
        assert_eq!(service.paths(), expected);
        // TASK-8: a check is a trace of its own, and the work is one of the job.
        let traces =
            service.requests().into_iter().map(|asked| asked.header("traceparent").expect("a trace").to_owned());
        let traces: Vec<String> = traces.collect();
        assert!(traces.iter().all(|trace| trace.len() == 55 && trace.starts_with("00-")), "{traces:?}");
        assert_ne!(traces.first(), traces.last());
    }
}

/// A breaker stays open for a minute, so the test changes its time in the store instead of waiting.
fn time_is_up(server: &Server) {
    let options = Options { path: server.data().join("jobs.db"), bytes_max: None };
    let (mut store, _) = Store::open(&options).expect("the store opens");
    let breaker = Breaker::Open { until: crosspoint_engine::wall_clock::now() };
    let mut batch = Batch::default();
    batch.agents.insert(Arc::from("far"), Standing { breaker, drained: false });
    store.commit(&batch).expect("it can be committed");
}

#[test]
fn a_redirect_is_followed_on_the_same_host_alone() {
    let stranger =
        ScriptedAgent::start(|asked, connection| connection.events(asked.stream(json!({"by": "a stranger"}))));
    let elsewhere = format!("http://{}/agents/run/stream", stranger.address());
    let service = ScriptedAgent::start(move |asked, connection| {
        let to = match asked.path.as_str() {
            "/agents/run/stream" if asked.json()["inputs"]["far"] == true => elsewhere.clone(),
            "/agents/run/stream" if asked.json()["inputs"]["loop"] == true => "/agents/run/stream".to_owned(),
            "/agents/run/stream" => "/moved".to_owned(),
            _ => return connection.events(asked.stream(json!({"by": "itself"}))),
        };
        connection.send(format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"));
        After::Keep
    });
    let server = Server::configured(&service.far(""));
    assert_eq!(server.done("far", &json!({}))["outcome"]["outputs"], json!({"by": "itself"}));
    for input in [json!({"far": true}), json!({"loop": true})] {
        assert_eq!(failure(&server.done("far", &input)), ("broken_contract", "unknown"), "{input}");
    }
    assert_eq!(stranger.connections(), 0);
}

#[test]
fn a_system_without_certificates_reaches_agents_that_need_none() {
    let service = ScriptedAgent::start(|asked, connection| connection.events(asked.stream(json!({}))));
    let secure = service.far("").replace("far", "secure").replace("http:", "https:");
    let mut server = Server::configured("");
    server.kill();
    server.configure(&(service.far("") + &secure));
    server.start_by(&["env", "SSL_CERT_FILE=/nowhere", "SSL_CERT_DIR=/nowhere"]);
    server.restart();
    assert_eq!(server.done("far", &json!({}))["state"], "completed");
    assert_eq!(failure(&server.done("secure", &json!({}))), ("unavailable", "safe"));
}

#[test]
fn a_burst_of_progress_loses_no_outcome_and_ends_with_the_last() {
    let (_service, server) = serving("", |asked| {
        let steps =
            (0..2_000).map(|n| event("progress", &json!({"percent": f64::from(n) / 20.0, "step": format!("{n}")})));
        asked.started() + &steps.collect::<String>() + &event("final", &asked.response(json!({"n": 1})))
    });
    let job = server.done("far", &json!({}));
    assert_eq!(job["outcome"]["outputs"], json!({"n": 1}), "{job}");
    assert_eq!(job["progress"], json!({"percent": 99.95, "step": "1999"}), "{job}");
}
