//! `[[agent]]`: the agents that do the work.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::File;
use super::key::{AGENT, Key};
use super::kind::{self, Value, described, quoted};
use super::problem::suggestion;
use super::{Agent, Builtin, Contract};
use super::{bridge, exec, message, remote};
use crate::link::Spoken;

const BUILTIN: &str = "builtin";
const EXEC: &str = "exec";
const BRIDGE: &str = "bridge";
pub(super) const MESSAGE: &str = "message";
/// The keys that are read here; the others are in the list of keys.
pub(super) const BY_HAND: [&str; 3] = ["name", "contract", "work"];
/// The keys that only built-in agents have.
pub(super) const BUILTIN_KEYS: [&str; 1] = ["run"];

/// Longest name of a work, in bytes, so that it can be shown on one line. It may contain characters that an agent's
/// name may not, because the contracts allow them.
const WORK_BYTES_MAX: usize = 200;

type Read = (Agent, BTreeMap<String, usize>);

/// The contracts that agents have.
fn contracts() -> Vec<&'static str> {
    [BUILTIN, EXEC].into_iter().chain(Spoken::all().map(Spoken::name)).chain([MESSAGE, BRIDGE]).collect()
}

pub(super) fn read_agents(file: &mut File, agents: &DeValue<'_>, span: Range<usize>) -> Vec<Read> {
    let DeValue::Array(agents) = agents else {
        file.wrong(
            span,
            "agent",
            &format!("it is a list of tables, and this is {}", described(agents)),
            "write [[agent]] with two brackets",
        );
        return Vec::new();
    };
    let mut read: Vec<Read> = Vec::new();
    for agent in agents {
        let DeValue::Table(keys) = agent.get_ref() else {
            let what = format!("it is a list of tables, and this is {}", described(agent.get_ref()));
            file.wrong(agent.span(), "agent", &what, "write [[agent]] with its keys below");
            continue;
        };
        let reading = Reading::of(keys, header(file, agent.span()), "agent");
        if let Some(agent) = reading.agent(file) {
            if let Some((_, lines)) = read.iter().find(|(other, _)| other.name == agent.0.name) {
                let first = lines.get("name").copied().unwrap_or_default();
                let what = format!("another agent is called \"{}\" (line {first})", agent.0.name);
                file.wrong(reading.span_of("name"), &reading.shown, &what, "give each agent a name of its own");
            }
            read.push(agent);
        } else {
            file.lost_agents = true;
        }
    }
    read
}

/// The span of a table without its keys: its first line.
pub(super) fn header(file: &File, span: Range<usize>) -> Range<usize> {
    let text = file.source.text.get(span.clone()).unwrap_or_default();
    span.start..span.start + text.find('\n').unwrap_or(text.len())
}

/// One table with a name, of an agent or a caller.
pub(super) struct Reading<'t> {
    pub(super) keys: &'t DeTable<'t>,
    span: Range<usize>,
    /// What it is called in reports.
    pub(super) shown: String,
}

impl<'t> Reading<'t> {
    /// Begins to read a table of the list `list`; its first line is at `span`.
    pub(super) fn of(keys: &'t DeTable<'t>, span: Range<usize>, list: &str) -> Reading<'t> {
        let shown = match keys.get("name").map(Spanned::get_ref) {
            Some(DeValue::String(name)) => format!("[[{list}]] {name}"),
            Some(_) | None => format!("[[{list}]]"),
        };
        Reading { keys, span, shown }
    }
}

impl Reading<'_> {
    fn agent(&self, file: &mut File) -> Option<Read> {
        let name = self.name(file);
        let contract = self.contract(file)?;
        // All keys are looked at before any of them ends the reading: all mistakes are named in one go.
        let agent = self.of_contract(file, contract, name.as_deref());
        let work = self.work(file, name.as_deref());
        let values = self.values(file, &AGENT);
        let mut agent = Agent { name: name?, work: work?, ..agent? };
        for (key, value) in values {
            (key.set)(&mut agent, value);
        }
        bridge::settled(&agent, self, file);
        Some((agent, self.lines(file)))
    }

    /// Reads the keys that only agents of this contract have.
    fn of_contract(&self, file: &mut File, contract: &str, name: Option<&str>) -> Option<Agent> {
        self.unknown_keys(file, contract);
        match contract {
            EXEC => Some(Agent::program(exec::read(self, None, file)?)),
            BRIDGE => Some(Agent::in_files(bridge::read(self, file)?)),
            MESSAGE => Some(Agent::of_messages(message::read(self, file)?)),
            other => match Spoken::named(other) {
                Some(spoken) if spoken.program.is_some() => self.program_or_remote(file, spoken),
                Some(spoken) => Some(Agent::remote(remote::read(self, spoken, file)?)),
                None => Some(Agent::sample(self.builtin(file, name).unwrap_or(Builtin::Echo))),
            },
        }
    }

    /// Reads an agent of a contract that both programs and agents behind an address speak.
    fn program_or_remote(&self, file: &mut File, spoken: &'static Spoken) -> Option<Agent> {
        match (self.keys.contains_key(exec::ARGV), self.keys.contains_key(remote::URL)) {
            (true, false) => {
                self.of_the_other(file, &remote::keys(), &exec::keys(Some(spoken)), "the agent is a program");
                Some(Agent::program(exec::read(self, Some(spoken), file)?))
            }
            (false, true) => {
                self.of_the_other(file, &exec::keys(Some(spoken)), &remote::keys(), "the agent is behind an address");
                Some(Agent::remote(remote::read(self, spoken, file)?))
            }
            (true, true) => {
                let what = "the agent is a program or behind an address, and both are given";
                file.wrong(self.span_of(exec::ARGV), &self.key(exec::ARGV), what, "remove exec, or remove url");
                None
            }
            (false, false) => {
                let hint = "write exec = [\"./agent\"] for a program, or url = \"http://127.0.0.1:8000/envelope\" for a service";
                file.wrong(self.span.clone(), &self.shown, "neither its program nor its address is given", hint);
                None
            }
        }
    }

    /// Names the keys that only an agent of the other sort has.
    fn of_the_other(&self, file: &mut File, other: &[&str], own: &[&str], because: &str) {
        for (name, _) in self.keys {
            let key = name.get_ref().as_ref();
            if other.contains(&key) && !own.contains(&key) {
                file.wrong(name.span(), &self.key(key), &format!("{because}, which has no such key"), "remove it");
            }
        }
    }

    /// Reads those of these keys that are there, and names the wrong values.
    pub(super) fn values<T>(&self, file: &mut File, keys: &'static [Key<T>]) -> Vec<(&'static Key<T>, Value)> {
        let mut values = Vec::new();
        for key in keys {
            let Some(value) = self.keys.get(key.name) else { continue };
            match key.kind.of_toml(value.get_ref()) {
                Ok(value) => values.push((key, value)),
                Err(wrong) => file.wrong(value.span(), &self.key(key.name), &wrong.what, &wrong.hint),
            }
        }
        values
    }

    /// The line of every key.
    pub(super) fn lines(&self, file: &File) -> BTreeMap<String, usize> {
        self.keys.iter().map(|(name, _)| (name.get_ref().to_string(), file.line(&name.span()))).collect()
    }

    pub(super) fn key(&self, name: &str) -> String {
        format!("{}: {name}", self.shown)
    }

    /// The span of a key's value, or of the table if the key is missing.
    pub(super) fn span_of(&self, name: &str) -> Range<usize> {
        self.keys.get(name).map_or(self.span.clone(), Spanned::span)
    }

    pub(super) fn text(&self, file: &mut File, name: &str, hint: &str) -> Option<String> {
        let value = self.keys.get(name)?;
        if let DeValue::String(text) = value.get_ref() {
            return Some(text.to_string());
        }
        let what = format!("it must be a text, and this is {}", described(value.get_ref()));
        file.wrong(value.span(), &self.key(name), &what, hint);
        None
    }

    pub(super) fn name(&self, file: &mut File) -> Option<String> {
        let hint = "add a name, as name = \"report-writer\"";
        if !self.keys.contains_key("name") {
            file.wrong(self.span.clone(), &self.shown, "it has no name", hint);
            return None;
        }
        let text = self.text(file, "name", "write it in quotes")?;
        match kind::name(&text) {
            Ok(name) => Some(name),
            Err(wrong) => {
                file.wrong(self.span_of("name"), &self.key("name"), &wrong.what, &wrong.hint);
                None
            }
        }
    }

    /// Returns the contract, if there is such a one.
    fn contract(&self, file: &mut File) -> Option<&'static str> {
        let hint = "write contract = \"exec\" for a program, \"run\", \"task\", \"message\" or \"workflow\" for a service, or \"bridge\" for files";
        if !self.keys.contains_key("contract") {
            file.wrong(self.span.clone(), &self.shown, "it has no contract", hint);
            return None;
        }
        let contract = self.text(file, "contract", hint)?;
        let contracts = contracts();
        if let Some(known) = contracts.iter().find(|known| **known == contract) {
            return Some(known);
        }
        let span = self.span_of("contract");
        let hint = suggestion(&contract, &contracts).unwrap_or_else(|| hint.to_owned());
        file.wrong(span, &self.key("contract"), &format!("there is no contract \"{contract}\""), &hint);
        None
    }

    fn unknown_keys(&self, file: &mut File, contract: &str) {
        let spoken = Spoken::all().map(|spoken| {
            let of_programs = spoken.program.map(|_| exec::keys(Some(spoken))).unwrap_or_default();
            (spoken.name(), [remote::keys(), of_programs].concat())
        });
        let local = [(BUILTIN, BUILTIN_KEYS.to_vec()), (EXEC, exec::keys(None))];
        let others = [(MESSAGE, message::keys()), (BRIDGE, bridge::keys())];
        let all: Vec<(&str, Vec<&str>)> = local.into_iter().chain(spoken).chain(others).collect();
        let own = all.iter().find(|(name, _)| *name == contract).map(|(_, keys)| keys.clone()).unwrap_or_default();
        let known: Vec<&str> =
            BY_HAND.into_iter().chain(own.iter().copied()).chain(AGENT.iter().map(|key| key.name)).collect();
        for (name, value) in self.keys {
            let (key, span) = (name.get_ref().as_ref(), name.span());
            let other = all.iter().find(|(_, keys)| keys.contains(&key)).filter(|_| !own.contains(&key));
            if let Some((other, _)) = other {
                let what = format!("agents of the contract \"{contract}\" have no such key");
                let hint = message::instead(contract, key, value.get_ref())
                    .unwrap_or_else(|| format!("remove it, or write contract = \"{other}\""));
                file.wrong(span, &self.key(key), &what, &hint);
            } else if !known.contains(&key) {
                file.unknown_key(name, &self.key(key), &known);
            }
        }
    }

    fn builtin(&self, file: &mut File, name: Option<&str>) -> Option<Builtin> {
        let names = Builtin::ALL.map(Builtin::name);
        let (from, run) = if self.keys.contains_key("run") {
            ("run", self.text(file, "run", "write it in quotes")?)
        } else {
            ("name", name?.to_owned())
        };
        let found = Builtin::from_name(&run);
        if found.is_none() {
            let hint = match from {
                "run" => suggestion(&run, &names).unwrap_or_else(|| format!("write one of {}", quoted(&names))),
                _ => format!("add run = and one of {}", quoted(&names)),
            };
            file.wrong(self.span_of(from), &self.key(from), &format!("there is no built-in agent \"{run}\""), &hint);
        }
        found
    }

    fn work(&self, file: &mut File, name: Option<&str>) -> Option<Vec<String>> {
        let Some(value) = self.keys.get("work") else { return Some(name.map(str::to_owned).into_iter().collect()) };
        let hint = match value.get_ref() {
            DeValue::String(work) => format!("write it as a list: work = {}", quoted_list(work)),
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => {
                format!("write work = {}, or leave it out for that", quoted_list(name.unwrap_or("report")))
            }
        };
        let shown = self.key("work");
        let DeValue::Array(list) = value.get_ref() else {
            file.wrong(
                value.span(),
                &shown,
                &format!("it must be a list, and this is {}", described(value.get_ref())),
                &hint,
            );
            return None;
        };
        if list.is_empty() {
            file.wrong(value.span(), &shown, "the list is empty, so that the agent would never get work", &hint);
            return None;
        }
        let mut works: Vec<String> = Vec::new();
        for item in list {
            match work_name(item.get_ref(), &works) {
                Ok(work) => works.push(work),
                Err(what) => file.wrong(item.span(), &shown, &what, "name each work once, in quotes"),
            }
        }
        Some(works)
    }
}

/// Returns a list of one text, as it is written in the file.
fn quoted_list(text: &str) -> String {
    Value::Texts(vec![text.to_owned()]).to_string()
}

/// Returns one name of a list of works, or what is wrong with it.
pub(super) fn work_name(item: &DeValue<'_>, before: &[String]) -> Result<String, String> {
    let DeValue::String(text) = item else {
        return Err(format!("names of work are texts, and this is {}", described(item)));
    };
    if text.is_empty() {
        Err("a name of work is empty".to_owned())
    } else if text.len() > WORK_BYTES_MAX {
        Err(format!("a name of work is longer than {WORK_BYTES_MAX} bytes"))
    } else if text.contains(char::is_control) {
        Err("a name of work has a control character in it".to_owned())
    } else if before.iter().any(|work| work == text) {
        Err("this work is named twice".to_owned())
    } else {
        Ok(text.to_string())
    }
}

impl Contract {
    /// The contract as it is spelled in the file.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Contract::Builtin(_) => BUILTIN,
            Contract::Exec(exec) => exec.speaks.map_or(EXEC, Spoken::name),
            Contract::Remote(remote) => remote.spoken.name(),
            Contract::Messages(_) => MESSAGE,
            Contract::Directory(_) => BRIDGE,
        }
    }
}
