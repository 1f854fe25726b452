//! Pulling work from an orchestrator of the message contract (MSG-11, MSG-12, MSG-14): the agent registers, asks for
//! messages, and posts how its work goes. It needs no address of its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::Contract;
use crosspoint_contracts::Kind;
use crosspoint_contracts::json::{Tape, Value, quoted};
use crosspoint_contracts::message::{About, Cancel};
use crosspoint_contracts::request::Door;
use crosspoint_exchange::admission::{self, Caller, Headers};
use crosspoint_exchange::backend::Backend;
use crosspoint_exchange::refusal;
use crosspoint_exchange::trace::Trace;
use crosspoint_http::call::Media;
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use super::Reports;
use super::telling::Orchestrator;

/// How long the orchestrator may keep a poll, in seconds.
const WAIT_SECONDS: u32 = 20;

/// Pause after a call that failed: the first, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Longest answer to a poll, in bytes.
const MESSAGES_BYTES_MAX: usize = 64 << 20;

/// Time between two signs of life if the orchestrator does not say.
const BEAT: Duration = Duration::from_secs(30);

/// What an agent says of itself when it registers.
pub(crate) struct Registering {
    pub(crate) name: Arc<str>,
    pub(crate) agent_type: Option<Arc<str>>,
    pub(crate) works: Vec<Arc<str>>,
    pub(crate) concurrency: usize,
}

/// Registers and works until it is dropped, if there is an orchestrator.
pub(crate) async fn run(own: &Registering, reports: &Reports) {
    let Some(orchestrator) = reports.orchestrator() else { return };
    let mut pause = PAUSE_FIRST;
    loop {
        match register(orchestrator, own).await {
            Ok(beat) => {
                pause = PAUSE_FIRST;
                tokio::select! {
                    () = work(orchestrator, own, reports) => {}
                    () = beat_on(orchestrator, own, beat) => {}
                }
            }
            Err(why) => tracing::warn!(agent = %own.name, why, "the orchestrator did not take the registration"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Registers. Returns the time between two signs of life.
async fn register(orchestrator: &Orchestrator, own: &Registering) -> Result<Duration, String> {
    let works: Vec<String> = own.works.iter().map(|work| quoted(work)).collect();
    let registration = format!(
        r#"{{"agent_id":{},"agent_type":{},"supported_versions":["1.0"],"work_types":[{}],"concurrency":{}}}"#,
        quoted(&own.name),
        quoted(own.agent_type()),
        works.join(","),
        own.concurrency
    );
    let endpoint = orchestrator.http.endpoint("api/agent/register");
    let answer = orchestrator.http.post(&endpoint, registration, &trace(), Media::Json).await;
    let answer = answer.map_err(|why| format!("{why:?}"))?;
    let status = answer.status;
    let body = answer.whole(MESSAGES_BYTES_MAX).await.unwrap_or_default();
    if !status.is_success() {
        return Err(format!("status {status}"));
    }
    let tape = Tape::scan(&body).ok();
    let seconds = tape.as_ref().and_then(Tape::root).and_then(|root| root.get("heartbeat_seconds"));
    let seconds = seconds.and_then(|value| value.source().parse().ok()).filter(|seconds| *seconds > 0);
    Ok(seconds.map_or(BEAT, Duration::from_secs))
}

/// Sends a sign of life as often as was asked for.
async fn beat_on(orchestrator: &Orchestrator, own: &Registering, period: Duration) {
    let mut next = Instant::now() + period;
    loop {
        sleep_until(next).await;
        next += period;
        let _ = orchestrator.post(own.heartbeat(), &trace()).await;
    }
}

/// Asks for messages and does what they say, until the orchestrator no longer knows the agent.
async fn work(orchestrator: &Orchestrator, own: &Registering, reports: &Reports) {
    let (mut acks, mut pause) = (Vec::new(), PAUSE_FIRST);
    loop {
        let name: String = url::form_urlencoded::byte_serialize(own.name.as_bytes()).collect();
        let query = format!("agent={name}&wait={WAIT_SECONDS}&max={}&ack={}", own.concurrency, acks.join(","));
        let endpoint = orchestrator.http.endpoint_with("api/agent/messages", &query);
        let answer = orchestrator.http.get(&endpoint, &trace()).await;
        let Ok(answer) = answer else {
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            continue;
        };
        let status = answer.status;
        let body = answer.whole(MESSAGES_BYTES_MAX).await.unwrap_or_default();
        if status.is_client_error() && status.as_u16() != 429 {
            tracing::warn!(agent = %own.name, status = status.as_u16(), "the orchestrator refused a poll");
            return;
        }
        if !status.is_success() {
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            continue;
        }
        pause = PAUSE_FIRST;
        acks.clear();
        for message in messages(&body) {
            acks.extend(id_of(&message));
            take(message, orchestrator, reports).await;
        }
    }
}

/// Does what one message says.
async fn take(message: Bytes, orchestrator: &Orchestrator, reports: &Reports) {
    let desk = &reports.desk;
    if let Some(cancel) = Cancel::read(&message) {
        for id in cancel.request_id.iter().chain(&cancel.task_id) {
            if let Ok(Some(job)) = desk.find(Door::Contract(Contract::Message), &Caller::everyone(), id).await {
                let _ = desk.cancel(&Caller::everyone(), &job).await;
            }
        }
        return;
    }
    if About::of(&message).kind != Some(Kind::WorkRequest) {
        return;
    }
    let read = admission::read(Contract::Message, &message, Headers::default());
    let admitted = match read {
        Ok(reading) => admission::submit(desk, reading).await,
        Err(refusal) => Err(refusal),
    };
    match admitted {
        Ok(work) => {
            super::pass_on(&work.job, &message);
            reports.tell(&work);
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

    fn heartbeat(&self) -> Bytes {
        let (id, now) = (|| Uuid::new_v4().to_string(), crate::clock::now());
        format!(
            r#"{{"protocol_version":"1.0","message_id":"{}","request_id":"{}","trace_id":"{}","from_agent":{type_},"to_agent":"orchestrator","timestamp":"{now}","type":"work_status","payload":{{"agent_id":{},"agent_type":{type_},"status":"online","current_task_id":null,"resources":{{}},"timestamp":"{now}"}},"x_custom_fields":{{}}}}"#,
            id(),
            id(),
            id(),
            quoted(&self.name),
            type_ = quoted(self.agent_type()),
        )
        .into()
    }
}
