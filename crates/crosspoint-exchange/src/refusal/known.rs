//! Works and agents that a caller may have meant, as many as a hint has room for.

use crosspoint_contracts::nearest::nearest;

use crate::backend::Agent;
use crate::listed::listed;

const ALL: &str = "GET /api/v1/agents lists all";

/// Longest name that is compared with others, in bytes: comparing takes the square of it.
const COMPARED_BYTES_MAX: usize = 64;

/// Most works that a name is compared with. There may be a million of them.
const COMPARED_MAX: usize = 1_000;

/// Lists the works that agents take, for people.
pub fn works(agents: &[Agent]) -> String {
    listed(&sorted(agents), ALL)
}

/// Lists the same for a caller that asked for another work, and first the one that was perhaps meant.
pub fn works_like(agents: &[Agent], asked: &str) -> String {
    let works = sorted(agents);
    let is_short = |work: &&str| work.len() <= COMPARED_BYTES_MAX;
    let compared: Vec<&str> = works.iter().copied().filter(is_short).take(COMPARED_MAX).collect();
    let meant = Some(asked).filter(is_short).and_then(|asked| nearest(asked, &compared));
    let meant = meant.map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
    format!("{meant}known works: {}", listed(&works, ALL))
}

/// Lists the types of agents that take this work, for people. `None` if no agent with a type does.
pub fn types_for(agents: &[Agent], work: &str) -> Option<String> {
    let takes = agents.iter().filter(|agent| agent.works.iter().any(|known| **known == *work));
    let mut types: Vec<&str> = takes.filter_map(|agent| agent.agent_type.as_deref()).collect();
    types.sort_unstable();
    types.dedup();
    (!types.is_empty()).then(|| listed(&types, ALL))
}

fn sorted(agents: &[Agent]) -> Vec<&str> {
    let mut works: Vec<&str> = agents.iter().flat_map(|agent| agent.works.iter().map(|work| &**work)).collect();
    works.sort_unstable();
    works.dedup();
    works
}

/// Lists the names of agents, for people.
pub fn agents(agents: &[Agent]) -> String {
    listed(&agents.iter().map(|agent| &*agent.name).collect::<Vec<&str>>(), ALL)
}
