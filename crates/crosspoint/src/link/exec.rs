//! Programs: the link between an attempt and a program that runs for it.
//!
//! A program is given the job's input, and what it prints is its output. A program that speaks a contract is given a
//! request of that contract instead, and what it prints is its answer ([`printed`]).

mod printed;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_engine::breaker::Health;
use crosspoint_engine::runtime::{Attempt, Gone, Link};
use crosspoint_exchange::outgoing::AgentOptions;

use self::printed::{Printed, Speech};
use super::record::Broken;
use super::remote;
use crate::agent_side::AgentSide;
use crate::backend::trace_of;
use crate::config::{self, Config};
use crate::exec::{self, Given, Next, OrphanLock, Program, ProgramEvent, Running};
use crate::workflow::Runs;

/// The file in the data directory by which a start waits for the programs of the previous one.
const ORPHAN_LOCK_FILE: &str = "programs.lock";

/// The clause under which violations of programs are recorded.
const CLAUSE: &str = "exec";

/// Longest time that killing a program takes after its grace. A process that hangs in the kernel is not waited for.
pub(super) const KILL_TIME_MAX: Duration = Duration::from_secs(3);

/// How often an attempt that waits for leftovers of earlier attempts reports that it is alive.
const WAITING_PERIOD: Duration = Duration::from_millis(200);

/// Where the programs of one configuration run.
pub(super) struct ProgramDirectory {
    directory: PathBuf,
    orphan_lock: Arc<OrphanLock>,
}

impl ProgramDirectory {
    /// The directory of the configuration file; the current directory if there is no file.
    pub(super) fn of(config: &Config) -> ProgramDirectory {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let file = config.origin.as_deref().map(absolute);
        let directory = file.as_deref().and_then(Path::parent).map_or_else(|| absolute(Path::new(".")), Path::to_owned);
        ProgramDirectory {
            directory,
            orphan_lock: Arc::new(OrphanLock::new(absolute(&config.data).join(ORPHAN_LOCK_FILE))),
        }
    }
}

pub(super) struct Exec {
    program: Arc<Program>,
    orphan_lock: Arc<OrphanLock>,
    /// How it is spoken to, if it speaks a contract.
    speech: Option<Speech>,
    /// The runs of workflows, in whose repositories programs of stages are started.
    runs: Arc<Runs>,
}

impl Exec {
    pub(super) fn new(
        agent: &config::Agent,
        settled: &config::Exec,
        program_directory: &ProgramDirectory,
        side: &AgentSide,
        server: &str,
    ) -> Exec {
        let speech = settled.speaks.and_then(|spoken| {
            let options = AgentOptions {
                contract: spoken.contract,
                agent: agent.name.clone(),
                server: server.to_owned(),
                mode: None,
                carry: settled.carry,
                agent_type: None,
                agent_types: Arc::default(),
            };
            let bytes_max = usize::try_from(agent.output_bytes_max).unwrap_or(usize::MAX);
            Some(Speech { options, clause: spoken.program?, bytes_max })
        });
        let program = Program {
            argv: settled.argv.clone(),
            home: program_directory.directory.clone(),
            directory: program_directory.directory.clone(),
            env: settled.env.clone(),
            ask: settled.ask,
            has_directives: speech.is_none(),
            retry_exit_codes: settled.retry_exit_codes.clone(),
            limits: settled.limits,
            orphan_lock: Some(program_directory.orphan_lock.path().to_owned()),
        };
        let orphan_lock = program_directory.orphan_lock.clone();
        Exec { program: Arc::new(program), orphan_lock, speech, runs: side.runs.clone() }
    }
}

impl Link for Exec {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(run(self, attempt))
    }

    fn check(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Health> + Send>> {
        Box::pin(async move { if exec::check(&self.program).await { Health::Well } else { Health::Sick } })
    }
}

async fn run(link: Arc<Exec>, mut attempt: Attempt) -> Result<Success, Failed> {
    // A program does not outlive the server: when the server is about to end, the program is asked to end, and has its
    // grace.
    let mut leaving = pin!(attempt.leaving());
    let given = given(&attempt, link.speech.as_ref()).await?;
    let mut printed = link.speech.as_ref().map(Printed::of);
    let program = exec::within(&link.program, attempt.job().request.limits.memory_bytes);
    let program = tokio::select! {
        program = placed(&link.runs, program, &attempt) => program,
        () = attempt.stopped() => return Err(super::gone(Gone)),
        () = &mut leaving => {
            attempt.abandon();
            return Err(super::gone(Gone));
        }
    };
    let mut running = started(&link.orphan_lock, (program, given), &attempt, leaving.as_mut()).await?;
    let mut stopping = false;
    loop {
        let next = tokio::select! {
            next = running.next() => next,
            () = attempt.stopped(), if !stopping => {
                stopping = true;
                running.stop();
                continue;
            }
            () = &mut leaving, if !stopping => {
                stopping = true;
                abandon(&attempt, &mut running);
                continue;
            }
        };
        match next {
            Next::Ended(result) => return concluded(&attempt, printed, result),
            // What the program says while it is being ended is dropped, but must be read so that the program can end.
            Next::Event(_) if stopping => {}
            Next::Event(event) => {
                let heard = tokio::select! {
                    heard = hear(event, &mut running, &mut attempt, printed.as_mut()) => Some(heard),
                    () = &mut leaving => None,
                };
                match heard {
                    Some(Ok(())) => continue,
                    Some(Err(Gone)) => running.stop(),
                    None => abandon(&attempt, &mut running),
                }
                stopping = true;
            }
        }
    }
}

/// Returns the program as it is started for this job. The program of a stage is started in the repository of its run
/// (WF-8), and found where the configuration has it.
async fn placed(runs: &Runs, program: Arc<Program>, attempt: &Attempt) -> Arc<Program> {
    let Some(run) = attempt.job().request.child_of() else { return program };
    let directory = runs.place_of(run).await.root.clone();
    Arc::new(Program { directory, ..(*program).clone() })
}

/// Ends the program because the server ends. Nothing is reported: the job is taken up at the next start (ALL-3).
fn abandon(attempt: &Attempt, running: &mut Running) {
    attempt.abandon();
    running.stop();
}

/// Starts the program. Waiting for leftovers of earlier attempts does not count as silence of the agent.
async fn started(
    orphan_lock: &OrphanLock,
    (program, given): (Arc<Program>, Given),
    attempt: &Attempt,
    mut leaving: Pin<&mut impl Future<Output = ()>>,
) -> Result<Running, Failed> {
    let starting = async {
        orphan_lock.clear().await.map_err(|error| unguarded(orphan_lock, &error))?;
        exec::start(program, given).await
    };
    tokio::pin!(starting);
    loop {
        tokio::select! {
            running = &mut starting => return running,
            () = attempt.stopped() => return Err(super::gone(Gone)),
            () = leaving.as_mut() => {
                attempt.abandon();
                return Err(super::gone(Gone));
            }
            () = tokio::time::sleep(WAITING_PERIOD) => attempt.heard().await.map_err(super::gone)?,
        }
    }
}

async fn given(attempt: &Attempt, speech: Option<&Speech>) -> Result<Given, Failed> {
    let request = &attempt.job().request;
    let input = match speech {
        None => attempt.input().await?,
        Some(speech) => Body::trusted(remote::request(attempt, &speech.options).await?.text),
    };
    let trace = trace_of(attempt.job(), attempt.number());
    Ok(Given {
        job_id: request.id.to_string(),
        request_id: request.request_id.to_string(),
        work: request.work.to_string(),
        attempt: attempt.number(),
        may_be_haunted: attempt.number() > 1,
        output_offset: attempt.job().output_bytes,
        traceparent: trace.header(),
        tracestate: trace.state().unwrap_or_default().to_owned(),
        input,
    })
}

/// Returns how an attempt ended: as the program did, or as it says in its contract.
fn concluded(
    attempt: &Attempt,
    printed: Option<Printed<'_>>,
    result: Result<Success, Failed>,
) -> Result<Success, Failed> {
    let Some(printed) = printed else { return result };
    let verdict = printed.verdict(result);
    let mut broken = Broken::default();
    verdict.violations.into_iter().for_each(|violation| broken.note(attempt, violation));
    verdict.result
}

async fn hear(
    event: ProgramEvent,
    running: &mut Running,
    attempt: &mut Attempt,
    printed: Option<&mut Printed<'_>>,
) -> Result<(), Gone> {
    match event {
        ProgramEvent::Output(block) => match printed {
            None => attempt.output(block).await,
            Some(printed) => {
                if printed.take(&block) {
                    running.stop();
                }
                attempt.heard_at_once();
                Ok(())
            }
        },
        ProgramEvent::Progress { percent, step } => attempt.progress(percent, step.as_deref()).await,
        ProgramEvent::Heard => attempt.heard().await,
        ProgramEvent::Broken(rule) => {
            attempt.violation(CLAUSE, Level::Error, rule).await;
            Ok(())
        }
        ProgramEvent::Ask(question) => {
            // A program that ends while a person thinks needs no answer.
            tokio::select! {
                answer = attempt.ask(question) => running.answer(answer?),
                () = running.ended() => {}
            }
            Ok(())
        }
    }
}

fn unguarded(orphan_lock: &OrphanLock, error: &std::io::Error) -> Failed {
    tracing::error!(path = %orphan_lock.path().display(), %error, "the lock of programs cannot be taken");
    let message = "Programs are not started: the lock in the data directory cannot be taken.";
    Failed::said(Failure::Unavailable, Dispatched::No, message)
}
