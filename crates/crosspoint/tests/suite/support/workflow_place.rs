//! A directory with a repository, workflow files and scripted agents, for tests of runs of workflows.
//!
//! A scripted agent keeps every envelope that it is given, and answers with what the test has put down for it. It needs
//! nothing but a shell, and works the same in a server's configuration and in a workflow file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::bridge_run::Ran;
use crate::support::server::{Answer, Server};

/// What a scripted agent does: it keeps the envelope under the next number, and answers with the reply of this number,
/// or else with the reply for any number.
const SCRIPT: &str = r#"n=1; while [ -e "$PLACE/$NAME.seen.$n" ]; do n=$((n + 1)); done
cat > "$PLACE/$NAME.new" && mv "$PLACE/$NAME.new" "$PLACE/$NAME.seen.$n"
if [ -e "$PLACE/$NAME.reply.$n" ]; then cat "$PLACE/$NAME.reply.$n"; else cat "$PLACE/$NAME.reply"; fi"#;

/// A directory, which is removed with this value.
pub(crate) struct Place(PathBuf);

impl Place {
    /// A directory with an empty repository.
    pub(crate) fn new() -> Place {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("crosspoint-runs-{}-{number}", std::process::id()));
        for name in ["repo", "agents"] {
            fs::create_dir_all(path.join(name)).expect("it can be made");
        }
        Place(path.canonicalize().expect("it is there"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The repository.
    pub(crate) fn repo(&self) -> PathBuf {
        self.0.join("repo")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file of the repository.
    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.repo().join(path);
        fs::create_dir_all(path.parent().expect("it is below")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }

    /// Reads a file of the repository, if it is there.
    pub(crate) fn got(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.repo().join(path)).ok()
    }

    /// Every file and link of the repository, in order.
    pub(crate) fn tree(&self) -> Vec<String> {
        tree(&self.repo())
    }

    /// Sets what an agent answers: each reply once, the last one from then on.
    pub(crate) fn replies(&self, agent: &str, replies: &[Value]) {
        let (last, before) = replies.split_last().expect("at least one");
        for (number, reply) in before.iter().enumerate() {
            self.reply_bytes(&format!("{agent}.reply.{}", number + 1), reply.to_string().as_bytes());
        }
        self.reply_bytes(&format!("{agent}.reply"), last.to_string().as_bytes());
    }

    /// Sets what an agent prints from now on.
    pub(crate) fn prints(&self, agent: &str, printed: &[u8]) {
        self.reply_bytes(&format!("{agent}.reply"), printed);
    }

    fn reply_bytes(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join("agents").join(name), bytes).expect("it can be written");
    }

    /// The envelopes that an agent was given, in order.
    pub(crate) fn seen(&self, agent: &str) -> Vec<Value> {
        let path = |number: usize| self.0.join("agents").join(format!("{agent}.seen.{number}"));
        let texts = (1..).map_while(|number| fs::read_to_string(path(number)).ok());
        texts.map(|text| serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))).collect()
    }

    /// An agent of a workflow file that is scripted, with further keys.
    pub(crate) fn own(&self, name: &str, keys: &str) -> String {
        self.own_script(name, SCRIPT, keys)
    }

    /// An agent of a workflow file that runs this script.
    pub(crate) fn own_script(&self, name: &str, script: &str, keys: &str) -> String {
        let argv = json!(["sh", "-c", script]);
        format!("[[agent]]\nname = \"{name}\"\nexec = {argv}\n{}\n{keys}\n", self.env(name))
    }

    /// A scripted agent of a server's configuration that takes the action `do`, with further keys.
    pub(crate) fn configured(&self, name: &str, keys: &str) -> String {
        self.configured_script(name, SCRIPT, keys)
    }

    /// An agent of a server's configuration that runs this script for the action `do`.
    pub(crate) fn configured_script(&self, name: &str, script: &str, keys: &str) -> String {
        let argv = json!(["sh", "-c", script]);
        let env = self.env(name);
        format!(
            "[[agent]]\nname = \"{name}\"\ncontract = \"workflow\"\nwork = [\"do\"]\nexec = {argv}\n{env}\n{keys}\n"
        )
    }

    fn env(&self, name: &str) -> String {
        format!("env = {{ PLACE = {}, NAME = \"{name}\" }}", json!(self.0.join("agents")))
    }

    /// A server with these agents, which lets workflows work here.
    pub(crate) fn server(&self, agents: &[String]) -> Server {
        Server::configured(&self.configuration(agents))
    }

    pub(crate) fn configuration(&self, agents: &[String]) -> String {
        format!("[workflow]\nroots = [{}]\n{}", json!(self.0), agents.concat())
    }

    /// Runs a command of the program in this directory, without a terminal.
    pub(crate) fn crosspoint(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().expect("it starts").into()
    }

    /// The same, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
        command.args(arguments).current_dir(&self.0).env("NO_COLOR", "1").stdin(std::process::Stdio::null());
        command.env_remove("CROSSPOINT_SERVER").env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        command.env_remove("XDG_RUNTIME_DIR");
        command
    }

    /// Writes a workflow file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("it can be written");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Every file and link below a directory, in order.
pub(crate) fn tree(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it can be listed") {
            let entry = entry.expect("it can be read");
            if entry.file_type().expect("it has one").is_dir() {
                folders.push(entry.path());
            } else {
                let path = entry.path();
                found.push(path.strip_prefix(root).expect("it is below").to_string_lossy().into_owned());
            }
        }
    }
    found.sort_unstable();
    found
}

pub(crate) fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// A stage with the action `do`, and further keys.
pub(crate) fn stage(id: &str, agent: &str, keys: &str) -> String {
    format!("[[stage]]\nid = \"{id}\"\nagent = \"{agent}\"\naction = \"do\"\n{keys}\n")
}

/// A workflow of these stages.
pub(crate) fn workflow(stages: &[String]) -> String {
    format!("name = \"specify\"\n{}", stages.concat())
}

/// An output that succeeded.
pub(crate) fn said(summary: &str, recommendation: &str) -> Value {
    json!({"success": true, "summary": summary, "artifacts": [], "recommendation": recommendation})
}

/// The same with notes.
pub(crate) fn noted(summary: &str, recommendation: &str, notes: &[&str]) -> Value {
    let mut output = said(summary, recommendation);
    output["notes"] = json!(notes);
    output
}

/// An output that proceeds and has these files: path, operation, content.
pub(crate) fn wrote(files: &[(&str, &str, &str)]) -> Value {
    let artifact = |(path, operation, content): &(&str, &str, &str)| json!({"path": path, "operation": operation, "content": content});
    let mut output = said("Wrote it.", "proceed");
    output["artifacts"] = files.iter().map(artifact).collect();
    output
}

impl Server {
    /// Asks for a run.
    pub(crate) fn order(&self, order: &Value) -> Answer {
        self.post("/api/v1/workflows", &order.to_string())
    }

    /// Begins a run, and returns its id.
    pub(crate) fn run_workflow(&self, definition: &str, root: &Path) -> String {
        self.ordered(&json!({"definition": definition, "root": root}))
    }

    /// Begins a run that is asked for like this, and returns its id.
    pub(crate) fn ordered(&self, order: &Value) -> String {
        let answer = self.order(order);
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["id"].as_str().expect("an id").to_owned()
    }

    /// The jobs of a run's stages, in their order.
    pub(crate) fn stages_of(&self, run: &str) -> Vec<Value> {
        let jobs = self.get("/api/v1/jobs?limit=500").json()["jobs"].as_array().cloned().unwrap_or_default();
        let ids = jobs.iter().rev().filter(|job| job["origin"]["child_of"] == run);
        ids.map(|job| self.job(job["id"].as_str().expect("an id"))).collect()
    }

    /// What happened in a run that has ended, step by step.
    pub(crate) fn steps_of(&self, run: &str) -> Vec<Value> {
        let stream = self.get(&format!("/api/v1/jobs/{run}/events")).text();
        let data = stream.split("\n\n").filter(|event| event.contains("event: step") || event.contains("event:step"));
        let data = data.filter_map(|event| event.lines().find_map(|line| line.strip_prefix("data:")));
        data.map(|data| serde_json::from_str(data).expect("it is JSON")).collect()
    }

    /// Answers the question of a run that waits.
    pub(crate) fn answer_run(&self, run: &str, answer: &Value) {
        let answer = self.post(&format!("/api/v1/jobs/{run}/answer"), &json!({"input": answer}).to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}
