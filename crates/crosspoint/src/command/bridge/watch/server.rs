//! The server that answers: it may be away for a while, and may be another one when it is back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::watch_log;
use crate::bridge::work;
use crate::client::Client;

const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long a server must be away before that is logged: a restart is not worth a line.
const AWAY_SAID_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Server {
    client: Mutex<Client>,
    is_away: AtomicBool,
    /// Held by the one task that asks for all others while the server is away.
    asking: tokio::sync::Mutex<()>,
}

impl Server {
    pub(super) fn new(client: Client) -> Server {
        Server { client: Mutex::new(client), is_away: AtomicBool::new(false), asking: tokio::sync::Mutex::new(()) }
    }

    pub(super) fn client(&self) -> Client {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the store of the server, as soon as there is a server to ask.
    pub(super) async fn store(&self) -> String {
        if !self.is_away.load(Ordering::Relaxed)
            && let Ok(store) = work::store_of(&self.client()).await
        {
            return store;
        }
        let _turn = self.asking.lock().await;
        let (since, mut pause) = (Instant::now(), PAUSE_FIRST);
        loop {
            let client = self.client();
            match work::store_of(&client).await {
                Ok(store) => {
                    if self.is_away.swap(false, Ordering::Relaxed) {
                        watch_log::back(&client);
                    }
                    return store;
                }
                Err(failed) if since.elapsed() >= AWAY_SAID_AFTER => {
                    if !self.is_away.swap(true, Ordering::Relaxed) {
                        watch_log::away(&failed);
                    }
                }
                Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            self.client.lock().unwrap_or_else(PoisonError::into_inner).look_again();
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}
