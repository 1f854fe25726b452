//! `crosspoint bridge watch` as a process, and directories for it to watch.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::server::{Server, until};

pub(crate) const REQUEST: &str = ".agent-request.json";
pub(crate) const RESPONSE: &str = ".agent-response.json";

/// A directory for a test, which is removed with it.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new() -> Home {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("crosspoint-watch-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("it can be made");
        Home(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes a directory in it.
    pub(crate) fn inbox(&self, name: &str) -> Inbox {
        let inbox = Inbox(self.0.join(name));
        fs::create_dir_all(&inbox.0).expect("it can be made");
        inbox
    }

    pub(crate) fn inboxes(&self, count: usize) -> Vec<Inbox> {
        (0..count).map(|number| self.inbox(&format!("inbox-{number}"))).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A directory that requests are left in.
pub(crate) struct Inbox(PathBuf);

impl Inbox {
    pub(crate) fn at(path: PathBuf) -> Inbox {
        Inbox(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Leaves a request in one step, so that it is never seen in part.
    pub(crate) fn leave(&self, file: &str, document: &Value) {
        let temporary = self.file("being-written");
        fs::write(&temporary, document.to_string()).expect("it can be written");
        fs::rename(temporary, self.file(file)).expect("it can be renamed");
    }

    pub(crate) fn ask(&self, id: &str, agent: &str, prompt: &str) {
        self.leave(REQUEST, &request(id, agent, prompt));
    }

    /// The response under this name, once it answers this request and the request is gone.
    pub(crate) fn answer_in(&self, file: &str, id: &str) -> Value {
        let response = until(&format!("the answer to {id} in {}", self.0.display()), || {
            let found: Value = serde_json::from_slice(&fs::read(self.file(file)).ok()?).ok()?;
            (found["request_id"] == id).then_some(found)
        });
        let request = self.file(&file.replace("response", "request"));
        until("the request is gone", || {
            let found: Option<Value> = fs::read(&request).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            found.is_none_or(|found| found["request_id"] != id).then_some(())
        });
        response
    }

    pub(crate) fn answer(&self, id: &str) -> Value {
        self.answer_in(RESPONSE, id)
    }

    /// The names in it, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it can be listed");
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Waits until it holds nothing else.
    pub(crate) fn holds_only(&self, names: &[&str]) {
        until(&format!("only {names:?}, not {:?}", self.names()), || (self.names() == names).then_some(()));
    }
}

pub(crate) fn request(id: &str, agent: &str, prompt: &str) -> Value {
    json!({"request_id": id, "version": "1.0", "agent_name": agent, "prompt": prompt})
}

pub(crate) fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// The prompt that an echoing agent returned in the response.
pub(crate) fn prompt_of(response: &Value) -> String {
    assert_eq!(response["status"], "success", "{response}");
    let inner: Value = serde_json::from_str(response["response"].as_str().expect("a text")).expect("it is JSON");
    inner["prompt"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
}

/// An agent that notes each of its runs in a file, and returns its input after `seconds` seconds.
pub(crate) fn noting(name: &str, file: &Path, seconds: &str) -> String {
    let script =
        format!("read -r line; echo \"$CROSSPOINT_REQUEST_ID\" >> {}; sleep {seconds}; echo \"$line\"", file.display());
    crate::support::programs::bash(name, &script, "concurrency = 4")
}

/// The noted runs, in order of the requests.
pub(crate) fn noted(file: &Path) -> Vec<String> {
    let mut runs: Vec<String> = fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect();
    runs.sort();
    runs
}

pub(crate) struct Watcher {
    child: Child,
    log: PathBuf,
}

/// The command that starts the watcher. Its log is kept in the home.
pub(crate) fn watch(home: &Home, name: &str, arguments: &[&str], inboxes: &[&Inbox]) -> Command {
    let log = File::options().create(true).append(true).open(home.path().join(name)).expect("a log can be made");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    command.current_dir(home.path()).args(["bridge", "watch"]).args(arguments);
    command.args(inboxes.iter().map(|inbox| inbox.path()));
    command.stdout(Stdio::piped()).stderr(log).env("NO_COLOR", "1").env_remove("HOME").env_remove("XDG_CONFIG_HOME");
    command
}

impl Watcher {
    /// Starts a watcher for a server.
    pub(crate) fn of(server: &Server, home: &Home, inboxes: &[&Inbox]) -> Watcher {
        Watcher::start(home, "log", &["--server", &server.url()], inboxes)
    }

    pub(crate) fn start(home: &Home, name: &str, arguments: &[&str], inboxes: &[&Inbox]) -> Watcher {
        Watcher::started(home, name, &mut watch(home, name, arguments, inboxes))
    }

    pub(crate) fn started(home: &Home, name: &str, command: &mut Command) -> Watcher {
        Watcher { child: command.spawn().expect("it starts"), log: home.path().join(name) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything that any watcher has written to this log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("it can be read")
    }

    /// Waits until the log contains these words.
    pub(crate) fn says(&self, words: &str) {
        let end = std::time::Instant::now() + crate::support::server::PATIENCE;
        while !self.log().contains(words) {
            assert!(std::time::Instant::now() < end, "it never said {words:?}: {}", self.log());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    pub(crate) fn count(&self, words: &str) -> usize {
        self.log().matches(words).count()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        until("it ends", || self.child.try_wait().expect("it can be asked"))
    }

    /// Asks it to stop. It must print nothing on stdout.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        let sent = Command::new("kill").args(["-s", "TERM", &self.pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal was sent");
        let status = self.wait();
        let mut said = String::new();
        let mut stdout = self.child.stdout.take().expect("it is piped");
        std::io::Read::read_to_string(&mut stdout, &mut said).expect("it can be read");
        assert_eq!(said, "");
        status
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.kill();
    }
}
