//! `crosspoint bridge ask`
//!
//! The requesters' API for scripts: one process for each question. This process cannot see which process begins a run,
//! so the driver or `--forget` ends the last one.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use crosspoint_bridge::ask::{Answer, Asked, Refused, Run, Unusable, forget};
use crosspoint_bridge::{Directory, Fault, NEED_AGENT, Question, directory_of_driver};

use crate::command::bridge::arguments::BridgeAsk;
use crate::command::flags::Inner;
use crate::terminal::render;
use crate::{Exit, json_input};

pub(crate) fn run(arguments: &BridgeAsk) -> Result<Exit> {
    let path = &arguments.dir.clone().unwrap_or_else(directory_of_driver);
    let done = match &arguments.agent {
        None => Directory::open(path).and_then(|directory| forget(&directory)).map_err(Refused::from),
        Some(agent) => {
            let Some(question) = question(agent, arguments)? else { return Ok(Exit::CouldNot) };
            match Run::resume(path).map_err(Refused::from).and_then(|run| run.try_ask(&question)) {
                Ok(Asked::Answered(answer)) => return print(agent, &answer, arguments.inner),
                Ok(Asked::NeedsAgent) => {
                    tell_how(path);
                    return Ok(Exit::Passed(NEED_AGENT));
                }
                Err(refused) => Err(refused),
            }
        }
    };
    Ok(match done {
        Ok(()) => Exit::Fine,
        Err(refused) => {
            explain(&refused);
            Exit::CouldNot
        }
    })
}

/// Returns the question; `None` if there is none, which was printed to stderr.
fn question(agent: &str, arguments: &BridgeAsk) -> Result<Option<Question>> {
    if arguments.prompt.is_none() && io::stdin().is_terminal() {
        render::refused("the agent is told nothing", "give --prompt, or pipe a text in");
        return Ok(None);
    }
    let prompt = arguments.prompt.as_deref().unwrap_or("-");
    if prompt == "-" && arguments.context.as_deref() == Some("-") {
        render::refused("prompt and context cannot both come from standard input", "give one of them as @FILE");
        return Ok(None);
    }
    let (name, bytes) = json_input::bytes_of("--prompt", prompt)?;
    let prompt = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))?;
    let mut question = Question::new(agent, prompt);
    if let Some(context) = &arguments.context {
        match json_input::read_of("--context", context)? {
            Some(json) => question = question.context(json),
            None => return Ok(None),
        }
    }
    if let Some(phase) = arguments.phase {
        question = question.phase(phase);
    }
    if let Some(name) = &arguments.phase_name {
        question = question.phase_name(name);
    }
    if let Some(seconds) = arguments.timeout {
        question = question.timeout(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    if let Some(model) = &arguments.model {
        question = question.model(model);
    }
    Ok(Some(question))
}

/// Prints the text alone, on a line of its own, or why there is none.
fn print(agent: &str, answer: &Answer, inner: Option<Inner>) -> Result<Exit> {
    let text = match inner {
        None => answer.text().map_err(Unusable::from),
        Some(Inner::Json) => answer.json(),
    };
    let text = match text {
        Ok(text) => text,
        Err(unusable) => {
            match &unusable {
                Unusable::Failed(failed) => {
                    let message = format!("the agent {agent} failed: {} [{}]", failed.message, failed.error_type);
                    render::refused(&render::visible(&message), &hint(answer));
                }
                Unusable::NotJson { hint, .. } => render::refused(&format!("{unusable} (BRIDGE-5.2)"), hint),
            }
            return Ok(Exit::NotFine);
        }
    };
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    if out.is_terminal() {
        let shown: Vec<String> = text.lines().map(render::visible).collect();
        writeln!(out, "{}", shown.join("\n"))?;
    } else {
        write!(out, "{text}{end}")?;
    }
    out.flush()?;
    Ok(Exit::Fine)
}

/// What to do about a failure, if the answer says it.
fn hint(answer: &Answer) -> String {
    let metadata: serde_json::Value = serde_json::from_str(&answer.metadata).unwrap_or_default();
    let own = metadata["x_crosspoint"]["details"]["hint"].as_str();
    own.map_or_else(
        || "crosspoint jobs list shows the job, and jobs show what its agent printed".to_owned(),
        render::visible,
    )
}

/// Tells a user who runs the script by hand what to do; otherwise nothing would seem to happen.
fn tell_how(path: &Path) {
    // While a driver is at work it holds the directory.
    let driven = Directory::open(path).is_ok_and(|directory| matches!(directory.lock(), Err(Fault::InUse(_))));
    if io::stderr().is_terminal() && !driven {
        render::note("an agent is needed: run the script with `crosspoint bridge run -- ...`");
    }
}

fn explain(refused: &Refused) {
    match refused {
        Refused::Malformed(malformed) => {
            let name = render::visible(&malformed.path.display().to_string());
            render::findings_by_place(&name, &malformed.report);
        }
        Refused::Unfit(_) | Refused::TooLarge(_) | Refused::Taken(_) | Refused::Foreign { .. } | Refused::Fault(_) => {
            render::refused(&refused.to_string(), refused.hint());
        }
    }
}
