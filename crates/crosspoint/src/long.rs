//! Documents that keep a processor busy for a while.
//!
//! A request of sixteen megabytes takes as long to read as a thousand small ones, and the thread that reads it answers nobody meanwhile. So
//! it hands everything else that it serves to another thread first. What is short is done at once: handing over costs more than that.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Documents longer than this are looked at apart from the threads that serve, in bytes: about a millisecond's work.
pub(crate) const LONG_BYTES: usize = 256 << 10;

/// Does something with a document of so many bytes.
pub(crate) fn look<T>(bytes: usize, look: impl FnOnce() -> T) -> T {
    // A command that is its own server has one thread, and nobody else to serve.
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

    /// With one thread to serve all, somebody else is served while a long document is looked at.
    #[test]
    fn a_long_document_holds_nobody_up() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("it starts");
        let served = Arc::new(AtomicBool::new(false));
        let seen = served.clone();
        let (told, begun) = std::sync::mpsc::channel();
        let long = runtime.spawn(async move {
            look(LONG_BYTES + 1, || {
                told.send(()).expect("the test is there");
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
