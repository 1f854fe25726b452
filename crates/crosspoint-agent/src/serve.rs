//! The agent's own server: the doors of contracts, its health, and who may ask.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use crosspoint_contracts::Contract;
use crosspoint_exchange::refusal::{Refusal, TokenStatus};
use crosspoint_http::door::{Doors, message, run, task, workflow};
use crosspoint_http::json::{Object, response};
use crosspoint_http::reach::Ours;
use crosspoint_http::site::{Limits, Plan, Site};
use crosspoint_http::socket::Listener;
use crosspoint_http::{Refused, connection};
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use url::Url;

use crate::desk::Desk;
use crate::message::pull::{self, Registering};
use crate::message::telling::Orchestrator;
use crate::message::{self as messages, Messages, Reports};

/// The doors of contracts, by their paths.
const DOORS: &[(&str, Contract)] = &[
    (workflow::PLACE, workflow::CONTRACT),
    (run::PLACE, run::CONTRACT),
    (task::PLACE, task::CONTRACT),
    (message::PLACE, message::CONTRACT),
];

/// Most connections at one time.
const CONNECTIONS_MAX: usize = 1_000;

/// How long a caller waits that can only be answered with the outcome, and the longest wait that it may ask for.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// How long work under way may go on when the agent stops.
const DRAIN: Duration = Duration::from_secs(10);

/// Longest time that the last bytes of answers may take to leave.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

/// Interval at which a stopping agent checks whether the last request has been answered.
const IDLE_PERIOD: Duration = Duration::from_millis(5);

/// A token that requests must present. It never prints itself.
pub(crate) struct Token(String);

impl Token {
    /// Reads a token from its file.
    pub(crate) fn read(path: &Path) -> io::Result<Token> {
        let text = std::fs::read_to_string(path)?;
        let token = text.trim();
        if token.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{} holds no token", path.display())));
        }
        Ok(Token(token.to_owned()))
    }
}

pub(crate) async fn run(
    listener: TcpListener,
    desk: Desk,
    (token, orchestrator): (Option<Token>, Option<Url>),
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let listen = listener.local_addr()?.to_string();
    let plan = Plan { limits: Limits::default(), routes: Vec::new(), ours: Ours::new(&listen, &[]), doors: DOORS };
    let site = Site::new(plan);
    let doors = Doors { backend: desk.clone(), site: site.clone(), wait_max: WAIT_MAX, sync_wait: WAIT_MAX };
    let orchestrator = orchestrator.map(|url| Arc::new(Orchestrator::at(&url, token.as_ref().map(|token| &*token.0))));
    let messages = Messages { doors, reports: Reports::new(orchestrator, desk.clone()) };
    let router = router(&messages, token);
    let places = connection::Places::new(CONNECTIONS_MAX);
    let listener = Listener::Tcp(listener);
    tokio::select! {
        never = connection::accept(&listener, &site, &router, &places) => match never {},
        () = wind_down(&site, &desk, shutdown) => {}
    }
    drop(listener);
    site.closing().cancel();
    let _ = tokio::time::timeout(FLUSH_TIME_MAX, places.all_free()).await;
    desk.close().await;
    Ok(())
}

/// Pulls work until `shutdown` completes. Then what is under way has some time to end and to be told.
pub(crate) async fn pull(
    orchestrator: &Url,
    desk: Desk,
    token: Option<&Token>,
    own: Registering,
    shutdown: impl Future<Output = ()>,
) {
    let orchestrator = Arc::new(Orchestrator::at(orchestrator, token.map(|token| &*token.0)));
    let reports = Reports::new(Some(orchestrator.clone()), desk.clone());
    tokio::select! {
        () = pull::run(orchestrator, desk.clone(), own, reports.clone()) => {}
        () = shutdown => {}
    }
    let told = async {
        desk.idle().await;
        reports.all_told().await;
    };
    if tokio::time::timeout(DRAIN, told).await.is_err() {
        desk.stop();
    }
    desk.close().await;
}

/// Waits for the shutdown. Then new work is refused, and work under way has some time to end and to be answered.
async fn wind_down(site: &Site, desk: &Desk, shutdown: impl Future<Output = ()>) {
    shutdown.await;
    site.stopping().cancel();
    let answered = async {
        desk.idle().await;
        while site.is_answering() {
            tokio::time::sleep(IDLE_PERIOD).await;
        }
    };
    if tokio::time::timeout(DRAIN, answered).await.is_err() {
        desk.stop();
    }
}

fn router(messages: &Messages, token: Option<Token>) -> Router {
    let doors = &messages.doors;
    let token = Arc::new(token);
    Router::new()
        .merge(run::routes().with_state(doors.clone()))
        .merge(task::routes().with_state(doors.clone()))
        .merge(workflow::routes().with_state(doors.clone()))
        .merge(messages::routes().with_state(messages.clone()))
        .route_layer(axum::middleware::from_fn_with_state(token, check))
        .route("/health", get(alive))
        .route("/health/ready", get(ready).with_state(doors.site.clone()))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
}

/// Asks for the token, if the agent has one.
async fn check(State(token): State<Arc<Option<Token>>>, request: Request, next: Next) -> Response {
    if let Some(token) = &*token
        && let Err(status) = shows(token, request.headers())
    {
        return Refused::from(Refusal::unauthenticated("", status)).into_response();
    }
    next.run(request).await
}

/// Whether a request presents the token.
fn shows(token: &Token, headers: &HeaderMap) -> Result<(), TokenStatus> {
    let header = headers.get(AUTHORIZATION).ok_or(TokenStatus::Missing)?;
    let presented = header.as_bytes().split_at_checked(7).filter(|(word, _)| word.eq_ignore_ascii_case(b"bearer "));
    let (_, presented) = presented.ok_or(TokenStatus::Malformed)?;
    if bool::from(presented.trim_ascii().ct_eq(token.0.as_bytes())) { Ok(()) } else { Err(TokenStatus::Unknown) }
}

async fn alive() -> Response {
    said(StatusCode::OK, "ok")
}

async fn ready(State(site): State<Site>) -> Response {
    if site.stopping().is_cancelled() {
        return said(StatusCode::SERVICE_UNAVAILABLE, "stopping");
    }
    said(StatusCode::OK, "ready")
}

fn said(status: StatusCode, word: &str) -> Response {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    object.text("status", word);
    object.close();
    response(status, out)
}

async fn unknown_path() -> Refused {
    let hint = "POST /agents/run/sync, /agents/run/stream, /tasks, /api/agent/message or /agents/NAME/envelope";
    Refusal::not_found("nothing is at this path", hint).into()
}

async fn wrong_method(method: Method) -> Refused {
    Refusal::wrong_method(method.as_str()).into()
}
