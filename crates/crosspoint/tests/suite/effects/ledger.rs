//! The files in which agents count what they do: one line for each effect, with the job's own number and the process
//! that did it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The ledgers of all kinds, in a directory that is removed with this.
pub(super) struct Ledgers(PathBuf);

impl Ledgers {
    pub(super) fn new() -> Ledgers {
        let directory = std::env::temp_dir().join(format!("crosspoint-effects-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory can be made");
        Ledgers(directory)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.0
    }

    pub(super) fn path(&self, kind: &str) -> PathBuf {
        self.0.join(kind)
    }

    /// The processes that had the effect of each job, by the job's number.
    pub(super) fn effects(&self, kind: &str) -> BTreeMap<u32, Vec<String>> {
        let mut effects = BTreeMap::<u32, Vec<String>>::new();
        for line in fs::read_to_string(self.path(kind)).unwrap_or_default().lines() {
            let mut words = line.split(' ').map(str::to_owned);
            let number = words.next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{kind}: {line}"));
            effects.entry(number).or_default().push(words.next().unwrap_or_default());
        }
        effects
    }

    /// How many effects there were so far.
    pub(super) fn count(&self, kind: &str) -> usize {
        fs::read(self.path(kind)).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count()
    }
}

impl Drop for Ledgers {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Enters the effect of an agent that is a thread of the test.
pub(super) fn enter(ledger: &Path, number: &serde_json::Value) {
    let mut file = File::options().create(true).append(true).open(ledger).expect("it can be opened");
    file.write_all(format!("{number} test\n").as_bytes()).expect("it can be written");
}
