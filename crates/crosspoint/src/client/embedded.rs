//! The server in this process: where none runs, a command opens the store itself and asks over the loopback, so that there
//! is one way for everything. Only what is submitted here is driven, for the first time or again; other jobs that are there already wait for
//! `serve`.

use std::sync::Arc;

use anyhow::{Context, Result};
use crosspoint_engine::core::Mode;
use crosspoint_engine::runtime::Engine;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::find::Need;
use crate::config::Config;
use crate::desk::Desk;
use crate::{patience, server};

pub(super) struct Embedded {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Embedded {
    /// Opens the store and listens where only this machine can reach it; gives the address.
    pub(super) async fn start(config: &Config, need: Need) -> Result<(Embedded, String)> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on the loopback")?;
        let address = listener.local_addr().context("cannot tell the address")?;
        let desk = Arc::new(Desk::default());
        let engine = patience::with_store(|| Engine::start(config.engine(Mode::Held, &desk))).await?;
        if need == Need::Kept {
            engine.rest().await;
        }
        let stop = CancellationToken::new();
        let (stopped, mut config) = (stop.clone().cancelled_owned(), config.clone());
        // Whoever leaves does not want to wait for work that goes on later.
        config.server.drain = std::time::Duration::ZERO;
        let task = tokio::spawn(async move { server::run(listener, (engine, desk), &config, stopped).await });
        Ok((Embedded { stop, task }, format!("http://{address}")))
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}
