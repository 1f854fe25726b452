//! Whether a process has a supervisor.
//!
//! A job's id is in the environment of its program and of all that descends from it. The id does not say which server
//! runs the program: a data directory that was copied, with a second server started on it, makes two servers with the
//! same jobs. But a supervisor is the reaper of its descendants, so every process that a living supervisor watches over
//! has it among its ancestors. Such a process is no orphan: it is the program of a server that runs.
//!
//! Parents change during the search: a process that loses its parent is given to the next reaper above. So each step
//! reads the parent anew, and a walk that breaks off in the middle begins again.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::getpid;

use super::supervise::COMMAND;
use super::tree;

/// Most walks upwards that may break off. Each time a process has ended, and a process has few ancestors.
const TRIES_MAX: usize = 1_000;

/// The ancestors of a process.
struct Ancestors {
    pids: BTreeSet<i32>,
    /// Whether all of them were found.
    whole: bool,
}

/// Whether a living supervisor is among the ancestors of a process. A supervisor above this process does not count: it
/// watches over this process, and is given what the supervisors started here have left.
pub(super) fn is_supervised(pid: i32) -> bool {
    let ours = settled(getpid().as_raw_nonzero().get());
    settled(pid).difference(&ours).any(|above| is_supervisor(*above))
}

/// The ancestors of a process, once they have not changed for as long as it took to find them.
fn settled(pid: i32) -> BTreeSet<i32> {
    let mut tries = std::iter::repeat_with(|| ancestors(pid)).take(TRIES_MAX);
    tries.find(|found| found.whole).map(|found| found.pids).unwrap_or_default()
}

fn ancestors(pid: i32) -> Ancestors {
    let (mut at, mut pids) = (pid, BTreeSet::new());
    // A process is an ancestor only once, unless its pid was given again meanwhile.
    while let Some(parent) = parent_of(at)
        && pids.insert(parent)
    {
        // The parent has ended, and the next look finds another one; or it is hidden from this process, and so are
        // those above it.
        if tree::look(parent).is_none() {
            return Ancestors { pids, whole: parent_of(at) == Some(parent) };
        }
        at = parent;
    }
    Ancestors { whole: pids.is_empty() || is_top(at), pids }
}

/// The parent as it is now, if there is one. The first process has none.
fn parent_of(pid: i32) -> Option<i32> {
    tree::look(pid).map(|process| process.parent).filter(|parent| *parent > 0)
}

/// Whether nothing is above it because it is the first process, and not because it has ended.
fn is_top(pid: i32) -> bool {
    tree::look(pid).is_some_and(|process| process.parent == 0)
}

/// Whether a process is a supervisor, by its command line. A process that has ended has none.
fn is_supervisor(pid: i32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0);
    words.next() == Some(b"crosspoint") && words.next() == Some(COMMAND.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_have_ancestors_up_to_the_first_process_and_who_is_gone_has_none() {
        let own = settled(getpid().as_raw_nonzero().get());
        let parent = std::os::unix::process::parent_id().cast_signed();
        assert!(own.contains(&parent) && own.iter().any(|above| is_top(*above)), "{own:?}");
        assert!(settled(i32::MAX).is_empty());
        assert!(!is_supervised(getpid().as_raw_nonzero().get()));
    }
}
