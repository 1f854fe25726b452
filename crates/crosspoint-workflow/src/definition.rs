//! What a workflow file says.
//!
//! A file names stages, the agent and the action of each, and where a run goes from there. [`Definition::read`] names
//! everything that is wrong with a file at once, each mistake at its place: an author who mends one mistake at a time
//! runs the program once for each. What only the server can know (which agents there are, and what they do) is asked
//! for by [`Definition::check`].
//!
//! Routes are numbers of stages once the file is read. A route to a stage that does not exist is a mistake of the file,
//! so a run never has to look for a stage, and cannot miss it.

mod agent;
mod check;
mod graph;
mod mermaid;
mod mistake;
mod params;
mod paths;
mod picture;
mod read;
mod stage;
mod table;

pub use agent::{Agent, Contract};
pub use mistake::Mistake;
pub use paths::{Entry, Template};
pub use stage::{Retry, Stage, Target};

/// Largest file, in bytes. A thousand stages with long parameters fit in.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

/// Most stages: more than a person can oversee.
pub const STAGES_MAX: usize = 1_000;

/// Longest name of a workflow, stage, agent, action or path, in bytes: names are shown in lists and made into keys.
pub const NAME_BYTES_MAX: usize = 128;

/// Most retries that a stage may allow before a person is asked.
pub const LIMIT_MAX: u32 = 100;

/// What `proceed` says where the workflow ends, so no stage has this id.
pub const DONE: &str = "done";

/// The name of the server's own agent for runs of workflows, so no agent of a file has this name.
pub const RUNNER_AGENT: &str = "workflow-runner";

/// The work of that agent: a whole run. No stage asks for it, because runs within runs would have no end.
pub const RUN_ACTION: &str = "workflow-run";

/// A workflow, as its file defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    name: String,
    paths: Vec<Entry>,
    /// At least one.
    stages: Vec<Stage>,
    agents: Vec<Agent>,
    warnings: Vec<Mistake>,
}

impl Definition {
    /// Reads a file. If a run of it is impossible, returns everything that is wrong with it, in the order of the file.
    pub fn read(text: &str) -> Result<Definition, Vec<Mistake>> {
        read::definition(text)
    }

    /// Returns the workflow's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the stages in the order of the file. There is at least one, and the first begins.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Returns the paths that agents are told of, in the order of the file.
    pub fn paths(&self) -> &[Entry] {
        &self.paths
    }

    /// Returns the agents that the workflow brings along.
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// Returns what should be mended, although the workflow can run.
    pub fn warnings(&self) -> &[Mistake] {
        &self.warnings
    }

    /// Returns what is wrong with the agents and actions of the stages. `works_of` returns the actions that an agent of
    /// the server takes, or `None` if there is no such agent. Agents of the file come before those of the server, and
    /// take any action.
    pub fn check(&self, works_of: &dyn Fn(&str) -> Option<Vec<String>>) -> Vec<Mistake> {
        check::agents(self, works_of)
    }

    /// Draws the workflow as text: the stages in the order of the file, with the routes of each.
    pub fn drawn(&self) -> String {
        picture::drawn(self)
    }

    /// Returns the workflow as a flowchart in the language of Mermaid.
    pub fn mermaid(&self) -> String {
        mermaid::flowchart(self)
    }
}
