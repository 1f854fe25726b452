//! The exchanges of files: a requester, and an agent that answers in a directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

use crosspoint_contracts::Kind;
use serde_json::Value;

use super::replay::State;
use crate::support::bridge_files::{leave, taken};
use crate::support::bridge_watcher::{REQUEST, RESPONSE};
use crate::support::documents::faults;
use crate::support::server::within;

/// Leaves a request in its file, and returns the response.
pub(super) fn asked(directory: &Path, document: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(document).map_err(|error| error.to_string())?;
    let request: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let phase = request["phase"].as_u64().map(|phase| format!("-phase{phase}")).unwrap_or_default();
    let (request, response) = (format!(".agent-request{phase}.json"), format!(".agent-response{phase}.json"));
    leave(directory, &request, text);
    let response = taken(directory, &request, &response);
    faults(response.as_bytes(), Kind::BridgeResponse).map_or(Ok(response), Err)
}

/// Answers the requests in a directory, each once it is there, until the directory is gone.
pub(super) fn start(directory: PathBuf, answers: Vec<String>, state: Arc<State>) {
    fs::create_dir(&directory).expect("it can be made");
    let mut known = None;
    let look = move || {
        let found = fs::read_to_string(directory.join(REQUEST)).ok();
        if let Some(text) = found.clone().filter(|_| found != known) {
            match answers.get(state.found(text)) {
                Some(answer) => leave(&directory, RESPONSE, &state.filled(answer)),
                None => state.wrong("the agent is asked more often than is written down".to_owned()),
            }
        }
        known = found;
        (!directory.exists()).then_some(())
    };
    thread::spawn(move || within(Duration::MAX, look));
}
