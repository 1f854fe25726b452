//! Where runs may work, and where each keeps its record.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::neighbours::Neighbours;
use crate::config::{Agent, Config, Contract, FILE_NAME};
use crate::local::beside::outermost;

/// The directory in the data directory that has the records of runs.
const RECORDS: &str = "workflows";

/// The directory in a record that has the copy of a dry run.
pub(super) const COPY: &str = "copy";

/// Endings of the files that the database keeps beside its own.
const BESIDE_STORE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Where runs may work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Roots {
    /// Below these directories, `[workflow] roots`; below that of the configuration if there are none.
    Below(Vec<PathBuf>),
    /// Anywhere: the user of this command is who would write the configuration.
    Anywhere,
}

/// The places of the runs of one server.
#[derive(Clone)]
pub(crate) struct Places {
    roots: Roots,
    /// The directory of the configuration file, from which relative roots are meant.
    home: PathBuf,
    /// The records of all runs.
    records: PathBuf,
    /// What no artifact may touch, and no copy has: the data directory, the database and the configuration file.
    protected: Vec<PathBuf>,
    /// What no artifact may touch either: the programs that agents are started as, and the files of tokens.
    trusted: Vec<PathBuf>,
    /// Whether the store is in the data directory, so that all records there are of its jobs.
    has_store: bool,
    neighbours: Arc<Neighbours>,
}

/// Why a run may not work in a directory.
#[derive(Debug)]
pub(crate) enum NotAllowed {
    /// It is not there, or is no directory.
    Missing(PathBuf),
    /// It is the data directory of the server, or in it.
    Ours,
    /// A relative path means another directory to the server than to its caller.
    Relative,
    /// It is not below any of these.
    Outside(Vec<PathBuf>),
}

impl Places {
    /// Returns the places of a server with this configuration.
    pub(crate) fn of(config: &Config) -> Places {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let file = config.origin.as_deref().map(absolute);
        let home = file.as_deref().and_then(Path::parent).map_or_else(|| absolute(Path::new(".")), Path::to_owned);
        let data = absolute(&config.data);
        let store = absolute(&config.store.path);
        // A configuration that is not there yet would start programs once it is.
        let file = file.unwrap_or_else(|| home.join(FILE_NAME));
        let beside = BESIDE_STORE.iter().map(|ending| with_ending(&store, ending));
        let protected = [outermost(&data).to_owned(), file, store.clone()].into_iter().chain(beside).collect();
        let has_store = store.parent() == Some(&*data);
        Places {
            roots: config.workflow.roots.clone(),
            trusted: trusted(config, &home),
            home,
            records: data.join(RECORDS),
            protected,
            has_store,
            neighbours: Arc::default(),
        }
    }

    /// Returns the directory without links on its way, if a run may work in it.
    pub(crate) fn allow(&self, root: &Path) -> Result<PathBuf, NotAllowed> {
        if !root.is_absolute() {
            return Err(NotAllowed::Relative);
        }
        let allowed = self.allowed();
        let Some(found) = root.canonicalize().ok().filter(|found| found.is_dir()) else {
            let Some(allowed) = allowed else { return Err(NotAllowed::Missing(root.to_owned())) };
            // Of other places a caller does not learn what is there.
            let may_know = is_below(&allowed, &as_far_as_it_is(root));
            return Err(if may_know { NotAllowed::Missing(root.to_owned()) } else { NotAllowed::Outside(allowed) });
        };
        let data = self.records.parent().and_then(|data| outermost(data).canonicalize().ok());
        if data.is_some_and(|data| found.starts_with(data)) {
            return Err(NotAllowed::Ours);
        }
        let Some(allowed) = allowed else { return Ok(found) };
        if is_below(&allowed, &found) { Ok(found) } else { Err(NotAllowed::Outside(allowed)) }
    }

    /// Returns the directories below which runs may work; `None` if they may work anywhere.
    fn allowed(&self) -> Option<Vec<PathBuf>> {
        match &self.roots {
            Roots::Anywhere => None,
            Roots::Below(roots) if roots.is_empty() => Some(vec![self.home.clone()]),
            Roots::Below(roots) => Some(roots.iter().map(|root| self.home.join(root)).collect()),
        }
    }

    /// Whether definitions may bring programs of their own.
    pub(crate) fn starts_programs_of_definitions(&self) -> bool {
        self.roots == Roots::Anywhere
    }

    /// Returns the directory in which a run remembers what it did.
    pub(crate) fn record(&self, run: Uuid) -> PathBuf {
        self.records.join(run.to_string())
    }

    /// Returns the directory in which a dry run works.
    pub(super) fn copy(&self, run: Uuid) -> PathBuf {
        self.record(run).join(COPY)
    }

    /// Returns what the runs know of each other.
    pub(super) fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// Returns what no artifact may touch.
    pub(super) fn protected(&self) -> impl Iterator<Item = &PathBuf> {
        self.protected.iter().chain(&self.trusted)
    }

    /// Returns what no copy of a root may have.
    pub(super) fn kept_out_of_copies(&self) -> &[PathBuf] {
        &self.protected
    }

    /// Whether a record whose job is not in the store is of no use any more. Where the store lies elsewhere, another
    /// store may have had this data directory before.
    pub(super) fn are_records_of_store(&self) -> bool {
        self.has_store
    }

    /// Returns the directory that has the records of all runs.
    pub(super) fn records(&self) -> &Path {
        &self.records
    }
}

/// Whether a path without links is one of these directories, or is below one.
fn is_below(allowed: &[PathBuf], found: &Path) -> bool {
    allowed.iter().any(|root| root.canonicalize().is_ok_and(|root| found.starts_with(root)))
}

/// Returns the deepest directory on the way to a path that is there, without links.
fn as_far_as_it_is(path: &Path) -> PathBuf {
    path.ancestors().find_map(|above| above.canonicalize().ok()).unwrap_or_default()
}

/// Returns the programs of the configuration, as far as they are named by a path, and the files of its tokens. The
/// server would start a program that an agent wrote over.
fn trusted(config: &Config, home: &Path) -> Vec<PathBuf> {
    let of_agent = |agent: &Agent| match &agent.contract {
        Contract::Exec(exec) => exec.argv.first().filter(|program| program.contains('/')).cloned(),
        Contract::Remote(remote) => remote.token_file.clone(),
        Contract::Messages(message) => message.token_file.clone(),
        Contract::Builtin(_) | Contract::Directory(_) => None,
    };
    let of_agents = config.agents.iter().filter_map(of_agent);
    let of_callers = config.callers.iter().filter_map(|caller| caller.token_file.clone());
    of_agents.chain(of_callers).map(|file| home.join(file)).collect()
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

impl fmt::Display for NotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAllowed::Missing(root) => write!(f, "{} is no directory of the server's machine", root.display()),
            NotAllowed::Ours => f.write_str("the root is in the data directory of Crosspoint"),
            NotAllowed::Relative => f.write_str("the root is a relative path"),
            NotAllowed::Outside(_) => f.write_str("the server does not allow workflows in this root"),
        }
    }
}

impl NotAllowed {
    /// Returns what to do about it.
    pub(crate) fn hint(&self) -> String {
        match self {
            NotAllowed::Missing(_) | NotAllowed::Ours => "name a directory that is there, with --root".to_owned(),
            NotAllowed::Relative => "write it from / on".to_owned(),
            NotAllowed::Outside(allowed) => {
                let allowed: Vec<String> = allowed.iter().map(|root| root.display().to_string()).collect();
                format!(
                    "workflows may work below {}; add the root to [workflow] roots, or run it in the command: crosspoint workflow run --embedded",
                    allowed.join(", ")
                )
            }
        }
    }
}
