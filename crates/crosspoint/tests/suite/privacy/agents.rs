//! Agents: everything that each of them may answer, in every way in which an answer may end.

use serde_json::{Value, json};

use super::answers::about;
use super::corpus;
use super::site::Site;
use crate::support::bridge_directory::{REQUEST, RESPONSE};
use crate::support::server::until;

/// Services: each has its one answer. All of them are at work at one time.
pub(crate) fn services(site: &Site) {
    let begun: Vec<String> = site
        .scripts
        .iter()
        .map(|(name, script)| {
            let input = json!({"text": site.ledger.text("the input of a service", "/text")});
            site.begin(name, &input, if script.is_open() { 0.5 } else { 20.0 })
        })
        .collect();
    for id in begun {
        site.ended(&id);
    }
    for request in site.scripted.requests() {
        site.ledger.arrives(&request.body);
        site.ledger.arrives(request.head.as_bytes());
    }
}

/// Programs: what they print, and how they end.
pub(crate) fn programs(site: &Site) {
    let text = |what: &str| site.ledger.text("a program", what);
    let directive = |said: Value| format!("@crosspoint {}", site.ledger.plant("a directive", &said));
    let said = || {
        json!([
            text("stdout"),
            directive(json!({"progress": 40, "step": "Dig"})),
            directive(json!({"artifact": {"name": "a.txt", "type": "text/plain", "content": "..."}})),
            directive(json!({"outputs": {"text": "done"}})),
            directive(json!({"unknown": {"text": "done"}})),
            format!("@crosspoint {{\"progress\": {}", text("a directive that is not JSON")),
            format!("@crosspoint {{\"outputs\": \"{}\"}}", text("outputs of a wrong type")),
        ])
    };
    let asking = json!([directive(json!({"ask": {"prompt": "Where?", "schema": {"title": "Place"}}}))]);
    let failing = json!([directive(json!({"fail": {"code": "NO_PLAN", "message": "none", "more": "x"}}))]);
    let ends = [json!(0), json!("env"), json!(3), json!(75), json!("signal"), json!("flood"), json!("panic")];
    let mut tasks: Vec<(Value, Value)> = ends.into_iter().map(|end| (said(), end)).collect();
    tasks.extend([(asking, json!("answer")), (failing, json!(0)), (said(), json!("hang"))]);
    for (out, end) in tasks {
        let seconds = if end == "hang" { 0.5 } else { 20.0 };
        let input = json!({"out": out, "err": [text("stderr")], "end": end, text("input (a name)"): text("input")});
        let id = site.begin("program", &input, seconds);
        site.ended(&id);
        site.by_admin("POST", "/api/v1/agents/program/breaker", r#"{"state":"closed"}"#);
    }
}

/// Sample agents, people who answer, cancellations and repeats.
pub(crate) fn people(site: &Site) {
    let job = || site.ledger.plant("native.job", &corpus::full("native.job"))["input"].clone();
    for (work, seconds) in [("echo", 20.0), ("ask", 20.0), ("fail", 20.0), ("mute", 20.0)] {
        let mut input = job();
        input["seconds"] = json!(30);
        let id = site.begin(work, &input, seconds);
        site.ended(&id);
        let key = site.ledger.text("a header", "Idempotency-Key");
        let again = site.ask_with("POST", &format!("/api/v1/jobs/{id}/retry"), &[("idempotency-key", &key)], b"");
        let again = again.json()["id"].as_str().expect("an id").to_owned();
        let body = site.ledger.text("a body that is not wanted", "");
        site.ask("POST", &format!("/api/v1/jobs/{again}/cancel"), &body);
        site.ended(&again);
    }
    let mut input = job();
    input["failure"] = json!("broken_contract");
    let failed = site.begin("fail", &input, 20.0);
    site.ended(&failed);
    let id = site.begin("ask", &job(), 20.0);
    let answer = format!("/api/v1/jobs/{id}/answer");
    for spoiled in site.ledger.spoiled("native.answer", &json!({"input": {"text": "yes"}})) {
        site.ask("POST", &answer, &format!("{{\"no\": {spoiled}}}"));
    }
    site.ended(&id);
    site.ask("POST", &answer, &site.ledger.plant("native.answer", &json!({"input": "late"})).to_string());
}

/// A worker that joined.
pub(crate) fn workers(site: &Site) {
    let call = |what: &str, body: &Value| {
        site.by_agent("pulled", "POST", &format!("/api/v1/agents/pulled/{what}"), &body.to_string())
    };
    let joining = corpus::full("native.join");
    for spoiled in site.ledger.spoiled("native.join", &joining) {
        call("join", &spoiled);
    }
    let joined = call("join", &site.ledger.plant("native.join", &joining));
    assert_eq!(joined.status, 200, "{joined:?}");
    let session = &joining["session"];
    for (_, golden) in corpus::golden("native.report") {
        let mut reports = vec![site.ledger.plant("native.report", &golden)];
        reports.extend(site.ledger.spoiled("native.report", &golden));
        let input = json!({"text": site.ledger.text("the input of a worker", "/text")});
        let id = site.begin("pulled", &input, 20.0);
        let taken = until("there is work", || {
            let taken = call("take?wait=1", &json!({"session": session, "room": 4, "holding": []})).json();
            taken["jobs"].as_array()?.iter().find(|job| job["id"] == *id).cloned()
        });
        for mut report in reports.into_iter().rev() {
            if report["id"].is_string() && report["attempt"] == 1 {
                (report["id"], report["attempt"]) = (json!(id), taken["attempt"].clone());
            }
            call("report", &json!({"session": session, "reports": [report]}));
        }
        let place = format!("output?session={}&job={id}&attempt=1&offset=0", session.as_str().expect("a session"));
        call(&place, &json!(site.ledger.text("the output of a worker", "")));
        let over = json!({"id": id, "attempt": taken["attempt"], "result": {"outputs": {}}});
        call("report", &json!({"session": session, "reports": [over]}));
        site.ask("POST", &format!("/api/v1/jobs/{id}/cancel"), "");
        site.ended(&id);
        site.by_admin("POST", "/api/v1/agents/pulled/breaker", r#"{"state":"closed"}"#);
    }
}

/// Agents that ask for their messages, and that register.
pub(crate) fn messages(site: &Site) {
    let register = |body: &Value| site.by_agent("digger", "POST", "/api/agent/register", &body.to_string());
    let registration = corpus::full("native.registration");
    for spoiled in site.ledger.spoiled("native.registration", &registration) {
        register(&spoiled);
    }
    let registered = register(&site.ledger.plant("native.registration", &registration));
    assert_eq!(registered.status, 200, "{registered:?}");
    for (name, work) in [("message_pulled", "message_pulled"), ("digger", "dig")] {
        for kind in ["message.work_status", "message.error", "message.work_result"] {
            let full = corpus::full(kind);
            let mut said: Vec<Value> = corpus::golden(kind).iter().map(|one| site.ledger.plant(kind, &one.1)).collect();
            said.extend(site.ledger.spoiled(kind, &full));
            let id = site.begin(work, &json!({"text": site.ledger.text("the input of a message", "/text")}), 20.0);
            let asked = until("there is a message", || {
                let query = format!("/api/agent/messages?agent={name}&wait=1&max=64");
                let messages = site.by_agent(name, "GET", &query, "").json();
                messages["messages"].as_array()?.iter().find(|one| one["request_id"] == *id).cloned()
            });
            for message in said.iter().rev() {
                let reply = about(kind, message, &asked).to_string();
                site.by_agent(name, "POST", "/api/agent/message", &reply);
            }
            site.ask("POST", &format!("/api/v1/jobs/{id}/cancel"), "");
            site.ended(&id);
            site.by_admin("POST", &format!("/api/v1/agents/{name}/breaker"), r#"{"state":"closed"}"#);
        }
    }
}

/// An agent that answers in files.
pub(crate) fn files(site: &Site) {
    let kind = "bridge.response";
    let mut said: Vec<String> = Vec::new();
    said.extend(corpus::golden(kind).iter().map(|(_, one)| site.ledger.plant(kind, one).to_string()));
    said.extend(site.ledger.spoiled(kind, &corpus::full(kind)).iter().map(Value::to_string));
    said.push(site.ledger.text(kind, "a file that is not JSON"));
    for text in said {
        let id = site.begin("files", &json!({"text": site.ledger.text("the input of a file", "/text")}), 20.0);
        let asked = site.inbox.request_of(&id);
        site.ledger.arrives(asked.to_string().as_bytes());
        let answer = serde_json::from_str(&text).map_or(text, |said| about(kind, &said, &asked).to_string());
        site.inbox.leave(RESPONSE, &answer);
        // A response that cannot be understood is on record, and is left as it is.
        until("it was read", || {
            let now = site.ask("GET", &format!("/api/v1/jobs/{id}"), "").json();
            let is_noted = now["violations"].is_array() || now["outcome"].is_object();
            (is_noted || !site.inbox.has(RESPONSE)).then_some(())
        });
        site.ask("POST", &format!("/api/v1/jobs/{id}/cancel"), "");
        site.ended(&id);
        for name in [RESPONSE, REQUEST] {
            let _ = std::fs::remove_file(site.inbox.file(name));
        }
        site.by_admin("POST", "/api/v1/agents/files/breaker", r#"{"state":"closed"}"#);
    }
}
