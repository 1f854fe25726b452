//! The contracts that agents behind an address speak, and some programs: one line each.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::Contract;
use crosspoint_contracts::clause::Clause;
use crosspoint_engine::runtime::Link;

use super::remote::Agent;
use super::{run, task, workflow};
use crate::config;

/// All of them, in the order in which people are told of them.
static ALL: &[&Spoken] = &[
    &run::SPOKEN,
    &task::SPOKEN,
    &workflow::SPOKEN,
    #[cfg(feature = "demo-contract")]
    &super::demo::SPOKEN,
];

/// What must be known of a contract to have agents that speak it. The link of the contract defines it.
pub(crate) struct Spoken {
    pub(crate) contract: Contract,
    /// How long such an agent may be silent if that is not configured (ALL-4).
    pub(crate) silence: Duration,
    /// What becomes of its work when the server ends (ALL-3).
    pub(crate) fate: Fate,
    /// Whether its requests have a mode that an operator may configure.
    pub(crate) has_mode: bool,
    /// Whether it has a stream beside the whole answer, which an operator may turn off.
    pub(crate) has_stream: bool,
    /// Whether the address of an agent is the whole of it: the contract has no paths of its own.
    pub(crate) whole_address: bool,
    /// The clause that says how a program speaks it, if programs do.
    pub(crate) program: Option<&'static Clause>,
    /// Ends of addresses that belong to endpoints, and not to agents.
    pub(crate) endpoints: &'static [&'static str],
    /// Makes the link to such an agent.
    pub(crate) link: fn(Agent, &config::Agent) -> Arc<dyn Link>,
}

/// What became of work that was under way when the server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It died with the server.
    Died,
    /// Its agent went on with it.
    WentOn,
    /// It cannot be known.
    Unknown,
}

impl Spoken {
    pub(crate) fn all() -> impl Iterator<Item = &'static Spoken> {
        ALL.iter().copied()
    }

    /// The contract of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Spoken> {
        Spoken::all().find(|spoken| spoken.name() == name)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.contract.name()
    }
}

impl PartialEq for Spoken {
    fn eq(&self, other: &Spoken) -> bool {
        self.contract == other.contract
    }
}

impl fmt::Debug for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
