//! Callers: every request that there is, at every door, to agents of every sort.

use serde_json::{Value, json};

use super::answers::OWNER;
use super::corpus;
use super::site::Site;
use crate::support::message_post::new_id;
use crate::support::server::until;

/// Kind, path and contract of each door.
pub(crate) const DOORS: [(&str, &str, &str); 6] = [
    ("native.job", "/api/v1/jobs?wait=20", "native"),
    ("run.request", "/agents/run/sync", "run"),
    ("run.request", "/agents/run/stream", "run"),
    ("task.request", "/tasks?wait=20", "task"),
    ("message.work_request", "/api/agent/message?wait=20", "message"),
    ("bridge.request", "/api/v1/bridge?wait=20", "bridge"),
];

/// The document with ids of its own, for this work. What is spoiled stays so.
fn addressed(kind: &str, document: &Value, work: &str) -> Value {
    with_id(kind, document, work, &new_id())
}

/// The same with this id.
pub(crate) fn with_id(kind: &str, document: &Value, work: &str, id: &str) -> Value {
    let mut request = document.clone();
    let names: &[(&str, &str)] = match kind {
        "native.job" => &[("/request_id", id), ("/work", work)],
        "run.request" => &[("/request_id", id), ("/task_type", work)],
        "task.request" => &[("/id", id), ("/type", work), ("/routing/target", work)],
        "bridge.request" => &[("/request_id", id), ("/agent_name", work)],
        _ => &[("/request_id", id), ("/payload/work_type", work), ("/message_id", &new_id()), ("/trace_id", &new_id())],
    };
    for (pointer, value) in names {
        if let Some(place) = request.pointer_mut(pointer).filter(|place| place.is_string()) {
            *place = json!(value);
        }
    }
    request
}

/// Good requests: every golden document, to every sort of agent that answers by itself.
pub(crate) fn good(site: &Site) {
    for (kind, path, _) in DOORS {
        for (file, document) in corpus::golden(kind) {
            let works: Vec<&str> =
                if file.contains("full") || kind == "native.job" { works(site) } else { vec!["echo"] };
            for work in works {
                let planted = addressed(kind, &site.ledger.plant(kind, &document), work);
                let answer = site.ask("POST", path, &planted.to_string());
                let is_loose = file.contains("loose") || file.contains("printed");
                assert!(is_loose || answer.status < 300 || work != "echo", "{file}: {answer:?}\n{planted}");
                // The same again, and something else under the same id.
                site.ask("POST", path, &planted.to_string());
                let other = site.ledger.plant(kind, &planted);
                site.ask("POST", path, &other.to_string());
            }
        }
    }
}

/// The owner is told later, too, at an address of its own, which fails at first.
pub(crate) fn told(site: &Site) {
    let kind = "message.work_request";
    // Work that has not ended when its request is answered.
    let request = addressed(kind, &site.ledger.plant(kind, &corpus::full(kind)), "mute");
    let answer = site.ask("POST", "/api/agent/message", &request.to_string());
    assert!(answer.status < 300, "{answer:?}");
    until("the caller is told again", || (site.scripted.requests_of(OWNER).len() > 1).then_some(()));
}

/// An agent of each sort that ends its work by itself.
fn works(site: &Site) -> Vec<&str> {
    let of = |contract: &str| {
        let mut named = site.scripts.iter().filter(|(_, script)| script.contract == contract && !script.is_open());
        named.next().map(|(name, _)| name.as_str())
    };
    ["echo", "fail", "program"].into_iter().chain(["run", "task"].into_iter().filter_map(of)).collect()
}

/// Refused requests: every place spoiled, and every broken document of every contract at every door.
pub(crate) fn refused(site: &Site) {
    for (kind, path, contract) in DOORS {
        for spoiled in site.ledger.spoiled(kind, &corpus::full(kind)) {
            site.ask("POST", path, &addressed(kind, &spoiled, "echo").to_string());
        }
        let broken = if contract == "native" { Vec::new() } else { corpus::broken(contract) };
        for (_, text) in broken.into_iter().chain(corpus::broken("all")) {
            let body = match corpus::document(&text) {
                Some(document) if document.is_object() => {
                    addressed(kind, &site.ledger.plant(kind, &document), "echo").to_string()
                }
                Some(_) | None => site.ledger.plant_text("an unreadable request", &text),
            };
            site.ask("POST", path, &body);
        }
    }
}

/// The judge and the translator, with every document there is.
pub(crate) fn judged(site: &Site) {
    let send = |body: &str| {
        for path in ["/api/v1/validate", "/api/v1/translate?to=run", "/api/v1/translate?to=message"] {
            site.ask("POST", path, body);
        }
    };
    for kind in corpus::kinds() {
        for (_, document) in corpus::golden(kind) {
            let planted = site.ledger.plant(kind, &document);
            send(&if kind == "run.stream" { corpus::stream(&planted) } else { planted.to_string() });
        }
    }
    for contract in ["bridge", "workflow", "message", "task", "run"] {
        for (_, text) in corpus::broken(contract) {
            send(&site.ledger.plant_text("a judged document", &text));
        }
    }
}
