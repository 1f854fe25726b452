//! The server: connections, the native API, and an end that leaves nobody hanging.
//!
//! In reading order: [`router`] names every endpoint; [`jobs`], [`agents`], [`health`] and [`events`] answer them; [`submit`],
//! [`query`] and [`body`] read what comes in, within limits; [`view`] and [`refusal`] write what goes out; [`connection`] and
//! [`stall`] are about sockets, and [`record`] is about the log.

mod agents;
mod body;
mod connection;
mod events;
mod health;
mod jobs;
mod json;
mod query;
mod record;
mod refusal;
mod router;
mod stall;
mod submit;
mod view;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crosspoint_engine::runtime::Engine;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Limits};

/// How often it is looked at whether the last request has been answered, when the server stops.
const IDLE_PERIOD: Duration = Duration::from_millis(5);

/// How long the last bytes of answers may take to leave when everything else is over.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

/// What all requests share; cloning shares it.
#[derive(Clone)]
struct App(Arc<Shared>);

struct Shared {
    engine: Engine,
    limits: Limits,
    wait_max: Duration,
    /// Bytes of all bodies that are being read or are waiting to be committed.
    bodies_bytes: AtomicUsize,
    /// Requests that have not been answered.
    requests: AtomicUsize,
    /// No new work is taken.
    stopping: CancellationToken,
    /// Nobody is answered any more.
    closing: CancellationToken,
}

/// Serves until `shutdown` comes to an end, then winds down: new work is refused, streams and waits end, requests under way
/// are answered, and attempts under way have `[server] drain_seconds` to end.
///
/// Connections are taken until the very end, so that whoever asks in between is told rather than left alone.
pub(crate) async fn run(listener: TcpListener, engine: Engine, config: &Config, shutdown: impl Future<Output = ()>) {
    let app = App::new(engine, config);
    let connections = connection::Places::new(config.limits.connections_max);
    tokio::select! {
        never = connection::accept(&listener, &app, &connections) => match never {},
        () = app.wind_down(config.server.drain, shutdown) => {}
    }
    drop(listener);
    app.0.closing.cancel();
    let _ = tokio::time::timeout(FLUSH_TIME_MAX, connections.all_free()).await;
}

impl App {
    fn new(engine: Engine, config: &Config) -> App {
        App(Arc::new(Shared {
            engine,
            limits: config.limits.clone(),
            wait_max: config.server.wait_max,
            bodies_bytes: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            stopping: CancellationToken::new(),
            closing: CancellationToken::new(),
        }))
    }

    fn engine(&self) -> &Engine {
        &self.0.engine
    }

    fn limits(&self) -> &Limits {
        &self.0.limits
    }

    fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    async fn wind_down(&self, drain: Duration, shutdown: impl Future<Output = ()>) {
        shutdown.await;
        tracing::info!(attempts = self.engine().attempts(), "stopping");
        let until = Instant::now() + drain;
        self.stopping().cancel();
        self.engine().end_waits();
        self.engine().rest().await;
        while self.0.requests.load(Ordering::Acquire) > 0 && Instant::now() < until {
            tokio::time::sleep(IDLE_PERIOD).await;
        }
        self.engine().stop(until.saturating_duration_since(Instant::now())).await;
        tracing::info!("stopped");
    }
}
