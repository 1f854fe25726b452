//! What can be typed about work: submit, jobs, agents.

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use crosspoint_engine::job::{Door, Phase, Priority};

use crate::command::Place;

/// Which server is asked
#[derive(Args, Clone, Default)]
pub(crate) struct Reach {
    /// The server, as http://127.0.0.1:7420 or unix:PATH [env: CROSSPOINT_SERVER] [default: the one of the data directory, else the store is opened]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, help_heading = "Where")]
    pub(crate) server: Option<String>,

    #[command(flatten)]
    pub(crate) place: Place,
}

/// Give work to an agent and wait for the outcome
///
/// The work is on disk when it is accepted, and goes on whatever becomes of this command. While it waits it shows how far the work is, on
/// stderr; the outputs go to stdout. Should the connection break, the command finds its job again. Without a server the store
/// is opened here and the work is done by this process.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint submit echo --input '{\"message\": \"hello\"}'
  crosspoint submit slow_echo --input '{\"seconds\": 5}'        with a bar and the names of its steps
  crosspoint submit report --input @request.json > report.json
  jq -c .task plan.json | crosspoint submit report --input -
  id=$(crosspoint submit slow_echo --detach)                  to look at later: crosspoint jobs show $id
  crosspoint submit slow_echo --follow --json | jq .event

Exit codes: 0 completed, 1 failed or cancelled, 2 it could not be submitted, 3 it waits for a person, 130 interrupted (the job goes on).")]
pub(crate) struct Submit {
    /// The kind of work; crosspoint agents list shows who takes what
    #[arg(value_name = "WORK", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) work: String,

    /// The input: JSON, @FILE, or - for standard input [default: {}]
    #[arg(long, short, value_name = "JSON|@FILE|-", value_hint = ValueHint::Other, allow_hyphen_values = true)]
    pub(crate) input: Option<String>,

    /// The agent that must do it, where several take this work
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Other)]
    pub(crate) agent: Option<String>,

    /// Your own id for it: submitting the same again gives the same job instead of a second one
    #[arg(long, value_name = "ID", value_hint = ValueHint::Other)]
    pub(crate) request_id: Option<String>,

    /// Who goes first when agents are busy [default: normal]
    #[arg(long, value_name = "PRIORITY", value_parser = PossibleValuesParser::new(Priority::ALL.map(Priority::name)))]
    pub(crate) priority: Option<String>,

    /// How long it may take in all, in seconds, before it fails as timeout
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,

    /// Print the job's id as soon as the work is accepted, and do not wait
    #[arg(long, conflicts_with = "follow")]
    pub(crate) detach: bool,

    /// Print every event as one line on stdout, instead of the outputs
    #[arg(long)]
    pub(crate) follow: bool,

    /// Print the whole job as one line of JSON; with --follow, every event
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Look at jobs, answer their questions, cancel or repeat them
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs list --state running
  crosspoint jobs show 0199d3a2-8b1e-7000-8000-0004b2c6d8e1
  crosspoint jobs events 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --follow
  crosspoint jobs answer 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --text yes")]
pub(crate) struct Jobs {
    #[command(subcommand)]
    pub(crate) action: JobsAction,
}

#[derive(Subcommand)]
pub(crate) enum JobsAction {
    List(JobsList),
    Show(JobsShow),
    Events(JobsEvents),
    Document(JobsDocument),
    Cancel(JobsCancel),
    Answer(JobsAnswer),
    Retry(JobsRetry),
}

/// List jobs, the newest first
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs list
  crosspoint jobs list --state failed --work report --limit 200
  crosspoint jobs list --json | jq -r 'select(.stuck) | [.id, .stuck.reason] | @tsv'")]
pub(crate) struct JobsList {
    /// Only jobs in this state
    #[arg(long, value_parser = PossibleValuesParser::new(Phase::ALL.map(Phase::name)))]
    pub(crate) state: Option<String>,

    /// Only this work
    #[arg(long, value_hint = ValueHint::Other)]
    pub(crate) work: Option<String>,

    /// Only jobs that this agent has or had
    #[arg(long, value_hint = ValueHint::Other)]
    pub(crate) agent: Option<String>,

    /// Only jobs that came in here
    #[arg(long, value_parser = PossibleValuesParser::new(Door::all().map(Door::name)))]
    pub(crate) door: Option<String>,

    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,

    /// Where the last list ended: it says so where there is more
    #[arg(long, value_name = "CURSOR", value_hint = ValueHint::Other)]
    pub(crate) before: Option<String>,

    /// One JSON object a job, on one line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Show one job: where it is, why it does not move, what it asks, how it ended
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs show 0199d3a2-8b1e-7000-8000-0004b2c6d8e1
  crosspoint jobs show 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --json | jq .outcome.outputs")]
pub(crate) struct JobsShow {
    #[command(flatten)]
    pub(crate) id: JobId,

    /// The job as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Print what happened to a job, one line an event
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs events 0199d3a2-8b1e-7000-8000-0004b2c6d8e1
  crosspoint jobs events 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --follow --json | jq -r 'select(.event == \"output\") | .text'

Exit codes: 0 printed, 2 it could not be done; with --follow as of submit, 1 if the job failed or was cancelled.")]
pub(crate) struct JobsEvents {
    #[command(flatten)]
    pub(crate) id: JobId,

    /// Go on until the job has ended
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Only events after the one with this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) after: u32,

    /// One JSON object an event, on one line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Print the document a job came as, byte for byte
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs document 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 > request.json")]
pub(crate) struct JobsDocument {
    #[command(flatten)]
    pub(crate) id: JobId,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Stop a job
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs cancel 0199d3a2-8b1e-7000-8000-0004b2c6d8e1")]
pub(crate) struct JobsCancel {
    #[command(flatten)]
    pub(crate) id: JobId,

    /// The job as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Answer the question of a job that waits for a person
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs answer 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --text 'the second one'
  crosspoint jobs answer 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --input '{\"approved\": true}'")]
pub(crate) struct JobsAnswer {
    #[command(flatten)]
    pub(crate) id: JobId,

    /// The answer: JSON, @FILE, or - for standard input
    #[arg(long, short, value_name = "JSON|@FILE|-", value_hint = ValueHint::Other, allow_hyphen_values = true,
          conflicts_with = "text", required_unless_present = "text")]
    pub(crate) input: Option<String>,

    /// The answer, as plain text
    #[arg(long, short, value_name = "TEXT", value_hint = ValueHint::Other, allow_hyphen_values = true)]
    pub(crate) text: Option<String>,

    /// The job as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Do the work of a job that has ended once more, as a new job, and wait for it
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint jobs retry 0199d3a2-8b1e-7000-8000-0004b2c6d8e1
  crosspoint jobs retry 0199d3a2-8b1e-7000-8000-0004b2c6d8e1 --detach

Exit codes: as of submit.")]
pub(crate) struct JobsRetry {
    #[command(flatten)]
    pub(crate) id: JobId,

    /// Print the new job's id and do not wait
    #[arg(long)]
    pub(crate) detach: bool,

    /// Print the whole new job as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct JobId {
    /// The job's id, as submit --detach and jobs list print it
    #[arg(value_name = "ID", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) id: String,
}

/// Look at agents, open or close their breakers, drain them
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agents list
  crosspoint agents show slow_echo
  crosspoint agents drain slow_echo              no new work for it; what it has goes on
  crosspoint agents drain slow_echo --resume
  crosspoint agents breaker slow_echo close      it is well again: try it now
  crosspoint agents forget shouter               it had joined, and will not come back")]
pub(crate) struct Agents {
    #[command(subcommand)]
    pub(crate) action: AgentsAction,
}

#[derive(Subcommand)]
pub(crate) enum AgentsAction {
    /// List the agents: what they take, and how busy they are
    List(AgentsList),
    /// Show one agent
    Show(AgentsShow),
    /// Show an agent's breaker, or open or close it
    Breaker(AgentsBreaker),
    /// Give an agent no new work, or let it have work again
    Drain(AgentsDrain),
    /// Forget an agent that joined and will not come back
    Forget(AgentsForget),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agents list
  crosspoint agents list --json | jq -r 'select(.breaker.state != \"closed\") | .name'")]
pub(crate) struct AgentsList {
    /// One JSON object an agent, on one line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agents show slow_echo")]
pub(crate) struct AgentsShow {
    #[command(flatten)]
    pub(crate) agent: AgentName,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agents breaker slow_echo
  crosspoint agents breaker slow_echo open       no new work until it is closed again
  crosspoint agents breaker slow_echo close")]
pub(crate) struct AgentsBreaker {
    #[command(flatten)]
    pub(crate) agent: AgentName,

    /// What to do with it; without it, it is shown
    #[arg(value_enum)]
    pub(crate) change: Option<BreakerChange>,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BreakerChange {
    /// No new work
    Open,
    /// Work again
    Close,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agents drain slow_echo
  crosspoint agents drain slow_echo --resume")]
pub(crate) struct AgentsDrain {
    #[command(flatten)]
    pub(crate) agent: AgentName,

    /// Let it have work again
    #[arg(long)]
    pub(crate) resume: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agents forget shouter               its work is not known any more, unless others take it

It is refused while the agent is there or has work, and for agents of the configuration.")]
pub(crate) struct AgentsForget {
    #[command(flatten)]
    pub(crate) agent: AgentName,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct AgentName {
    /// The agent's name
    #[arg(value_name = "NAME", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,

    /// The agent as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn seconds(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        Ok(_) | Err(_) => Err("it must be a number of seconds, more than 0"),
    }
}
