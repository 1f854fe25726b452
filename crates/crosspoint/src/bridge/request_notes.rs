//! What commands say about a waiting request: since when it waits, and which process works on it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crosspoint_bridge::Fault;
use crosspoint_bridge::request::{AGE_MAX, Request};
use crosspoint_contracts::bridge::clause::{BRIDGE_8_3, BRIDGE_126};
use crosspoint_contracts::json::Tape;

/// Most remarks about one request.
const REMARKS_MAX: usize = 20;

/// When it was asked: as the request says, else when the file was written.
pub(crate) fn asked_at(request: &Request) -> jiff::Timestamp {
    let created_at = request.created_at.as_deref().and_then(|text| text.parse().ok());
    created_at.unwrap_or_else(|| timestamp(request.written))
}

/// Returns what is odd about a request and no reason not to answer it, each with its clause.
pub(crate) fn remarks(request: &Request) -> Vec<(&'static str, String)> {
    let found = request.report.findings.iter().take(REMARKS_MAX);
    let mut remarks: Vec<_> = found.map(|finding| (finding.clause.id, finding.message.to_string())).collect();
    if let (Some(named), Some(phase)) = (request.pair.phase(), request.phase)
        && i64::from(named) != phase
    {
        remarks
            .push((BRIDGE_126.id, format!("it says that it is of phase {phase}; it is answered by its file's name")));
    }
    // A request from the future has no age.
    let age = Duration::try_from(jiff::Timestamp::now().duration_since(asked_at(request))).unwrap_or_default();
    if age > AGE_MAX {
        let what = format!("it is {} minutes old; the program that wrote it may wait no longer", age.as_secs() / 60);
        remarks.push((BRIDGE_8_3.id, what));
    }
    remarks
}

/// The time of a file.
pub(crate) fn timestamp(time: SystemTime) -> jiff::Timestamp {
    jiff::Timestamp::try_from(time).unwrap_or_default()
}

/// Returns a text member of a document.
pub(crate) fn said_in(document: &[u8], name: &str) -> Option<String> {
    let tape = Tape::scan(document).ok()?;
    Some(tape.root()?.get(name)?.text()?.decode().into_owned())
}

/// What is wrong with a directory, and which process is in the way, if the system tells.
pub(crate) fn described(fault: &Fault) -> String {
    let holder = if let Fault::InUse(path) = fault { holder(path) } else { None };
    format!("{fault}{}", holder.unwrap_or_default())
}

/// The process that holds the lock of a directory: for the end of a sentence.
fn holder(directory: &Path) -> Option<String> {
    let inode = format!(":{}", fs::metadata(directory).ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|line| {
        // 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = words.get(1) == Some(&"FLOCK") && words.get(5)?.ends_with(&inode);
        words.get(4).filter(|_| is_it)?.parse::<u32>().ok()
    })?;
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // The arguments of a program may hold secrets; the name of a crosspoint command does not.
    let words: Vec<_> = words.split(|byte| *byte == 0).skip(1).take(2).map(String::from_utf8_lossy).collect();
    let command = match words.as_slice() {
        [bridge, command] if bridge == "bridge" => format!(", crosspoint bridge {command}"),
        _ => String::new(),
    };
    Some(format!(": process {pid}{command}"))
}
