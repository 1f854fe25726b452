//! Pulling work from an orchestrator of the message contract (MSG-11, MSG-12, MSG-14): the agent registers, asks for
//! messages, and posts how its work goes. It needs no address of its own.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use crosspoint_contracts::Contract;
use crosspoint_contracts::Kind;
use crosspoint_contracts::json::{Tape, Value, quoted};
use crosspoint_contracts::message::{About, Cancel};
use crosspoint_exchange::admission::{self, Caller, Headers};
use crosspoint_exchange::backend::Followed as _;
use crosspoint_exchange::refusal;
use crosspoint_exchange::trace::Trace;
use crosspoint_http::door::message;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use uuid::Uuid;

use super::Reports;
use super::poll::Poll;
use super::telling::Orchestrator;

/// How much longer than the orchestrator may keep a poll its answer is waited for, and how long its messages may take.
const POLL_TIME_MORE: Duration = Duration::from_secs(10);
const MESSAGES_TIME_MAX: Duration = Duration::from_secs(60);

/// Pause after a call that failed: the first, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Shortest time between two polls without messages, for orchestrators that keep no poll waiting.
const IDLE_PAUSE: Duration = Duration::from_secs(1);

/// Longest time for saying that the agent stops.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(2);

/// Longest answer to a poll, in bytes.
const MESSAGES_BYTES_MAX: usize = 64 << 20;

/// Most jobs at a time that can be registered.
const CONCURRENCY_MAX: usize = 1_000;

/// What an agent says of itself when it registers.
pub(crate) struct Registering {
    pub(crate) name: Arc<str>,
    pub(crate) agent_type: Option<Arc<str>>,
    pub(crate) works: Vec<Arc<str>>,
    pub(crate) concurrency: usize,
    /// Whether the orchestrator knows the agent and wants its signs of life.
    pub(crate) is_awaited: AtomicBool,
}

/// Registers and works until it is dropped, if there is an orchestrator.
pub(crate) async fn run(own: &Registering, reports: &Reports) {
    let Some(orchestrator) = reports.orchestrator() else { return };
    let mut pause = PAUSE_FIRST;
    loop {
        match register(orchestrator, own).await {
            Ok(beat) => {
                // Before it has registered, the orchestrator takes nothing from it.
                let owing = reports.clone();
                tokio::spawn(async move { owing.tell_owed().await });
                own.is_awaited.store(beat.is_some(), Ordering::Relaxed);
                let has_polled = tokio::select! {
                    has_polled = work(orchestrator, own, reports) => has_polled,
                    never = beat_on(orchestrator, own, beat) => match never {},
                };
                if has_polled {
                    pause = PAUSE_FIRST;
                }
            }
            Err(why) => tracing::warn!(agent = %own.name, why, "the orchestrator did not take the registration"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Says to the orchestrator that the agent stops, where it wants signs of life (MSG-12): `busy` gets the agent no new
/// work, and `offline` says that it is gone. The latter comes last: whatever is said after it says that the agent is
/// there.
pub(crate) async fn say(own: &Registering, reports: &Reports, status: &'static str) {
    let Some(orchestrator) = reports.orchestrator().filter(|_| own.is_awaited.load(Ordering::Relaxed)) else { return };
    let (beat, trace) = (own.heartbeat(status), trace());
    // An orchestrator that does not answer misses the agent soon.
    let _ = timeout(LEAVE_TIME_MAX, orchestrator.post(beat, &trace)).await;
}

/// Registers. Returns the time between two signs of life, if the orchestrator wants them (MSG-12).
async fn register(orchestrator: &Orchestrator, own: &Registering) -> Result<Option<Duration>, String> {
    let works: Vec<String> = own.works.iter().map(|work| quoted(work)).collect();
    let registration = format!(
        r#"{{"agent_id":{},"agent_type":{},"supported_versions":["1.0"],"work_types":[{}],"concurrency":{}}}"#,
        quoted(&own.name),
        quoted(own.agent_type()),
        works.join(","),
        own.concurrency.min(CONCURRENCY_MAX)
    );
    let endpoint = orchestrator.http.endpoint("api/agent/register");
    let (status, body) = orchestrator.post_to(&endpoint, registration.into(), &trace()).await?;
    if !status.is_success() {
        return Err(format!("status {status}"));
    }
    let tape = Tape::scan(&body).ok();
    let seconds = tape.as_ref().and_then(Tape::root).and_then(|root| root.get("heartbeat_seconds"));
    let seconds = seconds.and_then(|value| value.source().parse().ok()).filter(|seconds| *seconds > 0);
    Ok(seconds.map(Duration::from_secs))
}

/// Sends a sign of life as often as was asked for.
async fn beat_on(orchestrator: &Orchestrator, own: &Registering, period: Option<Duration>) -> Infallible {
    let Some(period) = period else { return std::future::pending().await };
    let mut next = Instant::now() + period;
    loop {
        sleep_until(next).await;
        next += period;
        let _ = orchestrator.post(own.heartbeat("online"), &trace()).await;
    }
}

/// Asks for messages and does what they say, until the orchestrator no longer knows the agent. Returns whether it ever
/// answered.
async fn work(orchestrator: &Orchestrator, own: &Registering, reports: &Reports) -> bool {
    let (mut poll, mut pause, mut has_polled) = (Poll::new(&own.name, own.concurrency), PAUSE_FIRST, false);
    loop {
        let asked_at = Instant::now();
        match ask(orchestrator, &poll).await {
            Polled::Messages(messages) => {
                (pause, has_polled) = (PAUSE_FIRST, true);
                poll.answered();
                if messages.is_empty() && !poll.has_more_to_tell() {
                    sleep_until(asked_at + IDLE_PAUSE).await;
                }
                for message in messages {
                    if let Some(id) = id_of(&message) {
                        poll.arrived(id);
                    }
                    take(message, orchestrator, reports).await;
                }
                continue;
            }
            Polled::Unread => poll.unread(),
            Polled::Unanswered => {}
            Polled::Refused(StatusCode::BAD_REQUEST) if poll.refused() => continue,
            Polled::Refused(status) => {
                tracing::warn!(agent = %own.name, status = status.as_u16(), "the orchestrator refused a poll");
                return has_polled;
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// What came of a poll.
enum Polled {
    Messages(Vec<Bytes>),
    /// There was an answer, which is too long or did not arrive whole.
    Unread,
    /// There was no answer, or one that says that the orchestrator cannot answer now.
    Unanswered,
    Refused(StatusCode),
}

async fn ask(orchestrator: &Orchestrator, poll: &Poll) -> Polled {
    let endpoint = orchestrator.http.endpoint_with("api/agent/messages", &poll.query());
    let trace = trace();
    let answer = timeout(poll.wait() + POLL_TIME_MORE, orchestrator.http.get(&endpoint, &trace)).await;
    let Ok(Ok(answer)) = answer else { return Polled::Unanswered };
    let status = answer.status;
    let body = timeout(MESSAGES_TIME_MAX, answer.whole(MESSAGES_BYTES_MAX)).await;
    match (status, body) {
        (status, Ok(Ok(body))) if status.is_success() => Polled::Messages(messages(&body)),
        (status, _) if status.is_success() => Polled::Unread,
        (StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS, _) => Polled::Unanswered,
        (status, _) if status.is_client_error() => Polled::Refused(status),
        (_, _) => Polled::Unanswered,
    }
}

/// Does what one message says.
async fn take(sent: Bytes, orchestrator: &Orchestrator, reports: &Reports) {
    let came = std::time::Instant::now();
    if let Some(cancel) = Cancel::read(&sent) {
        // The outcome is told like any other.
        let _ = message::cancel_job(&reports.backend, &Caller::everyone(), &cancel).await;
        return;
    }
    if About::of(&sent).kind != Some(Kind::WorkRequest) {
        return;
    }
    let headers = Headers { notify: reports.owed_to(), ..Headers::default() };
    let read = admission::read(Contract::Message, &sent, headers);
    let admitted = match read {
        Ok(reading) => admission::submit(&reports.backend, reading).await,
        Err(refusal) => Err(refusal),
    };
    match admitted {
        Ok(work) => {
            // An error would end the work there. The status that is told has the question that is asked.
            if super::pass_on(&work, &sent, came).await.is_err() {
                tracing::warn!(job = %work.job.now().asked.id, "an answer came to a question that is not asked");
            }
            reports.tell(&work, None);
        }
        Err(refused) => {
            let now = crate::clock::now().to_string();
            let error = refusal::document(&refused, Contract::Message, Uuid::new_v4(), &now);
            let _ = orchestrator.post(error.into(), &trace()).await;
        }
    }
}

/// Returns the messages of a poll, each as it was written.
fn messages(body: &Bytes) -> Vec<Bytes> {
    let Ok(tape) = Tape::scan(body) else { return Vec::new() };
    let Some(list) = tape.root().and_then(|root| root.get("messages")) else { return Vec::new() };
    let place = |item: Value<'_, '_>| {
        let (start, end) = item.span();
        body.slice(start..end)
    };
    list.items().map(place).collect()
}

fn id_of(message: &[u8]) -> Option<String> {
    let tape = Tape::scan(message).ok()?;
    let id = tape.root()?.get("message_id")?.text()?.decode().into_owned();
    id.parse::<Uuid>().is_ok().then_some(id)
}

/// A call that belongs to no job is a trace of its own.
fn trace() -> Trace {
    Trace::of_attempt(Uuid::new_v4(), None, 1)
}

impl Registering {
    /// Returns the agent's type. The contract demands one; `code` is its word for an agent that writes programs.
    fn agent_type(&self) -> &str {
        self.agent_type.as_deref().unwrap_or("code")
    }

    fn heartbeat(&self, status: &str) -> Bytes {
        let (id, now) = (|| Uuid::new_v4().to_string(), crate::clock::now());
        format!(
            r#"{{"protocol_version":"1.0","message_id":"{}","request_id":"{}","trace_id":"{}","from_agent":{type_},"to_agent":"orchestrator","timestamp":"{now}","type":"work_status","payload":{{"agent_id":{},"agent_type":{type_},"status":"{status}","current_task_id":null,"resources":{{}},"timestamp":"{now}"}},"x_custom_fields":{{}}}}"#,
            id(),
            id(),
            id(),
            quoted(&self.name),
            type_ = quoted(self.agent_type()),
        )
        .into()
    }
}
