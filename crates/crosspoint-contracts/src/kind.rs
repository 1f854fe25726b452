//! The five contracts, their thirteen kinds of documents, and telling them apart.
//!
//! A document does not say what it is, so its members are weighed: a name that only one kind has counts most, a
//! name that many share counts little, and a status or type that belongs to the kind counts for it. The
//! weights follow from the lists below; nothing is tuned by hand. A broken document is still recognised by what is
//! left of it, and where two kinds are too close the answer is "ambiguous", with what was
//! found of each.

use std::cmp::Reverse;
use std::fmt;
use std::sync::LazyLock;

use crate::json::Value;

/// One of the five ways of talking to agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// Two files, and a program that exits and is resumed.
    Bridge,
    /// A stateless function from envelope to envelope.
    Workflow,
    /// Messages between orchestrator and agents.
    Message,
    /// Requests with polling.
    Task,
    /// An HTTP run, in one answer or as a stream.
    Run,
}

impl Contract {
    /// All five.
    pub const ALL: [Contract; 5] =
        [Contract::Bridge, Contract::Workflow, Contract::Message, Contract::Task, Contract::Run];

    /// `bridge`, `workflow`, `message`, `task` or `run`.
    pub fn name(self) -> &'static str {
        match self {
            Contract::Bridge => "bridge",
            Contract::Workflow => "workflow",
            Contract::Message => "message",
            Contract::Task => "task",
            Contract::Run => "run",
        }
    }
}

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `.agent-request.json`
    BridgeRequest,
    /// `.agent-response.json`
    BridgeResponse,
    /// What a workflow's agent is given.
    WorkflowInput,
    /// What it gives back.
    WorkflowOutput,
    /// Do this.
    WorkRequest,
    /// This is how far it is.
    WorkStatus,
    /// It is done.
    WorkResult,
    /// Something prevents the normal flow.
    MessageError,
    /// A task to do.
    TaskRequest,
    /// How a task is doing.
    TaskResponse,
    /// A run to do.
    RunRequest,
    /// What came of a run.
    RunResponse,
    /// The events of a run.
    RunStream,
}

impl Kind {
    /// All thirteen.
    pub const ALL: [Kind; 13] = [
        Kind::BridgeRequest,
        Kind::BridgeResponse,
        Kind::WorkflowInput,
        Kind::WorkflowOutput,
        Kind::WorkRequest,
        Kind::WorkStatus,
        Kind::WorkResult,
        Kind::MessageError,
        Kind::TaskRequest,
        Kind::TaskResponse,
        Kind::RunRequest,
        Kind::RunResponse,
        Kind::RunStream,
    ];

    /// For example `bridge.response`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::BridgeRequest => "bridge.request",
            Kind::BridgeResponse => "bridge.response",
            Kind::WorkflowInput => "workflow.input",
            Kind::WorkflowOutput => "workflow.output",
            Kind::WorkRequest => "message.work_request",
            Kind::WorkStatus => "message.work_status",
            Kind::WorkResult => "message.work_result",
            Kind::MessageError => "message.error",
            Kind::TaskRequest => "task.request",
            Kind::TaskResponse => "task.response",
            Kind::RunRequest => "run.request",
            Kind::RunResponse => "run.response",
            Kind::RunStream => "run.stream",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The contract it belongs to.
    pub fn contract(self) -> Contract {
        match self {
            Kind::BridgeRequest | Kind::BridgeResponse => Contract::Bridge,
            Kind::WorkflowInput | Kind::WorkflowOutput => Contract::Workflow,
            Kind::WorkRequest | Kind::WorkStatus | Kind::WorkResult | Kind::MessageError => Contract::Message,
            Kind::TaskRequest | Kind::TaskResponse => Contract::Task,
            Kind::RunRequest | Kind::RunResponse | Kind::RunStream => Contract::Run,
        }
    }

    /// The kind that a file of this name is meant to be, by the names the contracts give to files.
    pub fn of_file_name(name: &str) -> Option<Kind> {
        if name.starts_with(".agent-request") && name.ends_with(".json") {
            return Some(Kind::BridgeRequest);
        }
        if name.starts_with(".agent-response") && name.contains(".json") {
            return Some(Kind::BridgeResponse);
        }
        name.ends_with(".sse").then_some(Kind::RunStream)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

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

/// Tells what an object is. A file's name, where there is one, counts like a member of its own.
pub(crate) fn detect(object: Value<'_, '_>, file_kind: Option<Kind>) -> Result<Kind, Undetected> {
    let weights = weigh(object, file_kind);
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
fn weigh(object: Value<'_, '_>, file_kind: Option<Kind>) -> [u32; MARKS.len()] {
    let mut weights = [0; MARKS.len()];
    for (name, value) in object.members() {
        let name = name.decode();
        let Ok(at) = KNOWN.binary_search_by_key(&by_length(&name), |known| by_length(known.name)) else { continue };
        let known = &KNOWN[at];
        for &kind in &known.kinds {
            weights[kind] += known.weight;
            weights[kind] += MARKS[kind].word_weight(&name, value) + MARKS[kind].payload_weight(&name, value);
        }
    }
    for (weight, marks) in weights.iter_mut().zip(MARKS) {
        *weight += if file_kind == Some(marks.kind) { WEIGHT } else { 0 };
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
        // Repeated members count once too often; they are an error anyway.
        PAYLOAD_WEIGHT * u32::try_from(inside.take(self.payload.len()).count()).unwrap_or(0)
    }
}

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
