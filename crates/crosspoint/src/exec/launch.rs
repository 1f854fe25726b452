//! Starts a program: gives the order to a supervisor that has this process at the other end of its three connections.

use std::io::{self, IoSlice, Write};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::Failed;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Signal;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::control::Order;
use super::job_lock::JobLock;
use super::{Given, Program, find, spare, supervise, tree};

/// The supervisor's process, which is reaped so that no zombie is left of it.
pub(super) struct Supervisor {
    child: Option<Child>,
    /// Given back when the supervisor was reaped, or says that it is free.
    turn: Option<JobLock>,
}

/// Returns the order for the supervisor; an error says that there is nothing to start.
pub(super) fn order_of(program: &Program, given: &Given) -> Result<Vec<u8>, Failed> {
    let mut env = program.env.clone();
    let ours = [
        ("CROSSPOINT_JOB_ID", given.job_id.clone()),
        ("CROSSPOINT_REQUEST_ID", given.request_id.clone()),
        ("CROSSPOINT_WORK", given.work.clone()),
        ("TRACEPARENT", given.traceparent.clone()),
    ];
    // A null character cannot be in an environment; request ids may hold anything. It is spelled as in JSON, so that
    // two ids do not become one.
    env.extend(ours.map(|(name, value)| (name.to_owned(), value.replace('\0', "\\u0000"))));
    if !given.tracestate.is_empty() {
        env.insert("TRACESTATE".to_owned(), given.tracestate.clone());
    }
    let order = Order {
        path: find::bytes_of(find::find(program)?),
        argv: program.argv.clone(),
        directory: find::bytes_of(&program.directory),
        env,
        memory_bytes: program.limits.memory_bytes,
        processes: program.limits.processes,
        grace_millis: u64::try_from(program.limits.grace.as_millis()).unwrap_or(u64::MAX),
        orphan_lock: program.orphan_lock.as_ref().map(find::bytes_of),
    };
    Ok(Body::of(&order).bytes().to_vec())
}

/// A supervisor without an order, and the connection to it.
pub(super) struct Waiting {
    supervisor: Supervisor,
    control: StdUnixStream,
}

/// A supervisor that has its order, and this process's ends of its three connections.
pub(super) struct Started<I, O, C> {
    pub(super) supervisor: Supervisor,
    pub(super) stdin: I,
    pub(super) stdout: O,
    pub(super) control: C,
}

impl Waiting {
    fn start() -> io::Result<Self> {
        let (control, control_end) = StdUnixStream::pair()?;
        // The file that runs, whatever has become of it on disk. The program's own environment comes with the order:
        // here it would be seen in lists of processes under the supervisor's name.
        let mut command = Command::new(Path::new("/proc/self/exe"));
        command.arg0("crosspoint").arg(supervise::COMMAND).env_clear().envs(find::inherited());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(OwnedFd::from(control_end));
        let supervisor = Supervisor { child: Some(command.spawn()?), turn: None };
        Ok(Waiting { supervisor, control })
    }

    /// Sends the order, and with its length the program's ends of stdin and stdout. An error says that the supervisor
    /// is gone, or ends without having started anything.
    fn send(&mut self, order: &[u8], program_ends: [BorrowedFd<'_>; 2]) -> io::Result<()> {
        let length = u32::try_from(order.len()).map_err(io::Error::other)?.to_be_bytes();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        beside.push(SendAncillaryMessage::ScmRights(&program_ends));
        self.supervisor.awake();
        self.control.set_nonblocking(false)?;
        // The socket takes all of it at once: an order is a few KiB.
        let sent = sendmsg(&self.control, &[IoSlice::new(&length)], &mut beside, SendFlags::NOSIGNAL)?;
        self.control.write_all(&length[sent..])?;
        self.control.write_all(order)
    }
}

impl Waiting {
    /// Whether the supervisor has not been killed meanwhile. If it has, it is reaped.
    pub(super) fn is_there(&mut self) -> bool {
        self.supervisor.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }
}

impl Started<OwnedFd, OwnedFd, StdUnixStream> {
    /// Has a supervisor start a program: one that is free, or a new one.
    pub(super) fn new(order: &[u8], turn: JobLock) -> io::Result<Self> {
        let (stdin_end, stdin) = io::pipe()?;
        let (stdout, stdout_end) = io::pipe()?;
        let program_ends = [stdin_end.as_fd(), stdout_end.as_fd()];
        let spare = spare::take().and_then(|mut spare| spare.send(order, program_ends).ok().map(|()| spare));
        let mut ordered = match spare {
            Some(spare) => spare,
            None => {
                let mut new = Waiting::start()?;
                new.send(order, program_ends)?;
                new
            }
        };
        ordered.supervisor.turn = Some(turn);
        let Waiting { supervisor, control } = ordered;
        Ok(Started { supervisor, stdin: stdin.into(), stdout: stdout.into(), control })
    }

    pub(super) fn into_async(self) -> io::Result<Started<pipe::Sender, pipe::Receiver, UnixStream>> {
        self.control.set_nonblocking(true)?;
        Ok(Started {
            supervisor: self.supervisor,
            stdin: pipe::Sender::from_owned_fd(self.stdin)?,
            stdout: pipe::Receiver::from_owned_fd(self.stdout)?,
            control: UnixStream::from_std(self.control)?,
        })
    }
}

impl Supervisor {
    pub(super) fn pid(&self) -> Option<i32> {
        self.child.as_ref().map(|child| child.id().cast_signed())
    }

    /// Has a supervisor that somebody has stopped (SIGSTOP) go on, so that it reads what it is told: one that does not
    /// would hold up its job, and later the next start of the server.
    pub(super) fn awake(&self) {
        if let Some(pid) = self.pid() {
            tree::kill(pid, Signal::CONT);
        }
    }

    /// Keeps a supervisor that says that it is free, for another program. Its job may have another one from now on.
    pub(super) fn keep(&mut self, control: UnixStream) {
        drop(self.turn.take());
        let supervisor = Supervisor { child: self.child.take(), turn: None };
        if let Ok(control) = control.into_std() {
            spare::keep(Waiting { supervisor, control });
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let turn = self.turn.take();
        if let Ok(Some(_)) = child.try_wait() {
            return;
        }
        // The connection is closed, or will be when all of the attempt is dropped, and then the supervisor ends.
        tree::kill(child.id().cast_signed(), Signal::CONT);
        // If no thread can be had, a zombie until this process ends is the lesser evil. But then it is never learned
        // when the program is gone, and its job gets no other program for as long as this process lives.
        let turn = ManuallyDrop::new(turn);
        // The supervisor ends very soon, but the caller that drops this may not wait.
        let _ = std::thread::Builder::new().name("reaper".to_owned()).stack_size(64 << 10).spawn(move || {
            let _ = child.wait();
            drop(ManuallyDrop::into_inner(turn));
        });
    }
}
