//! `crosspoint submit`: submits a job and waits for it.

mod bar;
pub(crate) mod wait;

use anyhow::Result;
use serde_json::json;
use uuid::Uuid;

use crate::Outcome;
use crate::client::{self, Client, Need};
use crate::command::Submit;
use crate::json_input;
use wait::Wanted;

pub(crate) fn run(arguments: &Submit) -> Result<Outcome> {
    let input = match &arguments.input {
        Some(input) => match json_input::read(input)? {
            Some(input) => input,
            None => return Ok(Outcome::CouldNot),
        },
        None => "{}".to_owned(),
    };
    let need = if arguments.detach { Need::Kept } else { Need::Any };
    client::with(&arguments.reach, need, async |client| submit(client, arguments, &input).await)
}

async fn submit(client: &Client, arguments: &Submit, input: &str) -> Result<Outcome> {
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
