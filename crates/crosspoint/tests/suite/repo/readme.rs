//! The shell blocks of the README, taken from the page and run as they stand: in bash, in a directory that has the
//! program in `target/release`, with a server that was started there.
//!
//! Two things differ from what a reader does. The server listens on a free port, by `CROSSPOINT_SERVER_LISTEN`, and
//! `localhost:7420` in the lines with curl gets that port. The program is already built, so the first terminal runs it
//! without cargo.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::pages::{blocks, page, section};
use crate::support::server::until;
use crate::support::terminal::Terminal;

/// A directory as a reader has it after building, with a server.
struct Checkout {
    directory: PathBuf,
    server: Terminal,
    listen: String,
}

impl Checkout {
    /// Makes the directory and starts the server, in the first terminal.
    fn serve(name: &str) -> Checkout {
        let directory = std::env::temp_dir().join(format!("crosspoint-readme-{name}-{}", std::process::id()));
        fs::create_dir_all(directory.join("target/release")).expect("it can be made");
        symlink(assert_cmd::cargo::cargo_bin!("crosspoint"), directory.join("target/release/crosspoint"))
            .expect("a link can be made");
        let any_port = "127.0.0.1:0";
        let server = Terminal::open(&directory, any_port, "server", "exec target/release/crosspoint serve");
        let mut checkout = Checkout { directory, server, listen: any_port.to_owned() };
        let known = checkout.known_server(|pid| pid == checkout.server.shell.id());
        let url = known["url"].as_str().expect("a text");
        // The next server listens at the same address, as it does without a configuration.
        checkout.listen = url.strip_prefix("http://").expect("an address").to_owned();
        checkout
    }

    /// What `server.json` says, once it is about a server whose process is this one.
    fn known_server(&self, is_it: impl Fn(u32) -> bool) -> Value {
        until("the server is ready", || {
            let text = fs::read(self.directory.join(".crosspoint/server.json")).ok()?;
            let known: Value = serde_json::from_slice(&text).ok()?;
            is_it(pid_of(&known)).then_some(known)
        })
    }

    /// Types lines into a new terminal.
    fn types(&self, name: &str, lines: &str) -> Terminal {
        Terminal::open(&self.directory, &self.listen, name, lines)
    }

    /// The lines with the address of this server.
    fn addressed(&self, lines: &str) -> String {
        let (_, port) = self.listen.rsplit_once(':').expect("it has a port");
        assert!(lines.contains("localhost:7420"), "{lines}");
        lines.replace("localhost:7420", &format!("localhost:{port}"))
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        self.server.end();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn pid_of(known: &Value) -> u32 {
    known["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process id")
}

/// The blocks of the two sections, in the order of the page.
struct Blocks {
    agent: String,
    submit: String,
    result: Value,
    curl: String,
    kill: String,
}

fn readme() -> Blocks {
    let page = page("README.md");
    let [("sh", agent), ("sh", submit), ("json", result), ("sh", curl)] =
        blocks(section(&page, "## Any program is an agent"))[..]
    else {
        panic!("not the blocks of three terminals: {page}");
    };
    let [("sh", kill)] = blocks(section(&page, "## A job survives `kill -9`"))[..] else {
        panic!("not one block: {page}");
    };
    let result = serde_json::from_str(result).expect("it is JSON");
    let [agent, submit, curl, kill] = [agent, submit, curl, kill].map(str::to_owned);
    Blocks { agent, submit, result, curl, kill }
}

/// The agent in the second terminal, once it says that it has joined.
fn joined(checkout: &Checkout, agent: &str) -> Terminal {
    let agent = checkout.types("agent", agent);
    until("the agent has joined", || agent.stderr().contains("has joined").then_some(()));
    agent
}

#[test]
fn any_program_becomes_an_agent_by_the_blocks_of_the_readme() {
    let (checkout, blocks) = (Checkout::serve("agent"), readme());
    let _agent = joined(&checkout, &blocks.agent);
    let printed: Value = serde_json::from_str(&checkout.types("submit", &blocks.submit).printed()).expect("JSON");
    assert_eq!((&printed, &printed), (&blocks.result, &json!({"MESSAGE": "HELLO"})));
    // The third terminal has found the program since its first block.
    let (path, _) = blocks.submit.split_once('\n').expect("two lines");
    let answers = checkout.types("curl", &format!("{path}\n{}", checkout.addressed(&blocks.curl))).printed();
    let answers: Vec<Value> =
        serde_json::Deserializer::from_str(&answers).into_iter().collect::<Result<_, _>>().expect("JSON");
    let [native, run, task, message] = &answers[..] else { panic!("not four answers: {answers:?}") };
    let shouted = json!({"Q": "BASIL"});
    assert_eq!((&native["state"], &native["outcome"]["outputs"]), (&json!("completed"), &shouted), "{native}");
    assert_eq!((&run["status"], &run["outputs"]), (&json!("ok"), &shouted), "{run}");
    assert_eq!((&task["status"], &task["result"]), (&json!("completed"), &shouted), "{task}");
    assert_eq!((&run["request_id"], &task["id"]), (&json!("r-1"), &json!("t-1")));
    let said = message["payload"]["output"].as_str().unwrap_or_else(|| panic!("{message}"));
    assert_eq!(serde_json::from_str::<Value>(said).expect("it is JSON"), shouted, "{message}");
}

#[test]
fn a_job_survives_kill_9_by_the_block_of_the_readme() {
    let (mut checkout, blocks) = (Checkout::serve("kill"), readme());
    let _agent = joined(&checkout, &blocks.agent);
    let first = checkout.server.shell.id();
    // The third terminal has found the program since its first block.
    let (path, _) = blocks.submit.split_once('\n').expect("two lines");
    let mut third = checkout.types("kill", &format!("{path}\n{}", blocks.kill));
    let printed: Value = serde_json::from_str(&third.printed()).expect("JSON");
    assert_eq!(printed, json!({"message": "still here", "seconds": 8}), "{}", third.stderr());
    assert_eq!(checkout.server.wait().signal(), Some(9), "the first server was killed");
    let second = pid_of(&checkout.known_server(|pid| pid != first));
    // The agent of the second terminal joins the new server by itself, so it does this job too.
    let again: Value = serde_json::from_str(&checkout.types("submit", &blocks.submit).printed()).expect("JSON");
    assert_eq!(again, blocks.result);
    kill_process(Pid::from_raw(second.cast_signed()).expect("a process id"), Signal::TERM).expect("it runs");
    // Its parent is gone, so nothing may have asked yet how it ended: then it is there still, as a zombie.
    let stat = || fs::read_to_string(format!("/proc/{second}/stat"));
    until("the new server has ended", || stat().map_or(true, |stat| stat.contains(") Z ")).then_some(()));
}
