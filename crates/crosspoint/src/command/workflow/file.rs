//! A workflow file: read, its mistakes shown, and the programs that it brings along.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use crosspoint_contracts::clause::Level;
use crosspoint_workflow::definition::{self, Definition, FILE_BYTES_MAX, Mistake};

use crate::client::{self, Failed};
use crate::command::flags::Reach;
use crate::config::{self, Config};
use crate::exec;
use crate::terminal::render::{self, Spot};

/// A workflow file that can be run.
pub(super) struct WorkflowFile {
    /// Its name, for people.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) definition: Definition,
    /// The directory from which its programs are found.
    pub(super) home: PathBuf,
}

impl WorkflowFile {
    /// Reads a file. `None` if it has mistakes; they have been printed then.
    pub(super) fn read(path: &Path) -> Result<Option<WorkflowFile>> {
        let name = path.display().to_string();
        let named = || format!("the workflow {name} cannot be read");
        let mut bytes = Vec::new();
        let limit = FILE_BYTES_MAX as u64 + 1;
        File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)).with_context(named)?;
        let Ok(text) = String::from_utf8(bytes) else { bail!("the workflow {name} is not UTF-8") };
        let absolute = std::path::absolute(path).with_context(named)?;
        let home = absolute.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned);
        WorkflowFile::of(name, text, home)
    }

    /// Reads the text of a file.
    pub(super) fn of(name: String, text: String, home: PathBuf) -> Result<Option<WorkflowFile>> {
        match Definition::read(&text) {
            Ok(definition) => Ok(Some(WorkflowFile { name, text, definition, home })),
            Err(mistakes) => {
                print(&name, &text, &mistakes)?;
                Ok(None)
            }
        }
    }

    pub(super) fn print(&self, mistakes: &[Mistake]) -> Result<()> {
        print(&self.name, &self.text, mistakes)
    }

    /// Whether the file brings programs along.
    pub(super) fn has_programs(&self) -> bool {
        !self.definition.agents().is_empty()
    }

    /// Returns the programs of the file that could not be started as things are. That is no mistake of the file: they
    /// may be there when it runs.
    pub(super) fn unstartable(&self) -> Vec<Mistake> {
        let missing = |agent: &definition::Agent| {
            let name = agent.exec.first()?;
            let what = exec::startable_from(&self.home, name).err()?;
            let quoted = format!("\"{name}\"");
            let start = self.text.find(&quoted).unwrap_or_default();
            let hint = "a program must be there, be executable (chmod +x), and begin with #! if it is a script";
            let (what, hint) = (what.trim_end_matches('.').to_owned(), hint.to_owned());
            Some(Mistake { level: Level::Warning, span: start..start + quoted.len(), what, hint })
        };
        self.definition.agents().iter().filter_map(missing).collect()
    }

    /// Adds the programs of the file to the agents of this command.
    pub(super) fn add_programs(&self, config: &mut Config) -> Result<()> {
        for program in self.definition.agents() {
            let name = &program.name;
            if config.agents.iter().any(|agent| agent.name == *name) {
                let message =
                    format!("the workflow brings an agent {name}, and the configuration has one of that name");
                return Err(Failed::other(message, "give one of them another name").into());
            }
            let stages = self.definition.stages().iter().filter(|stage| stage.agent == *name);
            let mut works: Vec<String> = stages.map(|stage| stage.action.clone()).collect();
            works.sort();
            works.dedup();
            config.agents.push(config::Agent::of_workflow(program, &self.home, works));
        }
        Ok(())
    }
}

fn print(name: &str, text: &str, mistakes: &[Mistake]) -> Result<()> {
    let mut out = anstream::AutoStream::auto(io::stderr().lock());
    for mistake in mistakes {
        let (line, column) = config::line_and_column(text, mistake.span.start);
        let spot = Spot { line, text: text.as_bytes(), span: (mistake.span.start, mistake.span.end) };
        let position = format!("{}:{line}:{column}", render::visible(name));
        render::placed(&mut out, mistake.level, &render::visible(&mistake.what), &position, Some(spot), &mistake.hint)?;
    }
    Ok(())
}

pub(super) fn any_error(mistakes: &[Mistake]) -> bool {
    mistakes.iter().any(|mistake| mistake.level == Level::Error)
}

/// Returns the agents that stages may name, with their works: those of the server that runs here, else those of the
/// configuration.
pub(super) fn known_agents(reach: &Reach) -> Result<BTreeMap<String, Vec<String>>> {
    let config = match client::agents_of_server(reach)? {
        Some(agents) => return Ok(agents.into_iter().map(|agent| (agent.name, agent.work)).collect()),
        None => Config::load(&reach.store.flags())?,
    };
    Ok(config.agents.into_iter().map(|agent| (agent.name, agent.work)).collect())
}
