//! Directories that are removed when a test is over.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crosspoint_workflow::repository::{Applied, Change, FileChange, NotApplied, Operation, Repository, Rules};

/// A directory of the test's own, with a repository and the record of a run in it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch::within(&std::env::temp_dir())
    }

    /// A directory whose files are in memory, where the system has such a place. There syncs take no time, and a
    /// process that is killed leaves the same files.
    pub(crate) fn in_memory() -> Scratch {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Scratch::within(memory) } else { Scratch::new() }
    }

    fn within(directory: &Path) -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("crosspoint-workflow-{}-{count}", std::process::id()));
        fs::create_dir_all(path.join("root")).expect("a directory can be made");
        Scratch(path.canonicalize().expect("it is there"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.0.join("record")
    }

    pub(crate) fn open(&self) -> Repository {
        Repository::open(&self.root()).expect("it is there")
    }

    /// Puts a file into the repository.
    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn mode(&self, path: &str) -> u32 {
        fs::symlink_metadata(self.root().join(path)).expect("it is there").permissions().mode() & 0o7777
    }

    pub(crate) fn inode(&self, path: &str) -> u64 {
        fs::symlink_metadata(self.root().join(path)).expect("it is there").ino()
    }

    pub(crate) fn try_apply(&self, step: u32, changes: &[Change]) -> Result<Applied, NotApplied> {
        self.open().apply(&self.record(), step, changes, &Rules::default())
    }

    pub(crate) fn apply(&self, step: u32, changes: &[Change]) -> Applied {
        self.try_apply(step, changes).unwrap_or_else(|error| panic!("step {step}: {error}"))
    }

    /// Everything in the repository.
    pub(crate) fn tree(&self) -> BTreeMap<String, String> {
        tree(&self.root())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Everything in a directory: files with their contents, links with their targets, directories with a slash.
pub(crate) fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("it can be listed") {
            let path = entry.expect("it can be read").path();
            let name = path.strip_prefix(root).expect("it is inside").to_string_lossy().into_owned();
            let kind = path.symlink_metadata().expect("it is there").file_type();
            if kind.is_dir() {
                found.insert(format!("{name}/"), String::new());
                waiting.push(path);
            } else if kind.is_symlink() {
                found.insert(name, format!("-> {}", fs::read_link(&path).expect("it is a link").display()));
            } else if kind.is_file() {
                let bytes = fs::read(&path).expect("it can be read");
                found.insert(name, String::from_utf8_lossy(&bytes).into_owned());
            } else {
                found.insert(name, "special".to_owned());
            }
        }
    }
    found
}

pub(crate) fn create(path: &str, content: &str) -> Change {
    Change { path: path.to_owned(), operation: Operation::Create, content: content.into() }
}

pub(crate) fn update(path: &str, content: &str) -> Change {
    Change { path: path.to_owned(), operation: Operation::Update, content: content.into() }
}

/// What was done to each file.
pub(crate) fn written(applied: &Applied) -> Vec<(&str, FileChange)> {
    match applied {
        Applied::Written(files) => files.iter().map(|file| (file.path.as_str(), file.change)).collect(),
        Applied::Conflict(clashes) => panic!("a conflict: {clashes:?}"),
    }
}
