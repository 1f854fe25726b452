//! Work that waits for the disk. It is done on threads of its own, so that nothing else waits with it.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Failed;

use crosspoint_engine::runtime::Attempt;

use super::runner::Parting;

/// Does something that may wait for the disk.
pub(super) async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Result<T, Parting> {
    match tokio::task::spawn_blocking(act).await {
        Ok(done) => Ok(done),
        // A panic is a defect of ours. A run that only stopped would show no reason.
        Err(broken) if broken.is_panic() => {
            let message = "The run broke off because of a defect of the orchestrator; see the log.";
            Err(Parting::Failed(Box::new(Failed::said(Failure::Internal, Dispatched::Yes, message))))
        }
        Err(_) => Err(Parting::Leaving),
    }
}

/// Does something that may wait for the disk, and asks whether it is still wanted. When the run is to stop, it is told
/// so, and waited for: nothing goes on behind the back of a run that is over.
pub(super) async fn blocking_while<T: Send + 'static>(
    attempt: &Attempt,
    act: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
) -> Result<T, Parting> {
    let wanted = Arc::new(AtomicBool::new(true));
    let is_wanted = wanted.clone();
    let mut acting = pin!(blocking(move || act(&|| is_wanted.load(Ordering::Relaxed))));
    tokio::select! {
        acted = &mut acting => acted,
        () = attempt.stopped() => {
            wanted.store(false, Ordering::Relaxed);
            acting.await
        }
    }
}
