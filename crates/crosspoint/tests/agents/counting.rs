//! An agent that counts what it does, for tests that kill it: a process of its own, made with `crosspoint-agent`.
//!
//! Each effect is a line in the file of its work: the job's own number and the process, on disk before the answer.
//!
//! - `counting serve NAME LEDGERS ANSWERS WORK...` is called in every contract. It prints its address when it is ready.
//! - `counting pull URL NAME LEDGERS ANSWERS WORK...` pulls messages from the server there.
//! - `counting files DIRECTORY LEDGER` answers requests of the bridge that come into a directory.
//!
//! Works whose names end in `_once` are done at most once.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crosspoint_agent::{Agent, Context, Failure};
use serde_json::{Value, json};

/// How long a job takes after its effect: a process that is killed often dies between effect and answer.
const AFTER: Duration = Duration::from_millis(10);

/// How often a directory is looked at.
const LOOKING: Duration = Duration::from_millis(2);

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match &arguments[..] {
        ["serve", name, ledgers, answers, works @ ..] => {
            runtime.block_on(serve(counting(name, ledgers, answers, works)))
        }
        ["pull", url, name, ledgers, answers, works @ ..] => {
            let url = url.parse().map_err(io::Error::other)?;
            let agent = counting(name, ledgers, answers, works);
            runtime.block_on(agent.connect(url).pull(std::future::pending()))
        }
        ["files", directory, ledger] => answer_files(Path::new(directory), Path::new(ledger)),
        _ => Err(io::Error::other("no such way to work")),
    }
}

fn counting(name: &str, ledgers: &str, answers: &str, works: &[&str]) -> Agent {
    let agent = Agent::new(name).answers(answers);
    works.iter().fold(agent, |agent, work| {
        let ledger = Path::new(ledgers).join(work);
        let handler = move |input: Value, _: Context| count(ledger.clone(), input);
        if work.ends_with("_once") { agent.at_most_once(work, handler) } else { agent.on(work, handler) }
    })
}

async fn count(ledger: PathBuf, input: Value) -> Result<Value, Failure> {
    enter(&ledger, &format!("{} {}\n", input["n"], std::process::id()))?;
    tokio::time::sleep(AFTER).await;
    Ok(json!({"n": input["n"]}))
}

/// The effect: one whole line, on disk.
fn enter(ledger: &Path, line: &str) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).open(ledger)?;
    file.write_all(line.as_bytes())?;
    file.sync_data()
}

async fn serve(agent: Agent) -> io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    agent.serve(listener, std::future::pending()).await
}

/// Answers each request once. The ledger is also the memory: a request that is in it was done, and is only answered.
fn answer_files(directory: &Path, ledger: &Path) -> io::Result<()> {
    let (asked, answered) = (directory.join(".agent-request.json"), directory.join(".agent-response.json"));
    loop {
        if let Ok(text) = fs::read(&asked)
            && let Ok(request) = serde_json::from_slice::<Value>(&text)
            && !answered.exists()
        {
            let id = request["request_id"].as_str().unwrap_or_default();
            if !fs::read_to_string(ledger).unwrap_or_default().lines().any(|line| line.ends_with(id)) {
                let prompt: Value = serde_json::from_str(request["prompt"].as_str().unwrap_or_default())?;
                enter(ledger, &format!("{} {} {id}\n", prompt["n"], std::process::id()))?;
            }
            let response = json!({
                "request_id": id, "version": "1.0", "status": "success", "response": "counted", "error_message": null,
                "error_type": null, "created_at": "2026-01-19T04:21:05Z", "duration_seconds": 0.01, "metadata": {},
            });
            let temporary = directory.join(".being-written");
            fs::write(&temporary, response.to_string())?;
            fs::rename(&temporary, &answered)?;
        }
        std::thread::sleep(LOOKING);
    }
}
