//! `crosspoint supervise`: the process between the parent (the server or a worker) and a program.
//!
//! It is started with a socket to the parent as its stderr. It gets its order and the program's stdin and stdout over
//! that socket, starts the program, and waits: for the program's end, for the byte that asks for its end, for the
//! connection to close, for a limit to be exceeded. In each case it kills whatever is left, reports how the program
//! ended, and ends. Only if the program ended by itself and left nothing behind, it waits for another order. It has one
//! thread, no runtime and hardly any memory.
//!
//! The supervisor reads the program's stderr: only its end is kept, and each read is a sign of life.

use std::fs::File;
use std::io::{self, IoSliceMut, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Resource, Rlimit, getpid, prlimit, set_child_subreaper, setsid};

use super::control::{Order, Report, Step};
use super::watch::Watch;
use super::{find, orphan_lock};

/// The name of the command on the command line.
pub(crate) const COMMAND: &str = "supervise";

/// The limit of open files that programs expect. That of Crosspoint is higher, and some programs close all of them one
/// by one.
const FILES_SOFT: u64 = 1024;

/// Runs as a supervisor, which ends when there is nothing left to supervise.
pub(crate) fn run() -> ExitCode {
    // What a panic prints must not get among the reports.
    std::panic::set_hook(Box::new(|_| {}));
    match connected().map(supervise) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(_)) => ExitCode::FAILURE,
        None => {
            let why = anyhow::anyhow!("supervise is started by crosspoint itself, for each program that is an agent");
            crate::terminal::render::error(&why);
            ExitCode::from(2)
        }
    }
}

/// The socket that takes the place of stderr. There is none if a user started the command by hand.
fn connected() -> Option<UnixStream> {
    let control = UnixStream::from(io::stderr().as_fd().try_clone_to_owned().ok()?);
    control.peer_addr().ok().map(|_| control)
}

fn supervise(control: UnixStream) -> io::Result<()> {
    // Leaves the terminal: its Ctrl-C is for the user who started the server, and a program must not wait for input
    // from it.
    let _ = setsid();
    let mut next = Some(control);
    while let Some(control) = next {
        let Some(ordered) = read_order(&control)? else { break };
        next = carry_out(control, ordered)?;
    }
    Ok(())
}

/// An order, with the program's stdin and stdout.
struct Ordered {
    order: Order,
    stdin: OwnedFd,
    stdout: OwnedFd,
}

/// Runs one program, and returns the connection if another may follow.
fn carry_out(control: UnixStream, ordered: Ordered) -> io::Result<Option<UnixStream>> {
    let not_started = |step: Step, error: &io::Error| {
        let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
        say(&control, &Report::NotStarted { step, errno }).map(|()| None)
    };
    let Ordered { order, stdin, stdout } = ordered;
    let lock = match order.orphan_lock.clone().map(|path| orphan_lock::hold(&path_of(path))).transpose() {
        Ok(lock) => lock,
        Err(error) => return not_started(Step::Lock, &error),
    };
    let (stderr, writer) = match prepare(&control) {
        Ok(prepared) => prepared,
        Err(error) => return not_started(Step::Supervisor, &error),
    };
    // Only now: if the parent had died before this process held the lock, its successor might have the job already.
    match (&control).read(&mut [0]) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Ok(_) | Err(_) => return Ok(None),
    }
    // Starting it closes this process's ends of the pipes, so that the program and the parent each learn when the other
    // has closed its end.
    let pid = match start(&order, stdin, stdout, writer) {
        Ok(pid) => pid,
        Err(error) => return not_started(Step::Program, &error),
    };
    let free = Watch::new(control, stderr, pid, order).run();
    drop(lock);
    Ok(free)
}

/// Prepares what must be there before a program is started, because a failure afterwards would leave the program
/// without a supervisor. Returns the two ends of its stderr.
fn prepare(control: &UnixStream) -> io::Result<(PipeReader, PipeWriter)> {
    set_child_subreaper(Some(getpid()))?;
    control.set_nonblocking(true)?;
    rustix::stdio::dup2_stderr(File::options().write(true).open("/dev/null")?)?;
    let (stderr, writer) = io::pipe()?;
    rustix::io::ioctl_fionbio(&stderr, true)?;
    Ok((stderr, writer))
}

/// Reads the next order. It comes with its length, so that nothing after it is read along. There is none if the parent
/// is gone.
fn read_order(mut control: &UnixStream) -> io::Result<Option<Ordered>> {
    control.set_nonblocking(false)?;
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let read =
        retry_on_intr(|| recvmsg(control, &mut [IoSliceMut::new(&mut length)], &mut beside, RecvFlags::CMSG_CLOEXEC))?;
    if read.bytes == 0 {
        return Ok(None);
    }
    let mut ends = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            ends.extend(sent);
        }
    }
    let mut ends = ends.into_iter();
    let (Some(stdin), Some(stdout)) = (ends.next(), ends.next()) else { return Err(Errno::BADF.into()) };
    control.read_exact(&mut length[read.bytes..])?;
    let mut order = vec![0; usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?];
    control.read_exact(&mut order)?;
    Ok(Some(Ordered { order: serde_json::from_slice(&order)?, stdin, stdout }))
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Starts the program; an error says that it was not started.
fn start(order: &Order, stdin: OwnedFd, stdout: OwnedFd, stderr: PipeWriter) -> io::Result<Pid> {
    let name = order.argv.first().map_or("", String::as_str);
    if let Ok((soft, hard)) = rlimit::Resource::NOFILE.get() {
        let _ = rlimit::Resource::NOFILE.set(soft.min(FILES_SOFT), hard);
    }
    let mut command = Command::new(path_of(order.path.clone()));
    command.arg0(name).args(order.argv.iter().skip(1)).current_dir(path_of(order.directory.clone()));
    command.env_clear().envs(find::inherited()).envs(&order.env).process_group(0);
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    let child = command.spawn()?;
    // A process always has an id.
    let pid = Pid::from_raw(child.id().cast_signed()).ok_or(Errno::SRCH)?;
    if let Some(bytes) = order.memory_bytes {
        // A backstop against bursts between two looks. It is set from outside, because a limit set on this process
        // would count its allocator's reserve.
        let twice = Some(bytes.saturating_mul(2));
        let _ = prlimit(Some(pid), Resource::Data, Rlimit { current: twice, maximum: twice });
    }
    Ok(pid)
}

/// Sends one line to the parent, which may be gone.
pub(super) fn say(control: &UnixStream, report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        let mut control = control;
        match control.write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(control, PollFlags::OUT)], None)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
