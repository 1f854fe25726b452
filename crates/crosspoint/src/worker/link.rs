//! The way to the server: calls, joining, and when it was last sure to hear us.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use reqwest::StatusCode;
use serde_json::json;
use uuid::Uuid;

use crate::cli::{Agent, Reach};
use crate::client::{Client, Failed, segment};
use crate::render;

/// A call for work waits for so much of the lease: as long as the server lets it.
const LEASE_SHARE: u32 = 3;

/// A pause between tries is at least so long, and at most this or a quarter of the lease.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// While the server says nothing new again and again, it is asked at least so often: there may be work between.
const NOTHING_NEW_MAX: Duration = Duration::from_secs(1);

/// A call for work that waits for none.
pub(super) const LOOK_PATH: &str = "take?wait=0";

pub(super) struct Link {
    client: Mutex<Client>,
    name: String,
    /// As whom we take work. Whoever has let go of work that the server thinks it has is somebody else from then on.
    session: Mutex<Uuid>,
    lease: Duration,
    /// What is said when joining, but for the concurrency.
    terms: serde_json::Value,
    /// When the last call that succeeded was sent.
    alive_at: Mutex<Instant>,
    /// One joins at a time.
    joining: tokio::sync::Mutex<()>,
    /// Since when others are in the way who joined for other work.
    hindered_since: Mutex<Option<Instant>>,
    /// Whether it was said that the server is not there.
    away: AtomicBool,
    joined_once: AtomicBool,
}

/// Why a call came to nothing.
pub(super) enum Trouble {
    /// The server does not know us.
    JoinFirst,
    /// The server is not there, or cannot do it now.
    Away,
    /// The server will never do it.
    Refused(Failed),
}

/// The pauses between tries: they grow, and differ between workers that failed together.
pub(super) struct Pause {
    next: Duration,
    most: Duration,
}

impl Link {
    pub(super) fn new(arguments: &Agent) -> Result<Link> {
        let reach = Reach { server: arguments.server.clone(), place: arguments.place.clone() };
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

    /// Goes on as somebody else. What the server thinks we have died with who we were: it must not be given to us as if it had never
    /// arrived, in the same attempt.
    pub(super) fn begin_anew(&self) {
        *lock(&self.session) = Uuid::new_v4();
    }

    pub(super) fn lease(&self) -> Duration {
        self.lease
    }

    pub(super) fn take_path(&self) -> String {
        format!("take?wait={}", (self.lease / LEASE_SHARE).as_secs_f64())
    }

    /// Until when nobody else can have been given what we hold.
    pub(super) fn alive_until(&self) -> Instant {
        *lock(&self.alive_at) + self.lease
    }

    /// One call of this session. `what` is the end of its path.
    pub(super) async fn call(&self, what: &str, body: Bytes) -> Result<Bytes, Trouble> {
        let sent = Instant::now();
        let client = lock(&self.client).clone();
        let path = format!("/api/v1/agents/{}/{what}", segment(&self.name));
        match client.post_bytes(&path, body, self.lease).await {
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

    /// Joins, to take so much at a time.
    pub(super) async fn join(&self, concurrency: usize) -> Result<(), Trouble> {
        let _one = self.joining.lock().await;
        let mut body = self.terms.clone();
        (body["session"], body["concurrency"]) = (json!(self.session().to_string()), json!(concurrency));
        let client = lock(&self.client).clone();
        let path = format!("/api/v1/agents/{}/join", segment(&self.name));
        let sent = Instant::now();
        match client.post_bytes(&path, body.to_string().into(), self.lease).await {
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
                    render::note(&format!("agent {name} has joined {} for {works}; Ctrl-C ends it", client.place()));
                }
                Ok(())
            }
            Err(failed) if may_pass(&failed) => Err(self.away(&failed)),
            // Whoever is there for other work may be who we were before we were killed: its lease runs out.
            Err(failed) if failed.is_at("/work") && self.is_worth_waiting(&failed) => Err(Trouble::Away),
            // A name that is taken: no waiting mends that.
            Err(failed) => Err(Trouble::Refused(failed)),
        }
    }

    /// Whether those in the way may still be dead ones.
    fn is_worth_waiting(&self, failed: &Failed) -> bool {
        let mut since = lock(&self.hindered_since);
        if since.is_none() {
            let lease = self.lease.as_secs_f64();
            render::note(&format!(
                "{failed}; if they are dead they are gone after their lease: it is tried for {lease} s"
            ));
        }
        // The last try comes a pause later.
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
            render::note(&format!("{failed}; it is waited for"));
        }
    }

    fn is_there(&self, client: &Client) {
        if self.away.swap(false, Ordering::Relaxed) {
            render::note(&format!("the server is there again, at {}", client.place()));
        }
    }
}

/// Whether it may go better in a moment: the server, or somebody before it, is away, slow or has too much to do.
fn may_pass(failed: &Failed) -> bool {
    failed.passes() || matches!(failed.status(), Some(StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS))
}

impl Pause {
    pub(super) fn new(lease: Duration) -> Pause {
        Pause { next: PAUSE_MIN, most: PAUSE_MAX.min(lease / 4) }
    }

    /// For when the server is there, and says nothing new.
    pub(super) fn short() -> Pause {
        Pause { next: PAUSE_MIN, most: NOTHING_NEW_MAX }
    }

    pub(super) fn reset(&mut self) {
        self.next = PAUSE_MIN;
    }

    pub(super) async fn wait(&mut self) {
        // From half of it to all of it.
        let chance = f64::from(Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
        let pause = self.next.mul_f64(0.5 + chance / 2.0);
        self.next = (self.next * 2).min(self.most);
        tokio::time::sleep(pause).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // These are single assignments: whoever panicked has made all of one or none.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
