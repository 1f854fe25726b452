//! Everything that descends from this process, and the end of it.
//!
//! A supervisor is the reaper of its descendants: who loses its parent becomes its child, also a daemon with a session of its
//! own. So as long as it has a child there may be somebody, and when it has none there is nobody: that is what ends the loop in [`end`],
//! not a list, which is old as soon as it was made.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait};

use super::kin;

/// Who forks faster than it is killed is stopped first; after so many rounds it is killed all the same, and looked for again.
const FREEZE_ROUNDS_MAX: u32 = 16;

/// How often orphans are looked for until none are found, and how many looks in a row must find none: who is just becoming another program
/// (exec) has no environment for a moment.
const ORPHAN_ROUNDS_MAX: u32 = 100;
const ORPHAN_LOOKS: u32 = 2;

/// How long to wait before looking again at who does not die: at first, and at most.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// One process, as the system lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// Its first thread has ended. Others of it may run on.
    pub(super) headless: bool,
    pub(super) threads: u32,
    pub(super) resident_pages: u64,
}

impl Process {
    /// It has ended as a whole, and its parent has not asked how.
    fn is_zombie(&self) -> bool {
        self.headless && self.threads <= 1
    }

    /// Whether this variable was in its environment when it began. Without its first thread only the others know.
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

/// What was learned from reaping.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    /// There are some still.
    Some,
    /// There is nobody left.
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
    // A name need not be text, and nobody may hide behind that.
    parse(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
}

/// One line of `/proc/PID/stat`. The name in brackets may hold anything, brackets and line breaks too.
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

/// Those that descend from a process, without itself. A program may be thousands, so each is looked at once.
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

/// Our own descendants, those too that have ended.
fn ours() -> Vec<Process> {
    descendants(&all(), getpid().as_raw_nonzero().get())
}

/// Our own descendants that have not ended.
pub(super) fn alive() -> Vec<Process> {
    ours().into_iter().filter(|process| !process.is_zombie()).collect()
}

/// Asks of every child that has ended how it did, so that no zombie is left; tells what it learned of each.
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

/// Kills all our descendants and reaps them; whether nobody is left. Gives up after `time`: who hangs in the kernel or belongs to another
/// user cannot be killed.
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

/// Kills what a supervisor has left that was itself killed: whoever is in its session, in the program's group, or carries the job's id
/// in its environment and has no supervisor. These are strangers to us now, so that this is as much as can be known of them. Says whether
/// nobody is left.
pub(super) fn end_orphans(session: Option<i32>, program: Option<i32>, job_id: &str) -> Children {
    let own = getpid().as_raw_nonzero().get();
    // Kernel threads have neither, and the first process has the first.
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

/// Stops everybody, until a look finds nobody new: who is stopped cannot fork. Zombies too, whom it does not harm: of them it is hardest to
/// say whether they have ended.
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

/// Who is gone already, or belongs to somebody else, is no failure: we look again.
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
