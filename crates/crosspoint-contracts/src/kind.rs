//! The five contracts and their thirteen kinds of documents.

mod detect;

pub use detect::{Candidate, Undetected};
pub(crate) use detect::{detect, looks_like_stream};

use std::fmt;

use crate::map::Map;

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

    /// The contract of that name.
    pub fn from_name(name: &str) -> Option<Contract> {
        Contract::ALL.into_iter().find(|contract| contract.name() == name)
    }

    pub(crate) fn map(self) -> &'static Map {
        match self {
            Contract::Bridge => &crate::bridge::map::MAP,
            Contract::Workflow => &crate::workflow::map::MAP,
            Contract::Message => &crate::message::map::MAP,
            Contract::Task => &crate::task::map::MAP,
            Contract::Run => &crate::run::map::MAP,
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

    /// The kind that a file of this name must be: the contracts themselves give these names.
    pub fn of_file_name(name: &str) -> Option<Kind> {
        if name.starts_with(".agent-request") && name.ends_with(".json") {
            return Some(Kind::BridgeRequest);
        }
        let is_stale = name.contains(".json.stale-");
        if name.starts_with(".agent-response") && (name.ends_with(".json") || is_stale) {
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
