//! The directory in which a run remembers what it did.
//!
//! A step is one file, `step-3.plan.json`, whose name says how far the step came. Renaming it is how the step goes on,
//! so the name is never in between. Contents are beside it in `step-3.before` and `step-3.after`.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::failpoint::reached_for;
use super::fault::Fault;
use super::journal::Journal;
use super::limit::{JOURNAL_BYTES_MAX, at_most};
use super::root::sync;

/// Content may be secret, so only the owner may read it.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// How far a step came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Files may be in the staging directory, and none is in place.
    Plan,
    /// All files are staged, and some may be in place.
    Commit,
    /// Some files may be in place, and are taken back.
    Undo,
    /// The step is over, and the result is known.
    Done,
}

impl Stage {
    const ALL: [Stage; 4] = [Stage::Plan, Stage::Commit, Stage::Undo, Stage::Done];

    fn name(self) -> &'static str {
        match self {
            Stage::Plan => "plan",
            Stage::Commit => "commit",
            Stage::Undo => "undo",
            Stage::Done => "done",
        }
    }
}

/// Which content a file of the record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// What the files were before a step.
    Before,
    /// What a step wrote.
    After,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Before => "before",
            Side::After => "after",
        }
    }
}

/// An open record.
#[derive(Debug)]
pub(super) struct Record {
    handle: OwnedFd,
    path: PathBuf,
}

impl Record {
    /// Opens a record, and makes it where it does not exist. When this returns, a power cut does not take it away.
    ///
    /// A crash may have come after a directory was made and before its name was synced. So the deepest directory that
    /// is there is synced again, unless it is a record with steps: those were written after it.
    pub(super) fn make(path: &Path) -> Result<Record, Fault> {
        match Record::open(path) {
            Err(Fault::Gone(_)) => {}
            opened => {
                let record = opened?;
                if record.steps()?.is_empty() {
                    sync_old_name(path, 0)?;
                }
                return Ok(record);
            }
        }
        make_directories(path)?;
        Record::open(path)
    }

    pub(super) fn open(path: &Path) -> Result<Record, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = fs::open(path, flags, Mode::empty()).map_err(|errno| Fault::of(path, errno))?;
        Ok(Record { handle, path: path.to_owned() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all steps, in their order.
    pub(super) fn steps(&self) -> Result<Vec<(u32, Stage)>, Fault> {
        let mut steps = Vec::new();
        for entry in fs::Dir::read_from(&self.handle).map_err(|errno| self.fault("", errno))? {
            let entry = entry.map_err(|errno| self.fault("", errno))?;
            steps.extend(entry.file_name().to_str().ok().and_then(read_name));
        }
        steps.sort_unstable_by_key(|(step, _)| *step);
        Ok(steps)
    }

    /// Returns the journal of a step at a stage, where there is one.
    pub(super) fn journal(&self, step: u32, stage: Stage) -> Result<Option<Journal>, Fault> {
        let name = journal_name(step, stage);
        let Some(mut file) = self.file(&name)? else { return Ok(None) };
        let fault = |source| Fault::from_io(&self.path.join(&name), source);
        if file.metadata().map_err(fault)?.len() > JOURNAL_BYTES_MAX {
            return Err(Fault::Record { file: name, why: "it is longer than any journal".to_owned() });
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fault)?;
        Journal::read(&bytes, step, stage).map(Some).map_err(|why| Fault::Record { file: name, why })
    }

    /// Writes the journal of a step whole or not at all.
    pub(super) fn write(&self, journal: &Journal, stage: Stage) -> Result<(), Fault> {
        let (name, bytes) = (journal_name(journal.step, stage), journal.bytes());
        // It has to be read again. Directories that do not exist make it longer than the paths.
        at_most("bytes of paths and directories", bytes.len() as u64, JOURNAL_BYTES_MAX)?;
        let temporary = format!("{name}.new");
        let mut file = self.create(&temporary)?;
        let path = self.path.join(&name);
        file.write_all(&bytes).map_err(|source| Fault::from_io(&path, source))?;
        file.sync_all().map_err(|source| Fault::from_io(&path, source))?;
        let renamed = fs::renameat(&self.handle, &temporary, &self.handle, &name);
        renamed.and_then(|()| sync(&self.handle)).map_err(|errno| self.fault(&name, errno))
    }

    /// Moves a step on. After this the step is at the new stage, also after a power cut.
    pub(super) fn advance(&self, step: u32, from: Stage, to: Stage) -> Result<(), Fault> {
        let (from, to) = (journal_name(step, from), journal_name(step, to));
        let renamed = fs::renameat(&self.handle, &from, &self.handle, &to);
        renamed.and_then(|()| sync(&self.handle)).map_err(|errno| self.fault(&to, errno))
    }

    /// Forgets a step that was taken back.
    ///
    /// The journal goes first, and that is synced: as long as it is there, the step is taken back again, and that may
    /// need the contents. Contents without a journal are never read, and the next try of the step writes over them, so
    /// a fault that leaves them does no harm.
    pub(super) fn forget(&self, step: u32, stage: Stage) -> Result<(), Fault> {
        self.unlink(&journal_name(step, stage))?;
        let lasting = reached_for("forgotten", 0).and_then(|()| sync(&self.handle));
        lasting.map_err(|errno| self.fault("", errno))?;
        for (number, side) in [(1, Side::Before), (2, Side::After)] {
            let _ = reached_for("forgotten", number).map(|()| self.unlink(&content_name(step, side)));
        }
        Ok(())
    }

    /// Makes the file for the contents of a step, over one that a crash left.
    pub(super) fn create_contents(&self, step: u32, side: Side) -> Result<File, Fault> {
        self.create(&content_name(step, side))
    }

    /// Opens the contents of a step, where there are any.
    pub(super) fn contents(&self, step: u32, side: Side) -> Result<Option<File>, Fault> {
        self.file(&content_name(step, side))
    }

    pub(super) fn contents_path(&self, step: u32, side: Side) -> PathBuf {
        self.path.join(content_name(step, side))
    }

    fn file(&self, name: &str) -> Result<Option<File>, Fault> {
        match fs::openat(&self.handle, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Ok(opened) => Ok(Some(File::from(opened))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.fault(name, errno)),
        }
    }

    fn create(&self, name: &str) -> Result<File, Fault> {
        self.unlink(name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = fs::openat(&self.handle, name, flags, FILE_MODE).map_err(|errno| self.fault(name, errno))?;
        // The umask of the process may have taken away the owner's own rights.
        fs::fchmod(&opened, FILE_MODE).map_err(|errno| self.fault(name, errno))?;
        Ok(File::from(opened))
    }

    fn unlink(&self, name: &str) -> Result<(), Fault> {
        match fs::unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.fault(name, errno)),
        }
    }

    fn fault(&self, name: &str, errno: Errno) -> Fault {
        if name.is_empty() { Fault::of(&self.path, errno) } else { Fault::of(&self.path.join(name), errno) }
    }
}

/// Makes a directory and those above it, from the top. Each name is synced before the next one is made, so after a
/// crash at most the deepest one is not.
fn make_directories(path: &Path) -> Result<(), Fault> {
    let absolute = std::path::absolute(path).map_err(|source| Fault::from_io(path, source))?;
    let directories: Vec<&Path> = absolute.ancestors().collect();
    let missing = directories.iter().take_while(|directory| !directory.is_dir()).count();
    if let Some(there) = directories.get(missing) {
        sync_old_name(there, missing)?;
    }
    for (number, directory) in directories[..missing].iter().enumerate().rev() {
        let fault = |errno| Fault::of(directory, errno);
        match fs::mkdir(*directory, Mode::RWXU) {
            // Another process may make it at the same moment.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(fault(errno)),
        }
        reached_for("record_made", number).and_then(|()| sync_name(directory, number)).map_err(fault)?;
    }
    Ok(())
}

/// Syncs the name of a directory that may have been made before a crash.
fn sync_old_name(directory: &Path, number: usize) -> Result<(), Fault> {
    match sync_name(directory, number) {
        // Where this process may not read, it has made no directory either.
        Ok(()) | Err(Errno::ACCESS) => Ok(()),
        Err(errno) => Err(Fault::of(directory, errno)),
    }
}

/// A name is in the directory above, and lasts when that is synced. `number` counts from the record upwards, for tests.
fn sync_name(directory: &Path, number: usize) -> Result<(), Errno> {
    reached_for("record_synced", number)?;
    // Unlike the parent of a path, `..` is also there for a path of one part.
    let above = directory.join("..");
    fs::open(&above, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).and_then(sync)
}

fn journal_name(step: u32, stage: Stage) -> String {
    format!("step-{step}.{}.json", stage.name())
}

pub(super) fn content_name(step: u32, side: Side) -> String {
    format!("step-{step}.{}", side.name())
}

fn read_name(name: &str) -> Option<(u32, Stage)> {
    let (step, stage) = name.strip_prefix("step-")?.strip_suffix(".json")?.split_once('.')?;
    let stage = Stage::ALL.into_iter().find(|known| known.name() == stage)?;
    Some((step.parse().ok()?, stage))
}
