//! `crosspoint submit`: submits a job and waits for it.

mod bar;
pub(crate) mod wait;

use anyhow::Result;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use clap::{Args, ValueHint};
use crosspoint_contracts::request::Priority;
use serde_json::json;
use uuid::Uuid;

use crate::client::{self, Client, Need};
use crate::command::flags::{Reach, seconds};
use crate::{Exit, json_input};
use wait::Wanted;

/// Give work to an agent and wait for the outcome
///
/// The work is on disk when it is accepted, and goes on whatever becomes of this command. While it waits it shows how
/// far the work is, on stderr; the outputs go to stdout. Should the connection break, the command finds its job again.
/// Without a server the store is opened here and the work is done by this process.
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
    /// The kind of work; crosspoint agents list shows operators who takes what
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

pub(crate) fn run(arguments: &Submit) -> Result<Exit> {
    let input = match &arguments.input {
        Some(input) => match json_input::read(input)? {
            Some(input) => input,
            None => return Ok(Exit::CouldNot),
        },
        None => "{}".to_owned(),
    };
    let need = if arguments.detach { Need::Kept } else { Need::Any };
    client::with(&arguments.reach, need, async |client| submit(client, arguments, &input).await)
}

async fn submit(client: &Client, arguments: &Submit, input: &str) -> Result<Exit> {
    let mut interrupts = wait::interrupts()?;
    // If the caller gave an id of its own, that is the key. A header would override it, with a new key every time
    // (ALL-1).
    let key = arguments.request_id.is_none().then(|| Uuid::new_v4().to_string());
    let body = body(arguments, input);
    let job = tokio::select! {
        job = client.post_once("/api/v1/jobs", key.as_deref(), &body) => job?,
        _ = interrupts.recv() => return Ok(wait::interrupted_early()),
    };
    if arguments.detach {
        return wait::print_id(client, &job, arguments.json);
    }
    let wanted = Wanted { json: arguments.json, follow: arguments.follow, after: 0 };
    wait::wait(client, &job.is.id, wanted, interrupts).await
}

/// Builds the body. The input is inserted as it was written, including its spaces.
fn body(arguments: &Submit, input: &str) -> String {
    let mut members = vec![format!("\"work\":{}", json!(arguments.work)), format!("\"input\":{input}")];
    let texts = [("request_id", &arguments.request_id), ("agent", &arguments.agent), ("priority", &arguments.priority)];
    for (name, text) in texts {
        members.extend(text.as_ref().map(|text| format!("\"{name}\":{}", json!(text))));
    }
    members.extend(arguments.timeout.map(|seconds| format!("\"limits\":{}", json!({ "seconds": seconds }))));
    format!("{{{}}}", members.join(","))
}
