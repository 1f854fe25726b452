//! `/api/v1/agents/{name}/...`: the part of the API for agents that joined. They ask for their work, so they need no
//! address.

mod doubt;
mod read;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Failed;
use crosspoint_engine::core::Grip;
use crosspoint_engine::machine::Event;
use crosspoint_engine::runtime::{Denied, Heard, Readiness, Unjoined};
use crosspoint_exchange::refusal::{DONE_OR_NOT, Refusal};
use crosspoint_http::Refused;
use crosspoint_http::body::Received;
use crosspoint_http::json::{Object, push_array, push_text, response};
use uuid::Uuid;

use super::App;
use super::access::Who;
use super::query::{Name, Wait};
use crate::backend::{fault, trace_of, tried};
use crate::pull::{Given, JoinFirst, Mistake, NotJoined, Ordered, Report, SESSIONS_MAX};

/// A call for work is answered after the lease divided by this, at the latest, so that the worker renews its lease in
/// good time.
const LEASE_SHARE: u32 = 3;

pub(super) async fn join_agent(
    State(app): State<App>,
    who: Who,
    Name(name): Name,
    received: Received,
) -> Result<Response, Refused> {
    app.speaks_as(&who, &name)?;
    if app.stopping().is_cancelled() {
        return Err(Refusal::stopping().into());
    }
    let joining = read::joining(&name, &received.bytes)?;
    app.queues().join(app.engine(), joining).await.map_err(|why| not_joined(&why))?;
    app.shown_agent(app.engine().agent(&name).ok_or(Denied::NotFound))
}

pub(super) async fn take_jobs(
    State(app): State<App>,
    who: Who,
    Name(name): Name,
    Wait(wait): Wait,
    received: Received,
) -> Result<Response, Refused> {
    app.speaks_as(&who, &name)?;
    let mut asked = read::taking(&received.bytes, app.engine().ids())?;
    let reports = std::mem::take(&mut asked.reports);
    // A job whose end is reported is no longer held, although the worker lists it until it knows that the report was
    // taken.
    let ends: Vec<_> = reports.iter().filter_map(Report::ends).collect();
    asked.holding.retain(|held| !ends.contains(&(held.id, held.attempt)));
    let heard = if reports.is_empty() {
        drop(received);
        None
    } else {
        Some(app.take_reports(&name, asked.session, reports, received).await?)
    };
    let wait = wait.unwrap_or_default();
    let until = |lease: Duration| Instant::now() + wait.min(lease / LEASE_SHARE);
    let taking = app.queues().take(&name, asked.session, asked.room, &asked.holding, until);
    let ordered = tokio::select! {
        // In this order, so that the call renews the lease even while the server is about to stop.
        biased;
        ordered = taking => ordered,
        // The reports are on disk, and the worker is told so.
        () = app.stopping().cancelled(), if heard.is_some() => Ok(Ordered::default()),
        () = app.stopping().cancelled() => return Err(Refusal::stopping().into()),
    };
    let ordered = ordered.map_err(|JoinFirst| {
        // The agent may have been forgotten during the wait, and its queue could not be removed then.
        if app.engine().agent(&name).is_none() {
            app.queues().tidy(&name);
        }
        join_first()
    })?;
    let inputs = app.inputs(&name, asked.session, &ordered).await?;
    Ok(response(StatusCode::OK, shown_orders(&ordered, &inputs, heard)))
}

pub(super) async fn report_jobs(
    State(app): State<App>,
    who: Who,
    Name(name): Name,
    received: Received,
) -> Result<Response, Refused> {
    app.speaks_as(&who, &name)?;
    let (session, reports) = read::reports(&received.bytes, app.engine().ids())?;
    let heard = app.take_reports(&name, session, reports, received).await?;
    let mut out = Vec::with_capacity(16 * (heard.len() + 1));
    let mut object = Object::open(&mut out);
    push_heard(&mut object, heard);
    object.close();
    Ok(response(StatusCode::OK, out))
}

pub(super) async fn store_output(
    State(app): State<App>,
    who: Who,
    Name(name): Name,
    uri: Uri,
    received: Received,
) -> Result<Response, Refused> {
    app.speaks_as(&who, &name)?;
    let place = read::block_place(&uri, &received.bytes, app.engine().ids())?;
    app.refuse_while_failing()?;
    let storing = tokio::spawn(async move {
        let block = (place.offset, received.bytes.clone());
        app.queues().output(app.engine(), &name.into(), place.session, (place.job, place.attempt), block).await
    });
    let heard = storing.await.map_err(|_| Refusal::internal())?.map_err(|mistake| refused(&mistake))?;
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    object.text("output", word(heard));
    object.close();
    Ok(response(StatusCode::OK, out))
}

pub(super) async fn leave_agent(
    State(app): State<App>,
    who: Who,
    Name(name): Name,
    received: Received,
) -> Result<Response, Refused> {
    app.speaks_as(&who, &name)?;
    let session = read::leaving(&received.bytes)?;
    app.queues().leave(app.engine(), &name, session).await;
    app.shown_agent(app.engine().agent(&name).ok_or(Denied::NotFound))
}

pub(super) async fn forget_agent(State(app): State<App>, who: Who, Name(name): Name) -> Result<Response, Refused> {
    let forgotten = app.engine().acting(who.on_record()).forget(&name).await.map_err(|why| unforgotten(&why))?;
    app.queues().tidy(&name);
    app.hub().forget(&name);
    app.shown_agent(Ok(forgotten))
}

impl App {
    /// Takes the reports of a session. They are on disk when it returns.
    async fn take_reports(
        &self,
        name: &str,
        session: Uuid,
        reports: Vec<Report>,
        received: Received,
    ) -> Result<Vec<Heard>, Refusal> {
        self.refuse_while_failing()?;
        let (app, name) = (self.clone(), name.into());
        // In a task of its own: the worker may disconnect before the reports are on disk, and they must be carried
        // through.
        let reporting = tokio::spawn(async move {
            let _room = received;
            app.queues().report(app.engine(), &name, session, reports).await
        });
        reporting.await.map_err(|_| Refusal::internal())?.map_err(|mistake| refused(&mistake))
    }

    /// Returns the inputs of the given jobs, in order. Inputs that are not in memory are read together.
    async fn inputs(&self, name: &str, session: Uuid, ordered: &Ordered) -> Result<Vec<Option<Bytes>>, Refusal> {
        let away = |given: &&Given| given.input.is_none();
        let missing: Vec<_> = ordered.jobs.iter().filter(away).map(|given| given.job.clone()).collect();
        let read = if missing.is_empty() { Ok(Vec::new()) } else { self.engine().inputs(missing).await };
        let mut read = read.map_err(|error| fault(&error))?.into_iter();
        let mut inputs = Vec::with_capacity(ordered.jobs.len());
        for given in &ordered.jobs {
            let input = given.input.clone().or_else(|| read.next().flatten().map(|body| body.bytes().clone()));
            if input.is_none() {
                // The document is gone, which only outside interference with the store can cause: no agent will ever be
                // able to do the job.
                let result = Err(Failed::of(Failure::Internal, Dispatched::No));
                let end = Event::Finish { attempt: given.attempt, result };
                let reports = vec![(given.job.id(), Grip::Holds, end)];
                let _ = self.engine().report(&name.into(), reports).await;
                self.queues().done_with(name, session, given.job.id(), given.attempt);
            }
            inputs.push(input);
        }
        Ok(inputs)
    }

    /// Refuses reports while commits fail: a report would wait for as long, and each repeat of it as well.
    fn refuse_while_failing(&self) -> Result<(), Refusal> {
        match self.engine().readiness() {
            Readiness::Ready => Ok(()),
            Readiness::Failing(_) => Err(not_now()),
        }
    }
}

fn push_heard(object: &mut Object<'_>, heard: Vec<Heard>) {
    push_array(object.name("reports"), heard, |out, heard| push_text(out, word(heard)));
}

fn shown_orders(ordered: &Ordered, inputs: &[Option<Bytes>], heard: Option<Vec<Heard>>) -> Vec<u8> {
    let bytes: usize = inputs.iter().flatten().map(Bytes::len).sum();
    let mut out = Vec::with_capacity(64 + bytes + 256 * ordered.jobs.len());
    let mut object = Object::open(&mut out);
    let jobs = ordered.jobs.iter().zip(inputs).filter_map(|(given, input)| Some((given, input.as_ref()?)));
    push_array(object.name("jobs"), jobs, |out, (given, input)| push_given(out, given, input));
    push_array(object.name("stop"), &ordered.stop, |out, (id, attempt)| {
        let mut object = Object::open(out);
        object.quoted("id", id);
        object.plain("attempt", attempt);
        object.close();
    });
    push_array(object.name("answers"), &ordered.answers, |out, (id, attempt, number, answer)| {
        let mut object = Object::open(out);
        object.quoted("id", id);
        object.plain("attempt", attempt);
        object.plain("n", number);
        object.raw("input", answer.bytes());
        object.close();
    });
    if let Some(heard) = heard {
        push_heard(&mut object, heard);
    }
    object.close();
    out
}

fn push_given(out: &mut Vec<u8>, given: &Given, input: &Bytes) {
    let mut object = Object::open(out);
    object.quoted("id", given.job.id());
    object.plain("attempt", given.attempt);
    object.text("work", &given.job.request.work);
    object.text("request_id", &given.job.request.request_id);
    let trace = trace_of(&given.job, given.attempt);
    object.text("traceparent", &trace.header());
    if let Some(state) = trace.state() {
        object.text("tracestate", state);
    }
    object.plain("output_offset", given.job.output_bytes);
    object.raw("input", input);
    object.close();
}

fn word(heard: Heard) -> &'static str {
    match heard {
        Heard::Taken => "taken",
        Heard::Gone => "gone",
    }
}

fn join_first() -> Refusal {
    let hint = "join first, then say in `holding` what you have: the server was restarted, or nothing was heard of you for a lease";
    Refusal::conflict("no session of this id has joined under this name", hint).at("/session")
}

fn not_now() -> Refusal {
    let hint = "nothing was taken; keep it, and send the same again";
    Refusal::unavailable("nothing can be written at present", hint)
}

fn refused(mistake: &Mistake) -> Refusal {
    match mistake {
        Mistake::JoinFirst => join_first(),
        Mistake::NotNow => not_now(),
        Mistake::AsksTooMuch(at) => {
            let hint = "n counts the questions of an attempt from 1, and only the last may be open; none of the reports was taken";
            Refusal::invalid("a question is asked before the one before it was answered", hint)
                .at(format!("/reports/{at}/n"))
        }
    }
}

fn not_joined(why: &NotJoined) -> Refusal {
    match why {
        NotJoined::Otherwise => {
            let hint = "join under another name, with the same work and limits, or once the others have left";
            Refusal::conflict("others are there under this name, for other work or with other limits", hint).at("/work")
        }
        NotJoined::Crowded => {
            let message = format!("{SESSIONS_MAX} are there under this name, and no more may be");
            Refusal::conflict(message, "join under another name, or take more jobs in one session")
        }
        NotJoined::Refused(why) => unjoined(why),
    }
}

fn unforgotten(why: &Unjoined) -> Refusal {
    if matches!(why, Unjoined::Configured) {
        let hint = "remove its table from the configuration file, and restart the server";
        return Refusal::conflict("an agent of the configuration cannot be forgotten", hint);
    }
    unjoined(why)
}

pub(super) fn unjoined(why: &Unjoined) -> Refusal {
    match why {
        Unjoined::Configured => Refusal::conflict(
            "an agent of this name is configured",
            "one that joins needs a name of its own; GET /api/v1/agents lists those that are taken",
        ),
        Unjoined::Crowded => Refusal::crowded(),
        Unjoined::NotFound => Refusal::no_such_agent(),
        Unjoined::Present => {
            Refusal::conflict("the agent is there, or has work", "let it leave, or wait until its lease has run out")
        }
        Unjoined::OtherContract => Refusal::conflict(
            "an agent of this name that speaks another contract is there, or has work",
            "join under another name, or wait until that agent has gone",
        ),
        Unjoined::Closed => Refusal::stopping(),
        Unjoined::Lost => Refusal::ended(),
        Unjoined::Fault(error) => tried(error, DONE_OR_NOT),
        Unjoined::NotTried(error) => fault(error),
    }
}

/// Watches the leases until the server ends.
pub(super) async fn keep_leases(app: &App) {
    Arc::clone(app.queues()).keep_leases(app.engine().clone()).await;
}
