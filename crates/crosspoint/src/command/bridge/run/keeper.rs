//! The process between the driver and the program, so that nothing of the program outlives the driver.
//!
//! A driver that is started again after it was killed must not meet what the last program has started: a script's own
//! commands, what `make` runs. The system would kill the program when the driver dies, but not the program's children.
//! So this same binary is started as a keeper, in the same group and at the same terminal. It becomes the reaper of
//! orphans, starts the program, waits for it, and reports how it ended. When the driver dies, the keeper learns so from
//! the socket between them, kills all that descends from it, and ends. Until then it holds the directory's lock, which
//! is the same lock as the driver's: the next driver gets the directory when none of these processes is left.
//!
//! What a program leaves running when it ends by itself is its own affair: the keeper ends with the program, and holds
//! nothing for it.
//!
//! The socket takes the place of the keeper's stdin; the real stdin, and the lock, are sent through it.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use crosspoint_bridge::DIRECTORY;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{Signal as Caught, SignalKind, signal};

use super::child::{COMMAND, Place};
use crate::exec::tree;
use crate::signals::StopRequest;
use crate::terminal::render;

/// The word after [`COMMAND`] by which this binary is to be a keeper.
pub(super) const KEEP: &str = "keep";

/// What the driver sends: first what the keeper needs, and then which signal the program is to get.
const BEGIN: u8 = b'B';
const INTERRUPT: u8 = b'I';
const TERMINATE: u8 = b'T';

/// A running program, as its driver sees it.
pub(super) struct Kept {
    keeper: Child,
    line: UnixStream,
}

impl Kept {
    /// Starts a program; its keeper holds this lock from now on.
    pub(super) fn start(words: &[OsString], place: &Place, lock: BorrowedFd<'_>) -> io::Result<Kept> {
        let (line, theirs) = UnixStream::pair()?;
        let mut keeper = again(KEEP, words);
        // The driver may itself be the program of another driver, whose directory is not this program's.
        match &place.files_in {
            Some(files_in) => keeper.env(DIRECTORY, files_in),
            None => keeper.env_remove(DIRECTORY),
        };
        let keeper = keeper.current_dir(&place.runs_in).stdin(OwnedFd::from(theirs)).spawn()?;
        let stdin = io::stdin();
        let both = [stdin.as_fd(), lock];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&both));
        sendmsg(&line, &[IoSlice::new(&[BEGIN])], &mut control, SendFlags::NOSIGNAL)?;
        Ok(Kept { keeper, line })
    }

    /// Returns how the program ended, once it has. If the keeper was killed and cannot say, its own status is returned.
    pub(super) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let Some(status) = self.keeper.try_wait()? else { return Ok(None) };
        self.line.set_nonblocking(true)?;
        let mut code = [0; 4];
        let is_known = self.line.read_exact(&mut code).is_ok();
        Ok(Some(if is_known { ExitStatus::from_raw(i32::from_ne_bytes(code)) } else { status }))
    }

    /// Has the keeper send the program a signal. The program may have ended just now, and then it needs none.
    pub(super) fn tell(&self, asked: StopRequest) {
        let word = match asked {
            StopRequest::Interrupt => INTERRUPT,
            StopRequest::Terminate => TERMINATE,
        };
        let _ = (&self.line).write_all(&[word]);
    }
}

/// The command to run this same binary in another role: the file that runs, whatever has become of it on disk.
fn again(what: &str, words: &[OsString]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("crosspoint").arg(COMMAND).arg(what).args(words);
    command
}

/// Runs as a keeper.
pub(super) fn keep(words: &[OsString]) -> ExitCode {
    let Some(Received { line, stdin, lock }) = received() else {
        // Either a user started this by hand, or the driver is dead already.
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let kept = runtime.and_then(|runtime| runtime.block_on(watch(line, stdin, words)));
    // No process is left, or none that the keeper has to end.
    drop(lock);
    match kept {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            render::error(&anyhow::Error::new(error).context("cannot start the program"));
            ExitCode::FAILURE
        }
    }
}

struct Received {
    line: UnixStream,
    stdin: OwnedFd,
    lock: OwnedFd,
}

fn received() -> Option<Received> {
    let line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    line.peer_addr().ok()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut begin = [0];
    // The program must not inherit the lock: processes that it leaves behind would hold it.
    recvmsg(&line, &mut [IoSliceMut::new(&mut begin)], &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    let mut descriptors = descriptors.into_iter();
    Some(Received { line, stdin: descriptors.next()?, lock: descriptors.next()? })
}

/// Starts the program and waits for its end, or for the driver's.
async fn watch(line: UnixStream, stdin: OwnedFd, words: &[OsString]) -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    let mut ends = signal(SignalKind::child())?;
    let _caught = outlive_signals()?;
    line.set_nonblocking(true)?;
    let mut line = tokio::net::UnixStream::from_std(line)?;
    let own = getpid().as_raw_nonzero().to_string();
    let program = again(&own, words).stdin(Stdio::from(stdin)).spawn()?;
    let program = Pid::from_raw(program.id().cast_signed());
    loop {
        let mut ended = None;
        tree::reap(|pid, how| ended = ended.or((Some(pid) == program).then_some(how)));
        if let Some(how) = ended {
            let line = line.into_std()?;
            // If the driver is gone, it need not know.
            let _ = (&line).write_all(&how.as_raw().to_ne_bytes());
            return Ok(());
        }
        let mut word = [0];
        let asked = tokio::select! {
            _ = ends.recv() => continue,
            read = line.read(&mut word) => read.ok().filter(|length| *length > 0).map(|_| word[0]),
        };
        match (asked, program) {
            (Some(INTERRUPT), Some(program)) => drop(kill_process(program, Signal::INT)),
            (Some(TERMINATE), Some(program)) => drop(kill_process(program, Signal::TERM)),
            // The driver is gone.
            (_, _) => {
                tree::end(Duration::MAX, |_, _| {});
                return Ok(());
            }
        }
    }
}

/// Catches the signals that a terminal sends. They go to the whole group, the keeper too, but are meant for the
/// program, and the driver decides about them. The program has the default action again for what is caught here.
/// Signals that were ignored when the keeper was started stay ignored.
fn outlive_signals() -> io::Result<Vec<Caught>> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()];
    let is_heard = |kind: &SignalKind| ignored & (1 << (kind.as_raw_value() - 1)) == 0;
    kinds.into_iter().filter(is_heard).map(signal).collect()
}
