//! `crosspoint bridge run`: runs a program again and again, and in between has its requests answered.
//!
//! `start` is how a run begins, `next` decides, `child` is the program, `keeper` ends it when the driver ends,
//! `answering` has a server answer, `line` shows it. What is remembered is in the directory alone: after a crash of the
//! driver at any moment, the same command goes on from there.

mod answering;
mod child;
mod keeper;
mod line;
mod next;
mod start;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crosspoint_bridge::{DIRECTORY, Directory, Fault, Pair, failpoint};

use self::answering::{Asked, Done, fault_error};
use self::child::{Place, Program, Way};
use self::next::{After, Resumptions};
use crate::Exit;
use crate::bridge::driver::{DrivenDirectory, Waiting};
use crate::bridge::record::digest;
use crate::bridge::request_notes;
use crate::client::{self, Failed, Session};
use crate::command::bridge::arguments::BridgeRun;
use crate::signals::Signals;
use crate::terminal::render;
pub(crate) use child::{COMMAND as CHILD, become_program};

/// Longest wait for a directory that another driver holds: a driver that was just killed may not be gone yet.
const IN_USE_TIME_MAX: Duration = Duration::from_secs(2);
const IN_USE_PAUSE: Duration = Duration::from_millis(20);

const GOES_ON: &str = "everything is kept: the same command goes on from here";

pub(crate) fn run(arguments: &BridgeRun) -> Result<Exit> {
    client::check_configuration(&arguments.reach)?;
    let directory = arguments.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    // The program is started by this thread, and ends with it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot begin")?;
    runtime.block_on(async {
        let signals = Signals::new()?;
        let attended = open(&directory).await?;
        let place = match &arguments.cwd {
            None => Place { runs_in: directory, files_in: None },
            Some(cwd) => apart(cwd, &directory)?,
        };
        let program = match Program::find(&arguments.command, place) {
            Ok(program) => program,
            Err(code) => return Ok(Exit::Passed(code)),
        };
        if let Some(aside) = &attended.odd_record {
            render::note(&format!("what was remembered here could not be understood; it is kept as {aside}"));
        }
        let command = digest(&arguments.command, arguments.cwd.as_deref());
        let resumptions = Resumptions { done: 0, max: arguments.max_iterations };
        let (session, has_run) = (None, false);
        let mut driver = Driver { arguments, attended, program, command, signals, session, resumptions, has_run };
        let outcome = driver.drive().await;
        driver.end_session(Ending::Ours).await;
        outcome
    })
}

/// The places of a program that runs elsewhere than where its files of the bridge are.
fn apart(cwd: &Path, directory: &Path) -> Result<Place> {
    // So that a missing directory is reported as such, and not as a program that cannot be started.
    Directory::open(cwd).map_err(|fault| Failed::other(format!("--cwd: {fault}"), fault.hint()))?;
    let files_in = directory.canonicalize().with_context(|| format!("cannot find {}", directory.display()))?;
    Ok(Place { runs_in: cwd.to_owned(), files_in: Some(files_in) })
}

async fn open(directory: &Path) -> Result<DrivenDirectory> {
    let until = Instant::now() + IN_USE_TIME_MAX;
    loop {
        match DrivenDirectory::open(directory) {
            Err(Fault::InUse(_)) if Instant::now() < until => tokio::time::sleep(IN_USE_PAUSE).await,
            opened => return opened.map_err(|fault| fault_error(&fault)),
        }
    }
}

struct Driver<'a> {
    arguments: &'a BridgeRun,
    attended: DrivenDirectory,
    program: Program,
    /// The digest by which the command is known.
    command: String,
    signals: Signals,
    /// The connection to the server, once one was needed.
    session: Option<Session>,
    resumptions: Resumptions,
    /// Whether this driver has run the program at all.
    has_run: bool,
}

/// Why a session ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The program is about to run and may need the store: only a store that this process opened is let go.
    Program,
    /// The driver itself ends.
    Ours,
}

/// What comes next.
enum Step {
    Run(Way),
    Answer,
    End(Exit),
}

impl Driver<'_> {
    async fn drive(&mut self) -> Result<Exit> {
        let mut step = self.begin()?;
        loop {
            step = match step {
                Step::Run(way) => self.run(way).await?,
                Step::Answer => self.answer().await?,
                Step::End(outcome) => return Ok(outcome),
            };
        }
    }

    async fn run(&mut self, way: Way) -> Result<Step> {
        self.end_session(Ending::Program).await;
        match way {
            Way::Fresh => {
                self.forget_answers();
                self.note_beginning();
            }
            Way::Resumed => self.resumptions.done += 1,
        }
        self.has_run = true;
        let (ended, asked_to_stop) = self.program.run(way, &mut self.signals, &self.attended.lock).await?;
        let requests = self.attended.waiting().map_err(|fault| fault_error(&fault))?.len();
        Ok(match next::after(ended, asked_to_stop, requests, self.resumptions) {
            After::Answer => {
                failpoint::reached("driver", "asked");
                Step::Answer
            }
            After::Done(code) => self.done(code, requests)?,
            After::CutShort(code) => {
                render::note(&format!("the program was cut short; {GOES_ON}"));
                Step::End(Exit::Passed(code))
            }
            After::Interrupted => {
                render::note(&format!("interrupted; {GOES_ON}"));
                Step::End(Exit::Interrupted)
            }
            After::NothingAsked => {
                let message = format!("the program exited with 42, and there is no {} (BRIDGE-121)", Pair::PLAIN);
                render::refused(&message, &self.where_to_ask());
                Step::End(Exit::NotFine)
            }
            After::TooOften => {
                let message =
                    format!("the program was resumed {} times and asks again (BRIDGE-8.4)", self.resumptions.max);
                render::refused(&message, &format!("{GOES_ON}, and --max-iterations N allows more at once"));
                Step::End(Exit::NotFine)
            }
        })
    }

    fn done(&mut self, code: u8, requests: usize) -> Result<Step> {
        if self.attended.record.command.as_deref() == Some(&self.command) {
            self.attended.record.forget(&self.attended.directory).map_err(|fault| fault_error(&fault))?;
        }
        if code == 0 {
            self.forget_answers();
        }
        if requests > 0 {
            render::note(
                "the program has ended and left a request, which nobody has answered; a script passes the 42 on with `|| exit` after each \
                 crosspoint bridge ask",
            );
        }
        Ok(Step::End(Exit::Passed(code)))
    }

    async fn answer(&mut self) -> Result<Step> {
        let waiting = self.attended.waiting().map_err(|fault| fault_error(&fault))?;
        let (mut requests, mut too_large, mut worst) = (Vec::new(), Vec::new(), None);
        for one in waiting {
            match one {
                Waiting::Request(request) => requests.push(*request),
                Waiting::TooLarge(pair, request_id, length) => too_large.push((pair, request_id, length)),
                Waiting::Malformed(pair, malformed) => {
                    let name = render::visible(&self.path_of(pair).display().to_string());
                    render::findings_by_place(&name, &malformed.report);
                    worst = worst.max(Some(Exit::NotFine));
                }
                Waiting::Unreadable(_, fault) => {
                    render::refused(&fault.to_string(), fault.hint());
                    worst = worst.max(Some(Exit::CouldNot));
                }
            }
        }
        if let Some(worst) = worst {
            if !self.has_run {
                render::note("this was there before the program was run, and it was not run");
            }
            render::note("nothing was done with what it asked; mend or remove it, and run the same command again");
            return Ok(Step::End(worst));
        }
        for request in &requests {
            for (clause, what) in request_notes::remarks(request) {
                render::note(&format!("warning[{clause}]: {}: {}", request.pair, render::visible(&what)));
            }
        }
        let (routes, reach) = (&self.arguments.routes, &self.arguments.reach);
        let asked = Asked { requests, too_large, command: &self.command, routes, reach };
        let done = answering::answer(&mut self.attended, asked, &mut self.session, &mut self.signals).await;
        Ok(match done {
            Ok(Done::All) => Step::Run(Way::Resumed),
            Ok(Done::Interrupted) => {
                render::note(&format!("interrupted; {GOES_ON}"));
                Step::End(Exit::Interrupted)
            }
            Err(error) => {
                render::error(&error);
                render::note(GOES_ON);
                Step::End(Exit::CouldNot)
            }
        })
    }

    /// Where a program has to write its request.
    fn where_to_ask(&self) -> String {
        match (&self.arguments.cwd, &self.arguments.dir) {
            (None, _) => "it writes its request into the directory it runs in, before it exits".to_owned(),
            (Some(_), dir) => {
                let dir = dir.as_deref().unwrap_or(Path::new("."));
                let dir = render::visible(&dir.display().to_string());
                format!("it writes its request into {dir}, the directory of --dir; ${DIRECTORY} tells it where that is")
            }
        }
    }

    fn path_of(&self, pair: Pair) -> PathBuf {
        match &self.arguments.dir {
            Some(directory) => directory.join(pair.request()),
            None => PathBuf::from(pair.request()),
        }
    }

    /// Ends the session if it is due. A store that this process opened is let go before the program runs, because the
    /// program may be another crosspoint command. A server is kept.
    async fn end_session(&mut self, ending: Ending) {
        let is_due = |session: &mut Session| ending == Ending::Ours || session.client.is_embedded();
        if let Some(session) = self.session.take_if(|session| is_due(session)) {
            session.end().await;
        }
    }

    /// Notes that the program is begun. Whatever it asks from now on is its own, even if this driver is killed before
    /// the request itself is noted. A program that asks nothing can do without, also in a directory that is read-only.
    fn note_beginning(&mut self) {
        if let Err(fault) = self.attended.record.begin(&self.command, &self.attended.directory) {
            render::note(&format!("that the program is begun cannot be noted: {fault}"));
        }
    }

    /// Removes the answers of the last run: they belong to one run, from its beginning to its good end.
    fn forget_answers(&self) {
        if let Err(fault) = crosspoint_bridge::ask::forget(&self.attended.directory) {
            render::note(&format!("the answers of the last run cannot be removed: {fault}"));
        }
    }
}
