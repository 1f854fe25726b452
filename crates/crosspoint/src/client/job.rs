//! Jobs and agents as the API returns them. Unknown members are passed over: a newer server may have more.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A job, and the text from which it was read.
pub(crate) struct Job {
    pub(crate) text: String,
    pub(crate) is: JobFields,
}

#[derive(Deserialize)]
pub(crate) struct JobFields {
    pub(crate) id: String,
    pub(crate) origin: Option<Origin>,
    pub(crate) request_id: String,
    pub(crate) caller: Option<String>,
    pub(crate) door: String,
    pub(crate) work: String,
    pub(crate) agent: Option<String>,
    pub(crate) state: String,
    pub(crate) attempts: u64,
    #[serde(default)]
    pub(crate) priority: String,
    #[serde(default)]
    pub(crate) progress: Progress,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) stuck: Option<Stuck>,
    pub(crate) question: Option<Question>,
    pub(crate) question_id: Option<String>,
    pub(crate) outcome: Option<Outcome>,
    #[serde(default)]
    pub(crate) violations: Vec<Violation>,
    pub(crate) owed: Option<Owed>,
    /// Only for runs of workflows. Servers of earlier versions do not say it.
    pub(crate) workflow: Option<RunOf>,
}

/// What a run of a workflow is about.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunOf {
    pub(crate) name: Option<String>,
    pub(crate) feature: Option<String>,
    pub(crate) root: Option<String>,
    pub(crate) dry_run: bool,
}

/// How a job came from another one.
#[derive(Deserialize)]
pub(crate) struct Origin {
    pub(crate) retry_of: Option<String>,
    pub(crate) child_of: Option<String>,
    pub(crate) stage: Option<String>,
}

#[derive(Default, Deserialize)]
pub(crate) struct Progress {
    pub(crate) percent: Option<f64>,
    pub(crate) step: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Stuck {
    pub(crate) reason: String,
    pub(crate) since: String,
    /// The stage that does not move, where the job waits for one.
    pub(crate) job: Option<String>,
}

/// What is said of a stage that an operator has to have begun again.
const OPERATOR: [&str; 2] = [": poison:", ": set aside:"];

#[derive(Deserialize)]
pub(crate) struct Owed {
    pub(crate) to: String,
    pub(crate) since: String,
    pub(crate) failing: Option<Failing>,
}

#[derive(Deserialize)]
pub(crate) struct Failing {
    pub(crate) tries: u64,
    pub(crate) last: String,
    pub(crate) next_at: String,
}

#[derive(Deserialize)]
pub(crate) struct Question {
    pub(crate) prompt: Box<RawValue>,
    pub(crate) schema: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(crate) struct Outcome {
    pub(crate) status: String,
    pub(crate) outputs: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) failure: Option<Failure>,
    /// There if the text is only the end of what was printed, or if a part of it never came.
    truncated: Option<Truncated>,
}

#[derive(Deserialize)]
pub(crate) struct Truncated {
    bytes: u64,
}

impl Outcome {
    /// Returns how many bytes the text has or would have, if the outcome does not have all of them.
    pub(crate) fn printed_bytes(&self) -> Option<u64> {
        /// What was printed, where it is all there is.
        #[derive(Deserialize)]
        struct Printed {
            truncated: Option<Truncated>,
        }
        let within = || serde_json::from_str::<Printed>(self.outputs.as_ref()?.get()).ok()?.truncated;
        self.truncated.as_ref().map(|truncated| truncated.bytes).or_else(|| Some(within()?.bytes))
    }
}

#[derive(Deserialize)]
pub(crate) struct Artifact {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default, rename = "type")]
    pub(crate) media_type: String,
}

#[derive(Deserialize)]
pub(crate) struct Failure {
    pub(crate) code: String,
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) repeat: String,
    /// Further facts from the agent, in a shape of its own.
    #[serde(default)]
    details: serde_json::Value,
}

/// Most lines of a program's stderr that are shown. The last lines say why it failed.
const STDERR_LINES: usize = 10;

impl Failure {
    /// Returns the sentence to show above the last lines of stderr. If the message is made of those lines, how the
    /// program ended is said in its place.
    pub(crate) fn sentence(&self) -> String {
        let printed = self.details["stderr"].as_str().unwrap_or_default();
        let mut printed = printed.lines().rev().map(str::trim_end).filter(|line| !line.is_empty());
        let is_stderr = self.message.lines().rev().all(|said| printed.next() == Some(said));
        match (self.details["exit_code"].as_i64(), self.details["signal"].as_i64()) {
            (Some(code), _) if is_stderr => format!("The program ended with exit code {code}."),
            (None, Some(signal)) if is_stderr => format!("The program was killed by signal {signal}."),
            (Some(_) | None, _) => self.message.clone(),
        }
    }

    /// Returns the last lines that a program printed to stderr.
    pub(crate) fn stderr(&self) -> Vec<&str> {
        let lines: Vec<&str> = self.details["stderr"].as_str().unwrap_or_default().trim_end().lines().collect();
        lines[lines.len().saturating_sub(STDERR_LINES)..].to_vec()
    }
}

#[derive(Deserialize)]
pub(crate) struct Violation {
    pub(crate) at: String,
    pub(crate) clause: String,
    /// Servers of earlier versions do not say it.
    #[serde(default)]
    pub(crate) level: String,
    pub(crate) what: String,
}

/// One page of a list of jobs.
#[derive(Deserialize)]
pub(crate) struct Page {
    pub(crate) jobs: Vec<Box<RawValue>>,
    pub(crate) next: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct AgentPage {
    pub(crate) agents: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(crate) struct Agent {
    pub(crate) name: String,
    pub(crate) contract: String,
    #[serde(rename = "type")]
    pub(crate) agent_type: Option<String>,
    pub(crate) protocol_version: Option<String>,
    pub(crate) work: Vec<String>,
    pub(crate) concurrency: u32,
    pub(crate) running: u32,
    pub(crate) breaker: Breaker,
    pub(crate) drained: bool,
    /// Servers of earlier versions do not say it.
    pub(crate) configured: Option<bool>,
    /// Only for agents that joined, and only while no session is connected.
    pub(crate) away_since: Option<String>,
    /// Only for agents that send signs of life.
    pub(crate) heartbeat: Option<Heartbeat>,
    /// Only while the agent refuses the server's token.
    pub(crate) token_refused_since: Option<String>,
    /// Only for agents that have one.
    pub(crate) address: Option<String>,
    /// Only while the agent cannot be connected to.
    pub(crate) cannot_connect: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Heartbeat {
    pub(crate) at: String,
    pub(crate) status: String,
    pub(crate) resources: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(crate) struct Breaker {
    pub(crate) state: String,
    pub(crate) failures: u32,
    pub(crate) until: Option<String>,
}

impl Job {
    pub(crate) fn read(text: String) -> Result<Job, serde_json::Error> {
        let is = serde_json::from_str(&text)?;
        Ok(Job { text, is })
    }

    /// How it ended, if it did.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.is.outcome.as_ref()
    }
}

impl JobFields {
    /// Whether it waits for a person's answer.
    pub(crate) fn is_asking(&self) -> bool {
        self.state == "waiting" && self.question.is_some()
    }

    /// Whether a stage of this run waits for a person or an operator.
    pub(crate) fn is_held_by_stage(&self) -> bool {
        let waits_for_operator = |reason: &str| OPERATOR.iter().any(|word| reason.contains(word));
        let stuck = self.stuck.as_ref().filter(|stuck| stuck.job.is_some());
        self.state == "running"
            && stuck.is_some_and(|stuck| self.question.is_some() || waits_for_operator(&stuck.reason))
    }

    /// Whether it waits for an operator (ALL-13).
    pub(crate) fn is_poisoned(&self) -> bool {
        self.state == "waiting" && self.question.is_none()
    }
}

/// Returns a JSON string without its quotes, and any other value as it is.
pub(crate) fn plain(raw: &RawValue) -> String {
    serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}
