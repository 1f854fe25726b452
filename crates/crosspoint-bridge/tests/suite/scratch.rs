//! Directories that are removed when a test is over, and a driver that answers in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use crosspoint_bridge::request::{self, Look, Request};
use crosspoint_bridge::{Directory, Pair, response};

/// A directory of the test's own.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("crosspoint-bridge-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory can be made");
        Scratch(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn open(&self) -> Directory {
        Directory::open(&self.0).expect("it is there")
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("it can be written");
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names of its files.
    pub(crate) fn list(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it can be listed");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("it can be read").file_name().into_string().expect("UTF-8")).collect();
        names.sort_unstable();
        names
    }

    /// Makes all files older than the longest time that writing one takes.
    pub(crate) fn age(&self) {
        for name in self.list() {
            let path = self.0.join(name);
            if path.symlink_metadata().expect("it is there").is_file() {
                let file = fs::File::options().write(true).open(path).expect("it can be opened");
                file.set_modified(SystemTime::now() - Duration::from_secs(3600)).expect("it has a time");
            }
        }
    }

    /// The request that waits for an answer.
    pub(crate) fn request(&self, pair: Pair) -> Option<Box<Request>> {
        match request::look(&self.open(), pair).expect("it can be looked at") {
            Look::Request(request) => Some(request),
            Look::Nothing | Look::TooLarge { .. } | Look::Malformed(_) => None,
        }
    }

    /// Answers all requests, and returns their ids.
    pub(crate) fn answer(&self, text: &str) -> Vec<String> {
        let mut ids = Vec::new();
        for request in Pair::all().filter_map(|pair| self.request(pair)) {
            let document = response::success(&request.request_id, text, "2026-01-01T00:00:00Z", 0.5);
            response::write(&self.open(), request.pair, &document).expect("it can be written");
            request::remove(&self.open(), request.pair, &request.request_id).expect("it can be removed");
            ids.push(request.request_id);
        }
        ids
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
