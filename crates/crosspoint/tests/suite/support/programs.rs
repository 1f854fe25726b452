//! Programs that are agents: configurations that have them, and which of their processes are alive.

use std::fs;

use serde_json::{Value, json};

use crate::support::server::{Server, until};

/// An agent that runs a script of bash, with further keys.
pub(crate) fn bash(name: &str, script: &str, keys: &str) -> String {
    agent(name, &["bash", "-c", script], keys)
}

/// An agent that runs a script of Python, with further keys.
pub(crate) fn python(name: &str, script: &str, keys: &str) -> String {
    agent(name, &["python3", "-c", script], keys)
}

/// An agent that runs a program, with further keys.
pub(crate) fn agent(name: &str, argv: &[&str], keys: &str) -> String {
    // JSON arrays of texts are TOML arrays, except for an escaped slash, which is not used here.
    format!("[[agent]]\nname = \"{name}\"\ncontract = \"exec\"\nexec = {}\n{keys}\n", json!(argv))
}

impl Server {
    /// Has a job done, and returns it as it ended.
    pub(crate) fn done(&self, work: &str, input: &Value) -> Value {
        let body = json!({"work": work, "input": input, "limits": {"attempts": 1}});
        let id = self.submit(&body.to_string())["id"].as_str().expect("an id").to_owned();
        self.ended(&id);
        // With everything beside the outcome, violations above all.
        self.job(&id)
    }

    /// Begins a job, and returns its id.
    pub(crate) fn begin(&self, work: &str) -> String {
        self.submit(&json!({"work": work}).to_string())["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn cancel(&self, id: &str) {
        let cancelled = self.post(&format!("/api/v1/jobs/{id}/cancel"), "").json();
        assert_eq!(cancelled["state"], "cancelled", "{cancelled}");
    }

    /// Waits until a file in its directory has a whole line, and returns it.
    pub(crate) fn said_in(&self, name: &str) -> String {
        until(name, || fs::read_to_string(self.directory().join(name)).ok().filter(|text| text.ends_with('\n')))
    }
}

/// The processes that run for a job, without zombies.
pub(crate) fn alive_for(job: &str) -> Vec<u32> {
    let mark = format!("CROSSPOINT_JOB_ID={job}").into_bytes();
    let carries = |pid: &u32| {
        fs::read(format!("/proc/{pid}/environ")).unwrap_or_default().split(|byte| *byte == 0).any(|one| one == mark)
    };
    pids().into_iter().filter(carries).collect()
}

pub(crate) fn nothing_runs_for(job: &str) {
    until("nothing runs for the job", || alive_for(job).is_empty().then_some(()));
}

pub(crate) fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("there is /proc");
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The children of a process, zombies included.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let parent_of = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    pids().into_iter().filter(|pid| parent_of(pid) == Some(parent)).collect()
}

/// Whether a process has ended, and its parent has not asked how.
pub(crate) fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}

/// The recorded violations of a job.
pub(crate) fn violations(job: &Value) -> Vec<String> {
    let list = job["violations"].as_array().cloned().unwrap_or_default();
    list.iter().map(|one| one["what"].as_str().expect("a text").to_owned()).collect()
}
