//! A workflow file: read, its mistakes shown, and the programs that it brings along.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use crosspoint_workflow::definition::{Definition, FILE_BYTES_MAX, Mistake};

use crate::client::Failed;
use crate::config::{self, Builtin, Config};
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

    /// Removes the sample agents, which are there where none is configured, as far as the file brings its own.
    pub(super) fn replace_samples(&self, config: &mut Config) {
        if config.agents == Builtin::ALL.map(config::Agent::sample) {
            config.agents.retain(|sample| self.definition.agents().iter().all(|own| own.name != sample.name));
        }
    }

    /// Adds the programs of the file to the agents of this command.
    pub(super) fn add_programs(&self, config: &mut Config) -> Result<()> {
        self.replace_samples(config);
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
