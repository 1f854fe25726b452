//! The way to the server: calls, joining, and when the server was last sure to hear this worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use reqwest::StatusCode;
use serde_json::json;
use uuid::Uuid;

use super::lines;
use crate::client::{Client, Failed, segment};
use crate::command::agent::arguments::Agent;
use crate::command::flags::Reach;
use crate::terminal::render;

/// A call for work waits for the lease divided by this, which is as long as the server lets it.
const LEASE_SHARE: u32 = 3;

/// Shortest and longest pause between tries. The longest is also at most a quarter of the lease.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Longest pause between calls while the server says nothing new again and again: there may be new work.
const NOTHING_NEW_MAX: Duration = Duration::from_secs(1);

/// The path of a call for work that does not wait.
pub(super) const LOOK_PATH: &str = "take?wait=0";

pub(super) struct Link {
    client: Mutex<Client>,
    name: String,
    /// The id under which work is taken. When this worker has let go of work that the server thinks it has, it goes on
    /// with a new one.
    session: Mutex<Uuid>,
    lease: Duration,
    /// The body of a join, without session and concurrency.
    terms: serde_json::Value,
    /// When the last call that succeeded was sent.
    alive_at: Mutex<Instant>,
    /// Held while joining, so that only one call joins at a time.
    joining: tokio::sync::Mutex<()>,
    /// Since when sessions that joined for other work have kept this one from joining.
    hindered_since: Mutex<Option<Instant>>,
    /// Whether the user was told that the server is away.
    away: AtomicBool,
    joined_once: AtomicBool,
}

/// Why a call failed.
pub(super) enum Trouble {
    /// The server does not know this session.
    JoinFirst,
    /// The server is away, or cannot answer now.
    Away,
    /// The server will never accept the call.
    Refused(Failed),
}

/// The pauses between tries. They grow, and differ between workers that failed together.
pub(super) struct Pause {
    next: Duration,
    most: Duration,
}

impl Link {
    pub(super) fn new(arguments: &Agent) -> Result<Link> {
        let reach = Reach { server: arguments.server.clone(), store: arguments.store.clone() };
        let mut terms = json!({
            "work": arguments.work, "lease_seconds": arguments.lease_seconds,
        });
        let settled = [
            ("silence_seconds", arguments.silence_seconds.map(|seconds| json!(seconds))),
            ("total_seconds", arguments.total_seconds.map(|seconds| json!(seconds))),
            ("repeatable", arguments.repeatable.map(|repeatable| json!(repeatable))),
            ("output_bytes", arguments.output_bytes.map(|bytes| json!(bytes))),
        ];
        for (name, value) in settled {
            if let Some(value) = value {
                terms[name] = value;
            }
        }
        Ok(Link {
            client: Mutex::new(Client::patient(&reach)?),
            name: arguments.name.clone(),
            session: Mutex::new(Uuid::new_v4()),
            lease: Duration::from_secs_f64(arguments.lease_seconds),
            terms,
            alive_at: Mutex::new(Instant::now()),
            joining: tokio::sync::Mutex::default(),
            hindered_since: Mutex::default(),
            away: AtomicBool::new(false),
            joined_once: AtomicBool::new(false),
        })
    }

    pub(super) fn session(&self) -> Uuid {
        *lock(&self.session)
    }

    /// Goes on as a new session. What the server thinks the old session has died with it: the server must not give it
    /// to this worker again, in the same attempt, as if it had never arrived.
    pub(super) fn begin_anew(&self) {
        *lock(&self.session) = Uuid::new_v4();
    }

    pub(super) fn lease(&self) -> Duration {
        self.lease
    }

    pub(super) fn take_path(&self) -> String {
        format!("take?wait={}", (self.lease / LEASE_SHARE).as_secs_f64())
    }

    /// Until when no other worker can have been given what this one holds.
    pub(super) fn alive_until(&self) -> Instant {
        *lock(&self.alive_at) + self.lease
    }

    /// Makes one call of this session. `what` is the end of its path.
    pub(super) async fn call(&self, what: &str, body: Bytes) -> Result<Bytes, Trouble> {
        let sent = Instant::now();
        let path = format!("/api/v1/agents/{}/{what}", segment(&self.name));
        let (client, answer) = self.post(&path, body).await;
        match answer {
            Ok(answer) => {
                let mut alive_at = lock(&self.alive_at);
                *alive_at = sent.max(*alive_at);
                drop(alive_at);
                self.is_there(&client);
                Ok(answer)
            }
            Err(failed) if failed.status() == Some(StatusCode::CONFLICT) => Err(Trouble::JoinFirst),
            Err(failed) if may_pass(&failed) => Err(self.away(&failed)),
            Err(failed) => Err(Trouble::Refused(failed)),
        }
    }

    /// Posts a body. If the token is refused and another one is in its place by now, it is posted with that one: the
    /// operator may have replaced it. Returns the client that was answered.
    async fn post(&self, path: &str, body: Bytes) -> (Client, Result<Bytes, Failed>) {
        let client = lock(&self.client).clone();
        let answer = client.post_bytes(path, body.clone(), self.lease).await;
        let is_refused = answer.as_ref().is_err_and(|failed| failed.status() == Some(StatusCode::UNAUTHORIZED));
        let Some(client_now) = is_refused.then(|| client.with_new_token()).flatten() else { return (client, answer) };
        *lock(&self.client) = client_now.clone();
        let answer = client_now.post_bytes(path, body, self.lease).await;
        (client_now, answer)
    }

    /// Joins, to take this many jobs at a time.
    pub(super) async fn join(&self, concurrency: usize) -> Result<(), Trouble> {
        let _one = self.joining.lock().await;
        let mut body = self.terms.clone();
        (body["session"], body["concurrency"]) = (json!(self.session().to_string()), json!(concurrency));
        let path = format!("/api/v1/agents/{}/join", segment(&self.name));
        let sent = Instant::now();
        let (client, answer) = self.post(&path, body.to_string().into()).await;
        match answer {
            Ok(_) => {
                *lock(&self.alive_at) = sent;
                *lock(&self.hindered_since) = None;
                if self.joined_once.swap(true, Ordering::Relaxed) {
                    self.is_there(&client);
                } else {
                    self.away.store(false, Ordering::Relaxed);
                    let works = self.terms["work"].as_array().map_or(0, Vec::len);
                    let works = if works == 1 { "1 work".to_owned() } else { format!("{works} works") };
                    let name = render::visible(&self.name);
                    lines::note(&format!(
                        "agent {name} has joined {} for {works}; Ctrl-C ends it",
                        client.shown_address()
                    ));
                }
                Ok(())
            }
            Err(failed) if may_pass(&failed) => Err(self.away(&failed)),
            // The session that is there for other work may be this worker's own from before it was killed: its lease
            // runs out.
            Err(failed) if failed.is_at("/work") && self.is_worth_waiting(&failed) => Err(Trouble::Away),
            // The name is taken: waiting does not mend that.
            Err(failed) => Err(Trouble::Refused(failed)),
        }
    }

    /// Whether the sessions in the way may still be dead ones.
    fn is_worth_waiting(&self, failed: &Failed) -> bool {
        let mut since = lock(&self.hindered_since);
        if since.is_none() {
            let lease = self.lease.as_secs_f64();
            lines::note(&format!(
                "{failed}; if they are dead they are gone after their lease: it is tried for {lease} s"
            ));
        }
        // The last try comes one pause after this limit.
        since.get_or_insert_with(Instant::now).elapsed() < self.lease + self.lease / 4
    }

    fn away(&self, failed: &Failed) -> Trouble {
        self.is_away(failed);
        lock(&self.client).look_again();
        Trouble::Away
    }

    pub(super) async fn leave(&self) {
        let _ = self.call("leave", json!({ "session": self.session().to_string() }).to_string().into()).await;
    }

    pub(super) fn not_ours(&self) -> Failed {
        lock(&self.client).not_ours()
    }

    fn is_away(&self, failed: &Failed) {
        if !self.away.swap(true, Ordering::Relaxed) {
            lines::note(&format!("{failed}; it is waited for"));
        }
    }

    fn is_there(&self, client: &Client) {
        if self.away.swap(false, Ordering::Relaxed) {
            lines::note(&format!("the server is there again, at {}", client.shown_address()));
        }
    }
}

/// Whether a later try may succeed: the server, or a proxy in front of it, is away, slow or overloaded.
fn may_pass(failed: &Failed) -> bool {
    failed.passes() || matches!(failed.status(), Some(StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS))
}

impl Pause {
    pub(super) fn new(lease: Duration) -> Pause {
        Pause { next: PAUSE_MIN, most: PAUSE_MAX.min(lease / 4) }
    }

    /// The pauses while the server is there and says nothing new.
    pub(super) fn short() -> Pause {
        Pause { next: PAUSE_MIN, most: NOTHING_NEW_MAX }
    }

    pub(super) fn reset(&mut self) {
        self.next = PAUSE_MIN;
    }

    pub(super) async fn wait(&mut self) {
        // From half of the pause to all of it.
        let chance = f64::from(Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
        let pause = self.next.mul_f64(0.5 + chance / 2.0);
        self.next = (self.next * 2).min(self.most);
        tokio::time::sleep(pause).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Each lock guards a single assignment: a panic has left all of it or none.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
