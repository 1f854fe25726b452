//! A directory with files of the bridge: how requests and responses are written, awaited and read in tests.
//!
//! The commands that work in it add their own functions: `bridge_run`, `bridge_watcher`, `bridge_agent` and
//! `asking_programs` beside this file.

use std::fmt::Display;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::bridge_caller;
use crate::support::server::until;

pub(crate) const REQUEST: &str = ".agent-request.json";
pub(crate) const RESPONSE: &str = ".agent-response.json";

pub(crate) struct Directory {
    path: PathBuf,
    /// Whether it is removed with this value.
    is_temporary: bool,
}

impl Directory {
    /// A new directory, which is removed with this value.
    pub(crate) fn temporary() -> Directory {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("crosspoint-bridge-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("it can be made");
        Directory { path, is_temporary: true }
    }

    /// A directory that another value removes. It need not be there yet.
    pub(crate) fn at(path: impl Into<PathBuf>) -> Directory {
        Directory { path: path.into(), is_temporary: false }
    }

    /// Makes a directory in it.
    pub(crate) fn make(&self, name: &str) -> Directory {
        let inner = Directory::at(self.file(name));
        fs::create_dir_all(inner.path()).expect("it can be made");
        inner
    }

    pub(crate) fn make_many(&self, count: usize) -> Vec<Directory> {
        (0..count).map(|number| self.make(&format!("directory-{number}"))).collect()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether there is anything under this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.file(name).symlink_metadata().is_ok()
    }

    /// The names in it, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).expect("it can be listed");
        let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("UTF-8");
        let mut names: Vec<String> = entries.map(|entry| name(entry.expect("it can be read"))).collect();
        names.sort_unstable();
        names
    }

    /// The names of the files of the bridge.
    pub(crate) fn bridge_files(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| name.starts_with(".agent-")).collect()
    }

    /// The names in it, without leftovers of processes that were killed while writing.
    pub(crate) fn whole_files(&self) -> Vec<String> {
        let half_written = |name: &String| name.contains(".tmp-") && !name.ends_with(".tmp-removed");
        self.names().into_iter().filter(|name| !half_written(name)).collect()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).expect("it is JSON")
    }

    /// The document under this name; `None` if there is none, or not a whole one.
    pub(crate) fn found(&self, name: &str) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.file(name)).ok()?).ok()
    }

    /// The lines of a file, none if it is not there.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.file(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Writes a file in place, as people and scripts do.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).expect("it can be written");
    }

    /// Writes an executable file.
    pub(crate) fn script(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.file(name), fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    /// Leaves a file whole or not at all, as BRIDGE-7 says.
    pub(crate) fn leave(&self, name: &str, document: &(impl Display + ?Sized)) {
        let draft = self.file(&format!("draft{name}"));
        fs::write(&draft, document.to_string()).expect("it can be written");
        fs::rename(draft, self.file(name)).expect("it can be renamed");
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.file(name)).expect("it is there");
    }

    /// Waits until there is anything under this name.
    pub(crate) fn until_there(&self, name: &str) {
        until(name, || self.has(name).then_some(()));
    }

    /// Waits until it holds nothing else.
    pub(crate) fn holds_only(&self, names: &[&str]) {
        until(&format!("only {names:?}, not {:?}", self.names()), || (self.names() == names).then_some(()));
    }

    /// Waits until it is empty, but for leftovers of killed processes.
    pub(crate) fn is_cleared(&self) {
        until("the files are gone", || self.whole_files().is_empty().then_some(()));
    }

    pub(crate) fn leave_request(&self, id: &str, agent: &str, prompt: &str) {
        self.leave(REQUEST, &bridge_caller::request(id, agent, prompt));
    }

    /// Waits for the request with this id.
    pub(crate) fn request_of(&self, id: &str) -> Value {
        until("the request", || self.found(REQUEST).filter(|request| request["request_id"] == id))
    }

    /// Inode of the request, which shows that it was not written anew.
    pub(crate) fn request_inode(&self) -> u64 {
        fs::metadata(self.file(REQUEST)).expect("it is there").ino()
    }

    /// Writes the response as people do: in place.
    pub(crate) fn write_response(&self, response: &Value) {
        self.write(RESPONSE, &serde_json::to_string_pretty(response).expect("it is JSON"));
    }

    /// Answers the request as a driver does: writes the response and removes the request. The id of the examples is
    /// replaced by that of the request, which is returned.
    pub(crate) fn respond(&self, response: &str) -> String {
        let id = self.json(REQUEST)["request_id"].as_str().expect("it has one").to_owned();
        self.write(RESPONSE, &response.replace(PRINTED_ID, &id));
        self.remove(REQUEST);
        id
    }

    /// The same, with a text.
    pub(crate) fn respond_text(&self, text: &str) -> String {
        self.respond(&success(PRINTED_ID, text).to_string())
    }

    /// The response to this request, once the request is gone.
    pub(crate) fn response_to(&self, id: &str) -> Value {
        self.response_in(RESPONSE, id)
    }

    /// The same, with a response of this name.
    pub(crate) fn response_in(&self, name: &str, id: &str) -> Value {
        let has_id = |found: &Value| found["request_id"] == id;
        let what = format!("the response to {id} in {}", self.path.display());
        let response = until(&what, || self.found(name).filter(has_id));
        let request = name.replace("response", "request");
        until("the request is gone", || (!self.found(&request).is_some_and(|found| has_id(&found))).then_some(()));
        response
    }

    /// Waits for a response, and takes it (BRIDGE-123). The request must be gone then too (BRIDGE-122).
    pub(crate) fn take_response(&self, request: &str, response: &str) -> String {
        let text = until("there is a response", || fs::read_to_string(self.file(response)).ok());
        until("the request is removed", || (!self.file(request).exists()).then_some(()));
        self.remove(response);
        text
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The id in the examples of the contract.
pub(crate) const PRINTED_ID: &str = "32ecfadc-2b66-4daa-a7c0-a03c449fcea5";

/// A correct response.
pub(crate) fn success(id: &str, text: &str) -> Value {
    json!({
        "request_id": id, "version": "1.0", "status": "success", "response": text, "error_message": null,
        "error_type": null, "created_at": "2026-01-05T10:00:00+00:00", "duration_seconds": 1.0, "metadata": {},
    })
}

/// The id of a request with this number.
pub(crate) fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}
