//! A reader who does what a page of the documentation says, from top to bottom, in an empty directory.
//!
//! The text before a block says what it is. A name of a file at its end: the reader saves the block under that name. A
//! link to a file of the examples: the file is there, and has the block in it. Without either, a block of `sh` is typed
//! into a terminal: servers and agents go on, other commands are waited for. Blocks of `json` and `text` are what the
//! last command printed.
//!
//! One thing differs from what the page says: the ports 7420 and 8000 are others, which are free.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;

use serde_json::Value;

use crate::support::pages::{announced, page, section};
use crate::support::program::root;
use crate::support::scripted_agent::unused_address;
use crate::support::server::{exchange, until};
use crate::support::terminal::Terminal;

/// Members of answers that are others each time. Their types are compared.
const CHANGING: [&str; 9] = [
    "message_id",
    "/message_id",
    "timestamp",
    "/timestamp",
    "reported_at",
    "startedAt",
    "completedAt",
    "duration_ms",
    "duration_seconds",
];

/// Commands that go on until the reader stops them: how they begin.
const LASTING: [&str; 3] = ["crosspoint serve", "crosspoint agent ", "python3 "];

pub(crate) struct Reader {
    directory: PathBuf,
    pub(crate) server: SocketAddr,
    pub(crate) agent: SocketAddr,
    lasting: Vec<Terminal>,
    /// How many answers were compared with the page.
    pub(crate) answers: usize,
}

impl Reader {
    pub(crate) fn new(name: &str) -> Reader {
        let directory = std::env::temp_dir().join(format!("crosspoint-reader-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("it can be made");
        let (server, agent) = (unused_address(), unused_address());
        Reader { directory, server, agent, lasting: Vec::new(), answers: 0 }
    }

    /// Does what a section says.
    pub(crate) fn follow(&mut self, path: &str, heading: &str) {
        let page = page(path);
        let mut printed = String::new();
        for (before, language, text) in announced(section(&page, heading)) {
            if let Some(name) = saved_as(before) {
                fs::write(self.directory.join(name), self.settled(text)).expect("it can be written");
            } else if let Some(example) = linked(before) {
                self.has_example(example, text);
            } else {
                match language {
                    "sh" => printed = self.types(text),
                    "json" => self.is_answer(&printed, text),
                    "text" => {
                        assert_eq!(printed, text, "{path}");
                        self.answers += 1;
                    }
                    // Tests of rustdoc have these.
                    rust if rust.starts_with("rust") => {}
                    other => panic!("{path}: what is to be done with {other}? {text}"),
                }
            }
        }
    }

    /// The text with the ports that are free.
    fn settled(&self, text: &str) -> String {
        let text = text.replace("7420", &self.server.port().to_string());
        text.replace("8000", &self.agent.port().to_string())
    }

    /// Copies the directory of an example, which is that of the page.
    fn has_example(&self, path: &str, text: &str) {
        let file = root().join(path);
        let whole = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(whole.contains(text), "{path} is not what its page shows");
        let example = PathBuf::from(path).parent().expect("it is in a directory").to_owned();
        fs::create_dir_all(self.directory.join(&example)).expect("it can be made");
        for entry in fs::read_dir(root().join(&example)).expect("it can be listed") {
            let name = entry.expect("it can be read").file_name();
            let from = root().join(&example).join(&name);
            fs::copy(from, self.directory.join(&example).join(name)).expect("it can be copied");
        }
    }

    /// Types lines into a terminal, and returns what they print.
    fn types(&mut self, lines: &str) -> String {
        let bin = assert_cmd::cargo::cargo_bin!("crosspoint").parent().expect("it is in a directory").to_owned();
        let typed = format!("export PATH='{}':$PATH\n{}", bin.display(), self.settled(lines));
        let is_lasting = LASTING.iter().any(|command| lines.starts_with(command));
        let name = format!("terminal-{}", self.lasting.len());
        let mut terminal = Terminal::open(&self.directory, &self.server.to_string(), &name, &typed);
        if !is_lasting {
            return terminal.printed();
        }
        if lines.starts_with("crosspoint serve") {
            let ready =
                || exchange(self.server, "GET", "/health/ready", &[], b"").filter(|answer| answer.status == 200);
            until("the server is ready", ready);
        } else if let Some(address) = self.listening(lines) {
            until("the agent listens", || TcpStream::connect(address).ok());
        }
        self.lasting.push(terminal);
        String::new()
    }

    /// The address of the agent that a command starts, if it has one.
    fn listening(&self, command: &str) -> Option<SocketAddr> {
        if command.contains("--listen") {
            return Some(self.agent);
        }
        let program = command.trim().rsplit(' ').next().expect("a word");
        let text = fs::read_to_string(self.directory.join(program)).unwrap_or_default();
        let port = self.agent.port().to_string();
        text.contains(&port).then_some(self.agent)
    }

    /// Compares what was printed with what the page shows.
    fn is_answer(&mut self, printed: &str, shown: &str) {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let (printed, shown) = (read(printed), read(shown));
        assert!(alike(&printed, &shown), "the page shows {shown:#}\nand it is {printed:#}");
        self.answers += 1;
    }

    /// The jobs of the server: all have ended well, and no agent has broken a rule.
    pub(crate) fn jobs_went_well(&self) {
        let get = |path: &str| exchange(self.server, "GET", path, &[], b"").expect("it answers").json();
        let jobs = get("/api/v1/jobs")["jobs"].as_array().expect("a list").clone();
        assert!(!jobs.is_empty(), "there are none");
        for job in jobs {
            let job = get(&format!("/api/v1/jobs/{}", job["id"].as_str().expect("an id")));
            assert_eq!((&job["state"], &job["violations"]), (&Value::from("completed"), &Value::Null), "{job}");
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.lasting.clear();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The file under which a block is saved: the text before it ends with its name.
fn saved_as(before: &str) -> Option<&str> {
    let (_, name) = before.strip_suffix("`:")?.rsplit_once('`')?;
    (name.contains('.') && !name.contains([' ', '/'])).then_some(name)
}

/// The file of the examples that a block is from: the text before it ends with a link.
fn linked(before: &str) -> Option<&str> {
    let (_, target) = before.strip_suffix("):")?.rsplit_once("](")?;
    Some(target.trim_start_matches("../")).filter(|target| target.starts_with("examples/"))
}

/// Whether an answer is the one that is shown.
fn alike(printed: &Value, shown: &Value) -> bool {
    match (printed, shown) {
        (Value::Object(printed), Value::Object(shown)) => {
            let same_type = |one: &Value, other: &Value| std::mem::discriminant(one) == std::mem::discriminant(other);
            let is_alike = |(name, shown): (&String, &Value)| {
                printed.get(name).is_some_and(|printed| match CHANGING.contains(&name.as_str()) {
                    true => same_type(printed, shown),
                    false => alike(printed, shown),
                })
            };
            printed.len() == shown.len() && shown.iter().all(is_alike)
        }
        (Value::Array(printed), Value::Array(shown)) => {
            printed.len() == shown.len() && printed.iter().zip(shown).all(|(printed, shown)| alike(printed, shown))
        }
        (printed, shown) => printed == shown,
    }
}
