//! Callers: one for each door. All of them ask for the same, each in the words of its contract.

#[path = "doors/callback.rs"]
mod callback;
#[path = "doors/calls.rs"]
mod calls;
#[path = "doors/feed.rs"]
mod feed;
#[path = "doors/files.rs"]
mod files;
#[path = "doors/message.rs"]
mod message;
#[path = "doors/workflow.rs"]
mod workflow;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

pub(super) use self::callback::Callback;
use self::callback::Told;
use self::calls::encoded;
pub(super) use self::calls::{call, fetch, shallow};
use self::feed::Feed;
use self::files::Files;
use super::view::View;
use crate::support::message_caller::{MESSAGES, PLANNER};
use crate::support::server::{Answer, until};

/// Where a caller submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Native,
    Sync,
    Stream,
    Task,
    Bridge,
    Message,
    /// Of the message contract, too, and told later at an address of the caller.
    Callback,
    Workflow,
}

/// What a caller asks for.
#[derive(Clone)]
pub(super) struct Order {
    pub(super) work: String,
    pub(super) input: Value,
    /// The caller's id as JSON spells it, quotes included.
    pub(super) id: String,
    pub(super) members: Vec<(&'static str, Value)>,
    pub(super) headers: Vec<(&'static str, String)>,
}

/// What a caller holds after it has submitted.
pub(super) struct Handle {
    address: SocketAddr,
    door: Door,
    work: String,
    id: String,
    /// The caller's document, which it may send again.
    document: String,
    held: Held,
    /// What the caller was told later.
    told: Arc<Told>,
}

enum Held {
    /// An answer that is already there: the job or the task at that time, or a refusal.
    Answer(Answer),
    /// An answer that comes when the run has ended.
    Awaited(JoinHandle<Answer>),
    Feed(Feed),
    Files(Files),
}

impl Door {
    pub(super) const ALL: [Door; 8] = [
        Door::Native,
        Door::Sync,
        Door::Stream,
        Door::Task,
        Door::Bridge,
        Door::Message,
        Door::Callback,
        Door::Workflow,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Door::Native => "native",
            Door::Sync => "sync",
            Door::Stream => "stream",
            Door::Task => "task",
            Door::Bridge => "bridge",
            Door::Message => "message",
            Door::Callback => "callback",
            Door::Workflow => "workflow",
        }
    }

    /// Whether callers speak the message contract there.
    pub(super) fn is_message(self) -> bool {
        matches!(self, Door::Message | Door::Callback)
    }

    /// The name of the door in the native API.
    fn native_name(self) -> &'static str {
        match self {
            Door::Native => "native",
            Door::Sync | Door::Stream => "run",
            Door::Task => "task",
            Door::Bridge => "bridge",
            Door::Message | Door::Callback => "message",
            Door::Workflow => "workflow",
        }
    }

    fn path(self, work: &str) -> String {
        let path = match self {
            Door::Native => "/api/v1/jobs",
            Door::Sync => "/agents/run/sync",
            Door::Stream => "/agents/run/stream",
            Door::Task => "/tasks",
            // The path that the driver posts a requester's file to.
            Door::Bridge => "/api/v1/bridge",
            Door::Message | Door::Callback => MESSAGES,
            // An agent is called like its work here.
            Door::Workflow => return workflow::path(work),
        };
        path.to_owned()
    }

    /// The caller's document.
    pub(super) fn document(self, order: &Order) -> String {
        let [id, work, input] = match self {
            Door::Native => ["request_id", "work", "input"],
            Door::Sync | Door::Stream => ["request_id", "task_type", "inputs"],
            Door::Task => ["id", "type", "payload"],
            Door::Bridge => ["request_id", "agent_name", "prompt"],
            Door::Message => return message::document(order, "orchestrator"),
            Door::Callback => return message::document(order, PLANNER),
            Door::Workflow => return workflow::document(order),
        };
        let more = order.members.iter().map(|(name, value)| format!(", {}: {value}", json!(name)));
        let more: String = more.collect();
        let (spelled, asked, given) = (&order.id, json!(order.work), &order.input);
        if self == Door::Bridge {
            // A prompt is a text. A carried note says that it is an object, so that agents get one (ALL-8).
            let given = json!(given.to_string());
            let carried = json!({"x_crosspoint": {"from": "run.request", "form": {"input": "json"}}});
            let more = format!(", \"version\": \"1.0\", \"context\": {carried}{more}");
            return format!("{{\"{id}\": {spelled}, \"{work}\": {asked}, \"{input}\": {given}{more}}}");
        }
        format!("{{\"{id}\": {spelled}, \"{work}\": {asked}, \"{input}\": {given}{more}}}")
    }

    /// Submits the order, at the bridge door by files in this directory.
    pub(super) fn submit(self, address: SocketAddr, room: &Path, callback: &Callback, order: &Order) -> Handle {
        let document = self.document(order);
        let (mut headers, path) = (order.headers.clone(), self.path(&order.work));
        let held = match self {
            Door::Native | Door::Task | Door::Message | Door::Callback => {
                Held::Answer(call(address, "POST", &path, &headers, &document))
            }
            Door::Sync => Held::Awaited(thread::spawn(move || call(address, "POST", &path, &headers, &document))),
            Door::Workflow => {
                headers.push(workflow::key(&order.id));
                Held::Awaited(thread::spawn(move || call(address, "POST", &path, &headers, &document)))
            }
            Door::Stream => match Feed::open(address, "POST", &path, &headers, &document) {
                Ok(feed) => Held::Feed(feed),
                Err(refused) => Held::Answer(refused),
            },
            Door::Bridge => Held::Files(Files::leave(room, &document)),
        };
        let id = serde_json::from_str(&order.id).expect("the id is a string");
        let (work, document, told) = (order.work.clone(), self.document(order), callback.told.clone());
        Handle { address, door: self, work, id, document, held, told }
    }
}

impl Handle {
    /// The id of the job. Only the native API shows it, so the job is found there by the caller's id.
    pub(super) fn job_id(&self) -> String {
        let path = format!("/api/v1/jobs?door={}&work={}&limit=500", self.door.native_name(), self.work);
        until("the job is listed", || {
            let listed = fetch(self.address, &path).json();
            let jobs = listed["jobs"].as_array().expect("a list");
            let is_it = |job: &&Value| {
                let is_envelope = self.door == Door::Workflow;
                if is_envelope { workflow::is_of(self.address, job, &self.id) } else { job["request_id"] == *self.id }
            };
            let ids: Vec<&Value> = jobs.iter().filter(is_it).collect();
            assert!(ids.len() < 2, "one request became {} jobs", ids.len());
            ids.first().map(|job| job["id"].as_str().expect("an id").to_owned())
        })
    }

    /// Waits until the caller has seen the progress at this step. For a caller that cannot see it, waits until it is
    /// there.
    pub(super) fn sees_progress(&self, step: &str) {
        let has = |percent: &Value, found: &Value| {
            percent.is_number() && found.as_str().is_some_and(|found| found.starts_with(step))
        };
        match (&self.held, self.door) {
            (Held::Feed(feed), _) => {
                feed.until("progress", |event| {
                    event.name == "progress" && has(&event.data()["percent"], &event.data()["step"])
                });
            }
            (_, Door::Task) => {
                let feed = self.task_feed();
                feed.until("progress", |event| {
                    let carried = &event.data()["metadata"]["x_crosspoint"];
                    event.data()["status"] == "in_progress" && has(&carried["percent"], &carried["step"])
                });
            }
            (_, Door::Native) => {
                let path = format!("/api/v1/jobs/{}/events", self.job_id());
                let feed = Feed::open(self.address, "GET", &path, &[], "").unwrap_or_else(|no| panic!("{no:?}"));
                feed.until("progress", |event| {
                    event.name == "progress" && has(&event.data()["percent"], &event.data()["step"])
                });
            }
            (_, Door::Callback) => self.told.until(&self.id, "progress", |message| {
                let payload = &message["payload"];
                has(&payload["progress_percent"], &payload["step"]["name"]).then_some(())
            }),
            (_, Door::Message) => {
                until("progress", || {
                    let payload = &self.asked_again("").json()["payload"];
                    has(&payload["progress_percent"], &payload["step"]["name"]).then_some(())
                });
            }
            (_, Door::Sync | Door::Stream | Door::Bridge | Door::Workflow) => {
                let path = format!("/api/v1/jobs/{}", self.job_id());
                until("progress", || {
                    let progress = &fetch(self.address, &path).json()["progress"];
                    has(&progress["percent"], &progress["step"]).then_some(())
                });
            }
        }
    }

    /// Waits until the caller is asked, and returns the question.
    pub(super) fn sees_question(&self) -> Value {
        match (&self.held, self.door) {
            (Held::Feed(feed), _) => {
                let asks = |event: &feed::Event| event.name == "progress" && event.data()["question"].is_object();
                feed.until("a question", asks).data()["question"].clone()
            }
            (_, Door::Task) => {
                let task = until("a question", || {
                    let task = self.task("?wait=10").json();
                    (task["status"] == "input_required").then_some(task)
                });
                task["inputRequest"].clone()
            }
            (_, Door::Callback) => self.told.until(&self.id, "a question", message::question),
            (_, Door::Message) => until("a question", || message::question(&self.asked_again("").json())),
            // A sync run and a requester just wait. The question is seen in the job.
            (_, Door::Native | Door::Sync | Door::Stream | Door::Bridge | Door::Workflow) => {
                let path = format!("/api/v1/jobs/{}", self.job_id());
                let job = until("a question", || {
                    let job = call(self.address, "GET", &path, &[], "").json();
                    (job["state"] == "waiting").then_some(job)
                });
                if let Held::Files(files) = &self.held {
                    files.wait_still();
                }
                job["question"].clone()
            }
        }
    }

    /// Answers at the door, or at the native API if the door has no way to (ALL-5).
    pub(super) fn answer(&self, input: &Value) {
        let path = match self.door {
            Door::Task => format!("/tasks/{}/input", encoded(&self.id)),
            Door::Native
            | Door::Sync
            | Door::Stream
            | Door::Bridge
            | Door::Message
            | Door::Callback
            | Door::Workflow => {
                format!("/api/v1/jobs/{}/answer", self.job_id())
            }
        };
        let answered = call(self.address, "POST", &path, &[], &json!({"input": input}).to_string());
        assert!([200, 202].contains(&answered.status), "{answered:?}");
    }

    /// Cancels at the door, or at the native API if the door has no way to.
    pub(super) fn cancel(&self) {
        let body = if self.door.is_message() { message::cancel(&self.document) } else { String::new() };
        let path = match self.door {
            Door::Task => format!("/tasks/{}/cancel", encoded(&self.id)),
            Door::Message | Door::Callback => MESSAGES.to_owned(),
            Door::Native | Door::Sync | Door::Stream | Door::Bridge | Door::Workflow => {
                format!("/api/v1/jobs/{}/cancel", self.job_id())
            }
        };
        let cancelled = call(self.address, "POST", &path, &[], &body);
        assert!([200, 202].contains(&cancelled.status), "{cancelled:?}");
    }

    /// The outcome or the refusal, in the words of the door.
    pub(super) fn outcome(self) -> View {
        match self.door {
            Door::Native => {
                let answer = self.accepted();
                let path = format!("/api/v1/jobs/{}", answer["id"].as_str().expect("an id"));
                let ended = |job: &Value| job["outcome"].is_object();
                View::native(&until_ended(|| call(self.address, "GET", &format!("{path}?wait=30"), &[], ""), ended))
            }
            Door::Task => {
                self.accepted();
                let ended =
                    |task: &Value| ["completed", "failed", "cancelled"].iter().any(|ended| task["status"] == **ended);
                View::task(&until_ended(|| self.task("?wait=30"), ended))
            }
            Door::Callback => {
                self.accepted();
                View::told(200, &self.told.outcome(&self.id))
            }
            Door::Message => {
                self.accepted();
                View::message(&until_ended(|| self.asked_again("?wait=30"), |said| said["type"] != "work_status"))
            }
            Door::Workflow => match self.held {
                Held::Awaited(thread) => View::workflow(&thread.join().expect("it is answered")),
                Held::Answer(_) | Held::Feed(_) | Held::Files(_) => panic!("this door answers at the end"),
            },
            Door::Sync | Door::Stream | Door::Bridge => match self.held {
                Held::Awaited(thread) => View::run(&thread.join().expect("it is answered")),
                Held::Feed(feed) => View::run_stream(&shallow(&feed.whole())),
                Held::Answer(answer) => View::run(&answer),
                Held::Files(files) => View::bridge(&shallow(&files.response())),
            },
        }
    }

    /// The refusal of the submission.
    pub(super) fn refused(self) -> View {
        let answer = match self.held {
            Held::Answer(answer) => answer,
            Held::Awaited(thread) => thread.join().expect("it is answered"),
            Held::Feed(feed) => panic!("it is not refused: {}", feed.whole()),
            // A refusal is a response like any other.
            Held::Files(files) => return View::bridge(&files.response()),
        };
        match self.door {
            Door::Native => View::native_refusal(&answer),
            Door::Sync | Door::Stream | Door::Bridge => View::run(&answer),
            Door::Task => View::task(&answer),
            Door::Message | Door::Callback => View::message(&answer),
            Door::Workflow => View::workflow(&answer),
        }
    }

    fn accepted(&self) -> Value {
        let Held::Answer(answer) = &self.held else { panic!("this door answers at once") };
        // A message that tells an outcome may have another status.
        let is_told = self.door == Door::Message && answer.json()["type"] != "work_status";
        assert!([200, 202].contains(&answer.status) || is_told, "{answer:?}");
        answer.json()
    }

    /// The answer to the same message again, which is the same work.
    fn asked_again(&self, query: &str) -> Answer {
        call(self.address, "POST", &format!("{MESSAGES}{query}"), &[], &self.document)
    }

    fn task(&self, query: &str) -> Answer {
        call(self.address, "GET", &format!("/tasks/{}{query}", encoded(&self.id)), &[], "")
    }

    fn task_feed(&self) -> Feed {
        let path = format!("/tasks/{}/events", encoded(&self.id));
        Feed::open(self.address, "GET", &path, &[], "").unwrap_or_else(|refused| panic!("{refused:?}"))
    }
}

fn until_ended(mut ask: impl FnMut() -> Answer, ended: impl Fn(&Value) -> bool) -> Answer {
    until("it ends", || {
        let answer = ask();
        let is_ended = ended(&answer.json());
        assert!([200, 202].contains(&answer.status) || is_ended, "{answer:?}");
        is_ended.then_some(answer)
    })
}
