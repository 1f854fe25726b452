//! `/api/agent/message`: where an orchestrator pushes work in the message contract (MSG-14), and cancels it.
//!
//! Work that is done soon is answered with its outcome on the same connection (MSG-17). Other work is answered with a
//! `work_status`; how it goes on is told to the orchestrator if its address is known, and the same request again gets
//! the outcome in any case.

mod poll;
pub(crate) mod pull;
pub(crate) mod telling;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::post;
use crosspoint_contracts::Kind;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::json::Tape;
use crosspoint_contracts::message::{About, Cancel};
use crosspoint_exchange::admission::{self, Admitted, Caller};
use crosspoint_exchange::answer::Beside;
use crosspoint_exchange::backend::Followed;
use crosspoint_exchange::outgoing;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::Refused;
use crosspoint_http::body::Received;
use crosspoint_http::door::message::{self, CONTRACT};
use crosspoint_http::door::{self, Arrived, Asking, Doors, SentBy};
use futures_util::StreamExt as _;
use uuid::Uuid;

use self::telling::Orchestrator;
use crate::backend::OwnJobs;
use crate::questions::{AnswerTo, NotTaken};
use crate::record::Job;

/// How long an orchestrator that does not say how long it waits is kept waiting. It gives up after 30 s of silence.
const HOLD: Duration = Duration::from_secs(20);

/// The same for an orchestrator that can be told how the work goes on.
const HOLD_TOLD: Duration = Duration::from_secs(1);

/// Interval at which a stopping agent checks whether all was told.
const TOLD_PERIOD: Duration = Duration::from_millis(10);

/// Most outcomes of before the start that are told at a time: each may be long.
const OWED_AT_A_TIME: usize = 4;

/// What the endpoint shares; cloning shares it.
#[derive(Clone)]
pub(crate) struct Messages {
    pub(crate) doors: Doors<OwnJobs>,
    pub(crate) reports: Reports,
}

impl axum::extract::FromRef<Messages> for crosspoint_http::Site {
    fn from_ref(messages: &Messages) -> crosspoint_http::Site {
        messages.doors.site.clone()
    }
}

/// Tells an orchestrator of jobs, each once at a time; cloning shares it.
#[derive(Clone)]
pub(crate) struct Reports {
    to: Option<Arc<Orchestrator>>,
    backend: OwnJobs,
    told: Arc<Mutex<BTreeSet<Uuid>>>,
}

impl Reports {
    pub(crate) fn new(to: Option<Arc<Orchestrator>>, backend: OwnJobs) -> Reports {
        Reports { to, backend, told: Arc::default() }
    }

    /// Returns the orchestrator that is told, if there is one.
    pub(crate) fn orchestrator(&self) -> Option<&Orchestrator> {
        self.to.as_deref()
    }

    /// Returns the name of the orchestrator that is owed the outcomes of jobs.
    pub(crate) fn owed_to(&self) -> Option<Arc<str>> {
        self.to.as_ref().map(|orchestrator| orchestrator.name.clone())
    }

    /// Begins to tell of a job. `asked` is the number of the question that the orchestrator was told already.
    pub(crate) fn tell(&self, work: &Admitted<Job>, asked: Option<u32>) {
        let (reports, job, beside) = (self.clone(), work.job.clone(), work.beside.clone());
        tokio::spawn(async move { reports.tell_all(job, beside, asked).await });
    }

    /// Tells of a job until its outcome was taken, unless it is being told of.
    async fn tell_all(&self, job: Job, beside: Beside, asked: Option<u32>) {
        let Some(orchestrator) = &self.to else { return };
        let id = job.now().asked.id;
        if !self.told().insert(id) {
            return;
        }
        if orchestrator.tell(&self.backend, job.clone(), beside, asked).await {
            self.backend.told(&job);
        }
        self.told().remove(&id);
    }

    /// Tells the outcomes that were not told before the agent was started, a few at a time.
    pub(crate) async fn tell_owed(&self) {
        let Some(orchestrator) = &self.to else { return };
        let owed = futures_util::stream::iter(self.backend.take_owed(&orchestrator.name));
        owed.for_each_concurrent(OWED_AT_A_TIME, async |id| {
            if let Some(job) = self.backend.stored(id).await {
                self.tell_all(job, Beside::default(), None).await;
            }
        })
        .await;
    }

    fn told(&self) -> MutexGuard<'_, BTreeSet<Uuid>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no job is being told of.
    pub(crate) async fn all_told(&self) {
        while !self.told().is_empty() {
            tokio::time::sleep(TOLD_PERIOD).await;
        }
    }
}

/// The endpoint.
pub(crate) fn routes() -> Router<Messages> {
    Router::new().route("/api/agent/message", post(take_message))
}

async fn take_message(
    State(messages): State<Messages>,
    arrived: Arrived,
    caller: SentBy,
    uri: Uri,
    received: Received,
) -> Result<Response, Refused> {
    let bytes = received.bytes.clone();
    let about = |refusal| admission::about(refusal, CONTRACT, &bytes, &[]);
    if About::of(&bytes).kind == Some(Kind::MessageError) {
        return Ok(cancel(&messages.doors, &caller.0, &bytes).await.map_err(about)?);
    }
    let hold = if messages.reports.to.is_some() { HOLD_TOLD } else { HOLD };
    let asking = Asking { notify: messages.reports.owed_to(), ..Asking::default() };
    let mut requested = message::request_work(&messages.doors, caller, asking, &uri, received).await?;
    // Work that is done soon is answered with its outcome, whoever is told later.
    requested.is_later = false;
    pass_on(&requested.work, &bytes, arrived.0).await.map_err(about)?;
    // A question ends the wait: the person who is to answer learns of it by the answer (ALL-5, MSG-17).
    let now = door::settled(&requested.work.job, requested.work.wait.or(Some(hold))).await;
    requested.work.wait = None;
    let answered = message::answer_work(&messages.doors, &requested).await.map_err(about)?;
    match answered.is_told {
        true => messages.reports.backend.told(&requested.work.job),
        false => messages.reports.tell(&requested.work, now.question_number()),
    }
    Ok(answered.response)
}

/// Gives a job the person's answer that came with its request at this time (ALL-5). The same request without one asks
/// how it goes, and the same message again brings nothing new: the job may ask something else by then.
async fn pass_on(work: &Admitted<Job>, request: &[u8], came: Instant) -> Result<(), Refusal> {
    let Some(brought) = Brought::read(request) else { return Ok(()) };
    let Brought { answer, to, message_id } = brought;
    let job = &work.job;
    if !job.is_new_answer(&message_id) {
        return Ok(());
    }
    // After a restart the work begins with the request that has the answer, and has yet to ask.
    let is_early = !work.joined || to.as_ref().and_then(AnswerTo::number).is_some_and(|number| job.will_ask(number));
    let taken = match to {
        Some(to) if is_early => {
            job.hold(to, answer).await;
            return Ok(());
        }
        // The question is shown in the answer.
        None if is_early => Ok(()),
        to => job.answer(answer, to.as_ref(), came).await.map(drop),
    };
    match taken {
        // Work that has ended gets its outcome.
        Ok(()) | Err(NotTaken::Ended) => Ok(()),
        Err(why) => Err(untaken(why)),
    }
}

fn untaken(why: NotTaken) -> Refusal {
    let message = match why {
        NotTaken::NotShown => "the question was not shown to anyone yet, so this answer is for another one",
        NotTaken::Other => "the work asks another question than the one that this answers",
        NotTaken::NotAsked | NotTaken::Ended => "the work asks nothing at present, so this answers nothing",
    };
    let hint = "send the same request without an answer: its status has the question, if there is one; answer that one";
    Refusal::conflict(message, hint)
}

/// A person's answer that came in a message.
struct Brought {
    answer: Body,
    to: Option<AnswerTo>,
    message_id: String,
}

impl Brought {
    fn read(request: &[u8]) -> Option<Brought> {
        let tape = Tape::scan(request).ok()?;
        let root = tape.root()?;
        let carried = root.get("x_custom_fields")?.get("x_crosspoint")?;
        Some(Brought {
            answer: Body::trusted(carried.get(outgoing::ANSWER)?.source().to_owned()),
            to: carried.get(outgoing::ANSWER_TO).map(AnswerTo::read),
            message_id: root.get("message_id").map_or("", |id| id.source()).to_owned(),
        })
    }
}

async fn cancel(doors: &Doors<OwnJobs>, caller: &Caller, bytes: &[u8]) -> Result<Response, Refusal> {
    let cancel = Cancel::read(bytes).ok_or_else(|| {
        Refusal::invalid("an agent takes an `error` only if it cancels work", "send error_code 5901 to cancel work")
    })?;
    let cancelled = message::cancel_work(doors, caller, &cancel).await?;
    // Work that is not known is not done, which is what was asked for.
    Ok(cancelled.unwrap_or_else(|| crosspoint_http::json::response(StatusCode::OK, Vec::new())))
}
