//! What logs may hold of documents (docs/security.md): ids that trace work, and names of works and agents. Everything
//! else is content.

use super::corpus;

/// A value that stays as it is: its kind, its pointer, in which `*` is any index, and the reason.
const KEPT: [(&str, &str, &str); 38] = [
    ("native.job", "/work", NAME),
    ("native.job", "/request_id", ID),
    ("bridge.request", "/request_id", ID),
    ("bridge.request", "/agent_name", NAME),
    ("bridge.response", "/request_id", ID),
    ("message.work_request", "/message_id", ID),
    ("message.work_request", "/request_id", ID),
    ("message.work_request", "/trace_id", ID),
    ("message.work_request", "/payload/task_id", ID),
    ("message.work_request", "/payload/work_type", NAME),
    ("message.work_status", "/message_id", ID),
    ("message.work_status", "/request_id", ID),
    ("message.work_status", "/trace_id", ID),
    ("message.work_status", "/payload/task_id", ID),
    ("message.work_result", "/message_id", ID),
    ("message.work_result", "/request_id", ID),
    ("message.work_result", "/trace_id", ID),
    ("message.work_result", "/payload/task_id", ID),
    ("message.error", "/message_id", ID),
    ("message.error", "/request_id", ID),
    ("message.error", "/trace_id", ID),
    ("task.request", "/id", ID),
    ("task.request", "/type", NAME),
    ("task.request", "/routing/target", NAME),
    ("task.response", "/id", ID),
    ("run.request", "/request_id", ID),
    ("run.request", "/task_type", NAME),
    ("run.response", "/request_id", ID),
    ("run.stream", "/*/data/request_id", ID),
    ("run.stream", "/*/data/task_type", NAME),
    ("workflow.input", "/task/action", NAME),
    ("native.registration", "/agent_id", NAME),
    ("native.registration", "/work_types/*", NAME),
    ("native.registration", "/agent_type", "the type of agents is the name of a group of them"),
    ("native.join", "/session", ID),
    ("native.join", "/work/*", NAME),
    ("native.report", "/id", ID),
    ("native.token", "/name", "the name of a token is what the audit says"),
];

const ID: &str = "an id that traces work";
const NAME: &str = "the name of a work or an agent";

/// Members that decide how a job runs: with a canary in it the work would end otherwise. They are spoiled one by one.
const DECIDING: [&str; 16] = [
    "timeout_seconds",
    "max_seconds",
    "max_duration_seconds",
    "maxAttempts",
    "initialDelay",
    "attempts",
    "seconds",
    "priority",
    "supported_versions",
    "concurrency",
    "attempt",
    "percent",
    "code",
    "for",
    "expires_seconds",
    "n",
];

/// Whether logs may hold the value at this place.
pub(crate) fn is_kept(kind: &str, pointer: &str) -> bool {
    KEPT.iter().any(|(of, at, _)| *of == kind && fits(at, pointer))
}

/// Whether a member of this name is kept in some document, for texts that cannot be read.
pub(crate) fn is_kept_somewhere(name: &str) -> bool {
    KEPT.iter().any(|(_, at, _)| at.ends_with(&format!("/{name}")))
}

pub(crate) fn decides_how_it_runs(pointer: &str) -> bool {
    pointer.split('/').any(|name| DECIDING.contains(&name))
}

fn fits(wanted: &str, pointer: &str) -> bool {
    let (wanted, given): (Vec<&str>, Vec<&str>) = (wanted.split('/').collect(), pointer.split('/').collect());
    let fit = |(wanted, given): (&&str, &&str)| *wanted == "*" || wanted == given;
    wanted.len() == given.len() && wanted.iter().zip(&given).all(fit)
}

/// A place that no document has is on no list of exceptions.
#[test]
fn every_value_that_is_kept_is_in_some_document() {
    for (kind, at, reason) in KEPT {
        let documents = corpus::golden(kind);
        let is_there = documents
            .iter()
            .any(|(_, document)| super::ledger::leaves(document).iter().any(|pointer| fits(at, pointer)));
        assert!(is_there, "no {kind} has {at} ({reason})");
    }
}
