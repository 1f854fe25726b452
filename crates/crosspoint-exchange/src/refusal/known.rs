//! Works and agents that a caller may have meant, as many as a hint has room for.

use crate::backend::Agent;
use crate::listed::listed;

const ALL: &str = "GET /api/v1/agents lists all";

/// Lists the works that agents take, for people.
pub fn works(agents: &[Agent]) -> String {
    let mut works: Vec<&str> = agents.iter().flat_map(|agent| agent.works.iter().map(|work| &**work)).collect();
    works.sort_unstable();
    works.dedup();
    listed(&works, ALL)
}

/// Lists the names of agents, for people.
pub fn agents(agents: &[Agent]) -> String {
    listed(&agents.iter().map(|agent| &*agent.name).collect::<Vec<&str>>(), ALL)
}
