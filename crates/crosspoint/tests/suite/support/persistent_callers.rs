//! Callers that lose nothing: they send a request again until it is answered, and remember every answer.

use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::server::{Answer, PATIENCE, head, until};

/// Dice: the same seed gives the same throws.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// What a caller asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wish {
    Echo,
    Slow,
    Ask,
    Fail,
    Cancel,
}

const WISHES: [Wish; 7] = [Wish::Echo, Wish::Echo, Wish::Echo, Wish::Slow, Wish::Ask, Wish::Fail, Wish::Cancel];

/// What the callers were told about a job.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) wish: Wish,
    pub(crate) id: String,
    pub(crate) input: Value,
    pub(crate) outcome: Option<Value>,
}

/// State that all callers share.
#[derive(Default)]
pub(crate) struct Callers {
    /// Address of the server; `None` while it is dead.
    address: Mutex<Option<SocketAddr>>,
    /// Known jobs by request id.
    known: Mutex<BTreeMap<String, Known>>,
    acknowledged: AtomicUsize,
    done: AtomicBool,
}

impl Callers {
    pub(crate) fn set_address(&self, address: Option<SocketAddr>) {
        *self.address.lock().expect("nobody panics") = address;
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        *self.address.lock().expect("nobody panics")
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Lets all callers finish their current job.
    pub(crate) fn finish(&self) {
        self.done.store(true, Ordering::Relaxed);
    }

    pub(crate) fn known(&self) -> BTreeMap<String, Known> {
        self.known.lock().expect("nobody panics").clone()
    }

    /// Submits one job after the other until the callers are to finish.
    pub(crate) fn call(&self, name: usize, seed: u64) {
        let mut dice = Dice(seed);
        for number in 0.. {
            if self.done.load(Ordering::Relaxed) {
                return;
            }
            let wish = WISHES[usize::try_from(dice.below(WISHES.len() as u64)).expect("it is small")];
            self.fulfil(wish, &format!("c{name}-{number}"), &mut dice);
        }
    }

    fn fulfil(&self, wish: Wish, request_id: &str, dice: &mut Dice) {
        let milliseconds = match wish {
            // Long enough that only its cancel ends it.
            Wish::Cancel => 600_000,
            Wish::Slow => dice.below(150),
            Wish::Echo | Wish::Ask | Wish::Fail => 0,
        };
        let input = json!({"seconds": milliseconds as f64 / 1_000.0, "by": request_id, "prompt": request_id});
        let work = match wish {
            Wish::Echo => "echo",
            Wish::Slow | Wish::Cancel => "slow_echo",
            Wish::Ask => "ask",
            Wish::Fail => "fail",
        };
        let body = json!({"work": work, "input": input, "request_id": request_id}).to_string();
        let id = self.submit(wish, request_id, &input, &body, dice);
        match wish {
            Wish::Ask => self.answer(request_id, &id),
            Wish::Cancel => self.cancel(request_id, &id),
            // Some callers wait for the outcome, and some fetch it at the end.
            Wish::Echo | Wish::Slow | Wish::Fail if dice.below(2) == 0 => {
                let job = self.insist("GET", &format!("/api/v1/jobs/{id}?wait=5"), "", &[200]);
                self.learn(request_id, &job.json());
            }
            Wish::Echo | Wish::Slow | Wish::Fail => {}
        }
        if dice.below(4) == 0 {
            // A repeat is the same job, also much later.
            let again = self.insist("POST", "/api/v1/jobs", &body, &[200, 202]);
            self.learn(request_id, &again.json());
        }
    }

    fn submit(&self, wish: Wish, request_id: &str, input: &Value, body: &str, dice: &mut Dice) -> String {
        let wait = if dice.below(2) == 0 && !matches!(wish, Wish::Ask | Wish::Cancel) { "?wait=5" } else { "" };
        let job = self.insist("POST", &format!("/api/v1/jobs{wait}"), body, &[200, 202]).json();
        let id = job["id"].as_str().expect("a job has an id").to_owned();
        let known = Known { wish, id: id.clone(), input: input.clone(), outcome: None };
        self.known.lock().expect("nobody panics").insert(request_id.to_owned(), known);
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
        self.learn(request_id, &job);
        id
    }

    /// Answers a question once it is asked, and again only if the job still asks it.
    fn answer(&self, request_id: &str, id: &str) {
        let body = json!({"input": {"for": request_id}}).to_string();
        until("it was answered", || {
            let job = self.insist("GET", &format!("/api/v1/jobs/{id}"), "", &[200]).json();
            self.learn(request_id, &job);
            if job["stuck"]["reason"].as_str().is_some_and(|reason| reason.starts_with("poison")) {
                // The job was under way at three kills, so an operator must release it.
                self.insist("POST", &format!("/api/v1/jobs/{id}/retry"), "", &[202, 409]);
            } else if job["state"] == "waiting" {
                // If an earlier request of ours answered it without getting a response, this is a conflict.
                self.insist("POST", &format!("/api/v1/jobs/{id}/answer"), &body, &[200, 409]);
            }
            job["outcome"].is_object().then_some(())
        });
    }

    fn cancel(&self, request_id: &str, id: &str) {
        let job = self.insist("POST", &format!("/api/v1/jobs/{id}/cancel"), "", &[200]).json();
        assert_eq!(job["state"], "cancelled", "{job}");
        self.learn(request_id, &job);
    }

    /// Takes in what is said about a job: neither its id nor its outcome ever changes.
    pub(crate) fn learn(&self, request_id: &str, job: &Value) {
        let mut known = self.known.lock().expect("nobody panics");
        let known = known.get_mut(request_id).expect("it was submitted");
        assert_eq!((&job["id"], &job["request_id"]), (&json!(known.id), &json!(request_id)));
        match (&known.outcome, job["outcome"].is_object()) {
            (Some(outcome), _) => assert_eq!(&job["outcome"], outcome, "the outcome of {request_id} changed"),
            (None, true) => known.outcome = Some(job["outcome"].clone()),
            (None, false) => {}
        }
    }

    /// Sends a request until it is answered as expected. Sends it again if there is no answer, or if the server cannot
    /// answer now.
    pub(crate) fn insist(&self, method: &str, path: &str, body: &str, expected: &[u16]) -> Answer {
        let mut path = path;
        until(path, || {
            let address = *self.address.lock().expect("nobody panics");
            let Some(answer) = send(address?, method, path, body) else {
                // The server may never live as long as the wait.
                path = path.split("?wait").next().unwrap_or(path);
                return None;
            };
            assert!(expected.contains(&answer.status) || answer.status == 503, "{method} {path}: {answer:?}");
            expected.contains(&answer.status).then_some(answer)
        })
    }
}

/// One request over a connection of its own; `None` if there was no whole answer.
pub(crate) fn send(address: SocketAddr, method: &str, path: &str, body: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let _ = stream.write_all(&[head(method, path, &[], body.len()).as_bytes(), body.as_bytes()].concat());
    Answer::read(&mut BufReader::new(stream))
}
