//! Work that waits for the disk. It is done on threads of its own, so that nothing else waits with it.

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Failed;

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
