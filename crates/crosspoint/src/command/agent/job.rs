//! One job: its program, from start to end.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::outcome::Text;
use crosspoint_contracts::reply::{Failed, Question, Success};
use serde_json::json;

use super::Worker;
use super::held::JobSignals;
use super::instructions::Given;
use super::lines::say;
use super::link::{Pause, Trouble};
use super::reports::{Fate, Refusal};
use crate::exec::{self, Next, ProgramEvent, Running};
use crate::terminal::render;

/// Longest block of output in one call, in bytes: a quarter of what the server takes.
const BLOCK_BYTES_MAX: usize = 256 << 10;

/// How the program went.
enum Went {
    Ended(Result<Success, Failed>),
    /// The server did not want the job any more.
    Stopped,
}

/// Why a running program is to end.
enum Unwanted {
    /// The job goes on without this attempt.
    Gone,
    /// The server will never take what the program says, and still waits for a result. If nothing were reported, it
    /// would give the job out again and again.
    Refused(Refusal),
}

/// Passes on what the program of one attempt says, and counts its output bytes and questions.
struct Saying<'w> {
    worker: &'w Worker,
    given: &'w Given,
    offset: u64,
    asked: u32,
}

pub(super) async fn run(worker: Arc<Worker>, given: Given, mut signals: JobSignals) {
    let began = Instant::now();
    let kill = signals.kill.clone();
    let went = tokio::select! {
        went = work(&worker, &given, &mut signals) => Some(went),
        // Dropping the future that runs the program kills it, and all that it has started.
        () = kill.cancelled() => None,
    };
    let how = match went {
        None => "killed",
        Some(Went::Stopped) => "stopped",
        Some(Went::Ended(result)) => {
            let how = if result.is_ok() { "completed" } else { "failed" };
            worker.held.ended(&given.id);
            match say_last(&worker, &given, &result).await {
                Fate::Taken => how,
                Fate::Gone => "not wanted any more",
                Fate::Refused(_) => "not taken by the server",
            }
        }
    };
    worker.held.put_down(&given.id);
    let (id, name) = (render::visible(&given.id), render::visible(&given.work));
    say(&format!("job {id}  {name}  {how}  {:.1} s", began.elapsed().as_secs_f64()));
}

/// Gives back a job that came after the worker was asked to leave. A server that does not know how to take a job back
/// is told that nothing was begun.
pub(super) async fn decline(worker: Arc<Worker>, given: Given) {
    let Given { id, attempt, .. } = &given;
    let report = format!(r#"{{"id":"{id}","attempt":{attempt},"declined":true}}"#);
    if let Fate::Refused(_) = worker.reports.say(report).await {
        let failed = Failed::said(Failure::Unavailable, Dispatched::No, "The agent was about to leave.");
        worker.reports.say(ending(&given, &Err(failed))).await;
    }
    worker.held.put_down(id);
}

async fn work(worker: &Worker, given: &Given, signals: &mut JobSignals) -> Went {
    let job = exec::Given {
        job_id: given.id.clone(),
        request_id: given.request_id.clone(),
        work: given.work.clone(),
        attempt: given.attempt,
        may_be_haunted: given.attempt > 1,
        output_offset: given.output_offset,
        traceparent: given.traceparent.clone(),
        tracestate: given.tracestate.clone(),
        input: given.input.clone(),
    };
    let stop = signals.stop.clone();
    let started = tokio::select! {
        started = exec::start(worker.program.clone(), job) => started,
        // The start may wait for processes that an earlier attempt has left behind.
        () = stop.cancelled() => return Went::Stopped,
    };
    let mut running = match started {
        Ok(running) => running,
        Err(failed) => return Went::Ended(Err(failed)),
    };
    let mut saying = Saying { worker, given, offset: given.output_offset, asked: 0 };
    let (mut stopping, mut refused) = (false, None);
    loop {
        let next = tokio::select! {
            next = running.next() => next,
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                running.stop();
                continue;
            }
        };
        match next {
            Next::Ended(_) if stopping => {
                return refused.map_or(Went::Stopped, |refusal| Went::Ended(Err(not_taken(refusal))));
            }
            Next::Ended(result) => return Went::Ended(result),
            // What the program says while it is being ended is dropped, but must be read so that the program can end.
            Next::Event(_) if stopping => {}
            Next::Event(event) => {
                let heard = tokio::select! {
                    heard = saying.hear(event, &mut running, signals) => heard,
                    () = stop.cancelled() => Err(Unwanted::Gone),
                };
                if let Err(why) = heard {
                    stopping = true;
                    running.stop();
                    refused = match why {
                        Unwanted::Refused(refusal) => Some(refusal),
                        Unwanted::Gone => None,
                    };
                }
            }
        }
    }
}

impl Saying<'_> {
    async fn hear(
        &mut self,
        event: ProgramEvent,
        running: &mut Running,
        signals: &mut JobSignals,
    ) -> Result<(), Unwanted> {
        if let ProgramEvent::Ask(question) = event {
            return self.ask(question, running, signals).await;
        }
        let held = &self.worker.held;
        let id = self.given.id.clone();
        let mut saying = std::pin::pin!(self.pass_on(event));
        loop {
            tokio::select! {
                sent = &mut saying => return sent,
                // While the server is away this may take long. A program that has ended meanwhile must not be killed
                // for it: only reports are left to send.
                () = running.ended(), if running.is_alive() => held.over(&id),
            }
        }
    }

    async fn pass_on(&mut self, event: ProgramEvent) -> Result<(), Unwanted> {
        match event {
            ProgramEvent::Output(block) => self.output(block).await,
            ProgramEvent::Progress { percent, step } => {
                let progress = json!({ "percent": percent, "step": step });
                self.report("progress", &progress.to_string(), "").await
            }
            ProgramEvent::Heard => self.report("heard", "true", "").await,
            ProgramEvent::Broken(rule) => {
                say(&format!("job {}: {rule}", render::visible(&self.given.id)));
                match self.report("violation", &json!(rule).to_string(), "").await {
                    // That the rule cannot be recorded is no reason to end the program.
                    Err(Unwanted::Refused(_)) => Ok(()),
                    sent @ (Ok(()) | Err(Unwanted::Gone)) => sent,
                }
            }
            // Handled by `hear`, which has the program that gets the answer.
            ProgramEvent::Ask(_) => Ok(()),
        }
    }

    async fn ask(
        &mut self,
        question: Question,
        running: &mut Running,
        signals: &mut JobSignals,
    ) -> Result<(), Unwanted> {
        self.asked += 1;
        let number = format!(r#","n":{}"#, self.asked);
        self.report("ask", question.json().get(), &number).await?;
        self.worker.held.asked(&self.given.id, self.asked);
        // A program that ends while a person thinks needs no answer.
        tokio::select! {
            answer = signals.answers.recv() => drop(answer.map(|answer| running.answer(answer))),
            () = running.ended() => {}
        }
        Ok(())
    }

    async fn report(&self, kind: &str, value: &str, more: &str) -> Result<(), Unwanted> {
        let Given { id, attempt, .. } = self.given;
        let report = format!(r#"{{"id":"{id}","attempt":{attempt},"{kind}":{value}{more}}}"#);
        match self.worker.reports.say(report).await {
            Fate::Taken => Ok(()),
            Fate::Gone => Err(Unwanted::Gone),
            Fate::Refused(refusal) => Err(Unwanted::Refused(refusal)),
        }
    }

    /// Stores a block of output, however long the server is away. A program that prints meanwhile waits.
    async fn output(&mut self, mut block: Bytes) -> Result<(), Unwanted> {
        let link = &self.worker.link;
        let mut pause = Pause::new(link.lease());
        while !block.is_empty() {
            let part = block.split_to(block.len().min(BLOCK_BYTES_MAX));
            loop {
                let Given { id, attempt, .. } = self.given;
                let (session, offset) = (link.session(), self.offset);
                let what = format!("output?session={session}&job={id}&attempt={attempt}&offset={offset}");
                match link.call(&what, part.clone()).await {
                    Ok(answer) if *answer == *br#"{"output":"taken"}"# => break,
                    Ok(_) => return Err(Unwanted::Gone),
                    Err(Trouble::Refused(failed)) => {
                        say(&format!("the server does not take output: {failed}"));
                        return Err(Unwanted::Refused(Refusal::of(&failed)));
                    }
                    Err(Trouble::JoinFirst | Trouble::Away) => pause.wait().await,
                }
            }
            self.offset += part.len() as u64;
        }
        Ok(())
    }
}

/// Reports how an attempt ended. A result that the server will never take is replaced by a short failure that says so.
async fn say_last(worker: &Worker, given: &Given, result: &Result<Success, Failed>) -> Fate {
    match worker.reports.say(ending(given, result)).await {
        Fate::Refused(refusal) => worker.reports.say(ending(given, &Err(not_taken(refusal)))).await,
        fate @ (Fate::Taken | Fate::Gone) => fate,
    }
}

fn not_taken(refusal: Refusal) -> Failed {
    let (failure, message) = match refusal {
        Refusal::TooLarge => (Failure::ResourceLimit, "The program gave more at one go than the server takes."),
        Refusal::Wrong => (Failure::BrokenContract, "The server does not take what the program gave."),
    };
    Failed::said(failure, Dispatched::Yes, message)
}

/// The last report of an attempt.
fn ending(given: &Given, result: &Result<Success, Failed>) -> String {
    let Given { id, attempt, .. } = given;
    let head = format!(r#"{{"id":"{id}","attempt":{attempt},"#);
    match result {
        Ok(success) => {
            let artifacts = success.artifacts.as_ref().map_or("[]", Body::get);
            let outputs = success.outputs.as_ref().map(|outputs| format!(r#","outputs":{}"#, outputs.get()));
            let text = match &success.text {
                Some(Text::Beside(text)) => format!(r#","text":{}"#, text.get()),
                Some(Text::Printed(printed)) => {
                    format!(r#","printed":{{"from":{},"bytes":{}}}"#, printed.start, printed.bytes())
                }
                Some(Text::Within(_) | Text::Partial(_)) | None => String::new(),
            };
            let outputs = outputs.unwrap_or_default();
            [&*head, r#""result":{"artifacts":"#, artifacts, &outputs, &text, "}}"].concat()
        }
        Err(failed) => {
            let member = |name: &str, body: &Option<Body>| {
                body.as_ref().map(|body| format!(r#","{name}":{}"#, body.get())).unwrap_or_default()
            };
            let (message, details) = (member("message", &failed.message), member("details", &failed.details));
            let (code, dispatched) = (failed.failure.name(), failed.dispatched == Dispatched::Yes);
            let repeat = failed.repeat.map(|repeat| format!(r#","repeat":"{}""#, repeat.name())).unwrap_or_default();
            let given = failed.given.as_deref().cloned().unwrap_or_default();
            let given = member("outputs", &given.outputs) + &member("artifacts", &given.artifacts);
            let rest = [message, details, repeat, given].concat();
            format!(r#"{head}"failure":{{"code":"{code}","dispatched":{dispatched}{rest}}}}}"#)
        }
    }
}
