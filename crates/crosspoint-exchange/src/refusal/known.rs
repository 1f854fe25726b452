//! Hints on what callers may have meant: known works and agents, as many as a hint has room for.

use crosspoint_engine::runtime::Engine;

use crate::listed::listed;

const ALL: &str = "GET /api/v1/agents lists all";

/// Lists the known works, for people.
pub(crate) fn works(engine: &Engine) -> String {
    let agents = engine.agents();
    let mut works: Vec<&str> = agents.iter().flat_map(|agent| agent.spec.works.iter().map(|work| &**work)).collect();
    works.sort_unstable();
    works.dedup();
    listed(&works, ALL)
}

/// Lists the known agents, for people.
pub(super) fn names(engine: &Engine) -> String {
    let agents = engine.agents();
    listed(&agents.iter().map(|agent| &*agent.spec.name).collect::<Vec<&str>>(), ALL)
}
