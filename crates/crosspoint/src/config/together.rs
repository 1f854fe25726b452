//! Mistakes that no table has by itself: tables that contradict each other.

use std::collections::BTreeMap;

use crosspoint_contracts::AGENT_TYPES;

use super::caller::CALLBACK;
use super::file::File;
use super::load::{Loaded, line_span};
use super::problem::{Position, Problem};
use super::token::{TOKEN_FILE, Token};
use super::{Contract, address};
use crate::workflow;

/// Returns what the tables of agents and callers contradict in each other.
pub(super) fn contradictions(loaded: &Loaded, file: &File) -> Vec<Problem> {
    let tables = Tables { loaded, file };
    [
        tables.namesakes(),
        tables.reserved(),
        tables.without_token(),
        tables.shared_tokens(),
        tables.types_in_other_letters(),
    ]
    .concat()
}

/// Returns the callers whose callback is this very server. The address of the server must be known.
pub(super) fn callers_here(loaded: &Loaded, file: &File) -> Vec<Problem> {
    let tables = Tables { loaded, file };
    let is_here = |at: &usize| {
        let callback = loaded.config.callers[*at].callback.as_ref();
        callback.is_some_and(|url| address::is_here(url, &loaded.config.server.listen))
    };
    let what = "this server itself listens there: it would be told of its own work";
    let hint = "write where the caller listens, or leave it out if the caller pulls";
    let here = (0..loaded.config.callers.len()).filter(is_here);
    here.map(|at| tables.of_caller(at, CALLBACK, what.to_owned(), hint.to_owned())).collect()
}

/// All tables of a configuration, and the file that they are from.
struct Tables<'l> {
    loaded: &'l Loaded,
    file: &'l File,
}

impl Tables<'_> {
    fn of_caller(&self, at: usize, key: &str, what: String, hint: String) -> Problem {
        let shown = format!("[[caller]] {}: {key}", self.loaded.config.callers[at].name);
        self.problem(&self.loaded.caller_lines[at], key, shown, what, hint)
    }

    fn of_agent(&self, at: usize, key: &str, what: String, hint: String) -> Problem {
        let shown = format!("[[agent]] {}: {key}", self.loaded.config.agents[at].name);
        self.problem(&self.loaded.agent_lines[at], key, shown, what, hint)
    }

    /// Returns the agents that have the name or the work of the agent that runs workflows.
    fn reserved(&self) -> Vec<Problem> {
        let hint = || "choose another: runs of workflows have this one".to_owned();
        let agents = self.loaded.config.agents.iter().enumerate().take(self.loaded.agent_lines.len());
        let name = agents.clone().filter(|(_, agent)| agent.name == workflow::AGENT);
        let named = name.map(|(at, _)| self.of_agent(at, "name", format!("{} is taken", workflow::AGENT), hint()));
        let work = agents.filter(|(_, agent)| agent.work.iter().any(|work| work == workflow::WORK));
        let works = work.map(|(at, _)| self.of_agent(at, "work", format!("{} is taken", workflow::WORK), hint()));
        named.chain(works).collect()
    }

    fn problem(
        &self,
        lines: &BTreeMap<String, usize>,
        key: &str,
        shown: String,
        what: String,
        hint: String,
    ) -> Problem {
        let line = lines.get(key).or_else(|| lines.get("name")).copied().unwrap_or(1);
        let position = Position::File(self.file.source.clone(), line_span(&self.file.source.text, line));
        Problem { position, key: shown, what, hint }
    }

    /// Agents and callers have mailboxes, and are asked for by their names alone.
    fn namesakes(&self) -> Vec<Problem> {
        let config = &self.loaded.config;
        // The sample agents also stand in for agents that could not be read.
        let agents = if self.file.lost_agents && self.loaded.agent_lines.is_empty() { &[][..] } else { &config.agents };
        let taken = config
            .callers
            .iter()
            .enumerate()
            .filter(|(_, caller)| agents.iter().any(|agent| agent.name == caller.name));
        taken
            .map(|(at, caller)| {
                let what = format!("an agent is called \"{}\"", caller.name);
                self.of_caller(at, "name", what, "give callers and agents different names".to_owned())
            })
            .collect()
    }

    /// Once one caller has a token, every request needs one: a caller that has none could do nothing.
    fn without_token(&self) -> Vec<Problem> {
        let has_token = |at: &usize| self.loaded.caller_lines[*at].contains_key(TOKEN_FILE);
        let callers = 0..self.loaded.config.callers.len();
        let Some(first) = callers.clone().find(has_token) else { return Vec::new() };
        let other = &self.loaded.config.callers[first].name;
        callers
            .filter(|at| !has_token(at))
            .map(|at| {
                let what = format!("it is missing, and \"{other}\" has one: then every caller must show a token");
                let hint = format!(
                    "add token_file = \"{}.token\", or remove token_file from all callers",
                    self.loaded.config.callers[at].name
                );
                self.of_caller(at, TOKEN_FILE, what, hint)
            })
            .collect()
    }

    /// A token says who its owner is, so no two may have the same. Tokens that are only presented to agents do not.
    fn shared_tokens(&self) -> Vec<Problem> {
        let mut owners: Vec<(&Token, String)> = Vec::new();
        let mut found = Vec::new();
        let what = |owner: &str| format!("the same token is that of {owner}, and a token says who its owner is");
        let hint = "give each a token of its own: openssl rand -hex 16 makes one";
        for (at, agent) in self.loaded.config.agents.iter().enumerate() {
            let Contract::Messages(message) = &agent.contract else { continue };
            let Some(token) = &message.token else { continue };
            match owners.iter().find(|(other, _)| *other == token) {
                Some((_, owner)) => found.push(self.of_agent(at, TOKEN_FILE, what(owner), hint.to_owned())),
                None => owners.push((token, format!("[[agent]] {}", agent.name))),
            }
        }
        for (at, caller) in self.loaded.config.callers.iter().enumerate() {
            let Some(token) = &caller.token else { continue };
            match owners.iter().find(|(other, _)| *other == token) {
                Some((_, owner)) => found.push(self.of_caller(at, TOKEN_FILE, what(owner), hint.to_owned())),
                None => owners.push((token, format!("[[caller]] {}", caller.name))),
            }
        }
        found
    }

    /// A type in other letters is another type, and work that is addressed to the usual one would not reach the agent.
    fn types_in_other_letters(&self) -> Vec<Problem> {
        let config = &self.loaded.config;
        let mut known: Vec<&str> = AGENT_TYPES.to_vec();
        known.extend(config.server.agent_types.iter().map(String::as_str));
        let mut found = Vec::new();
        for (at, agent) in config.agents.iter().enumerate() {
            let Some(name) = agent.agent_type.as_deref() else { continue };
            if known.contains(&name) {
                continue;
            }
            if let Some(meant) = known.iter().find(|known| known.eq_ignore_ascii_case(name)) {
                let what =
                    format!("\"{name}\" is another type than \"{meant}\", which differs only in capital letters");
                found.push(self.of_agent(at, "type", what, format!("write type = \"{meant}\"")));
            } else {
                known.push(name);
            }
        }
        found
    }
}
