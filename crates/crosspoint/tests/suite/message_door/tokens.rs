//! Tokens at the message door: who must show one, and what a wrong one gets (MSG-13, 5004).

use std::fs;

use serde_json::{Value, json};

use crate::run::examples::valid;
use crate::support::message_post::{ENDPOINT, heartbeat, pulling, registration, result};
use crate::support::message_sender::{Said, asking, cancelling, sample};
use crate::support::server::Server;

const AGENT: &str = "a7f3d8c2e1b9f4a6c8e2d1b3f4a6c8e2";
const OTHER: &str = "b7f3d8c2e1b9f4a6c8e2d1b3f4a6c8e2";
const CALLER: &str = "c7f3d8c2e1b9f4a6c8e2d1b3f4a6c8e2";

/// Files of tokens, which are removed with this.
struct Files(std::path::PathBuf);

impl Files {
    fn new(test: &str) -> Files {
        let directory = std::env::temp_dir().join(format!("crosspoint-tokens-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory can be made");
        for (name, token) in [("agent", AGENT), ("other", OTHER), ("caller", CALLER)] {
            fs::write(directory.join(name), token).expect("it can be written");
        }
        Files(directory)
    }

    /// The key that names one of them.
    fn key(&self, name: &str) -> String {
        format!("token_file = {:?}\n", self.0.join(name))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[track_caller]
fn unauthenticated(said: &Said, agent: &str, status: &str) {
    assert_eq!((said.status, said.code()), (401, Some(5004)), "{:?}", said.answer);
    assert_eq!(said.answer.header("www-authenticate"), Some("Bearer"));
    valid("message.error", &said.answer.body);
    let context = said.context();
    assert_eq!((&context["agent_id"], &context["token_status"]), (&json!(agent), &json!(status)), "{context}");
    assert_eq!(context["repeat"], "never", "{context}");
}

#[test]
fn callers_need_a_token_once_one_of_them_has_one() {
    let files = Files::new("callers");
    let caller = format!("[[caller]]\nname = \"upstream\"\n{}", files.key("caller"));
    let spare = pulling("spare", &format!("work = [\"rake\"]\n{}", files.key("agent")));
    let server = Server::configured(&(sample("echo", "dig", "") + &spare + &caller)).operated();
    let request = asking("dig", &json!({}));
    let send = |headers: &[(&str, &str)]| server.message("?wait=60", headers, &request.to_string());
    unauthenticated(&send(&[]), "", "missing");
    unauthenticated(&send(&[("authorization", &bearer("nobody's"))]), "", "unknown");
    unauthenticated(&send(&[("authorization", "Basic dXNlcg==")]), "", "malformed");
    unauthenticated(&send(&[("authorization", "Bearer ")]), "", "malformed");
    assert_eq!(send(&[]).document["request_id"], request["request_id"], "what can be echoed is");
    let said = send(&[("authorization", &bearer(CALLER))]);
    assert_eq!((said.status, said.kind()), (200, "work_result"), "{:?}", said.answer);
    assert_eq!(server.job_count(), 1);
    let of_agent = send(&[("authorization", &bearer(AGENT))]);
    unauthenticated(&of_agent, "", "wrong_agent");
    assert_eq!(of_agent.message(), "the token is that of an agent, and not of a caller");
    // A scheme is a word in any case.
    assert_eq!(send(&[("authorization", &format!("bearer {CALLER}"))]).status, 200);
    for path in ["/health", "/health/ready", "/openapi.json"] {
        assert_eq!(server.fetch(path).status, 200, "{path} needs none");
    }
    assert!(!server.log().contains(CALLER), "{}", server.log());
}

#[test]
fn callers_with_tokens_have_ids_of_their_own() {
    let files = Files::new("two");
    let callers = format!(
        "[[caller]]\nname = \"one\"\n{}[[caller]]\nname = \"two\"\n{}",
        files.key("caller"),
        files.key("other")
    );
    let server = Server::configured(&(sample("echo", "dig", "") + &sample("ask", "approve", "") + &callers)).operated();
    let request = asking("dig", &json!({"depth": 1}));
    let mut other = request.clone();
    other["payload"]["parameters"]["depth"] = json!(2);
    let send = |token: &str, message: &Value| {
        server.message("?wait=60", &[("authorization", &bearer(token))], &message.to_string())
    };
    assert_eq!(send(CALLER, &request).payload()["output"], r#"{"depth":1}"#);
    assert_eq!(send(OTHER, &other).payload()["output"], r#"{"depth":2}"#, "the same id is another's");
    // Another's work cannot be cancelled.
    let waits = asking("approve", &json!({}));
    let accepted = server.message("", &[("authorization", &bearer(CALLER))], &waits.to_string());
    assert_eq!(accepted.status, 202, "{:?}", accepted.answer);
    let refused = send(OTHER, &cancelling(&waits));
    assert_eq!((refused.status, refused.code()), (404, Some(5003)), "{:?}", refused.answer);
    let job = server.job_of_message(&waits)["id"].as_str().expect("an id").to_owned();
    let mut by_job = cancelling(&waits);
    by_job["request_id"] = json!(job);
    by_job["payload"]["error_context"]["task_id"] = json!(job);
    assert_eq!(send(OTHER, &by_job).status, 404, "nor by the id of its job");
    assert_eq!(send(CALLER, &cancelling(&waits)).code(), Some(5901));
}

#[test]
fn an_agent_with_a_token_must_show_its_own_before_anything_is_looked_up() {
    let files = Files::new("agents");
    let agents = pulling("infra", &format!("work = [\"dig\"]\ntype = \"infra\"\n{}", files.key("agent")))
        + &pulling("spare", &format!("work = [\"rake\"]\n{}", files.key("other")));
    let server = Server::configured(&agents);
    let with = |token: &str, body: &Value| {
        server.request("POST", ENDPOINT, &[("authorization", &bearer(token))], body.to_string().as_bytes())
    };
    let poll =
        |headers: &[(&str, &str)]| server.request("GET", "/api/agent/messages?agent=infra&wait=60", headers, b"");
    for (token, status) in [(None, "missing"), (Some("x"), "unknown"), (Some(OTHER), "wrong_agent")] {
        let header = token.map(bearer);
        let headers: Vec<(&str, &str)> = header.iter().map(|value| ("authorization", value.as_str())).collect();
        let refused = [
            poll(&headers),
            server.request("POST", ENDPOINT, &headers, heartbeat("infra", "infra", "online").to_string().as_bytes()),
            {
                let mut body = registration("infra", &["dig"]);
                body["agent_type"] = json!("infra");
                server.request("POST", "/api/agent/register", &headers, body.to_string().as_bytes())
            },
        ];
        for answer in refused {
            let context = &answer.json()["payload"]["error_context"];
            assert_eq!((answer.status, &context["token_status"]), (401, &json!(status)), "{answer:?}");
            assert_eq!(context["agent_id"], "infra", "{answer:?}");
        }
    }
    let request = asking("dig", &json!({}));
    assert_eq!(server.say(&request).status, 202, "callers need none");
    let given = poll(&[("authorization", &bearer(AGENT))]).json()["messages"][0].clone();
    let reply = result(&given, "done");
    // Neither without a token, nor with that of another agent, nor under another type.
    let mut disguised = reply.clone();
    disguised["from_agent"] = json!("desktop");
    for answer in
        [server.post(ENDPOINT, &reply.to_string()), with(OTHER, &reply), with("x", &reply), with(AGENT, &disguised)]
    {
        assert_eq!((answer.status, &answer.json()["payload"]["error_code"]), (401, &json!(5004)), "{answer:?}");
    }
    // What differs is said.
    let mut beat = heartbeat("infra", "infra", "online");
    beat["from_agent"] = json!("code");
    let mut body = registration("infra", &["dig"]);
    body["agent_type"] = json!("code");
    let token = bearer(AGENT);
    let registered =
        server.request("POST", "/api/agent/register", &[("authorization", &token)], body.to_string().as_bytes());
    for answer in [with(AGENT, &disguised), with(AGENT, &beat), registered] {
        let payload = &answer.json()["payload"];
        assert_eq!(payload["error_message"], "the token is that of an agent of another type", "{answer:?}");
        assert_eq!(payload["error_context"]["token_status"], "wrong_agent", "{answer:?}");
    }
    assert_eq!(server.job_of_message(&request)["state"], "running");
    assert_eq!(with(AGENT, &reply).status, 204);
    assert_eq!(server.outcome_of(&request).payload()["output"], "done");
    let unknown = with("x", &result(&asking("dig", &json!({})), "done"));
    assert_eq!(unknown.status, 401, "whether there is such work is not told: {unknown:?}");
    assert!(!server.log().contains(AGENT) && !server.log().contains(OTHER), "{}", server.log());
}
