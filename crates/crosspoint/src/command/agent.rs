//! `crosspoint agent`: joins a server and has a program do the work. With `--listen` it serves callers without a server
//! (`service`).
//!
//! Three loops and a task for each job. One loop asks for work and lists what is held (`instructions`). One reports
//! what came of the jobs (`reports`). One watches the lease; `link` knows when the server was last sure to hear this
//! worker. The lease is counted by the worker's own clock, from when the last successful call was *sent*. When it has
//! run out, the server may have given the work to another worker, so every program is killed. The server's clock began
//! later, so the server never gives the work away while a program of this worker still runs, unless the worker itself
//! was stopped or asleep.
//!
//! In reading order: `link` is the way to the server; `held` is what is held; `instructions` reads what the server
//! wants; `job` runs a program; `reports` sends what came of it.

pub(crate) mod arguments;
mod held;
mod instructions;
mod job;
mod lines;
mod link;
mod reports;
mod service;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::Exit;
use crate::client::Failed;
use crate::command::agent::arguments::Agent;
use crate::exec::{self, GRACE_DEFAULT, Limits, PROCESSES_DEFAULT, Program};
use crate::signals::Signals;
use crate::terminal::render;
use held::{HeldJobs, Hold};
use link::{Link, Pause, Trouble};
use reports::Reports;

/// How long running programs may go on after the first Ctrl-C.
const DRAIN: Duration = Duration::from_secs(30);

/// Longest time for telling the server that this worker leaves.
const GOODBYE: Duration = Duration::from_secs(2);

/// Pause between looks at whether the server is back, after the lease ran out.
const EXPIRED_PAUSE: Duration = Duration::from_millis(200);

/// What the loops and the jobs share.
struct Worker {
    link: Link,
    held: HeldJobs,
    reports: Reports,
    program: Arc<Program>,
}

pub(crate) fn run(arguments: &Agent) -> Result<Exit> {
    let program = program(arguments)?;
    if let Err(why) = exec::startable(&program) {
        render::refused(&why, "give a program that can be started after --; no work was taken");
        return Ok(Exit::CouldNot);
    }
    if let Some(listen) = &arguments.listen {
        return service::run(arguments, listen, program);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot begin")?;
    let outcome = runtime.block_on(async {
        let (reports, outgoing) = Reports::new();
        let held = HeldJobs::new(arguments.concurrency as usize, arguments.waiting as usize);
        let worker = Arc::new(Worker { link: Link::new(arguments)?, held, reports, program: Arc::new(program) });
        let mut signals = Signals::new()?;
        tokio::select! {
            failed = worker.work(outgoing) => Err(failed.into()),
            outcome = worker.leave_when_asked(&mut signals) => Ok(outcome),
        }
    });
    // Does not wait for threads that still read from programs that are dead.
    runtime.shutdown_background();
    lines::flush();
    outcome
}

fn program(arguments: &Agent) -> Result<Program> {
    let seconds = arguments.grace_seconds.map(Duration::from_secs_f64);
    let directory = std::env::current_dir().context("cannot tell the working directory")?;
    Ok(Program {
        argv: arguments.program.clone(),
        home: directory.clone(),
        directory,
        env: arguments.env.iter().cloned().collect(),
        ask: arguments.ask,
        has_directives: true,
        retry_exit_codes: arguments.retry_exit_codes.clone(),
        limits: Limits {
            memory_bytes: arguments.memory_mb.map(|mb| mb << 20),
            processes: arguments.processes.unwrap_or(PROCESSES_DEFAULT),
            grace: seconds.unwrap_or(GRACE_DEFAULT),
        },
        // A worker that was killed joins with a new session, and the server does not give it the old work before the
        // old lease is over.
        orphan_lock: None,
    })
}

impl Worker {
    /// Works until a failure that waiting does not mend.
    async fn work(self: &Arc<Worker>, outgoing: reports::Outgoing) -> Failed {
        tokio::select! {
            failed = self.take() => failed,
            failed = reports::send(self, outgoing) => failed,
            never = self.watch_lease() => match never {},
        }
    }

    /// Asks for work for ever.
    async fn take(self: &Arc<Worker>) -> Failed {
        let (mut pause, mut nothing_new) = (Pause::new(self.link.lease()), Pause::short());
        let path = self.link.take_path();
        loop {
            let session = self.link.session();
            let (room, body) = self.held.taking(session);
            let sent = Instant::now();
            let answer = tokio::select! {
                answer = self.link.call(&path, body.into()) => answer,
                // This call would be given no jobs, and now there is room. If its answer is lost, the next one repeats
                // it.
                () = self.held.has_room(), if room == 0 => continue,
            };
            match answer {
                Ok(answer) => {
                    pause.reset();
                    // The worker was asleep, or has a new session by now: the answer may be about work that other
                    // sessions have.
                    if sent.elapsed() >= self.link.lease() || session != self.link.session() {
                        continue;
                    }
                    let Some(instructions) = instructions::read(&answer) else { return self.link.not_ours() };
                    if instructions.is_empty() || self.obey(instructions) {
                        nothing_new.reset();
                        continue;
                    }
                    // A program that is being ended is listed until it has ended, and until then the server answers at
                    // once that it is to end.
                    tokio::select! {
                        () = nothing_new.wait() => {}
                        () = self.held.freed() => {}
                    }
                }
                Err(trouble) => {
                    self.held.given_nothing();
                    match self.mend(trouble).await {
                        Ok(()) => {}
                        Err(Trouble::Refused(failed)) => return failed,
                        Err(Trouble::JoinFirst | Trouble::Away) => pause.wait().await,
                    }
                }
            }
        }
    }

    /// Joins, if that is what the call failed for.
    async fn mend(&self, trouble: Trouble) -> Result<(), Trouble> {
        match trouble {
            Trouble::JoinFirst => self.link.join(self.held.concurrency()).await,
            other @ (Trouble::Away | Trouble::Refused(_)) => Err(other),
        }
    }

    /// Carries out what the server wants; returns whether any of it was new.
    fn obey(self: &Arc<Worker>, instructions: instructions::Instructions) -> bool {
        let mut news = false;
        for (id, attempt) in instructions.stop {
            news |= self.held.stop(&id, attempt);
        }
        for given in instructions.jobs {
            match self.held.hold(&given.id, given.attempt) {
                Hold::New(signals) => drop(tokio::spawn(job::run(self.clone(), given, signals))),
                // The answer was on its way when this worker was asked to leave.
                Hold::Declined => drop(tokio::spawn(job::decline(self.clone(), given))),
                // The list of this worker and the server's answer have crossed.
                Hold::Held => continue,
            }
            news = true;
        }
        for answer in instructions.answers {
            news |= self.held.answer(&answer.id, answer.attempt, answer.number, answer.input);
        }
        news
    }

    async fn watch_lease(&self) -> std::convert::Infallible {
        loop {
            let until = self.link.alive_until();
            if Instant::now() < until {
                tokio::time::sleep_until(until.into()).await;
                continue;
            }
            let killed = self.held.kill_all();
            if killed > 0 {
                self.link.begin_anew();
                let lease = self.link.lease().as_secs_f64();
                let what = match killed {
                    1 => "1 program was killed, because its work".to_owned(),
                    _ => format!("{killed} programs were killed, because their work"),
                };
                lines::note(&format!("the server was out of reach for {lease} s: {what} may be others' now"));
            }
            tokio::time::sleep(EXPIRED_PAUSE).await;
        }
    }

    /// Waits for Ctrl-C; then lets running programs end, and leaves.
    async fn leave_when_asked(self: &Arc<Worker>, signals: &mut Signals) -> Exit {
        signals.next().await;
        let under_way = self.held.leave();
        let rest = match under_way {
            0 => String::new(),
            1 => ", and 1 program may end; again ends it".to_owned(),
            _ => format!(", and {under_way} programs may end; again ends them"),
        };
        lines::note(&format!("leaving: no more work is taken{rest}"));
        let worker = self.clone();
        tokio::spawn(async move { worker.take_no_more().await });
        let outcome = tokio::select! {
            () = self.held.empty() => Exit::Fine,
            () = tokio::time::sleep(DRAIN) => Exit::Fine,
            () = signals.next() => Exit::Interrupted,
        };
        self.held.kill_all();
        let _ = tokio::time::timeout(GOODBYE, self.link.leave()).await;
        outcome
    }
}

impl Worker {
    /// Tells the server that this worker takes no more. A session that takes nothing is given nothing, so what was
    /// queued for it goes to other sessions at once. A call that waits for work is over when another one comes: what it
    /// was given is in its answer, which is on its way then.
    async fn take_no_more(&self) {
        let _ = self.link.join(0).await;
        let (_, body) = self.held.listing(self.link.session());
        let _ = self.link.call(link::LOOK_PATH, body.into()).await;
    }
}
