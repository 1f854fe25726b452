//! The agents of a matrix. They keep to their contracts, and their input says what they do:
//!
//! | `do` | |
//! |---|---|
//! | `echo` | returns its input |
//! | `progress` | is at 40 percent until it is released, then returns its input |
//! | `big` | returns more than 2 MB |
//! | `artifacts` | returns `report.md` beside its input |
//! | `own` | returns its input, and members of its own |
//! | `ask` | asks, and returns the answer |
//! | `raw` | returns the JSON text `raw` as its outputs, whether or not it can be read |
//! | `fail` | fails as `code`, `status`, `recoverable` and `message` say |
//! | `break` | returns an answer that cannot be read |
//! | `silent` | takes the work, and is not heard of again |
//! | `die` | is at 40 percent until it is released, and then gone |
//! | `hold` | is at 40 percent until it is told to stop |
//! | `again` | has no room at first, and then returns its input |

#[path = "agents/bridge.rs"]
pub(super) mod bridge;
#[path = "agents/exec.rs"]
mod exec;
#[path = "agents/function.rs"]
mod function;
#[path = "agents/joined.rs"]
mod joined;
#[path = "agents/message.rs"]
pub(super) mod message;
#[path = "agents/run.rs"]
mod run;
#[path = "agents/task.rs"]
mod task;
#[path = "agents/workflow.rs"]
mod workflow;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::doors::Door;
use super::ledger::{Ledger, Seen};
use crate::support::scripted_agent::{Request, ScriptedAgent, configuration};
use crate::support::server::Server;

/// The kinds of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Builtin,
    /// A program that the server starts.
    Exec,
    /// A program that a worker starts, which joined the server.
    Joined,
    Run,
    Task,
    Bridge,
    /// Of the message contract, and sent its work.
    Pushed,
    /// Of the message contract, and asks for its work.
    Pulled,
    /// Of the workflow contract, and a program.
    Program,
    /// Of the workflow contract, and behind an address.
    Service,
    /// A function of `crosspoint-agent`, reached in this way.
    Function(Way),
}

/// The ways to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Run,
    Task,
    Pushed,
    Pulled,
    Workflow,
}

/// What an agent is configured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Plain,
    /// Is given up after two seconds: of silence, or in all where silence means nothing.
    Quiet,
    /// Is not at the configured address.
    Away,
    /// A program that may not ask, and may print little. A function that does not take the work.
    Strict,
    /// Is gone after a while, with all its connections. Only functions need it.
    Dying,
    /// Wants a token that the server does not have. Only functions need it.
    Locked,
}

/// An address without a listener: no ordinary user may bind this port.
const NO_LISTENER: &str = "http://127.0.0.1:1";

const QUIET_KEYS: &str = "silence_seconds = 2\n";

/// All agents that live in the test.
pub(super) struct Agents {
    run: ScriptedAgent,
    task: ScriptedAgent,
    workflow: ScriptedAgent,
    message: message::Agents,
    functions: function::Agents,
    joined: joined::Workers,
    /// Root of the directories of the bridge agents.
    directories: PathBuf,
    pub(super) ledger: Arc<Ledger>,
}

impl Kind {
    pub(super) const ALL: [Kind; 15] = [
        Kind::Builtin,
        Kind::Exec,
        Kind::Joined,
        Kind::Run,
        Kind::Task,
        Kind::Bridge,
        Kind::Pushed,
        Kind::Pulled,
        Kind::Program,
        Kind::Service,
        Kind::Function(Way::Run),
        Kind::Function(Way::Task),
        Kind::Function(Way::Pushed),
        Kind::Function(Way::Pulled),
        Kind::Function(Way::Workflow),
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Builtin => "builtin",
            Kind::Exec => "exec",
            Kind::Joined => "joined",
            Kind::Run => "run",
            Kind::Task => "task",
            Kind::Bridge => "bridge",
            Kind::Pushed => "pushed",
            Kind::Pulled => "pulled",
            Kind::Program => "program",
            Kind::Service => "service",
            Kind::Function(Way::Run) => "fn-run",
            Kind::Function(Way::Task) => "fn-task",
            Kind::Function(Way::Pushed) => "fn-push",
            Kind::Function(Way::Pulled) => "fn-pull",
            Kind::Function(Way::Workflow) => "fn-flow",
        }
    }

    /// The kind that it is to the server: of the same contract, and reached in the same way.
    pub(super) fn like(self) -> Kind {
        match self {
            Kind::Joined => Kind::Exec,
            Kind::Function(Way::Run) => Kind::Run,
            Kind::Function(Way::Task) => Kind::Task,
            Kind::Function(Way::Pushed) => Kind::Pushed,
            Kind::Function(Way::Pulled) => Kind::Pulled,
            Kind::Function(Way::Workflow) => Kind::Service,
            Kind::Builtin
            | Kind::Exec
            | Kind::Run
            | Kind::Task
            | Kind::Bridge
            | Kind::Pushed
            | Kind::Pulled
            | Kind::Program
            | Kind::Service => self,
        }
    }

    /// Whether it is a function of `crosspoint-agent`.
    pub(super) fn is_function(self) -> bool {
        matches!(self, Kind::Function(_))
    }

    /// Whether the output of such an agent is a text (ALL-8). A function says that its text is an object.
    pub(super) fn gives_text(self) -> bool {
        !self.is_function() && (self == Kind::Bridge || self.is_message() || self.is_workflow())
    }

    /// Whether it is an agent of the workflow contract.
    pub(super) fn is_workflow(self) -> bool {
        matches!(self.like(), Kind::Program | Kind::Service)
    }

    /// Whether it is an agent of the message contract.
    pub(super) fn is_message(self) -> bool {
        matches!(self.like(), Kind::Pushed | Kind::Pulled)
    }
}

/// The name of an agent, which is also its work. Each door has its own agents, so that no breaker sees the failures of
/// another.
pub(super) fn name(kind: Kind, door: Door, purpose: Purpose) -> String {
    let purpose = match purpose {
        Purpose::Plain => "plain",
        Purpose::Quiet => "quiet",
        Purpose::Away => "away",
        Purpose::Strict => "strict",
        Purpose::Dying => "dying",
        Purpose::Locked => "locked",
    };
    format!("{}-{}-{purpose}", kind.name(), door.name())
}

/// The name of a built-in agent, which is also its work.
pub(super) fn builtin_name(run: &str, door: Door) -> String {
    format!("builtin-{}-{run}", door.name())
}

impl Agents {
    pub(super) fn start() -> Agents {
        let ledger = Arc::new(Ledger::default());
        let directories = std::env::temp_dir().join(format!("crosspoint-matrix-{}", std::process::id()));
        bridge::start(&directories, ledger.clone());
        Agents {
            run: run::start(ledger.clone()),
            task: task::start(ledger.clone()),
            workflow: workflow::start(ledger.clone()),
            message: message::Agents::start(ledger.clone()),
            functions: function::Agents::bind(&directories, ledger.clone()),
            joined: joined::Workers::default(),
            directories,
            ledger,
        }
    }

    /// Tells the agents where the server is.
    pub(super) fn serve(&self, server: &Server) {
        self.message.serve(server.address());
        self.functions.serve(&server.url());
        self.joined.join(server);
    }

    /// Lets an agent come that was away.
    pub(super) fn come(&self, kind: Kind, door: Door) {
        match kind {
            Kind::Joined => self.joined.come(door),
            Kind::Function(_) => self.functions.come(door),
            Kind::Pulled => self.message.come(door),
            Kind::Builtin
            | Kind::Exec
            | Kind::Run
            | Kind::Task
            | Kind::Bridge
            | Kind::Pushed
            | Kind::Program
            | Kind::Service => panic!("such agents never come"),
        }
    }

    /// The configuration of a server with all these agents.
    pub(super) fn configuration(&self) -> String {
        Door::ALL.iter().map(|door| self.of_door(*door)).collect()
    }

    fn of_door(&self, door: Door) -> String {
        let mut all: String = ["echo", "slow_echo", "ask", "fail"].map(|run| builtin(run, door, "")).concat();
        all += &builtin_quiet(door);
        for (kind, agent) in [(Kind::Run, &self.run), (Kind::Task, &self.task)] {
            let url = agent.url();
            all += &remote(kind, &name(kind, door, Purpose::Plain), &url, "");
            all += &remote(kind, &name(kind, door, Purpose::Quiet), &url, QUIET_KEYS);
            all += &remote(kind, &name(kind, door, Purpose::Away), NO_LISTENER, "");
        }
        all += &message::configuration(&self.message.url(), door);
        all += &self.functions.configuration(door);
        all += &workflow::configuration(&self.workflow.url(), &exec::interpreter(), door);
        all + &exec::configuration(door, QUIET_KEYS) + &bridge::configuration(&self.directories, door)
    }

    /// Puts the files that programs need into their directory.
    pub(super) fn write_files(directory: &Path) {
        exec::write_files(directory);
        workflow::write_files(directory);
    }

    pub(super) fn release(&self, cell: &str, directory: &Path) {
        self.ledger.release(cell);
        exec::release(cell, directory);
    }

    pub(super) fn seen(&self, kind: Kind, cell: &str, what: &'static str, directory: &Path) -> Vec<Seen> {
        match kind {
            Kind::Builtin => Vec::new(),
            Kind::Exec | Kind::Joined | Kind::Program => exec::seen(cell, what, directory),
            Kind::Run | Kind::Task | Kind::Bridge | Kind::Pushed | Kind::Pulled | Kind::Service | Kind::Function(_) => {
                self.ledger.seen(cell, what)
            }
        }
    }

    /// The directory in which a bridge agent finds its requests.
    pub(super) fn directory(&self, agent: &str) -> PathBuf {
        bridge::directory(&self.directories, agent)
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directories);
    }
}

fn builtin(run: &str, door: Door, keys: &str) -> String {
    let name = builtin_name(run, door);
    format!("[[agent]]\nname = \"{name}\"\ncontract = \"builtin\"\nrun = \"{run}\"\nconcurrency = 64\n{keys}\n")
}

/// The sample agent that can be told to stay silent.
fn builtin_quiet(door: Door) -> String {
    let name = name(Kind::Builtin, door, Purpose::Quiet);
    format!("[[agent]]\nname = \"{name}\"\ncontract = \"builtin\"\nrun = \"slow_echo\"\n{QUIET_KEYS}\n")
}

fn remote(kind: Kind, name: &str, url: &str, keys: &str) -> String {
    configuration(name, kind.name(), url, &format!("concurrency = 64\n{keys}"))
}

/// The output of `big`: more than 2 MB, in characters of one, two and three bytes.
pub(super) fn blob() -> String {
    "ä€x".repeat(350_000)
}

/// A code that no contract knows.
pub(super) const OWN_CODE: &str = "TOO_SALTY";

/// Members that no contract knows.
pub(super) fn own_members() -> Value {
    json!({"deep": [1, {"ä/~": null}], "text": "\u{1F600} \"quoted\""})
}

/// Outputs that [`spelled`] writes as this JSON text, because no `Value` could hold them.
fn raw_outputs(input: &Value) -> Value {
    json!(format!("@raw {}", text(input, "raw")))
}

/// A document as it is sent.
fn spelled(document: &Value) -> String {
    let given = ["outputs", "result"].into_iter().map(|name| &document[name]).find(|given| given.is_string());
    let raw = given.and_then(Value::as_str).and_then(|text| text.strip_prefix("@raw "));
    let text = document.to_string();
    raw.map_or_else(|| text.clone(), |raw| text.replace(&given.map(Value::to_string).unwrap_or_default(), raw))
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// An entry of the ledger for what an agent was asked.
fn seen(what: &'static str, id: &str, asked: &Request, document: Value) -> Seen {
    let trace = asked.header("traceparent").unwrap_or_default().to_owned();
    Seen { what, id: id.to_owned(), trace, document }
}
