//! Directories that are removed when a test is over, and dice that fall the same way every time.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crosspoint_engine::store::{FILE_NAME, Options};

/// A directory of the test's own.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("crosspoint-engine-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory can be made");
        Scratch(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.join(FILE_NAME)
    }

    /// Path of the database's write-ahead log.
    pub(crate) fn log(&self) -> PathBuf {
        self.0.join(format!("{FILE_NAME}-wal"))
    }

    pub(crate) fn options(&self) -> Options {
        Options { path: self.database(), bytes_max: None }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Dice: the same seed gives the same throws.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % (end as u64)).expect("it is below a usize")
    }
}
