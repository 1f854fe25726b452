//! `crosspoint workflow check`, and the same before a run: what is wrong with a file, also in this place.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use crosspoint_contracts::clause::Level;
use crosspoint_workflow::definition::{Agent, Mistake};
use toml::de::DeTable;

use super::arguments::WorkflowCheck;
use super::file::WorkflowFile;
use crate::client;
use crate::command::flags::Reach;
use crate::config::Config;
use crate::terminal::render;
use crate::{Exit, exec};

/// The works of agents, by their names.
type Known = BTreeMap<String, Vec<String>>;

pub(super) fn file(arguments: &WorkflowCheck) -> Result<Exit> {
    let Some(file) = WorkflowFile::read(&arguments.file)? else { return Ok(Exit::NotFine) };
    let here = std::env::current_dir().context("cannot tell the working directory")?;
    let found = mistakes(&file, &arguments.reach, file.has_programs(), &here)?;
    if found.has_errors() {
        return Ok(Exit::NotFine);
    }
    let counted = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let stages = counted(file.definition.stages().len(), "stage");
    let warnings = match found.warnings() {
        0 => String::new(),
        count => format!(", with {}", counted(count, "warning")),
    };
    writeln!(io::stdout().lock(), "ok: {} is a workflow of {stages}{warnings}", render::visible(&file.name))?;
    Ok(Exit::Fine)
}

/// What was found in a file, and printed.
pub(super) struct Found(Vec<Level>);

impl Found {
    pub(super) fn has_errors(&self) -> bool {
        self.0.contains(&Level::Error)
    }

    fn warnings(&self) -> usize {
        self.0.iter().filter(|level| **level == Level::Warning).count()
    }
}

/// Prints everything that is wrong with a file that is to run in this root. `is_here` says that a command does the
/// work, with the agents of the configuration, whatever server there is.
pub(super) fn mistakes(file: &WorkflowFile, reach: &Reach, is_here: bool, root: &Path) -> Result<Found> {
    let known = known_agents(file, reach, is_here)?;
    let mut mistakes = file.definition.warnings().to_vec();
    mistakes.extend(file.definition.check(&|name| known.get(name).cloned()));
    mistakes.extend(clashes(file, &known));
    mistakes.extend(unstartable(file));
    mistakes.extend(file.definition.agents().iter().flat_map(|agent| not_in_root(file, agent, root)));
    file.print(&mistakes)?;
    Ok(Found(mistakes.iter().map(|mistake| mistake.level).collect()))
}

/// Returns the arguments of a program that look as if they were meant from the directory of the file. Only the program
/// itself is: it is started in the root, where its arguments are read.
fn not_in_root(file: &WorkflowFile, agent: &Agent, root: &Path) -> Vec<Mistake> {
    let is_astray =
        |argument: &&String| file.home.join(argument.as_str()).is_file() && !root.join(argument.as_str()).exists();
    let astray = |argument: &String| Mistake {
        level: Level::Warning,
        span: place(&file.text, &agent.name, "exec"),
        what: format!("{} is beside the workflow file, and is not in the root", render::visible(argument)),
        hint: "programs are started in the root: name the script itself first, or write its whole path".to_owned(),
    };
    agent.exec.iter().skip(1).filter(is_astray).map(astray).collect()
}

/// Returns the agents that stages may name besides those of the file: those of the server that runs here, else those of
/// the configuration.
fn known_agents(file: &WorkflowFile, reach: &Reach, is_here: bool) -> Result<Known> {
    if !is_here && let Some(agents) = client::agents_of_server(reach)? {
        return Ok(agents.into_iter().map(|agent| (agent.name, agent.work)).collect());
    }
    let mut config = Config::load(&reach.store.flags())?;
    file.replace_samples(&mut config);
    Ok(config.agents.into_iter().map(|agent| (agent.name, agent.work)).collect())
}

/// Returns the agents of the file that have the name of an agent of the configuration: the records of the run would not
/// say which one did a stage.
fn clashes(file: &WorkflowFile, known: &Known) -> Vec<Mistake> {
    let is_known = |agent: &&Agent| known.contains_key(&agent.name);
    let clash = |agent: &Agent| Mistake {
        level: Level::Error,
        span: place(&file.text, &agent.name, "name"),
        what: format!("the configuration has an agent \"{}\" too", render::visible(&agent.name)),
        hint: "give one of them another name, or remove one of the two".to_owned(),
    };
    file.definition.agents().iter().filter(is_known).map(clash).collect()
}

/// Returns the programs of the file that could not be started as things are. That is no mistake of the file: they may
/// be there when it runs.
fn unstartable(file: &WorkflowFile) -> Vec<Mistake> {
    let missing = |agent: &Agent| {
        let what = exec::startable_from(&file.home, agent.exec.first()?).err()?;
        let span = place(&file.text, &agent.name, "exec");
        let hint = "a program must be there, be executable (chmod +x), and begin with #! if it is a script";
        let (what, hint) = (what.trim_end_matches('.').to_owned(), hint.to_owned());
        Some(Mistake { level: Level::Warning, span, what, hint })
    };
    file.definition.agents().iter().filter_map(missing).collect()
}

/// Returns where the value of a key of an agent is in the file; of a list, where its first item is.
fn place(text: &str, agent: &str, key: &str) -> Range<usize> {
    let find = || {
        let root = DeTable::parse(text).ok()?;
        let agents = root.get_ref().get("agent")?.get_ref().as_array()?;
        let is_it = |keys: &&DeTable<'_>| keys.get("name").is_some_and(|name| name.get_ref().as_str() == Some(agent));
        let value = agents.iter().filter_map(|agent| agent.get_ref().as_table()).find(is_it)?.get(key)?;
        let first = value.get_ref().as_array().and_then(|items| items.first());
        Some(first.unwrap_or(value).span())
    };
    find().unwrap_or(0..0)
}
