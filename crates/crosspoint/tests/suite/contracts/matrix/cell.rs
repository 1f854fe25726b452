//! One cell: a case at one door with one agent, and what must hold in each of them.

use std::net::SocketAddr;
use std::path::PathBuf;

use crosspoint_contracts::failure::{Failure, Repeat};
use serde_json::{Value, json};

use super::agents::{self, Agents, Kind, Purpose, Way};
use super::doors::{Callback, Door, Handle, Order, call, fetch, shallow};
use super::ledger::Seen;
use super::view::View;
use crate::support::bridge_caller::new_id;
use crate::support::documents::faultless;
use crate::support::message_caller;
use crate::support::server::{Server, until};
use crosspoint_contracts as contracts;

/// State that all cells share.
pub(super) struct World<'w> {
    pub(super) address: SocketAddr,
    directory: PathBuf,
    agents: &'w Agents,
    callback: &'w Callback,
}

impl World<'_> {
    pub(super) fn new<'w>(server: &Server, agents: &'w Agents, callback: &'w Callback) -> World<'w> {
        World { address: server.address(), directory: server.directory().to_owned(), agents, callback }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Cell<'w> {
    pub(super) world: &'w World<'w>,
    pub(super) case: &'static str,
    pub(super) door: Door,
    pub(super) kind: Kind,
}

/// The result of a cell.
pub(super) enum Verdict {
    Right,
    /// The case makes no sense here, for this reason.
    NotHere(&'static str),
    Wrong(String),
}

/// How a job must fail.
pub(super) struct Fails {
    pub(super) failure: Failure,
    pub(super) repeat: Repeat,
    /// The agent's own code.
    pub(super) own: Option<String>,
    /// The agent's own message.
    pub(super) message: Option<&'static str>,
}

impl Cell<'_> {
    pub(super) fn name(&self) -> String {
        let case = self.case.replace([' ', ':', ','], "_");
        format!("{case}-{}-{}", self.door.name(), self.kind.name())
    }

    /// An order that makes an agent do something. A built-in agent is chosen by what it does.
    pub(super) fn order(&self, wanted: &str) -> Order {
        let purpose = if wanted == "silent" { Purpose::Quiet } else { Purpose::Plain };
        let work = match (self.kind, wanted) {
            (Kind::Builtin, "silent") => agents::name(Kind::Builtin, self.door, Purpose::Quiet),
            (Kind::Builtin, "progress" | "hold") => agents::builtin_name("slow_echo", self.door),
            (Kind::Builtin, "ask" | "fail") => agents::builtin_name(wanted, self.door),
            (Kind::Builtin, _) => agents::builtin_name("echo", self.door),
            (Kind::Bridge, _) if purpose == Purpose::Plain => agents::bridge::name_for(self.case, self.door),
            (Kind::Pushed | Kind::Pulled, _) => agents::message::name_for(self.kind, self.case, self.door),
            (
                Kind::Exec
                | Kind::Joined
                | Kind::Run
                | Kind::Task
                | Kind::Bridge
                | Kind::Program
                | Kind::Service
                | Kind::Function(_),
                _,
            ) => agents::name(self.kind, self.door, purpose),
        };
        let mut input = json!({"do": wanted, "cell": self.name(), "more": [1, null, "ä\n"]});
        match (self.kind, wanted) {
            (Kind::Builtin, "big") => input["blob"] = json!(agents::blob()),
            (Kind::Builtin, "progress") => input["seconds"] = json!(1),
            (Kind::Builtin, "silent" | "hold") => input["seconds"] = json!(600),
            (Kind::Builtin, "ask") => input["prompt"] = json!("Which pan?"),
            _ => {}
        }
        // BRIDGE-4.5, MSG-1.3: in these contracts an id is a UUID.
        let is_uuid = self.door == Door::Bridge || self.door.is_message();
        let id = if is_uuid { new_id() } else { format!("caller's {}", self.name()) };
        let id = json!(id).to_string();
        Order { work, input, id, members: Vec::new(), headers: Vec::new() }
    }

    /// The same with an agent for another purpose.
    pub(super) fn order_for(&self, purpose: Purpose, wanted: &str) -> Order {
        Order { work: agents::name(self.kind, self.door, purpose), ..self.order(wanted) }
    }

    pub(super) fn submit(&self, order: &Order) -> Handle {
        self.door.submit(self.world.address, &self.room(), self.world.callback, order)
    }

    /// The directory in which a requester leaves its files.
    pub(super) fn room(&self) -> PathBuf {
        self.world.directory.join("rooms").join(self.name())
    }

    /// The directory in which a bridge agent finds the request.
    pub(super) fn agent_directory(&self, order: &Order) -> PathBuf {
        self.world.agents.directory(&order.work)
    }

    /// The text of a progress step of the agent.
    pub(super) fn step(&self) -> &'static str {
        if self.kind == Kind::Builtin { "Step " } else { "Half-way" }
    }

    /// Waits until the agent is at work. An agent that reports no progress is at work once it has its request.
    pub(super) fn under_way(&self, handle: &Handle) {
        if self.kind == Kind::Bridge || self.kind.is_workflow() {
            self.until_seen("new");
        } else {
            handle.sees_progress(self.step());
        }
    }

    /// Lets the agent come that was away.
    pub(super) fn come(&self) {
        self.world.agents.come(self.kind, self.door);
    }

    pub(super) fn release(&self) {
        self.world.agents.release(&self.name(), &self.world.directory);
    }

    pub(super) fn seen(&self, what: &'static str) -> Vec<Seen> {
        self.seen_as(&self.name(), what)
    }

    /// The same, for a cell with several orders that differ in `cell` of their inputs.
    pub(super) fn seen_as(&self, name: &str, what: &'static str) -> Vec<Seen> {
        self.world.agents.seen(self.kind, name, what, &self.world.directory)
    }

    pub(super) fn until_seen(&self, what: &'static str) -> Seen {
        until("the agent sees it", || self.seen(what).into_iter().next())
    }

    /// Waits for the outcome, and checks everything in it that does not depend on the case.
    pub(super) fn ended(&self, order: &Order, handle: Handle) -> (Value, View) {
        let job_id = handle.job_id();
        let view = handle.outcome();
        let caller: String = serde_json::from_str(&order.id).expect("a string");
        if self.door != Door::Workflow {
            assert_eq!(view.id, caller, "the caller's own id");
        }
        if self.door.is_message() {
            let request = serde_json::from_str(&shallow(&self.door.document(order))).expect("JSON");
            message_caller::answers(&request, &view.document);
        }
        let job = call(self.world.address, "GET", &format!("/api/v1/jobs/{job_id}"), &[], "").json();
        assert_eq!(job["state"], view.state, "both are told the same: {job}");
        self.ended_once(&job_id, &view.state);
        let name = order.input["cell"].as_str().expect("every input has it");
        self.seen_as(name, "new").iter().for_each(|seen| self.known_by_job(seen, &job_id, &caller));
        (job, view)
    }

    /// Checks that there is one outcome, and that it is the last event.
    fn ended_once(&self, job_id: &str, state: &str) {
        let events = fetch(self.world.address, &format!("/api/v1/jobs/{job_id}/events")).text();
        let names: Vec<&str> = events.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
        let outcomes = names.iter().filter(|name| ["completed", "failed", "cancelled"].contains(name)).count();
        assert_eq!((outcomes, names.last().copied()), (1, Some(state)), "one outcome, the last: {names:?}");
    }

    /// ALL-2: the agent knows the job by the job's id, with the caller's id beside it.
    fn known_by_job(&self, seen: &Seen, job_id: &str, caller: &str) {
        // An envelope has no id.
        if self.kind.like() != Kind::Service {
            assert_eq!(seen.id, job_id, "the agent knows the job by our id");
        }
        let beside = match self.kind.like() {
            Kind::Builtin | Kind::Joined | Kind::Function(_) => return,
            Kind::Exec => &seen.document["request_id"],
            Kind::Run => {
                faultless(seen.document.to_string().as_bytes(), contracts::Kind::RunRequest);
                &seen.document["x_crosspoint"]["request_id"]
            }
            Kind::Task => {
                faultless(seen.document.to_string().as_bytes(), contracts::Kind::TaskRequest);
                &seen.document["context"]["x_crosspoint"]["request_id"]
            }
            Kind::Bridge => {
                faultless(seen.document.to_string().as_bytes(), contracts::Kind::BridgeRequest);
                assert!(seen.document["created_at"].is_string(), "its age can be told: {}", seen.document);
                &seen.document["context"]["x_crosspoint"]["request_id"]
            }
            Kind::Pushed | Kind::Pulled => {
                faultless(seen.document.to_string().as_bytes(), contracts::Kind::WorkRequest);
                assert_eq!(seen.document["payload"]["task_id"], job_id, "it is the task's id, too");
                &seen.document["x_custom_fields"]["x_crosspoint"]["request_id"]
            }
            Kind::Program | Kind::Service => {
                faultless(seen.document.to_string().as_bytes(), contracts::Kind::WorkflowInput);
                &seen.document["x_crosspoint"]["request_id"]
            }
        };
        if self.door == Door::Workflow {
            return;
        }
        assert_eq!(beside, caller, "the caller's id is carried beside it: {}", seen.document);
    }

    /// Waits for the outcome, which must be a success.
    pub(super) fn succeeds(&self, order: &Order, handle: Handle, outputs: &Value) -> (Value, View) {
        let (job, view) = self.ended(order, handle);
        assert_eq!((view.state.as_str(), view.status), ("completed", 200), "{}", shortened(&view));
        assert!(view.outputs == self.in_form(outputs), "the outputs are others: {}", shortened(&view));
        (job, view)
    }

    /// ALL-8: some agents return a text that contains the object. Where only objects are allowed, the text is wrapped
    /// in one.
    fn in_form(&self, outputs: &Value) -> Value {
        // A long text comes in blocks (MSG-9), and stays a text.
        let comes_in_blocks = self.kind == Kind::Function(Way::Pulled) && self.case == "2 MB of output";
        if !self.kind.gives_text() && !comes_in_blocks {
            return outputs.clone();
        }
        match self.door {
            Door::Native => json!(outputs.to_string()),
            Door::Sync | Door::Stream | Door::Task => json!({"output": outputs.to_string()}),
            // The inner document has already been read.
            Door::Bridge | Door::Message | Door::Callback | Door::Workflow => outputs.clone(),
        }
    }

    /// Waits for the outcome, which must be a failure.
    pub(super) fn fails(&self, order: &Order, handle: Handle, fails: &Fails) -> (Value, View) {
        let (job, view) = self.ended(order, handle);
        let state = if fails.failure == Failure::Cancelled { "cancelled" } else { "failed" };
        let shown = shortened(&view);
        assert_eq!(view.state, state, "{shown}");
        assert_eq!(view.code, self.code_of(fails), "the code: {shown}");
        let no_error = self.door == Door::Task && fails.failure == Failure::Cancelled;
        let repeat = (!no_error).then(|| fails.repeat.name().to_owned());
        assert_eq!(view.repeat, repeat, "whether to repeat: {shown}");
        if let Some(message) = fails.message.filter(|_| !no_error) {
            assert_eq!(view.message.as_deref(), Some(message), "the agent's own words: {shown}");
        }
        let status = match self.door {
            Door::Sync => contracts::run::failure::write(fails.failure).1,
            Door::Message => (contracts::Contract::Message.exchange().http_status)(fails.failure),
            Door::Native | Door::Stream | Door::Task | Door::Bridge | Door::Callback | Door::Workflow => 200,
        };
        assert_eq!(view.status, status, "the status: {shown}");
        let empty = if matches!(self.door, Door::Sync | Door::Stream) { json!({}) } else { Value::Null };
        assert_eq!(view.outputs, empty, "no outputs: {shown}");
        if self.door == Door::Task && !no_error {
            let own = order.input["recoverable"].as_bool();
            let recoverable = own.unwrap_or(contracts::task::failure::write(fails.failure).1);
            assert_eq!(view.document["error"]["recoverable"], recoverable, "{shown}");
        }
        (job, view)
    }

    /// The code that this door must give: the agent's own if the door's contract reads it as the same failure.
    fn code_of(&self, fails: &Fails) -> Option<String> {
        let failure = fails.failure;
        let own = |read: fn(&str) -> Failure| fails.own.clone().filter(|own| read(own) == failure);
        match self.door {
            Door::Native | Door::Workflow => Some(failure.name().to_owned()),
            Door::Task if failure == Failure::Cancelled => None,
            Door::Sync | Door::Stream => {
                let ours = contracts::run::failure::write(failure).0;
                Some(own(contracts::run::failure::read).unwrap_or_else(|| ours.to_owned()))
            }
            Door::Task => {
                let ours = contracts::task::failure::write(failure).0;
                Some(own(contracts::task::failure::read).unwrap_or_else(|| ours.to_owned()))
            }
            Door::Bridge => {
                let ours = contracts::bridge::failure::write(failure).1;
                Some(own(contracts::bridge::failure::read).unwrap_or_else(|| ours.to_owned()))
            }
            Door::Message | Door::Callback => {
                let ours = contracts::message::failure::write(failure);
                // A failure without a code is a result.
                let own = own(|code| code.parse().map_or(Failure::AgentFailed, contracts::message::failure::read));
                ours.map(|ours| ours.to_string()).or(own.filter(|_| self.kind == Kind::Pulled))
            }
        }
    }
}

/// The answer, shortened.
pub(super) fn shortened(view: &View) -> String {
    let shown = format!("{} {}", view.status, view.document);
    shown.chars().take(2_000).collect()
}
