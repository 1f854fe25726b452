//! The tokens of agents (MSG-13): who must show which, and what is told to those who do not.

use std::fs;

use serde_json::{Value, json};

use crate::support::message_post::{ENDPOINT, Posted, heartbeat, pulling, registration, result, status};
use crate::support::server::{Answer, Server};

const ONE: &str = "11111111aaaaaaaa11111111aaaaaaaa";
const TWO: &str = "22222222bbbbbbbb22222222bbbbbbbb";

/// Two agents that pull, each with its token and its type.
fn two() -> Server {
    let keys = |file: &str, of: &str| format!("token_file = \"{file}\"\ntype = \"{of}\"");
    let toml = pulling("one", &keys("one.token", "code")) + &pulling("two", &keys("two.token", "infra"));
    Server::with_tokens(&toml, &[("one.token", ONE), ("two.token", TWO)])
}

/// Something that the agent `one` asks of the server.
struct Asking {
    what: &'static str,
    method: &'static str,
    path: String,
    body: String,
    /// The status where all is well.
    well: u16,
}

impl Asking {
    fn with(&self, server: &Server, authorization: Option<&str>) -> Answer {
        let headers: Vec<(&str, &str)> = authorization.map(|value| ("authorization", value)).into_iter().collect();
        server.request(self.method, &self.path, &headers, self.body.as_bytes())
    }
}

/// Everything that an agent asks of the server, about work that it has.
fn everything(given: &Value) -> Vec<Asking> {
    let post = |what, path: &str, body: &Value, well| Asking {
        what,
        method: "POST",
        path: path.to_owned(),
        body: body.to_string(),
        well,
    };
    let poll = Asking {
        what: "poll",
        method: "GET",
        path: "/api/agent/messages?agent=one".to_owned(),
        body: String::new(),
        well: 200,
    };
    vec![
        poll,
        post("status", ENDPOINT, &status(given, 10), 204),
        post("heartbeat", ENDPOINT, &heartbeat("one", "code", "online"), 204),
        post("registration", "/api/agent/register", &registration("one", &["one"]), 200),
        post("result", ENDPOINT, &result(given, "done"), 204),
    ]
}

/// Checks a refusal, and returns the name and the token status in its context.
fn refused(answer: &Answer) -> (String, String) {
    let document = answer.json();
    let payload = &document["payload"];
    assert_eq!((answer.status, &payload["error_code"]), (401, &json!(5004)), "{document:#}");
    let text = |name: &str| payload["error_context"][name].as_str().expect("a text").to_owned();
    (text("agent_id"), text("token_status"))
}

/// Gives the agent `one` a job, with its token.
fn given(server: &Server) -> (String, Value) {
    let poll = || {
        let headers = [("authorization", &*format!("Bearer {ONE}"))];
        let answer = server.request("GET", "/api/agent/messages?agent=one&wait=60", &headers, b"");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["messages"][0].clone()
    };
    let id = server.begin("one");
    (id, poll())
}

#[test]
fn whoever_shows_no_token_or_the_wrong_one_is_refused_everywhere() {
    let server = two();
    let (id, given) = given(&server);
    let (right, another) = (format!("Bearer {ONE}"), format!("Bearer {TWO}"));
    for asking in everything(&given) {
        let cases = [
            (None, "missing"),
            (Some("Basic b25lOm9uZQ=="), "malformed"),
            (Some("Bearer"), "malformed"),
            (Some("Bearer  "), "malformed"),
            (Some(ONE), "malformed"),
            (Some("Bearer 33333333cccccccc33333333cccccccc"), "unknown"),
            (Some("Bearer 11111111aaaaaaaa11111111aaaaaaab"), "unknown"),
            (Some("Bearer 11111111aaaaaaaa"), "unknown"),
            (Some(&*another), "wrong_agent"),
        ];
        for (header, expected) in cases {
            let answer = asking.with(&server, header);
            let (name, token_status) = refused(&answer);
            assert_eq!(token_status, expected, "{} with {header:?}: {answer:?}", asking.what);
            let names: &[&str] = if asking.path == ENDPOINT { &["one", "two", ""] } else { &["one"] };
            assert!(names.contains(&&*name), "{} with {header:?}: {name:?}", asking.what);
            assert!(!answer.text().contains(ONE) && !answer.text().contains(TWO), "{answer:?}");
        }
        assert_eq!(server.job(&id)["state"], "running", "nothing has happened by {}", asking.what);
        let answer = asking.with(&server, Some(&right));
        assert_eq!(answer.status, asking.well, "{}: {answer:?}", asking.what);
    }
    assert_eq!(server.job(&id)["outcome"]["outputs"], "done");
}

#[test]
fn a_token_counts_for_its_agent_alone() {
    let server = two();
    let (id, given) = given(&server);
    // The right token, and another name or type.
    let mut of_another_type = status(&given, 10);
    of_another_type["from_agent"] = json!("infra");
    let mut in_anothers_name = result(&given, "done");
    in_anothers_name["payload"]["agent_id"] = json!("two");
    let mut beats_for_another = heartbeat("one", "infra", "online");
    beats_for_another["from_agent"] = json!("code");
    for message in [
        of_another_type,
        in_anothers_name,
        heartbeat("two", "infra", "online"),
        beats_for_another,
        heartbeat("new", "code", "online"),
    ] {
        let answer = server.hears_from(ONE, &message);
        assert_eq!(refused(&answer).1, "wrong_agent", "{message:#}");
    }
    let bearer = format!("Bearer {ONE}");
    let headers = [("authorization", &*bearer)];
    let mut of_another_type = registration("one", &["one"]);
    of_another_type["agent_type"] = json!("infra");
    for registration in [of_another_type, registration("two", &["two"]), registration("new", &["dig"])] {
        let answer = server.request("POST", "/api/agent/register", &headers, registration.to_string().as_bytes());
        assert_eq!(refused(&answer).1, "wrong_agent", "{registration:#}");
    }
    for name in ["two", "new"] {
        let answer = server.request("GET", &format!("/api/agent/messages?agent={name}"), &headers, b"");
        assert_eq!(refused(&answer), (name.to_owned(), "wrong_agent".to_owned()));
    }
    assert_eq!((&server.job(&id)["state"], server.get("/api/v1/agents/new").status), (&json!("running"), 404));
}

#[test]
fn a_reply_with_the_token_of_an_agent_that_never_had_the_work_is_on_record() {
    let server = two();
    let (id, given) = given(&server);
    let mut forged = result(&given, "forged");
    forged["from_agent"] = json!("infra");
    assert_eq!(refused(&server.hears_from(TWO, &forged)).1, "wrong_agent");
    let job = server.on_record(&id, "ALL-2");
    assert_eq!(job["state"], "running", "{job:#}");
    assert_eq!(server.hears_from(ONE, &result(&given, "done")).status, 204);
    assert_eq!(server.job(&id)["outcome"]["outputs"], "done");
}

#[test]
fn an_agent_without_a_token_need_show_none_and_may_show_any_that_is_nobodys() {
    let toml = pulling("one", "token_file = \"one.token\"") + &pulling("open", "");
    let server = Server::with_tokens(&toml, &[("one.token", ONE)]);
    server.polled("agent=open");
    let id = server.begin("open");
    let given = server.pulled("open");
    server.takes(&status(&given, 10));
    assert_eq!(server.hears_from("nobodys", &status(&given, 20)).status, 204);
    assert_eq!(refused(&server.hears_from(ONE, &result(&given, "done"))).1, "wrong_agent");
    assert_eq!(server.hears_from("nobodys", &result(&given, "done")).status, 204);
    assert_eq!(server.job(&id)["outcome"]["outputs"], "done");
}

#[test]
fn the_token_is_shown_to_an_agent_that_is_pushed_to_and_to_nobody_else() {
    let agent = Posted::answering(|request, connection| connection.json(200, &status(request, 10)));
    let toml = agent.configuration("helper", "token_file = \"helper.token\"");
    let mut server = Server::with_tokens(&toml, &[("helper.token", ONE)]);
    let id = server.begin("helper");
    let request = agent.request(1);
    server.hears_from(ONE, &result(&request, "done"));
    assert_eq!(server.job(&id)["outcome"]["outputs"], "done");
    let id = server.begin("helper");
    agent.request(2);
    server.cancel(&id);
    agent.cancelled(1);
    let bearer = format!("Bearer {ONE}");
    assert!(agent.asked().iter().all(|asked| asked.header("authorization") == Some(&*bearer)), "{:?}", agent.asked());
    // Refusals are told, and their tokens are not.
    for token in [ONE, TWO] {
        server.request(
            "GET",
            "/api/agent/messages?agent=nobody",
            &[("authorization", &*format!("Bearer {token}"))],
            b"",
        );
        server.request("POST", ENDPOINT, &[("authorization", token)], b"{}");
    }
    let shown = [server.get("/api/v1/agents").text(), server.job(&id).to_string(), server.log()];
    assert!(shown[2].contains("DEBUG"), "everything is logged");
    assert!(server.stop().success());
    let stored = fs::read_dir(server.data()).expect("there is data").flatten().map(|file| fs::read(file.path()));
    let found: Vec<Vec<u8>> =
        stored.flatten().chain(shown.map(String::into_bytes)).chain([server.log().into()]).collect();
    for token in [ONE, TWO] {
        assert!(found.iter().all(|bytes| !bytes.windows(token.len()).any(|some| some == token.as_bytes())), "{token}");
    }
}

#[test]
fn an_agent_that_refuses_our_token_is_shown_to_the_operator_and_its_callers_learn_that_it_is_unavailable() {
    let agent = Posted::answering(|_, connection| connection.json(401, &json!({"detail": "who are you?"})));
    let toml = agent.configuration("helper", "token_file = \"helper.token\"");
    let server = Server::with_tokens(&toml, &[("helper.token", ONE)]);
    let id = server.begin("helper");
    let job = server.over(&id);
    let failure = &job["outcome"]["failure"];
    assert_eq!((&failure["code"], &failure["repeat"]), (&json!("unavailable"), &json!("never")), "{job:#}");
    assert_eq!(agent.had("work_request").len(), 1, "it is not tried again");
    assert!(server.agent("helper")["token_refused_since"].is_string());
}

#[test]
fn the_token_of_a_caller_lets_no_agent_in() {
    let toml = pulling("one", "token_file = \"one.token\"")
        + "[[caller]]\nname = \"planner\"\ntoken_file = \"planner.token\"\n";
    let server = Server::with_tokens(&toml, &[("one.token", ONE), ("planner.token", TWO)]);
    let registers = |authorization: Option<&str>| {
        let headers: Vec<(&str, &str)> = authorization.map(|value| ("authorization", value)).into_iter().collect();
        let body = registration("stranger", &["one"]).to_string();
        server.request("POST", "/api/agent/register", &headers, body.as_bytes())
    };
    let planner = format!("Bearer {TWO}");
    assert_eq!(registers(Some(&planner)).status, 403);
    assert_eq!(server.hears_from(TWO, &heartbeat("one", "code", "online")).status, 403);
    let poll = server.request("GET", "/api/agent/messages?agent=one", &[("authorization", &planner)], b"");
    assert_eq!(poll.status, 403, "{poll:?}");
    assert_eq!(registers(None).status, 401);
    assert_eq!(server.get("/api/agent/messages?agent=stranger").status, 401, "nothing is looked up");
}
