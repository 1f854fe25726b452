//! Waiting for the programs of the last start.
//!
//! When a server is killed, each of its supervisors learns of it at once and kills its program. But "at once" is a
//! matter of the scheduler, and the next start may be quicker: then a job would run beside its own earlier program for
//! a moment. So every supervisor holds a shared lock on one file for as long as any process of its program lives, and a
//! new start takes the same lock exclusively, once, before it starts its first program. A supervisor that was just
//! being started when the server died takes its lock later, and then finds its connection closed.
//!
//! A process that cannot be killed (it hangs in the kernel) holds up the programs, not the server: the jobs of programs
//! wait, and their clocks run.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tokio::sync::{OnceCell, oneshot};

/// A wait that is longer than this is logged.
const REMARKABLE: Duration = Duration::from_secs(10);

/// The lock file of all programs of one data directory.
pub(crate) struct OrphanLock {
    path: PathBuf,
    cleared: OnceCell<()>,
}

impl OrphanLock {
    pub(crate) fn new(path: PathBuf) -> OrphanLock {
        OrphanLock { path, cleared: OnceCell::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until no program of an earlier start is alive.
    pub(crate) async fn clear(&self) -> io::Result<()> {
        self.cleared.get_or_try_init(|| self.wait()).await.copied()
    }

    async fn wait(&self) -> io::Result<()> {
        let path = self.path.clone();
        let (done, mut locked) = oneshot::channel();
        // Locking a file blocks a thread, and this may take long. So it has a thread of its own, for which nothing
        // waits when the server ends. The lock is released as soon as it was acquired.
        thread::Builder::new()
            .name("ward".to_owned())
            .spawn(move || done.send(open(&path).and_then(|file| file.lock())))?;
        let result = tokio::select! {
            result = &mut locked => result,
            () = tokio::time::sleep(REMARKABLE) => {
                tracing::warn!("programs of an earlier start are still alive; no program is started before they are gone");
                locked.await
            }
        };
        result.map_err(io::Error::other)?
    }
}

/// Takes the lock, which a supervisor holds until it ends.
pub(super) fn hold(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    file.lock_shared()?;
    Ok(file)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}
