//! `/api/v1/jobs`: submitting, listing, showing and changing jobs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::header::{HeaderValue, LOCATION};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::Repeat;
use crosspoint_contracts::reply::Question;
use crosspoint_engine::id::JobId;
use crosspoint_engine::job::{self, Job};
use crosspoint_engine::machine;
use crosspoint_engine::runtime::{Ahead, NO_SERVER, Stuck, Submitted, Unaccepted, Watch};
use crosspoint_engine::store::Found;
use crosspoint_exchange::backend::{self, Backend};
use crosspoint_exchange::refusal::{self, Refusal};
use crosspoint_http::Refused;
use crosspoint_http::body::Received;
use crosspoint_http::headers::idempotency_key;
use crosspoint_http::held::held;
use crosspoint_http::json::{Object, push_array, response};

use super::access::Who;
use super::query::{self, Id, Wait};
use super::view::{self, Beside, Extent};
use super::{App, submit};
use crate::backend::{Tracked, denied, fault, unaccepted, with_text};

pub(super) async fn submit_job(
    State(app): State<App>,
    Wait(wait): Wait,
    who: Who,
    headers: HeaderMap,
    received: Received,
) -> Result<Response, Refused> {
    let new = submit::new_job(&received.bytes, &headers, who.caller())?;
    if *new.work == *crate::workflow::WORK {
        return Err(crate::workflow::begun_elsewhere().into());
    }
    let backend = app.doors().backend;
    backend.expect_open(&new).await.map_err(|why| why.refusal(&[]))?;
    let mismatch = backend.mismatch(&new).await.map_err(|why| why.refusal(&[]))?;
    if let Some(report) = mismatch {
        return Err(backend::Unaccepted::<Tracked>::Mismatch(report).refusal(&[]).into());
    }
    let work = new.work.clone();
    let submitted = app.engine().acting(who.on_record()).submit(new).await.map_err(|why| app.refuse(why, &work))?;
    drop(received);
    let (job, room) = with_text(app.engine(), app.ended(&watch_of(submitted), wait).await).await?;
    // Without a wait the job cannot be called stuck yet: it has only just arrived.
    let stuck = wait.and_then(|_| app.stuck(&job, who.ahead(Ahead::Counted)));
    // A job that has just arrived has broken no rule.
    let violations = if wait.is_some() { app.violations(&job).await? } else { Vec::new() };
    let status = if job.outcome().is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(held(located(status, &job, &Beside { stuck, violations, ..Beside::default() }), room))
}

pub(super) async fn show_job(
    State(app): State<App>,
    who: Who,
    Id(id): Id,
    Wait(wait): Wait,
) -> Result<Response, Refused> {
    let watch = app.read_job(&who, id, "job").await?;
    app.shown(&who, app.ended(&watch, wait).await).await
}

pub(super) async fn list_jobs(State(app): State<App>, who: Who, uri: Uri) -> Result<Response, Refused> {
    let (mut filter, before) = query::filter(&uri, app.engine().ids())?;
    filter.caller = who.only();
    if let Some(id) = before {
        let place = app.engine().place(id, filter.caller.as_deref()).await.map_err(|error| fault(&error))?;
        filter.before = Some(place.ok_or_else(Refusal::no_such_job)?);
    }
    let page = app.engine().list(filter).await.map_err(|error| fault(&error))?;
    let mut out = Vec::with_capacity(1024 * (page.jobs.len() + 1));
    let mut object = Object::open(&mut out);
    let ahead = who.ahead(Ahead::Left);
    let mut workflows = app.workflows(&page.jobs).await.into_iter();
    push_array(object.name("jobs"), &page.jobs, |out, job| {
        let (stuck, workflow) = (app.stuck(job, ahead), workflows.next().flatten());
        let beside = Beside { stuck, workflow, has_caller: who.sees_all(), ..Beside::default() };
        let extent = if who.reads_in_lists(job) { Extent::Listed } else { Extent::Bare };
        view::push_job(out, job, &beside, extent);
    });
    match page.next {
        Some(next) => object.quoted("next", next),
        None => object.raw("next", b"null"),
    }
    object.close();
    Ok(response(StatusCode::OK, out))
}

/// Returns the document as it came.
pub(super) async fn show_document(State(app): State<App>, who: Who, Id(id): Id) -> Result<Response, Refused> {
    let seq = app.read_job(&who, id, "document").await?.job().seq();
    let document = app.engine().document(seq).await.map_err(|error| fault(&error))?;
    Ok(response(StatusCode::OK, document.ok_or_else(Refusal::no_such_job)?.0))
}

pub(super) async fn cancel_job(State(app): State<App>, who: Who, Id(id): Id) -> Result<Response, Refused> {
    app.job_for(&who, id).await?;
    let job =
        app.engine().acting(who.on_record()).cancel(id).await.map_err(|why| denied(&why, Refusal::no_such_job))?;
    if *job.request.work == *crate::workflow::WORK {
        crate::workflow::settle(app.places(), id.uuid()).await;
    }
    // Also where there was nothing left to cancel, all of the job is shown.
    app.record_reading(&who, id, "job").await?;
    app.shown(&who, job).await
}

pub(super) async fn answer_job(
    State(app): State<App>,
    who: Who,
    Id(id): Id,
    received: Received,
) -> Result<Response, Refused> {
    let watch = app.job_for(&who, id).await?;
    // A stage that asks by itself is answered where its run is shown.
    let asking = app.resting(&watch.job(), Job::is_asking);
    let (answer, to) = submit::answer(&received.bytes)?;
    // A question of the run, or of another stage, is not the one that waits.
    let to = to.map(|id| view::read_question_id(&asking, &id).ok_or_else(of_another)).transpose()?;
    if *asking.request.work == *crate::workflow::WORK && !crosspoint_workflow::run::is_readable(answer.get()) {
        let what = "the answer repeats a name in an object, or nests too deep for the envelope that it is put into";
        return Err(Refusal::invalid(what, "write it as plain JSON, at most 100 levels deep").at("/input").into());
    }
    let job = app
        .engine()
        .acting(who.on_record())
        .answer(asking.id(), answer, to)
        .await
        .map_err(|why| denied(&why, Refusal::no_such_job))?;
    app.shown(&who, if job.id() == id { job } else { watch.job() }).await
}

fn of_another() -> Refusal {
    Refusal::conflict(machine::Refused::OtherQuestion.to_string(), "GET the job to see what it asks")
}

pub(super) async fn retry_job(
    State(app): State<App>,
    who: Who,
    Id(id): Id,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    if app.stopping().is_cancelled() {
        return Err(Refusal::stopping().into());
    }
    let job = app.job_for(&who, id).await?.job();
    // A stage that waits for an operator is begun again where its run is shown.
    let retried = app.resting(&job, |stage| !stage.is_asking() && stage.needs_a_person());
    if retried.outcome().is_some() && retried.request.child_of().is_some() {
        return Err(of_a_stage(&retried).into());
    }
    if retried.outcome().is_some() && app.brings_programs(&retried).await {
        let hint = "begin it again with crosspoint workflow run FILE --root DIR";
        let message = "this run had programs of its own workflow file, which a server does not start";
        return Err(Refusal::conflict(message, hint).into());
    }
    let key = idempotency_key(&headers)?;
    let retrying = app.engine().acting(who.on_record()).retry(retried.id(), key).await;
    let retried = retrying.map_err(|why| denied(&why, Refusal::no_such_job))?;
    let job = watch_of(retried.map_err(|why| app.refuse(why, ""))?).job();
    Ok(located(StatusCode::ACCEPTED, &job, &Beside { has_caller: who.sees_all(), ..Beside::default() }))
}

/// A stage alone would be done in the directory of the configuration, and its files would be written nowhere (WF-8).
fn of_a_stage(stage: &Job) -> Refusal {
    let run = stage.request.child_of().map(|run| run.to_string()).unwrap_or_default();
    let message = format!("this job was a stage of the workflow run {run}, and is not done without it");
    Refusal::conflict(message, "answer the run where it waits: the stage is done again, as part of it")
}

/// A repeat is answered like the first request.
pub(super) fn watch_of(submitted: Submitted) -> Watch {
    match submitted {
        Submitted::New(watch) | Submitted::Repeat(watch) => watch,
    }
}

pub(super) fn located(status: StatusCode, job: &Job, beside: &Beside) -> Response {
    let mut response = response(status, view::job(job, beside));
    if let Ok(location) = HeaderValue::try_from(path_of(job.id())) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

fn path_of(id: JobId) -> String {
    format!("/api/v1/jobs/{id}")
}

impl App {
    /// Returns why a request did not become a job.
    pub(super) fn refuse(&self, why: Unaccepted, work: &str) -> Refusal {
        let (why, agents) = (unaccepted(why), self.doors().backend.agents());
        let is_unknown = matches!(why, backend::Unaccepted::UnknownWork);
        let refusal = why.refusal(&agents);
        match is_unknown {
            true => refusal.with_repeat(Repeat::Never, refusal::works_like(&agents, work)),
            false => refusal,
        }
    }

    /// Returns the job once it has ended, or in its current state when the wait is over or the server stops.
    pub(super) async fn ended(&self, watch: &Watch, wait: Option<Duration>) -> Arc<Job> {
        let Some(wait) = wait.filter(|_| watch.job().outcome().is_none()) else { return watch.job() };
        watch.ended(Instant::now() + wait).await
    }

    /// Why a job does not move. A run of a workflow may bring programs along, which no server starts.
    fn stuck(&self, job: &Job, ahead: Ahead) -> Option<Stuck> {
        let stuck = self.engine().stuck(job, ahead);
        if *job.request.work != *crate::workflow::WORK {
            return stuck;
        }
        match stuck {
            Some(stuck) if stuck.reason == NO_SERVER => {
                let reason =
                    format!("{}; it goes on with crosspoint workflow resume {}", crate::workflow::NOT_DRIVEN, job.id());
                Some(Stuck { reason, ..stuck })
            }
            Some(stuck) if stuck.stage.is_some() => Some(stuck),
            stuck => match crate::workflow::why_held(job) {
                Some(reason) => Some(Stuck { reason, since: job.progress_at, stage: None }),
                None => stuck,
            },
        }
    }

    /// Returns what is shown of the workflow that a job is a run of. What cannot be read is not shown.
    async fn workflow(&self, job: &Job) -> Option<Body> {
        if *job.request.work != *crate::workflow::WORK {
            return None;
        }
        let document = self.engine().document(job.seq()).await.ok()??;
        let record = self.places().record(job.id().uuid());
        // A definition may be long.
        tokio::task::spawn_blocking(move || crate::workflow::about(&document.0, &record)).await.ok().flatten()
    }

    /// Whether a job is a run whose programs are not started here.
    async fn brings_programs(&self, job: &Job) -> bool {
        if *job.request.work != *crate::workflow::WORK || self.places().starts_programs_of_definitions() {
            return false;
        }
        let Ok(Some(document)) = self.engine().document(job.seq()).await else { return false };
        let brings = move || crate::workflow::brings_programs(&document.0);
        tokio::task::spawn_blocking(brings).await.is_ok_and(|brings| brings)
    }

    async fn workflows(&self, jobs: &[Job]) -> Vec<Option<Body>> {
        let mut workflows = Vec::with_capacity(jobs.len());
        for job in jobs {
            workflows.push(self.workflow(job).await);
        }
        workflows
    }

    /// Returns the stage that a job waits for, if it is one that is meant; else the job itself.
    fn resting(&self, job: &Arc<Job>, is_meant: impl Fn(&Job) -> bool) -> Arc<Job> {
        self.engine().resting_stage(job).filter(|stage| is_meant(stage)).unwrap_or_else(|| job.clone())
    }

    /// Returns what a person is asked by the stage that a job waits for.
    fn question_of_stage(&self, job: &Job) -> Option<(Question, String)> {
        let stage = self.engine().resting_stage(job)?;
        match &stage.state {
            job::State::Waiting { question, .. } => {
                Some((question.clone(), view::question_id(&stage, stage.open_question()?)))
            }
            job::State::Queued
            | job::State::Running(_)
            | job::State::Retrying { .. }
            | job::State::Poisoned
            | job::State::Ended(_) => None,
        }
    }

    async fn violations(&self, job: &Job) -> Result<Vec<Found>, Refused> {
        Ok(self.engine().violations(job.id()).await.map_err(|error| fault(&error))?)
    }

    async fn shown(&self, who: &Who, job: Arc<Job>) -> Result<Response, Refused> {
        let (job, room) = with_text(self.engine(), job).await?;
        let violations = self.violations(&job).await?;
        let owed = self.deliveries().owed(&job).await.map_err(|error| fault(&error))?;
        let stuck = self.stuck(&job, who.ahead(Ahead::Counted));
        let (question, question_id) = self.question_of_stage(&job).unzip();
        let workflow = self.workflow(&job).await;
        let beside = Beside { stuck, question, question_id, workflow, has_caller: who.sees_all(), owed, violations };
        Ok(held(response(StatusCode::OK, view::job(&job, &beside)), room))
    }
}
