//! Telling kinds apart.
//!
//! A document does not say what it is, so its members are weighed: a name that only one kind has counts most, a name that
//! many share counts little, and a status or type that belongs to the kind counts for it. A broken document is still
//! recognised by what is left of it, and where two kinds are too close the answer is "ambiguous", with what was
//! found of each.

use std::cmp::Reverse;
use std::sync::LazyLock;

use super::{Contract, Kind};
use crate::json::Value;

/// What tells a kind from the others.
struct Marks {
    kind: Kind,
    /// Its top-level members.
    members: &'static [&'static str],
    /// Members of its payload, where it has an envelope.
    payload: &'static [&'static str],
    /// A member whose value is one of a closed set.
    word: Option<(&'static str, &'static [&'static str])>,
}

const ENVELOPE: &[&str] = &[
    "protocol_version",
    "message_id",
    "from_agent",
    "to_agent",
    "timestamp",
    "trace_id",
    "request_id",
    "type",
    "payload",
    "x_custom_fields",
];

const MARKS: &[Marks] = &[
    Marks {
        kind: Kind::BridgeRequest,
        members: &[
            "request_id",
            "version",
            "phase",
            "phase_name",
            "agent_name",
            "prompt",
            "timeout_seconds",
            "created_at",
            "context",
            "model",
        ],
        payload: &[],
        word: None,
    },
    Marks {
        kind: Kind::BridgeResponse,
        // `result` is no member of it but the commonest mistake, and must not lead away from it.
        members: &[
            "request_id",
            "version",
            "status",
            "response",
            "error_message",
            "error_type",
            "created_at",
            "duration_seconds",
            "metadata",
            "result",
        ],
        payload: &[],
        word: Some(("status", &["success", "error", "timeout"])),
    },
    Marks {
        kind: Kind::WorkflowInput,
        members: &["context", "paths", "task", "prior_context"],
        payload: &[],
        word: None,
    },
    Marks {
        kind: Kind::WorkflowOutput,
        members: &["success", "summary", "artifacts", "notes", "recommendation"],
        payload: &[],
        word: Some(("recommendation", &["proceed", "retry", "escalate"])),
    },
    Marks {
        kind: Kind::WorkRequest,
        members: ENVELOPE,
        payload: &["work_type", "parameters", "hints"],
        word: Some(("type", &["work_request"])),
    },
    Marks {
        kind: Kind::WorkStatus,
        members: ENVELOPE,
        payload: &["progress_percent", "step", "agent_type", "current_task_id", "resources"],
        word: Some(("type", &["work_status"])),
    },
    Marks {
        kind: Kind::WorkResult,
        members: ENVELOPE,
        payload: &["exit_code", "output", "resources_used"],
        word: Some(("type", &["work_result"])),
    },
    Marks {
        kind: Kind::MessageError,
        members: ENVELOPE,
        payload: &["error_code", "error_message", "error_context"],
        word: Some(("type", &["error"])),
    },
    Marks {
        kind: Kind::TaskRequest,
        members: &["id", "type", "payload", "context", "routing", "observability", "retryPolicy"],
        payload: &[],
        word: None,
    },
    Marks {
        kind: Kind::TaskResponse,
        members: &["id", "status", "result", "error", "metadata", "artifacts", "inputRequest"],
        payload: &[],
        word: Some(("status", &["pending", "in_progress", "completed", "failed", "cancelled", "input_required"])),
    },
    Marks {
        kind: Kind::RunRequest,
        members: &[
            "request_id",
            "task_type",
            "workflow_id",
            "stage_id",
            "user_id",
            "mode",
            "risk_tier",
            "domain_id",
            "inputs",
            "budgets",
        ],
        payload: &[],
        word: None,
    },
    Marks {
        kind: Kind::RunResponse,
        members: &[
            "request_id",
            "status",
            "ok",
            "success",
            "outputs",
            "data",
            "artifacts",
            "provenance",
            "usage",
            "warnings",
            "grounding",
            "error",
        ],
        payload: &[],
        word: Some(("status", &["ok", "success", "error"])),
    },
];

/// What a member weighs that one contract's documents alone have; one that is shared weighs its share.
const WEIGHT: u32 = 60;

/// What a word that belongs to the kind weighs.
const WORD_WEIGHT: u32 = WEIGHT / 2;

/// What a member of the payload weighs: all of them together less than the word that names the type.
const PAYLOAD_WEIGHT: u32 = 5;

/// What was found of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The kind.
    pub kind: Kind,
    /// Its members that the document has.
    pub found: Vec<&'static str>,
}

/// Why the kind could not be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undetected {
    /// No member of any kind was found. All kinds were tried.
    Unknown,
    /// Several kinds fit about equally well; the best first.
    Ambiguous(Vec<Candidate>),
}

/// Tells what an object is.
pub(crate) fn detect(object: Value<'_, '_>) -> Result<Kind, Undetected> {
    let weights = weigh(object);
    let (best, &weight) = weights.iter().enumerate().max_by_key(|(_, weight)| **weight).unwrap_or((0, &0));
    if weight == 0 {
        return Err(Undetected::Unknown);
    }
    let clear = (0..MARKS.len()).filter(|&kind| kind != best).all(|kind| clearly_behind(&weights, kind, best));
    if clear { Ok(MARKS[best].kind) } else { Err(Undetected::Ambiguous(candidates(object, &weights, weight / 2))) }
}

/// Kinds of one contract share most members, so a little more decides; other contracts must be well behind.
fn clearly_behind(weights: &[u32], kind: usize, best: usize) -> bool {
    if MARKS[kind].kind.contract() == MARKS[best].kind.contract() {
        weights[kind] < weights[best]
    } else {
        weights[kind] * 4 <= weights[best] * 3
    }
}

/// The kinds that weigh enough, the heaviest first, with what was found of each.
fn candidates(object: Value<'_, '_>, weights: &[u32], enough: u32) -> Vec<Candidate> {
    let mut weighed: Vec<(&Marks, u32)> = MARKS.iter().zip(weights.iter().copied()).collect();
    weighed.retain(|(_, weight)| *weight >= enough);
    weighed.sort_by_key(|(_, weight)| Reverse(*weight));
    let found = |marks: &Marks| marks.members.iter().copied().filter(|member| object.get(member).is_some()).collect();
    weighed.into_iter().map(|(marks, _)| Candidate { kind: marks.kind, found: found(marks) }).collect()
}

/// What the object weighs as each of [`MARKS`], by one pass over its members.
fn weigh(object: Value<'_, '_>) -> [u32; MARKS.len()] {
    let mut weights = [0; MARKS.len()];
    let mut counted = [false; KNOWN_MAX];
    for (name, value) in object.members() {
        let name = name.decode();
        let Ok(at) = KNOWN.binary_search_by_key(&by_length(&name), |known| by_length(known.name)) else { continue };
        // A member that stands a million times tells no more than once.
        if std::mem::replace(&mut counted[at], true) {
            continue;
        }
        let known = &KNOWN[at];
        for &kind in &known.kinds {
            weights[kind] += known.weight;
            weights[kind] += MARKS[kind].word_weight(&name, value) + MARKS[kind].payload_weight(&name, value);
        }
    }
    weights
}

impl Marks {
    fn word_weight(&self, name: &str, value: Value<'_, '_>) -> u32 {
        let Some((_, words)) = self.word.filter(|(member, _)| *member == name) else { return 0 };
        let fits = value.text().is_some_and(|text| words.iter().any(|word| text.decode().eq_ignore_ascii_case(word)));
        if fits { WORD_WEIGHT } else { 0 }
    }

    fn payload_weight(&self, name: &str, value: Value<'_, '_>) -> u32 {
        if name != "payload" || self.payload.is_empty() {
            return 0;
        }
        let inside = value.members().filter(|(name, _)| self.payload.iter().any(|member| *name == **member));
        PAYLOAD_WEIGHT * u32::try_from(inside.take(self.payload.len()).count()).unwrap_or(0)
    }
}

/// More than all members of all kinds together.
const KNOWN_MAX: usize = 128;

/// A member that some kind has.
struct Known {
    name: &'static str,
    weight: u32,
    /// Which of [`MARKS`] have it.
    kinds: Vec<usize>,
}

/// Most names differ in length already, which is cheaper to compare than their bytes.
fn by_length(name: &str) -> (usize, &str) {
    (name.len(), name)
}

/// All members of all kinds, in the order of [`by_length`].
static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let mut names: Vec<&'static str> = MARKS.iter().flat_map(|marks| marks.members).copied().collect();
    names.sort_unstable_by_key(|name| by_length(name));
    names.dedup();
    assert!(names.len() <= KNOWN_MAX, "KNOWN_MAX is too small");
    let kinds = |name| (0..MARKS.len()).filter(|&kind| MARKS[kind].members.contains(&name)).collect();
    names.into_iter().map(|name| Known { name, weight: WEIGHT / sharers(name), kinds: kinds(name) }).collect()
});

/// How many sorts of documents have a member of this name; the four messages share one envelope and count once.
fn sharers(member: &str) -> u32 {
    let envelopes = u32::from(ENVELOPE.contains(&member));
    let others =
        MARKS.iter().filter(|marks| marks.kind.contract() != Contract::Message && marks.members.contains(&member));
    envelopes + u32::try_from(others.count()).unwrap_or(u32::MAX)
}

/// Whether bytes look like a stream of events rather than JSON.
pub(crate) fn looks_like_stream(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    ["event:", "data:", "id:", "retry:", ":"].iter().any(|field| bytes.starts_with(field.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    /// The lists of members and the types must not drift apart.
    #[test]
    fn marks_are_the_members_of_the_types() {
        for marks in MARKS {
            let schema = schema::of(marks.kind);
            let properties = schema["properties"].as_object().expect("every kind is an object");
            let mut members: Vec<&str> = properties.keys().map(String::as_str).collect();
            // Of the later dialect, and a mistake that must not lead away.
            members.retain(|member| *member != "priority");
            let mut marked: Vec<&str> = marks.members.to_vec();
            marked.retain(|member| marks.kind != Kind::BridgeResponse || *member != "result");
            members.sort_unstable();
            marked.sort_unstable();
            assert_eq!(marked, members, "{}", marks.kind);
        }
    }
}
