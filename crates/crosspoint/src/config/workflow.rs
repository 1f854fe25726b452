//! Programs that a workflow brings along, as agents.

use std::path::Path;
use std::time::Duration;

use crosspoint_workflow::definition;

use super::Agent;
use super::exec::{Exec, LIMITS};
use crate::link::Spoken;

impl Agent {
    /// Returns a program that a workflow brings along. A path to it is meant from the directory of the workflow file.
    pub(crate) fn of_workflow(program: &definition::Agent, home: &Path, work: Vec<String>) -> Agent {
        let speaks = match program.contract {
            definition::Contract::Workflow => Spoken::named(crosspoint_contracts::Contract::Workflow.name()),
            definition::Contract::Exec => None,
        };
        let mut argv = program.exec.clone();
        if let Some(name) = argv.first_mut().filter(|name| name.contains('/')) {
            *name = home.join(name.trim_start_matches("./")).to_string_lossy().into_owned();
        }
        let env = program.env.clone();
        // Its envelope is the runner's own, so nothing is carried beside it.
        let exec =
            Exec { speaks, carry: false, argv, env, ask: program.ask, retry_exit_codes: Vec::new(), limits: LIMITS };
        let settled = Agent::program(exec);
        let total = program.total_seconds.map_or(settled.total, |seconds| Duration::from_secs(seconds.into()));
        Agent { name: program.name.clone(), work, total, repeatable: program.repeatable, ..settled }
    }
}
