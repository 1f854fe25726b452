//! Documents that keep a processor busy for a while.
//!
//! A request of sixteen megabytes takes as long to read as a thousand small ones, and the thread that reads it serves
//! no other request meanwhile. So that thread first hands everything else that it serves to another thread. Short
//! documents are read at once: handing over would cost more than reading them.

use crosspoint_exchange::snapshot::Snapshot;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Longest document that is read on a serving thread without handing over, in bytes: about a millisecond's work.
pub const LONG_BYTES: usize = 256 << 10;

/// How many bytes are copied in the time in which one is read.
const COPIED_BYTES: usize = 8;

/// Runs `write`, which writes how a job is. The agent's own document and its artifacts are read for that, and
/// everything else is only copied.
pub fn write<T>(job: &Snapshot<'_>, write: impl FnOnce() -> T) -> T {
    let is_read = job.ended().is_some_and(|ended| {
        ended.is_unjudged || ended.outcome.document.is_some() || ended.outcome.artifacts.is_some()
    });
    look(job.outcome_bytes() / if is_read { 1 } else { COPIED_BYTES }, write)
}

/// Runs `look`, which reads a document of `bytes` bytes.
pub fn look<T>(bytes: usize, look: impl FnOnce() -> T) -> T {
    // A command that is its own server has one thread, and no other requests to serve.
    let serves = |handle: Handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread;
    if bytes > LONG_BYTES && Handle::try_current().is_ok_and(serves) {
        tokio::task::block_in_place(look)
    } else {
        look()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// With a single serving thread, another task still runs while a long document is read.
    #[test]
    fn a_long_document_holds_nobody_up() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("it starts");
        let served = Arc::new(AtomicBool::new(false));
        let seen = served.clone();
        let (begin, begun) = std::sync::mpsc::channel();
        let long = runtime.spawn(async move {
            look(LONG_BYTES + 1, || {
                begin.send(()).expect("the test is there");
                while !seen.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            });
        });
        begun.recv().expect("it begins");
        runtime.block_on(runtime.spawn(async move { served.store(true, Ordering::Relaxed) })).expect("it is served");
        runtime.block_on(long).expect("it ends");
    }

    #[tokio::test]
    async fn where_there_is_one_thread_it_is_looked_at_there() {
        assert_eq!(look(LONG_BYTES + 1, || 7), 7);
    }
}
