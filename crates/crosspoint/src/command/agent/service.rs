//! `crosspoint agent --listen`: a program as a service. Callers of four contracts give it work without a server.
//!
//! Doors, answers that are kept, tokens and stopping are those of an agent that is a function (`crosspoint-agent`);
//! here a program does the work. What a server would watch over is watched here: how long a program may take, be
//! silent, wait for a person, and print.

mod document;

use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use crosspoint_agent::{Agent as Service, Context, Contract};
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::outcome::Text;
use crosspoint_contracts::printed::TEXT_BYTES_MAX;
use crosspoint_contracts::reply::{Failed, Question, Success};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::{OnceCell, oneshot};
use tokio::time::{sleep, sleep_until};

use self::document::{Document, Documents};
use super::DRAIN;
use super::arguments::Agent;
use super::lines::{self, say};
use crate::Exit;
use crate::command::serve::listening::cannot_listen;
use crate::config::Config;
use crate::exec::{self, Given, Next, OrphanLock, Program, ProgramEvent, Running};
use crate::signals::Signals;
use crate::terminal::render;

/// Directory below the data directory for what services keep.
const DIRECTORY: &str = "agents";

/// How long a job may take in all if that is not said.
const TOTAL: Duration = Duration::from_secs(3_600);

/// Longest time for which a program waits for the answer of a person.
const ANSWER_TIME_MAX: Duration = Duration::from_hours(24);

/// Longest time that killing a program takes after its grace.
const KILL_TIME_MAX: Duration = Duration::from_secs(3);

/// A program that does the work of a service.
struct Worker {
    program: Arc<Program>,
    orphan_lock: OrphanLock,
    /// Where the documents are.
    directory: PathBuf,
    documents: OnceCell<Documents>,
    total: Duration,
    silence: Option<Duration>,
    output_bytes_max: u64,
}

pub(super) fn run(arguments: &Agent, listen: &str, program: Program) -> Result<Exit> {
    let _log = crate::log::start_own("crosspoint_agent")?;
    let directory = Config::load(&arguments.store.flags())?.data.join(DIRECTORY);
    let file = |kind: &str| file(&directory, &arguments.name, kind);
    let (answers, lock, documents) = (file("answers")?, file("programs")?, file("documents")?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot begin")?;
    let outcome = runtime.block_on(async {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.with_context(|| format!("cannot make {}", directory.display()))?;
        let worker = Arc::new(Worker::new(arguments, program, (lock, documents)));
        let service = service(arguments, &worker).answers(&answers);
        match TcpListener::bind(listen).await {
            Ok(listener) => serve(arguments, listener, service, &worker, &answers).await,
            Err(error) => Ok(cannot_listen(listen, &error, "127.0.0.1:8000")),
        }
    });
    // Does not wait for threads that still read from programs that are dead.
    runtime.shutdown_background();
    lines::flush();
    outcome
}

/// Returns where something is kept for an agent of this name.
fn file(directory: &Path, name: &str, kind: &str) -> Result<PathBuf> {
    if name.contains(|character: char| character == '/' || character.is_control() || character.is_whitespace()) {
        bail!("the agent's name has a space, a slash or a control character in it; write it as report-writer");
    }
    let directory = std::path::absolute(directory).context("cannot tell the working directory")?;
    Ok(directory.join(format!("{name}.{kind}")))
}

/// Makes the agent that callers see.
fn service(arguments: &Agent, worker: &Arc<Worker>) -> Service {
    let mut service = Service::new(&arguments.name)
        .concurrency(arguments.concurrency as usize)
        .waiting(arguments.waiting as usize)
        .grace(worker.program.limits.grace + KILL_TIME_MAX)
        .drain(DRAIN);
    for work in &arguments.work {
        let worker = worker.clone();
        let begin = move |input, context| run_for(worker.clone(), input, context);
        service = service.on_outcome(work, begin, arguments.repeatable == Some(false));
    }
    if let Some(contracts) = &arguments.contract {
        service = service.contracts(contracts);
    }
    if let Some(agent_type) = &arguments.agent_type {
        service = service.agent_type(agent_type);
    }
    if let Some(url) = &arguments.report_to {
        service = service.report_to(url.clone());
    }
    if let Some(path) = &arguments.token_file {
        service = service.token_file(path);
    }
    if arguments.open_to_all {
        service = service.open_to_all();
    }
    let hosts: Vec<&str> = arguments.host.iter().map(String::as_str).collect();
    service.names(&hosts)
}

/// Serves until Ctrl-C. Then running programs may end; a second one ends them at once.
async fn serve(
    arguments: &Agent,
    listener: TcpListener,
    service: Service,
    worker: &Worker,
    answers: &Path,
) -> Result<Exit> {
    let address = listener.local_addr().context("the address is not known")?;
    let mut signals = Signals::new()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let mut serving = std::pin::pin!(service.serve(listener, async { drop(stopped.await) }));
    let contracts = arguments.contract.clone().unwrap_or_else(|| Service::all_contracts().collect());
    let contracts: Vec<&str> = contracts.into_iter().map(Contract::name).collect();
    // What hinders it is told before any address is.
    tokio::select! {
        biased;
        served = &mut serving => return not_served(served, answers),
        () = std::future::ready(()) => {}
    }
    // The agent has its store now, so no other has its files. An earlier one may have been killed and have left some.
    let cleared = worker.documents().await.map(drop);
    cleared.with_context(|| format!("cannot clear {}", worker.directory.display()))?;
    let name = render::visible(&arguments.name);
    lines::note(&format!(
        "agent {name} is at http://{address} for callers of {}; Ctrl-C ends it",
        contracts.join(", ")
    ));
    tokio::select! {
        served = &mut serving => return served.map(|()| Exit::Fine).context("the agent can no longer be served"),
        () = signals.next() => {}
    }
    lines::note("leaving: no more work is taken, and what is under way may end; again ends it");
    drop(stop);
    tokio::select! {
        served = &mut serving => served.map(|()| Exit::Fine).context("the agent could not be stopped"),
        () = signals.next() => Ok(Exit::Interrupted),
    }
}

/// Says why an agent is not served, whose answers are in this file.
fn not_served(served: std::io::Result<()>, answers: &Path) -> Result<Exit> {
    match served {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            let message = format!("another agent keeps its answers in {}", answers.display());
            render::refused(&message, "give this one another name, or another data directory: --data DIR");
            Ok(Exit::CouldNot)
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            render::refused(&error.to_string(), "add --token-file FILE, or --open-to-all if the network is trusted");
            Ok(Exit::CouldNot)
        }
        served => served.map(|()| Exit::Fine).context("the agent cannot be served"),
    }
}

/// Runs the program for one job, and says how it went. Never what it was about.
async fn run_for(worker: Arc<Worker>, input: Bytes, context: Context) -> Result<Success, Failed> {
    let began = Instant::now();
    let result = worker.run(input, &context).await;
    let how = match &result {
        Ok(_) => "completed",
        Err(failed) if failed.failure == Failure::Cancelled => "cancelled",
        Err(_) => "failed",
    };
    let (id, work) = (render::visible(context.request_id()), render::visible(context.work()));
    say(&format!("request {id}  {work}  {how}  {:.1} s", began.elapsed().as_secs_f64()));
    result
}

/// What a program has used so far.
struct Used {
    /// Until when it may go on.
    until: Instant,
    printed_bytes: u64,
}

/// Why a program is being ended.
enum Ending {
    /// Its caller no longer wants the work.
    Unwanted,
    /// It went over a limit.
    Over(Failed),
}

impl Ending {
    /// Returns the failure of work that was not begun.
    fn before_the_start(self) -> Failed {
        let failed = match self {
            Ending::Unwanted => Failed::of(Failure::Cancelled, Dispatched::No),
            Ending::Over(failed) => failed,
        };
        Failed { dispatched: Dispatched::No, ..failed }
    }
}

impl Worker {
    fn new(arguments: &Agent, program: Program, (lock, directory): (PathBuf, PathBuf)) -> Worker {
        Worker {
            program: Arc::new(Program { orphan_lock: Some(lock.clone()), ..program }),
            orphan_lock: OrphanLock::new(lock),
            directory,
            documents: OnceCell::new(),
            total: arguments.total_seconds.map_or(TOTAL, Duration::from_secs_f64),
            silence: arguments.silence_seconds.map(Duration::from_secs_f64),
            output_bytes_max: arguments.output_bytes.unwrap_or(u64::MAX).min(TEXT_BYTES_MAX as u64),
        }
    }

    async fn run(&self, input: Bytes, context: &Context) -> Result<Success, Failed> {
        let starting = async {
            self.orphan_lock.clear().await.map_err(|_| unguarded())?;
            let document = self.document(context).await.map_err(|_| unwritten())?;
            let program = document.given_to(&exec::within(&self.program, context.memory_bytes()));
            Ok::<_, Failed>((exec::start(program, given(input, context)).await?, document))
        };
        let mut used = Used { until: Instant::now() + self.total, printed_bytes: 0 };
        let (mut running, _document) = tokio::select! {
            started = starting => started?,
            // The start may wait for programs of an earlier start.
            why = self.hindered(context, used.until, None) => return Err(why.before_the_start()),
        };
        let mut ending = None;
        loop {
            let quiet_until = self.silence.map(|silence| Instant::now() + silence);
            let next = tokio::select! {
                next = running.next() => next,
                why = self.hindered(context, used.until, quiet_until), if ending.is_none() => {
                    ending = Some(why);
                    running.stop();
                    continue;
                }
            };
            match (next, ending) {
                (Next::Ended(_), Some(Ending::Over(failed))) => return Err(failed),
                (Next::Ended(result), _) => return result.map(|success| whole(success, context)),
                // What the program says while it is being ended is dropped, but must be read so that it can end.
                (Next::Event(_), Some(why)) => ending = Some(why),
                (Next::Event(event), None) => {
                    ending = self.hear(event, &mut running, context, &mut used).await;
                    if ending.is_some() {
                        running.stop();
                    }
                }
            }
        }
    }

    /// Returns the documents of the jobs under way. Those of an earlier process are removed first, once.
    async fn documents(&self) -> std::io::Result<&Documents> {
        self.documents.get_or_try_init(|| Documents::open(self.directory.clone())).await
    }

    /// Writes the caller's document for the program.
    async fn document(&self, context: &Context) -> std::io::Result<Document> {
        self.documents().await?.write(Bytes::copy_from_slice(context.document())).await
    }

    /// Waits until there is a reason to end the program.
    async fn hindered(&self, context: &Context, until: Instant, quiet_until: Option<Instant>) -> Ending {
        let quiet = async {
            match quiet_until {
                Some(quiet_until) => sleep_until(quiet_until.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = context.cancelled() => Ending::Unwanted,
            () = sleep_until(until.into()) => Ending::Over(too_long("took longer than", self.total)),
            () = quiet => Ending::Over(too_long("was silent for", self.silence.unwrap_or_default())),
        }
    }

    /// Passes on what the program says. Returns why it is to be ended, if it is.
    async fn hear(
        &self,
        event: ProgramEvent,
        running: &mut Running,
        context: &Context,
        used: &mut Used,
    ) -> Option<Ending> {
        match event {
            ProgramEvent::Output(block) => {
                used.printed_bytes += block.len() as u64;
                let is_taken =
                    used.printed_bytes <= self.output_bytes_max && context.output().write_all(&block).await.is_ok();
                (!is_taken).then(|| Ending::Over(printed_too_much(self.output_bytes_max)))
            }
            ProgramEvent::Progress { percent, step } => {
                context.advanced(percent, step.as_deref());
                None
            }
            ProgramEvent::Heard => None,
            ProgramEvent::Broken(rule) => {
                say(&format!("request {}: {rule}", render::visible(context.request_id())));
                None
            }
            ProgramEvent::Ask(question) => {
                let began = Instant::now();
                let ending = ask(question, running, context).await;
                // The time of a person is not the program's.
                used.until += began.elapsed();
                ending
            }
        }
    }
}

/// Passes on a question, and its answer. Returns why the program is to be ended, if it is.
async fn ask(question: Question, running: &mut Running, context: &Context) -> Option<Ending> {
    tokio::select! {
        answer = context.answered(question) => match answer {
            Ok(answer) => {
                running.answer(answer);
                None
            }
            Err(_) if context.is_cancelled() => Some(Ending::Unwanted),
            Err(failure) => Some(Ending::Over(failure.failed())),
        },
        // A program that ends while a person thinks needs no answer.
        () = running.ended() => None,
        () = sleep(ANSWER_TIME_MAX) => Some(Ending::Over(too_long("waited for an answer for", ANSWER_TIME_MAX))),
    }
}

fn given(input: Bytes, context: &Context) -> Given {
    let (id, trace) = context.id_and_trace();
    Given {
        job_id: id.to_string(),
        request_id: context.request_id().to_owned(),
        work: context.work().to_owned(),
        attempt: 1,
        // The agent and what watches over its programs may both have been killed.
        may_be_haunted: true,
        output_offset: 0,
        traceparent: trace.header(),
        tracestate: trace.state().unwrap_or_default().to_owned(),
        input: Body::trusted(input),
    }
}

/// Returns what a program gave, with the text that it printed if that is part of it.
fn whole(success: Success, context: &Context) -> Success {
    let Some(Text::Printed(_)) = success.text else { return success };
    match (context.take_text(), success.outputs) {
        (Some(text), None) => Success { artifacts: success.artifacts, ..Success::printed(&text) },
        (text, outputs) => Success { outputs, text: text.map(|text| Text::Beside(Body::of(&text))), ..success },
    }
}

fn too_long(what: &str, limit: Duration) -> Failed {
    let message = format!("The program {what} {} s, and was ended.", limit.as_secs_f64());
    Failed::said(Failure::Timeout, Dispatched::Yes, &message)
}

fn printed_too_much(limit: u64) -> Failed {
    let message = format!("The program printed more than {limit} bytes, and was ended.");
    Failed { repeat: Some(Repeat::Never), ..Failed::said(Failure::ResourceLimit, Dispatched::Yes, &message) }
}

fn unwritten() -> Failed {
    let message = "Programs are not started: the document cannot be written to the data directory.";
    Failed::said(Failure::Unavailable, Dispatched::No, message)
}

fn unguarded() -> Failed {
    let message = "Programs are not started: the lock in the data directory cannot be taken.";
    Failed::said(Failure::Unavailable, Dispatched::No, message)
}
