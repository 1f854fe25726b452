//! The exchanges of files: a requester, and an agent that answers in a directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

use crosspoint_contracts::Kind;
use serde_json::Value;

use super::replay::Stage;
use crate::support::bridge_directory::{Directory, REQUEST, RESPONSE};
use crate::support::documents::faults;

/// Pause between two looks into the directory. Nothing depends on it.
const PAUSE: Duration = Duration::from_millis(5);

/// Leaves a request in its file, and returns the response.
pub(super) fn asked(room: &Path, document: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(document).map_err(|error| error.to_string())?;
    let request: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let phase = request["phase"].as_u64().map(|phase| format!("-phase{phase}")).unwrap_or_default();
    let (request, response) = (format!(".agent-request{phase}.json"), format!(".agent-response{phase}.json"));
    let room = Directory::at(room);
    room.leave(&request, text);
    let response = room.take_response(&request, &response);
    faults(response.as_bytes(), Kind::BridgeResponse).map_or(Ok(response), Err)
}

/// Answers the requests in a directory, each once it is there, until the answers run out.
pub(super) fn start(desk: PathBuf, answers: Vec<String>, stage: Arc<Stage>) {
    fs::create_dir(&desk).expect("it can be made");
    thread::spawn(move || {
        let mut known = None;
        while desk.exists() {
            let found = fs::read_to_string(desk.join(REQUEST)).ok();
            if let Some(text) = found.clone().filter(|_| found != known) {
                match answers.get(stage.found(text)) {
                    Some(answer) => Directory::at(&desk).leave(RESPONSE, &stage.filled(answer)),
                    None => stage.wrong("the agent is asked more often than is written down".to_owned()),
                }
            }
            known = found;
            thread::sleep(PAUSE);
        }
    });
}
