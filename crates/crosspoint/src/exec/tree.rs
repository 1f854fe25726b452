//! Everything that descends from this process, and ending it.
//!
//! A supervisor is the reaper of its descendants: a process that loses its parent becomes a child of the supervisor,
//! also a daemon with a session of its own. So there may be a descendant as long as the supervisor has a child, and
//! there is none when it has no child. That is what ends the loop in [`end`], not a list, which is outdated as soon as
//! it is made.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait};

use super::kin;

/// Most rounds of stopping processes before they are killed. A process that forks faster than it is killed is stopped
/// first; after this many rounds it is killed all the same, and searched for again.
const FREEZE_ROUNDS_MAX: u32 = 16;

/// Most rounds in which orphans are searched for, and how many rounds in a row must find none: a process that is just
/// becoming another program (exec) has no environment for a moment.
const ORPHAN_ROUNDS_MAX: u32 = 100;
const ORPHAN_LOOKS: u32 = 2;

/// First and longest pause before looking again at processes that do not die.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// One process, as the system lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// Its first thread has ended. Its other threads may run on.
    pub(super) headless: bool,
    pub(super) threads: u32,
    pub(super) resident_pages: u64,
}

impl Process {
    /// Whether it has ended as a whole, and its parent has not asked how.
    fn is_zombie(&self) -> bool {
        self.headless && self.threads <= 1
    }

    /// Whether this variable was in its environment when it began. If its first thread has ended, only the other
    /// threads know.
    fn carries(&self, variable: &[u8]) -> bool {
        let is_in =
            |path: String| fs::read(path).unwrap_or_default().split(|byte| *byte == 0).any(|one| one == variable);
        if !self.headless {
            return is_in(format!("/proc/{}/environ", self.pid));
        }
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        threads.into_iter().any(|thread| is_in(format!("{}/environ", thread.path().display())))
    }
}

/// What reaping has shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    /// Children are left.
    Some,
    /// No children are left.
    None,
}

/// All processes of the machine that can be seen.
pub(super) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(look).collect()
}

/// One process, as it is now.
pub(super) fn look(pid: i32) -> Option<Process> {
    // A process name need not be text, and no process may hide behind that.
    parse(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
}

/// Parses one line of `/proc/PID/stat`. The name in brackets may hold anything, brackets and line breaks too.
fn parse(stat: &str) -> Option<Process> {
    let (pid, rest) = stat.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
    Some(Process {
        pid: pid.parse().ok()?,
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        headless: matches!(*fields.first()?, "Z" | "X"),
        threads: fields.get(17)?.parse().ok()?,
        resident_pages: fields.get(21)?.parse().ok()?,
    })
}

/// Returns the descendants of a process, without itself. A program may have thousands of processes, so each is looked
/// at once.
pub(super) fn descendants(all: &[Process], root: i32) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut parents = VecDeque::from([root]);
    while let Some(parent) = parents.pop_front() {
        // Taken out: a list that was made while processes came and went could hold a circle.
        let own = children.remove(&parent).unwrap_or_default();
        parents.extend(own.iter().map(|process| process.pid));
        found.extend(own);
    }
    found
}

/// The descendants of this process, including those that have ended.
fn ours() -> Vec<Process> {
    descendants(&all(), getpid().as_raw_nonzero().get())
}

/// The descendants of this process that have not ended.
pub(super) fn alive() -> Vec<Process> {
    ours().into_iter().filter(|process| !process.is_zombie()).collect()
}

/// Reaps every child that has ended, so that no zombie is left; passes on how each ended.
pub(crate) fn reap(mut learned: impl FnMut(Pid, WaitStatus)) -> Children {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => learned(pid, status),
            Ok(None) => return Children::Some,
            Err(Errno::INTR) => {}
            Err(_) => return Children::None,
        }
    }
}

/// Kills all descendants of this process and reaps them; returns whether any are left. Gives up after `time`: a process
/// that hangs in the kernel or belongs to another user cannot be killed.
pub(crate) fn end(time: Duration, mut learned: impl FnMut(Pid, WaitStatus)) -> Children {
    let began = Instant::now();
    let mut pause = PAUSE_FIRST;
    while reap(&mut learned) == Children::Some {
        for process in freeze() {
            kill(process.pid, Signal::KILL);
        }
        if reap(&mut learned) == Children::None {
            break;
        }
        if began.elapsed() >= time {
            return Children::Some;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
    Children::None
}

/// Kills what a supervisor that was itself killed has left: every process that is in its session, in the program's
/// group, or carries the job's id in its environment and has no supervisor. These processes are no descendants of this
/// one, so no more can be known of them. Returns whether any are left.
pub(super) fn end_orphans(session: Option<i32>, program: Option<i32>, job_id: &str) -> Children {
    let own = getpid().as_raw_nonzero().get();
    // Kernel threads have session and group 0, and the first process has 1.
    let (session, program) = (session.filter(|session| *session > 1), program.filter(|group| *group > 1));
    let mark = format!("CROSSPOINT_JOB_ID={job_id}").into_bytes();
    let is_orphan = |process: &Process| {
        let is_known = session == Some(process.session) || program == Some(process.group);
        let is_marked = || process.carries(&mark) && !kin::is_supervised(process.pid);
        process.pid != own && !process.is_zombie() && (is_known || is_marked())
    };
    let (mut pause, mut looks) = (PAUSE_FIRST, 0);
    for _ in 0..ORPHAN_ROUNDS_MAX {
        let found: Vec<Process> = all().into_iter().filter(is_orphan).collect();
        if found.is_empty() {
            looks += 1;
            if looks == ORPHAN_LOOKS {
                return Children::None;
            }
            continue;
        }
        looks = 0;
        for signal in [Signal::STOP, Signal::KILL] {
            found.iter().for_each(|process| kill(process.pid, signal));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
    Children::Some
}

/// Stops all descendants, until a look finds no new one: a stopped process cannot fork. Zombies are signalled too,
/// which does not harm them: it is hardest to tell of them whether they have ended.
fn freeze() -> Vec<Process> {
    let mut known = BTreeSet::new();
    for _ in 0..FREEZE_ROUNDS_MAX {
        let found = ours();
        let new: Vec<i32> = found.iter().map(|process| process.pid).filter(|pid| !known.contains(pid)).collect();
        if new.is_empty() {
            return found;
        }
        new.iter().for_each(|pid| kill(*pid, Signal::STOP));
        known.extend(new);
    }
    ours()
}

/// Sends a signal. It is no failure if the process is gone already or belongs to another user: the caller looks again.
pub(super) fn kill(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

pub(super) fn kill_group(group: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group) {
        let _ = kill_process_group(group, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_program_calls_itself() {
        let line = "42 (a) b\n(c) S 7 42 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 100 8192 33 18446744073709551615 1";
        let process = parse(line).expect("it is a line");
        let expected =
            Process { pid: 42, parent: 7, group: 42, session: 40, headless: false, threads: 3, resident_pages: 33 };
        assert_eq!(process, expected);
        assert_eq!(parse("42 (x) Z"), None);
    }

    #[test]
    fn descendants_are_found_over_generations_and_circles_do_no_harm() {
        let process =
            |pid, parent| Process { pid, parent, group: 0, session: 0, headless: false, threads: 1, resident_pages: 0 };
        let all = [process(2, 1), process(3, 2), process(4, 3), process(5, 9), process(9, 5), process(6, 2)];
        let pids = |root| descendants(&all, root).iter().map(|process| process.pid).collect::<Vec<_>>();
        assert_eq!(pids(1), [2, 3, 6, 4]);
        assert_eq!(pids(5), [9, 5]);
        assert!(pids(4).is_empty());
    }

    #[test]
    fn we_are_on_the_list_of_all_processes() {
        let own = getpid().as_raw_nonzero().get();
        assert!(all().iter().any(|process| process.pid == own && process.resident_pages > 0));
    }
}
