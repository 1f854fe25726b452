//! Recorded exchanges: the bytes that a caller sends and gets, and the bytes that an agent gets and sends, replayed
//! against the build.
//!
//! Each file of `testdata/exchanges` is one exchange. It begins with a description of what it shows. Then come parts
//! under headings:
//!
//! - `== configuration`: the configuration of the server
//! - `== caller sends`, `== caller must get`: in turn, each over a connection of its own. The caller gets the status
//!   line, the content type, and the body without the framing of HTTP
//! - `== agent must get`, `== agent answers`: in turn, over any connections that the server makes
//! - `== caller writes`, `== caller must find`: in turn, a request file in a directory that `bridge watch` drives, and
//!   its response file unchanged. A request with a phase is in the file of its phase
//! - `== agent must find`, `== agent writes`: the same for an agent of the bridge contract, whose directory is `files`
//! - `== agent sends`, `== agent must hear`: in turn with what the caller sends, each over a connection of its own. An
//!   agent that pulls asks for its work like this, and every agent of messages may say like this how its work is
//! - `== agent may get`, `== agent answers`: requests that begin like this may come at any time and any number of times
//!
//! `␍` and `␊` are the bytes that end lines on the wire; line ends of the file itself mean nothing. A line `~~` in what
//! is sent is a gap between two writes: the second waits until the other side has read the first. After a line
//! `~~ until the caller has: TEXT` or `~~ until the agent has: TEXT` it waits until that side has got the text.
//! `~~ close` ends the connection.
//!
//! Values that differ in every run have names: `<job>` is the job's id and `<trace>` the same without hyphens, `<span>`
//! the span of an attempt, `<message>` the id of a message of ours, `<time>` a point in time or a duration, `<port>`
//! the agent's port. Everything else is compared byte for byte. With UPDATE_EXCHANGES set, the parts that must be got
//! are rewritten instead.

mod files;
mod normal;
mod replay;
mod script;

use std::path::PathBuf;
use std::sync::Mutex;
use std::{fs, thread};

use self::script::Script;
use crate::support::program::root;

/// Number of exchanges that are replayed at a time.
const AT_A_TIME: usize = 6;

#[test]
fn recorded_exchanges_are_the_same_byte_for_byte() {
    let files = files();
    assert!(files.len() >= 70, "only {} were found", files.len());
    let queue = Mutex::new(files);
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(path) = next(&queue) {
                    if let Err(why) = check(&path) {
                        wrong.lock().expect("no thread panics with it").push(why);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no thread panics with it");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn next(queue: &Mutex<Vec<PathBuf>>) -> Option<PathBuf> {
    queue.lock().expect("no thread panics with it").pop()
}

fn files() -> Vec<PathBuf> {
    let folders = ["run", "task", "bridge", "message"].map(|contract| root().join("testdata/exchanges").join(contract));
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("it can be listed"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    files.sort();
    files
}

/// Replays one exchange, and reports what differs.
fn check(path: &PathBuf) -> Result<(), String> {
    let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    let script = Script::parse(&text).map_err(|why| format!("{shown}: {why}"))?;
    let fresh = replay::replay(&script).map_err(|why| format!("{shown}: {why}"))?.to_string();
    if std::env::var_os("UPDATE_EXCHANGES").is_some() {
        return fs::write(path, fresh).map_err(|error| format!("{shown}: {error}"));
    }
    match text.lines().zip(fresh.lines()).find(|(kept, fresh)| kept != fresh) {
        Some((kept, fresh)) => Err(format!("{shown} differs: UPDATE_EXCHANGES=1 rewrites it\n- {kept}\n+ {fresh}")),
        None if text != fresh => Err(format!("{shown} ends differently: UPDATE_EXCHANGES=1 rewrites it\n{fresh}")),
        None => Ok(()),
    }
}
