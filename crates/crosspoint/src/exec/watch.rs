//! A supervisor's watch over a running program: waits for whatever comes first, and then ends all that is left.

use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, pidfd_open};

use super::control::{Ending, Order, Over, Report, STOP};
use super::supervise::say;
use super::tree::{self, Children};

/// Longest part of stderr that is kept, in bytes: its end.
const STDERR_BYTES_MAX: usize = 4 << 10;

/// Shortest time between two signs of life that are passed on.
const HEARD_PERIOD: Duration = Duration::from_secs(1);

/// How often the program's processes are looked at: near a limit, and far from all limits.
const LOOK_PERIOD_MIN: Duration = Duration::from_millis(50);
const LOOK_PERIOD_MAX: Duration = Duration::from_millis(500);

/// A pause is at least this many times as long as the look before it, so that looking takes a bounded share of the time
/// however many processes the machine has. That pause has a longest length, because a limit that is hardly ever looked
/// at is none.
const LOOK_SHARE: u32 = 20;
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(2);

/// How often the supervisor checks whether the last process of the group has ended, after a stop and the end of the
/// program itself.
const FAREWELL_PERIOD: Duration = Duration::from_millis(10);

/// Longest wait for processes that cannot be killed: after this, how the program ended is reported without waiting for
/// them.
const KILL_TIME_MAX: Duration = Duration::from_secs(2);

/// Why the waiting is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The program has ended.
    Ended,
    /// The program was asked to end, and has not ended within its grace.
    GraceOver,
    /// The parent is gone, so no report is wanted.
    Alone,
    Over(Over),
}

/// What there is to do.
struct Ready {
    /// The parent has sent something, or is gone.
    control: bool,
    ended: bool,
    printed: bool,
}

/// A program that runs.
pub(super) struct Watch {
    control: UnixStream,
    /// `None` once it is closed.
    stderr: Option<PipeReader>,
    pid: Pid,
    order: Order,
    status: Option<WaitStatus>,
    tail: Vec<u8>,
    heard_at: Option<Instant>,
    /// When the grace is over, once the program was asked to end.
    deadline: Option<Instant>,
    look_at: Instant,
    look_period: Duration,
}

impl Watch {
    /// `stderr` must not block.
    pub(super) fn new(control: UnixStream, stderr: PipeReader, pid: Pid, order: Order) -> Watch {
        Watch {
            control,
            stderr: Some(stderr),
            pid,
            order,
            status: None,
            tail: Vec::new(),
            heard_at: None,
            deadline: None,
            look_at: Instant::now() + LOOK_PERIOD_MIN,
            look_period: LOOK_PERIOD_MIN,
        }
    }

    /// Returns the connection if the supervisor takes another order.
    pub(super) fn run(mut self) -> Option<UnixStream> {
        // If the parent is gone already, the first read from it says so.
        let _ = say(&self.control, &Report::Started { pid: self.pid.as_raw_nonzero().get() });
        // A system that cannot watch the program cannot be trusted to end it later, so it is ended now.
        let why = self.wait().unwrap_or(Why::GraceOver);
        let left = self.end(why);
        let free = why == Why::Ended && left == 0 && self.deadline.is_none() && self.reap() == Children::None;
        if why != Why::Alone {
            self.report(why, left, free);
        }
        // Waits for processes that could not be killed in time, so that the lock stays held while they live.
        tree::end(Duration::MAX, |_, _| {});
        free.then_some(self.control)
    }

    fn wait(&mut self) -> io::Result<Why> {
        let program = pidfd_open(self.pid, PidfdFlags::empty())?;
        loop {
            let ready = self.poll(&program)?;
            if ready.control && !self.listen() {
                return Ok(Why::Alone);
            }
            if ready.printed {
                self.drain();
            }
            if (ready.ended || self.status.is_some()) && self.is_over() {
                return Ok(Why::Ended);
            }
            let now = Instant::now();
            if self.deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(Why::GraceOver);
            }
            if self.look_at <= now
                && let Some(why) = self.look(now)
            {
                return Ok(why);
            }
        }
    }

    /// Waits until there is something to do.
    fn poll(&self, program: &OwnedFd) -> io::Result<Ready> {
        let farewell = self.status.map(|_| Instant::now() + FAREWELL_PERIOD);
        let until = [self.deadline, farewell].into_iter().flatten().fold(self.look_at, Instant::min);
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        // Once its exit status is known, the program's end is no news.
        let program = self.status.is_none().then_some(program);
        let mut watched = vec![PollFd::new(&self.control, PollFlags::IN)];
        watched.extend(program.map(|program| PollFd::new(program, PollFlags::IN)));
        watched.extend(self.stderr.as_ref().map(|stderr| PollFd::new(stderr, PollFlags::IN)));
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = watched.iter().map(|one| !one.revents().is_empty());
        let mut next = |is_watched: bool| is_watched && ready.next().unwrap_or(false);
        Ok(Ready { control: next(true), ended: next(program.is_some()), printed: next(self.stderr.is_some()) })
    }

    /// Whether the end of the program ends the watch. If the program was asked to end, so was its whole group, and the
    /// other processes have their grace also when the program did not use its own.
    fn is_over(&mut self) -> bool {
        self.deadline.is_none() || self.reap() == Children::None
    }

    /// Reads what the parent wants; returns whether the parent is there at all.
    fn listen(&mut self) -> bool {
        let mut byte = [0];
        match self.control.read(&mut byte) {
            Ok(0) => false,
            Ok(_) => {
                if byte == [STOP] && self.deadline.is_none() {
                    self.deadline = Some(Instant::now() + Duration::from_millis(self.order.grace_millis));
                    let group = self.pid.as_raw_nonzero().get();
                    tree::kill_group(group, Signal::TERM);
                    // A stopped process must continue to receive the signal.
                    tree::kill_group(group, Signal::CONT);
                }
                true
            }
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    /// Reads what has arrived on stderr.
    fn drain(&mut self) {
        let mut buffer = [0; 16 << 10];
        // A program that prints without end must not keep the supervisor from its other tasks.
        for _ in 0..64 {
            let Some(stderr) = &mut self.stderr else { return };
            match stderr.read(&mut buffer) {
                Ok(0) => self.stderr = None,
                Ok(count) => {
                    self.tail.extend_from_slice(&buffer[..count]);
                    let over = self.tail.len().saturating_sub(STDERR_BYTES_MAX);
                    self.tail.drain(..over);
                    self.heard();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.stderr = None,
            }
        }
    }

    /// Passes a sign of life on, unless the last was just now or the parent does not read them.
    fn heard(&mut self) {
        let now = Instant::now();
        if self.heard_at.is_none_or(|at| at + HEARD_PERIOD <= now) {
            self.heard_at = Some(now);
            let line = serde_json::to_vec(&Report::Heard).unwrap_or_default();
            let free = poll(&mut [PollFd::new(&self.control, PollFlags::OUT)], Some(&Timespec::default()));
            if free.is_ok_and(|count| count > 0) {
                let _ = self.control.write(&[line.as_slice(), b"\n"].concat());
            }
        }
    }

    /// Looks at the program's processes, reaps those that have ended, and returns whether they are too many or too
    /// large.
    fn look(&mut self, began: Instant) -> Option<Why> {
        self.reap();
        if self.status.is_some() && self.is_over() {
            return Some(Why::Ended);
        }
        let alive = tree::alive();
        let page_bytes = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let memory = alive.iter().map(|process| process.resident_pages.saturating_mul(page_bytes)).sum::<u64>();
        let count = u32::try_from(alive.len()).unwrap_or(u32::MAX);
        if count > self.order.processes {
            return Some(Why::Over(Over::Processes));
        }
        if self.order.memory_bytes.is_some_and(|most| memory > most) {
            return Some(Why::Over(Over::Memory));
        }
        let near = count > self.order.processes / 2 || self.order.memory_bytes.is_some_and(|most| memory > most / 2);
        self.look_period = if near { LOOK_PERIOD_MIN } else { (self.look_period * 2).min(LOOK_PERIOD_MAX) };
        let now = Instant::now();
        self.look_at = now + self.look_period.max(((now - began) * LOOK_SHARE).min(LOOK_PAUSE_MAX));
        None
    }

    fn reap(&mut self) -> Children {
        let (pid, status) = (self.pid, &mut self.status);
        tree::reap(|ended, how| {
            if ended == pid {
                *status = Some(how);
            }
        })
    }

    /// Kills every process that is left, and returns how many there were besides the program itself.
    fn end(&mut self, why: Why) -> u32 {
        let pid = self.pid.as_raw_nonzero().get();
        // The program's pid is its own until the program is reaped.
        if why != Why::Ended && self.status.is_none() {
            // All of the group at once, before any of them can react.
            tree::kill_group(pid, Signal::KILL);
        }
        if self.reap() == Children::None {
            return 0;
        }
        let alive = tree::alive();
        let left = if why == Why::Ended { alive.iter().filter(|process| process.pid != pid).count() } else { 0 };
        // Only while a process is in the group: else the number may belong to another group by now.
        if alive.iter().any(|process| process.group == pid) {
            tree::kill_group(pid, Signal::KILL);
        }
        let (own, status) = (self.pid, &mut self.status);
        tree::end(KILL_TIME_MAX, |ended, how| {
            if ended == own {
                *status = Some(how);
            }
        });
        u32::try_from(left).unwrap_or(u32::MAX)
    }

    fn report(&mut self, why: Why, left: u32, free: bool) {
        self.drain();
        let status = self.status;
        // The text begins with a whole character.
        let skipped = self.tail.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
        let ending = Ending {
            code: status.and_then(WaitStatus::exit_status),
            signal: status.and_then(WaitStatus::terminating_signal),
            left,
            over: if let Why::Over(over) = why { Some(over) } else { None },
            stderr: String::from_utf8_lossy(&self.tail[skipped..]).into_owned(),
            free,
        };
        let _ = say(&self.control, &Report::Ended(ending));
    }
}
