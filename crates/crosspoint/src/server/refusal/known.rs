//! What callers may have meant: works and agents, as many as a hint has room for.

use crate::listed::listed;
use crate::server::App;

const ALL: &str = "GET /api/v1/agents lists all";

/// Works that are known, for people.
pub(in crate::server) fn works(app: &App) -> String {
    let agents = app.engine().agents();
    let mut works: Vec<&str> = agents.iter().flat_map(|agent| agent.spec.works.iter().map(|work| &**work)).collect();
    works.sort_unstable();
    works.dedup();
    listed(&works, ALL)
}

/// Agents that are known, for people.
pub(super) fn names(app: &App) -> String {
    let agents = app.engine().agents();
    listed(&agents.iter().map(|agent| &*agent.spec.name).collect::<Vec<&str>>(), ALL)
}
