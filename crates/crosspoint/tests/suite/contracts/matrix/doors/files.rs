//! A requester of the bridge contract: it leaves a request in its directory, and takes the response.

use std::path::Path;

use crate::support::bridge_directory::{Directory, REQUEST, RESPONSE};

pub(super) struct Files {
    directory: Directory,
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
        let directory = Directory::at(directory);
        let is_free = |name: &str| !directory.file(name).exists();
        let pair = pairs.find(|(request, response)| is_free(request) && is_free(response));
        let (request, response) = pair.expect("it is not asked so often");
        directory.leave(&request, document);
        Files { directory, request, response }
    }

    /// The response, once it is there.
    pub(super) fn response(&self) -> String {
        self.directory.take_response(&self.request, &self.response)
    }

    /// Checks that the requester still waits: it has no response, and its request is kept.
    pub(super) fn wait_still(&self) {
        let names = self.directory.names();
        let has = |name: &String| names.contains(name);
        assert!(has(&self.request) && !has(&self.response), "it waits: {names:?}");
    }
}
