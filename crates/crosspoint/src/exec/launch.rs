//! Starts a program: starts its supervisor with this process at the other end of its three connections, and sends the
//! order.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::Failed;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::control::Order;
use super::job_lock::JobLock;
use super::{Given, Program, find, supervise};

/// The supervisor's process, which is reaped so that no zombie is left of it.
pub(super) struct Supervisor {
    child: Option<Child>,
    /// Given back when the supervisor was reaped.
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

/// What a start gives: the supervisor, and this process's ends of its three connections.
pub(super) struct Started<I, O, C> {
    pub(super) supervisor: Supervisor,
    pub(super) stdin: I,
    pub(super) stdout: O,
    pub(super) control: C,
}

impl Started<OwnedFd, OwnedFd, StdUnixStream> {
    pub(super) fn new(order: &[u8], turn: JobLock) -> io::Result<Self> {
        let (stdin_end, stdin) = io::pipe()?;
        let (stdout, stdout_end) = io::pipe()?;
        let (control, control_end) = StdUnixStream::pair()?;
        // The file that runs, whatever has become of it on disk. The program's own environment comes with the order:
        // here it would be seen in lists of processes under the supervisor's name.
        let mut command = Command::new(Path::new("/proc/self/exe"));
        command.arg0("crosspoint").arg(supervise::COMMAND).env_clear().envs(find::inherited());
        command.stdin(stdin_end).stdout(stdout_end).stderr(OwnedFd::from(control_end));
        let supervisor = Supervisor { child: Some(command.spawn()?), turn: Some(turn) };
        let length = u32::try_from(order.len()).map_err(io::Error::other)?;
        // The socket takes it at once: an order is a few KiB.
        io::Write::write_all(&mut &control, &[&length.to_be_bytes(), order].concat())?;
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
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let turn = self.turn.take();
        if let Ok(Some(_)) = child.try_wait() {
            return;
        }
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
