//! A requester of the bridge contract: it leaves a request in its directory, and takes the response.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::bridge_files::{leave, taken};
use crate::support::bridge_watcher::{REQUEST, RESPONSE};

pub(super) struct Files {
    directory: PathBuf,
    request: String,
    response: String,
}

impl Files {
    /// Leaves a request in the first free pair: a requester that asks again before it was answered needs another pair
    /// (BRIDGE-126).
    pub(super) fn leave(directory: &Path, document: &str) -> Files {
        let phases =
            (1..=9).map(|n| (format!(".agent-request-phase{n}.json"), format!(".agent-response-phase{n}.json")));
        let mut pairs = [(REQUEST.to_owned(), RESPONSE.to_owned())].into_iter().chain(phases);
        let is_free = |name: &str| !directory.join(name).exists();
        let pair = pairs.find(|(request, response)| is_free(request) && is_free(response));
        let (request, response) = pair.expect("it is not asked so often");
        leave(directory, &request, document);
        Files { directory: directory.to_owned(), request, response }
    }

    /// The response, once it is there.
    pub(super) fn response(&self) -> String {
        taken(&self.directory, &self.request, &self.response)
    }

    /// Checks that the requester still waits: it has no response, and its request is kept.
    pub(super) fn wait_still(&self) {
        let names: Vec<_> = fs::read_dir(&self.directory).expect("it can be listed").flatten().collect();
        let has = |name: &str| names.iter().any(|entry| entry.file_name() == *name);
        assert!(has(&self.request) && !has(&self.response), "it waits: {names:?}");
    }
}
