//! Waiting for a process that was just killed or is about to exit: it may still hold the store or the address for a
//! moment, so opening either is retried for a short time.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use crosspoint_engine::store::Fault;

const TIME_MAX: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn with_store<T>(mut open: impl FnMut() -> Result<T, Fault>) -> Result<T, Fault> {
    let until = Instant::now() + TIME_MAX;
    loop {
        match open() {
            Err(Fault::InUse { .. }) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
            done => return done,
        }
    }
}

pub(crate) async fn with_address<T, F: Future<Output = io::Result<T>>>(mut bind: impl FnMut() -> F) -> io::Result<T> {
    let until = Instant::now() + TIME_MAX;
    loop {
        match bind().await {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}
