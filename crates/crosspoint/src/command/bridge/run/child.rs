//! The program that asks: found, started, waited for, and told of signals.
//!
//! It must not outlive the driver: `keeper` ensures that. If the keeper itself is killed, the system kills the program,
//! but only a process itself can ask the system for that. So this same binary is started first, asks, and becomes the
//! program. The system watches the thread that started it, and so that is the keeper's main thread, which ends last.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};
use crosspoint_bridge::{Lock, RESUME};
use rustix::process::{Pid, Signal, getpgrp, getppid, set_parent_process_death_signal};
use tokio::signal::unix::{SignalKind, signal};

use super::keeper::{self, KEEP, Kept};
use super::next::Ended;
use crate::signals::{Signals, StopRequest};
use crate::terminal::render;

/// The word on the command line by which this binary is to become a program.
pub(crate) const COMMAND: &str = "@bridge-child";

/// The exit codes of shells for a program that is not there, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

/// A program, and where it runs.
pub(super) struct Program {
    words: Vec<OsString>,
    place: Place,
}

/// Where a program runs, and where its files of the bridge are.
pub(super) struct Place {
    pub(super) runs_in: PathBuf,
    /// An absolute path; none if the files are where the program runs.
    pub(super) files_in: Option<PathBuf>,
}

/// Whether the program is begun or resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Fresh,
    Resumed,
}

impl Program {
    /// Finds the program, so that a mistyped name is reported before anything is done; an error is the exit code for
    /// it.
    pub(super) fn find(command: &[OsString], place: Place) -> Result<Program, u8> {
        let (name, rest) = command.split_first().ok_or(NOT_FOUND)?;
        let has_place = name.as_bytes().contains(&b'/');
        let found = if has_place { Some(placed(name, &place.runs_in)) } else { searched(name) };
        let (word, path) = found.ok_or_else(|| missing(name))?;
        match path.metadata() {
            Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => {
                let words = [word].into_iter().chain(rest.iter().cloned()).collect();
                Ok(Program { words, place })
            }
            Ok(file) => Err(cannot(name, if file.is_file() { "it is not executable" } else { "it is no file" })),
            Err(error) if is_missing(&error) => Err(missing(name)),
            Err(error) => Err(cannot(name, &error.to_string())),
        }
    }

    /// Runs the program until it ends, and returns whether the driver was asked to stop meanwhile.
    pub(super) async fn run(&self, way: Way, signals: &mut Signals, lock: &Lock) -> Result<(Ended, bool)> {
        let mut ends = signal(SignalKind::child()).context("cannot watch for the program's end")?;
        let mut kept = self.start(way, lock)?;
        let mut asked_to_stop = false;
        let status = loop {
            if let Some(status) = kept.ended().context("cannot wait for the program")? {
                break status;
            }
            tokio::select! {
                _ = ends.recv() => {}
                asked = signals.which() => {
                    asked_to_stop = true;
                    pass_on(asked, &kept);
                }
            }
        };
        // Ctrl-C is for driver and program, and the program's end may have been noticed before it.
        asked_to_stop |= signals.has_come().await;
        Ok((ended(status), asked_to_stop))
    }

    fn start(&self, way: Way, lock: &Lock) -> Result<Kept> {
        let mut words = self.words.clone();
        // BRIDGE-122
        if way == Way::Resumed && !words.iter().skip(1).any(|word| word == RESUME) {
            words.push(RESUME.into());
        }
        Kept::start(&words, &self.place, lock.as_fd()).context("cannot start the program")
    }
}

/// A program with a slash in its name is meant relative to where it was typed, else relative to the directory.
fn placed(name: &OsStr, directory: &Path) -> (OsString, PathBuf) {
    let typed = Path::new(name);
    let here = env::current_dir().map(|here| here.join(typed)).unwrap_or_else(|_| typed.to_owned());
    if typed.is_absolute() || directory == Path::new(".") {
        (name.to_owned(), here)
    } else if here.exists() {
        (here.clone().into_os_string(), here)
    } else {
        (name.to_owned(), directory.join(typed))
    }
}

/// Returns the first file of this name in PATH that can be run, else the first at all.
fn searched(name: &OsStr) -> Option<(OsString, PathBuf)> {
    let all = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let found: Vec<PathBuf> =
        env::split_paths(&all).map(|directory| directory.join(name)).filter(|path| path.is_file()).collect();
    let can_run = |path: &&PathBuf| path.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 != 0);
    let path = found.iter().find(can_run).or(found.first())?;
    Some((name.to_owned(), path.clone()))
}

/// Passes a signal on. A terminal sends Ctrl-C to its whole foreground group, the program too: the program must get it
/// exactly once.
fn pass_on(asked: StopRequest, kept: &Kept) {
    match asked {
        StopRequest::Interrupt if is_in_foreground() => {}
        StopRequest::Interrupt | StopRequest::Terminate => kept.tell(asked),
    }
}

fn is_in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp()))
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exit(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, signal) => Ended::Signal(signal.unwrap_or_default()),
    }
}

/// Becomes the program, or first its keeper.
pub(crate) fn become_program() -> ExitCode {
    let mut words = env::args_os().skip(2);
    let what = words.next();
    if what.as_deref() == Some(OsStr::new(KEEP)) {
        return keeper::keep(&words.collect::<Vec<_>>());
    }
    let parent = what.and_then(|parent| parent.to_str()?.parse::<i32>().ok());
    let (Some(parent), Some(program)) = (parent.and_then(Pid::from_raw), words.next()) else {
        render::error(&anyhow::anyhow!("{COMMAND} is started by crosspoint bridge run itself"));
        return ExitCode::from(2);
    };
    let asked = set_parent_process_death_signal(Some(Signal::KILL));
    // If the parent died before the signal was requested, no signal would come.
    if asked.is_err() || getppid() != Some(parent) {
        return ExitCode::FAILURE;
    }
    let error = Command::new(&program).args(words).exec();
    if is_missing(&error) {
        cannot(&program, "the interpreter on its first line (#!) does not exist");
        return ExitCode::from(NOT_FOUND);
    }
    ExitCode::from(cannot(&program, &error.to_string()))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn missing(program: &OsStr) -> u8 {
    let message = format!("there is no program {}", program.to_string_lossy());
    render::refused(&message, "see its name and PATH; one in this directory is called ./NAME");
    NOT_FOUND
}

fn cannot(program: &OsStr, why: &str) -> u8 {
    let message = format!("{} cannot be run: {why}", program.to_string_lossy());
    render::refused(&message, "a script is run by its interpreter, as bash x.sh, or made executable with chmod +x");
    NOT_RUNNABLE
}
