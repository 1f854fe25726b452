//! The agent's own server: the doors of contracts, its health, and who may ask.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::get;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::door::Doors;
use crosspoint_http::json::{Object, response};
use crosspoint_http::reach::Ours;
use crosspoint_http::site::{Limits, Plan, Site};
use crosspoint_http::socket::Listener;
use crosspoint_http::token::Token;
use crosspoint_http::{Refused, connection};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::backend::OwnJobs;
use crate::gate::Gate;
use crate::message::pull::{self, Registering};
use crate::message::telling::Orchestrator;
use crate::message::{Messages, Reports};
use crate::{Contract, doors, gate};

/// How an agent gets another name: in its program, or where `crosspoint agent --listen` is started.
const ADDING: &str = "start the agent with the name (`Agent::names`, or `--host` of `crosspoint agent`)";

/// Most connections at one time.
const CONNECTIONS_MAX: usize = 1_000;

/// How long a caller waits that can only be answered with the outcome, and the longest wait that it may ask for.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// How long work under way may go on when the agent stops, unless said otherwise.
const DRAIN: Duration = Duration::from_secs(10);

/// Longest time that the last bytes of answers may take to leave.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

/// Longest time for telling orchestrators of work that the agent stopped.
const TOLD_TIME_MAX: Duration = Duration::from_secs(5);

/// Interval at which a stopping agent checks whether the last request has been answered.
const IDLE_PERIOD: Duration = Duration::from_millis(5);

/// How an agent is served.
pub(crate) struct Serving {
    pub(crate) contracts: BTreeSet<Contract>,
    /// The hosts by which callers know it, besides its address.
    pub(crate) names: Vec<String>,
    /// The orchestrator of the message contract that is told how work goes.
    pub(crate) told: Option<Url>,
    /// The orchestrator of the message contract from which work is pulled.
    pub(crate) pulled: Option<Url>,
    /// Whether every machine that reaches it may give it work without a token.
    pub(crate) is_open_to_all: bool,
    /// How long work under way may go on when it stops.
    pub(crate) drain: Duration,
}

impl Default for Serving {
    fn default() -> Serving {
        Serving {
            contracts: doors::DOORS.iter().map(|door| door.contract).collect(),
            names: Vec::new(),
            told: None,
            pulled: None,
            is_open_to_all: false,
            drain: DRAIN,
        }
    }
}

/// Serves the doors, and pulls work beside them if the agent is connected, until `shutdown` completes.
pub(crate) async fn run(
    listener: TcpListener,
    (backend, own): (OwnJobs, Registering),
    (serving, token): (Serving, Option<Token>),
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let listen = listener.local_addr()?;
    may_serve(&serving, token.as_ref(), listen)?;
    let Serving { contracts, names, told, pulled, drain, is_open_to_all: _ } = serving;
    let mut doors: Vec<_> = doors::doors(&contracts).map(|door| (door.place, door.contract)).collect();
    // The path of envelopes has the agent's name in it, which may be that of another door: it is looked at first.
    doors.reverse();
    let ours = Ours::new(&listen.to_string(), &names).added_by(ADDING);
    let plan = Plan { limits: Limits::default(), routes: Vec::new(), ours, doors };
    let site = Site::of_agent(plan);
    let doors = Doors { backend: backend.clone(), site: site.clone(), wait_max: WAIT_MAX, sync_wait: WAIT_MAX };
    let pushing = Reports::new(way_to(told.as_ref(), token.as_ref()), backend.clone());
    // One orchestrator is told of a job once, however the job came.
    let pulling = match told == pulled {
        true => pushing.clone(),
        false => {
            let owing = pushing.clone();
            tokio::spawn(async move { owing.tell_owed().await });
            Reports::new(way_to(pulled.as_ref(), token.as_ref()), backend.clone())
        }
    };
    let messages = Messages { doors, reports: pushing.clone() };
    let router = router(&messages, &contracts, token);
    let places = connection::Places::new(CONNECTIONS_MAX);
    let listener = Listener::Tcp(listener);
    tokio::select! {
        never = connection::accept(&listener, &site, &router, &places) => match never {},
        never = pull_until(site.stopping(), &own, &pulling) => match never {},
        () = wind_down(&site, &backend, (vec![&pushing, &pulling], &own, drain), shutdown) => {}
    }
    pull::say(&own, &pulling, "offline").await;
    drop(listener);
    site.closing().cancel();
    let _ = tokio::time::timeout(FLUSH_TIME_MAX, places.all_free()).await;
    backend.close().await;
    Ok(())
}

/// Pulls work until `shutdown` completes, and serves no door.
pub(crate) async fn pull(
    (backend, own): (OwnJobs, Registering),
    (serving, token): (Serving, Option<Token>),
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    if serving.pulled.is_none() {
        let why = "an agent that pulls work is connected to an orchestrator";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let ours = Ours::new("", &[]);
    let site = Site::of_agent(Plan { limits: Limits::default(), routes: Vec::new(), ours, doors: Vec::new() });
    let pulling = Reports::new(way_to(serving.pulled.as_ref(), token.as_ref()), backend.clone());
    tokio::select! {
        never = pull_until(site.stopping(), &own, &pulling) => match never {},
        () = wind_down(&site, &backend, (vec![&pulling], &own, serving.drain), shutdown) => {}
    }
    pull::say(&own, &pulling, "offline").await;
    backend.close().await;
    Ok(())
}

/// Whether an agent may be served so: other machines do not reach it without a token, and it can be given work.
fn may_serve(serving: &Serving, token: Option<&Token>, listen: SocketAddr) -> io::Result<()> {
    if token.is_none() && !serving.is_open_to_all && !listen.ip().to_canonical().is_loopback() {
        let why = format!("other machines reach {listen}, and no token is asked for");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    if doors::doors(&serving.contracts).next().is_none() {
        let why = "an agent that is called in none of its contracts can be given no work";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(())
}

fn way_to(orchestrator: Option<&Url>, token: Option<&Token>) -> Option<Arc<Orchestrator>> {
    orchestrator.map(|url| Arc::new(Orchestrator::at(url, token.map(Token::reveal))))
}

/// Pulls work until the agent stops, and then waits for its end.
async fn pull_until(stopping: &CancellationToken, own: &Registering, reports: &Reports) -> Infallible {
    tokio::select! {
        () = pull::run(own, reports) => {}
        () = stopping.cancelled() => {}
    }
    std::future::pending().await
}

/// Waits for the shutdown. Then new work is refused, and work under way has some time to end, to be answered and to be
/// told. The last of `reports` is how the orchestrator is told from which work is pulled.
async fn wind_down(
    site: &Site,
    backend: &OwnJobs,
    (reports, own, drain): (Vec<&Reports>, &Registering, Duration),
    shutdown: impl Future<Output = ()>,
) {
    shutdown.await;
    backend.refuse_new();
    site.stopping().cancel();
    let told = async || {
        for reports in &reports {
            reports.all_told().await;
        }
    };
    let answered = async {
        if let Some(pulling) = reports.last().filter(|_| !backend.is_idle()) {
            pull::say(own, pulling, "busy").await;
        }
        backend.idle().await;
        told().await;
        while site.is_answering() {
            tokio::time::sleep(IDLE_PERIOD).await;
        }
    };
    if tokio::time::timeout(drain, answered).await.is_err() {
        backend.stop().await;
        let _ = tokio::time::timeout(TOLD_TIME_MAX, told()).await;
    }
}

fn router(messages: &Messages, contracts: &BTreeSet<Contract>, token: Option<Token>) -> Router {
    let (hint, doors) = (doors::hint(contracts), doors::routes(contracts, messages));
    // Without a token there is nothing to ask at the gate.
    let doors = match token {
        Some(token) => {
            let gate = Arc::new(Gate { token, site: messages.doors.site.clone() });
            doors.route_layer(axum::middleware::from_fn_with_state(gate, gate::check))
        }
        None => doors,
    };
    doors
        .route("/health", get(alive))
        .route("/health/ready", get(ready).with_state(messages.doors.site.clone()))
        .fallback(move || unknown_path(hint.clone()))
        .method_not_allowed_fallback(wrong_method)
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

async fn unknown_path(hint: String) -> Refused {
    Refusal::not_found("nothing is at this path", hint).into()
}

async fn wrong_method(method: Method) -> Refused {
    Refusal::wrong_method(method.as_str()).into()
}
