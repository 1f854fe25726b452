//! Combines the four sources into one configuration.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs::File as Handle;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::env::{overlay, variable};
use super::file;
use super::key::SECTIONS;
use super::kind::Value;
use super::problem::{Invalid, Position, Problem};
use super::{Agent, Config, Contract, DATABASE, address, together, work};

pub(crate) const FILE_NAME: &str = "crosspoint.toml";
const FILE_BYTES_MAX: u64 = 1 << 20;
const DATA_VARIABLE: &str = "CROSSPOINT_DATA";
const CONFIG_VARIABLE: &str = "CROSSPOINT_CONFIG";

/// The settings of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) listen: Option<String>,
    pub(crate) insecure: bool,
    pub(crate) store: Option<String>,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The line of the file.
    File(usize),
    /// The variable.
    Environment(String),
    /// The option.
    Flag(&'static str),
}

/// A configuration with the source of each value. Defaults are not listed.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// By `section.key`, and `data`.
    pub(super) origins: BTreeMap<String, Origin>,
    /// The lines of the agents' keys, in the order of the agents. Empty if they are the samples.
    pub(super) agent_lines: Vec<BTreeMap<String, usize>>,
    /// The lines of the works' keys, by the names of the works.
    pub(super) work_lines: work::Lines,
    /// The lines of the callers' keys, in the order of the callers.
    pub(super) caller_lines: Vec<BTreeMap<String, usize>>,
    /// What can be used, and should be mended.
    pub(crate) warnings: Vec<Problem>,
}

impl Config {
    /// Loads the configuration: defaults, then the file, then the environment, then the flags.
    pub(crate) fn load(flags: &Flags) -> Result<Config> {
        Ok(Loaded::load(flags)?.config)
    }
}

impl Loaded {
    pub(crate) fn load(flags: &Flags) -> Result<Loaded> {
        let mut loaded = Loaded {
            config: Config::default(),
            origins: BTreeMap::new(),
            agent_lines: Vec::new(),
            work_lines: BTreeMap::new(),
            caller_lines: Vec::new(),
            warnings: Vec::new(),
        };
        let mut problems = Vec::new();
        let file = match find(flags)? {
            Some(path) => Some((read(&path)?, path)),
            None => None,
        };
        let source = file.map(|(text, path)| loaded.take_file(&path, text, &mut problems));
        loaded.take_environment(&mut problems);
        loaded.take_flags(flags, &mut problems);
        let is_read = problems.is_empty();
        problems.extend(source.iter().flat_map(|file| together::contradictions(&loaded, file)));
        problems.sort_by_key(Problem::offset);
        // These compare values that are wrong where a default stands in for one that could not be read.
        if is_read {
            problems.extend(loaded.contradiction(source.as_ref()));
            problems.extend(source.as_ref().and_then(|file| loaded.circle(file)));
            problems.extend(source.iter().flat_map(|file| together::callers_here(&loaded, file)));
        }
        if problems.is_empty() { Ok(loaded) } else { Err(Invalid(problems).into()) }
    }

    fn take_file(&mut self, path: &Path, text: String, problems: &mut Vec<Problem>) -> file::File {
        let mut file = file::read(path, text, &mut self.config);
        self.config.origin = Some(path.to_owned());
        problems.append(&mut file.problems);
        self.warnings.append(&mut file.warnings);
        self.origins.extend(file.lines.iter().map(|(key, line)| (key.clone(), Origin::File(*line))));
        self.work_lines = std::mem::take(&mut file.work_lines);
        (self.config.callers, self.caller_lines) = std::mem::take(&mut file.callers).into_iter().unzip();
        if let Some(agents) = file.agents.take().filter(|agents| !agents.is_empty()) {
            (self.config.agents, self.agent_lines) = agents.into_iter().unzip();
        }
        file
    }

    fn take_environment(&mut self, problems: &mut Vec<Problem>) {
        let overlay = overlay(env::vars_os(), &mut self.config);
        problems.extend(overlay.problems);
        for key in overlay.settled {
            let (section, name) = key.split_once('.').unwrap_or_default();
            let origin = Origin::Environment(variable(section, name));
            self.origins.insert(key, origin);
        }
        if let Some(data) = set(DATA_VARIABLE) {
            self.take_data(Path::new(&data), Origin::Environment(DATA_VARIABLE.to_owned()));
        }
    }

    fn take_flags(&mut self, flags: &Flags, problems: &mut Vec<Problem>) {
        if let Some(data) = &flags.data {
            self.take_data(data, Origin::Flag("--data"));
        }
        let insecure = flags.insecure.then(|| "true".to_owned());
        let given = [
            ("server", "listen", "--listen", &flags.listen),
            ("server", "insecure", "--insecure", &insecure),
            ("store", "url", "--store", &flags.store),
        ];
        for (section, name, flag, text) in given {
            let Some(text) = text else { continue };
            let keys = SECTIONS.iter().filter(|found| found.name == section).flat_map(|found| found.keys);
            for key in keys.filter(|key| key.name == name) {
                match key.kind.of_text(text) {
                    Ok(value) => {
                        (key.set)(&mut self.config, value);
                        self.origins.insert(format!("{section}.{name}"), Origin::Flag(flag));
                    }
                    Err(wrong) => problems.push(Problem {
                        position: Position::Flag(flag),
                        key: String::new(),
                        what: wrong.what,
                        hint: wrong.hint,
                    }),
                }
            }
        }
    }

    /// Sets the data directory. The database moves with it, unless its path is configured.
    fn take_data(&mut self, data: &Path, origin: Origin) {
        let moved = |origins: &BTreeMap<String, Origin>| {
            !origins.contains_key("store.url") || origins.get("store.url") == origins.get("data")
        };
        if moved(&self.origins) {
            self.config.store.path = data.join(DATABASE);
            self.origins.insert("store.url".to_owned(), origin.clone());
        }
        self.config.data = data.to_owned();
        self.origins.insert("data".to_owned(), origin);
    }

    /// Returns the problem of limits that contradict each other: the rooms for bodies must have room for the largest
    /// body.
    fn contradiction(&self, file: Option<&file::File>) -> Option<Problem> {
        let limits = &self.config.limits;
        let rooms = [("bodies_bytes", limits.bodies_bytes_max), ("waiting_bytes", limits.waiting_bytes_max)];
        let (name, room) = rooms.into_iter().find(|(_, room)| *room < limits.body_bytes_max)?;
        let origin = self.origins.get(&format!("limits.{name}")).or_else(|| self.origins.get("limits.body_bytes"));
        let position = match (origin, file) {
            (Some(Origin::Environment(variable)), _) => Position::Environment(variable.clone()),
            (Some(Origin::File(line)), Some(file)) => {
                Position::File(file.source.clone(), line_span(&file.source.text, *line))
            }
            (Some(Origin::Flag(flag)), _) => Position::Flag(flag),
            (Some(Origin::File(_)) | None, _) => return None,
        };
        Some(Problem {
            position,
            key: format!("[limits] {name}"),
            what: format!(
                "{} is less than body_bytes, {}: a body of that size could never be taken",
                Value::count(room),
                Value::count(limits.body_bytes_max)
            ),
            hint: format!("raise {name}, or lower body_bytes"),
        })
    }
}

impl Loaded {
    /// Returns the problem of an agent that is this very server: its work would come in again and again, until the
    /// limit of jobs is reached.
    fn circle(&self, file: &file::File) -> Option<Problem> {
        let is_here = |agent: &Agent| match &agent.contract {
            Contract::Builtin(_) | Contract::Exec(_) | Contract::Directory(_) | Contract::Messages(_) => false,
            Contract::Remote(remote) => address::is_here(&remote.url, &self.config.server.listen),
        };
        let at = self.config.agents.iter().position(is_here)?;
        let line = *self.agent_lines.get(at)?.get("url")?;
        Some(Problem {
            position: Position::File(file.source.clone(), line_span(&file.source.text, line)),
            key: format!("[[agent]] {}: url", self.config.agents[at].name),
            what: "this server itself listens there: its work would go in a circle".to_owned(),
            hint: "write where the agent is, or let one of the two have another port".to_owned(),
        })
    }
}

pub(super) fn line_span(text: &str, line: usize) -> std::ops::Range<usize> {
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let length = text[start..].lines().next().map_or(0, str::len);
    start..start + length
}

/// Returns a variable that is set and not empty.
fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Finds the file to use. An explicitly named file has priority.
fn find(flags: &Flags) -> Result<Option<PathBuf>> {
    if let Some(path) = &flags.config {
        return Ok(Some(path.clone()));
    }
    if let Some(path) = set(CONFIG_VARIABLE) {
        return Ok(Some(PathBuf::from(path)));
    }
    let home = || set("HOME").map(|home| Path::new(&home).join(".config"));
    // By the specification of that variable, a relative directory must be ignored.
    let user = set("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute()).or_else(home);
    let user = user.map(|directory| directory.join("crosspoint").join(FILE_NAME));
    for path in [Some(PathBuf::from(FILE_NAME)), user].into_iter().flatten() {
        match path.try_exists() {
            Ok(true) => return Ok(Some(path)),
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            Err(error) => return Err(error).with_context(|| format!("{}: cannot be looked at", path.display())),
        }
    }
    Ok(None)
}

fn read(path: &Path) -> Result<String> {
    let named = || format!("the configuration {} cannot be read", path.display());
    let mut bytes = Vec::new();
    Handle::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)).with_context(named)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        bail!("the configuration {} is larger than {} MiB", path.display(), FILE_BYTES_MAX >> 20);
    }
    String::from_utf8(bytes).ok().with_context(|| format!("the configuration {} is not UTF-8", path.display()))
}
