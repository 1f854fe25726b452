//! `/api/v1/bridge`: where requests of the bridge contract come in.
//!
//! The files are for whoever watches a directory: here the request is a body, and the answer is the response that belongs into the other
//! file. As long as there is none (also while a person is asked, ALL-5), the answer is the job, and the same request again joins it. Work
//! that fails is answered like any other: requesters have fallbacks of their own (BRIDGE-9).

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::{Contract, Kind};
use crosspoint_engine::core::Rejected;
use crosspoint_engine::job::{Door, Job};
use crosspoint_engine::runtime::{Ahead, NewJob, Submitted, Unaccepted};

use super::App;
use super::body::Received;
use super::jobs::{locate, outcome_bytes, watch_of};
use super::json::{Object, response};
use super::query::{self, Asking};
use super::refusal::{Refusal, works};
use super::submit::{self, NAME_BYTES_MAX};
use super::view::{self, Beside};
use super::warned::warned;
use crate::long;
use crate::passage::answer;
use crate::passage::incoming::{self, Headers, Incoming};

/// Says which store this is, for those who remember where they left a request.
pub(super) async fn show_bridge(State(app): State<App>) -> Response {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    object.quoted("store", app.engine().store_id());
    object.close();
    response(StatusCode::OK, out)
}

/// Has a request answered by an agent.
pub(super) async fn ask_agent(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
    received: Received,
) -> Result<Response, Refusal> {
    let about = |refusal| about(refusal, &received.bytes);
    let (asking, incoming) = read(&app, &uri, &headers, &received.bytes).map_err(about)?;
    let (warnings, is_translated) = (incoming.warnings(), incoming.is_translated);
    let request_id = incoming.new.request_id.clone();
    let submitted = app.submit_request(incoming.new, &asking).await;
    let submitted = submitted.map_err(|why| about(unaccepted(&app, &asking, &why)))?;
    drop(received);
    let job = app.ended(&watch_of(submitted), asking.wait).await;
    let mut response = if job.outcome().is_some() {
        let known = answer::known_as(&job, request_id.as_deref());
        let written = if is_translated { answer::translated } else { answer::document };
        let document = long::look(outcome_bytes(&job), || warned(written(&known, Contract::Bridge), &warnings));
        response(StatusCode::OK, document)
    } else {
        response(StatusCode::ACCEPTED, app.as_it_stands(&job, &asking))
    };
    locate(&mut response, &job);
    Ok(response)
}

/// Reads a request, and how it is to be taken.
fn read(app: &App, uri: &Uri, headers: &HeaderMap, document: &Bytes) -> Result<(Asking, Incoming), Refusal> {
    if app.stopping().is_cancelled() {
        return Err(Refusal::stopping());
    }
    let asking = query::asking(uri, app.0.wait_max)?;
    let headers = Headers { key: submit::idempotency_key(headers)?, trace: submit::traceparent(headers) };
    let incoming = long::look(document.len(), || incoming::read(Kind::BridgeRequest, document, headers));
    let incoming = incoming.map_err(|report| submit::malformed(Kind::BridgeRequest, *report))?;
    let request_id = incoming.new.request_id.as_deref().unwrap_or_default();
    if request_id.is_empty() {
        // The response has to carry it, and a repeat is known by it.
        return Err(Refusal::invalid("`request_id` is empty", "use a UUID").clause("BRIDGE-4.5").at("/request_id"));
    }
    let names = [("/request_id", request_id), ("/agent_name", &*incoming.new.work)];
    if let Some((pointer, _)) = names.into_iter().find(|(_, name)| name.len() > NAME_BYTES_MAX) {
        return Err(submit::too_long(pointer));
    }
    Ok((asking, incoming))
}

impl App {
    /// Makes a job of a request, or finds the one that it repeats.
    async fn submit_request(&self, mut new: NewJob, asking: &Asking) -> Result<Submitted, Unaccepted> {
        let called = new.work.clone();
        if let Some(work) = &asking.work {
            new.work = work.as_str().into();
        }
        self.lead(&mut new);
        let submitted = self.engine().submit(new.clone()).await;
        let known = match &submitted {
            Ok(Submitted::Repeat(watch)) => watch.job(),
            Err(Unaccepted::Conflict(job)) => job.clone(),
            Ok(Submitted::New(_)) | Err(_) => return submitted,
        };
        let is_same_name = asking.work.is_none() && self.is_called(&known, &called).await;
        let is_led_alike = known.request.door != Door::Bridge || known.request.pinned == new.agent;
        match submitted {
            // A name may lead elsewhere now than it did when the job was made. That is no other request.
            Err(Unaccepted::Conflict(_)) if is_same_name => {
                new.work = known.request.work.clone();
                self.engine().submit(new).await
            }
            // And two agents who take the same work are two names.
            Ok(Submitted::Repeat(_)) if !is_same_name && !is_led_alike => Err(Unaccepted::Conflict(known)),
            other => other,
        }
    }

    /// BRIDGE-125: a name is that of a work, else that of an agent, to whom it then goes.
    fn lead(&self, new: &mut NewJob) {
        let agents = self.engine().agents();
        if agents.iter().any(|agent| agent.spec.works.contains(&new.work)) {
            return;
        }
        let named = agents.iter().find(|agent| agent.spec.name == new.work);
        if let Some((agent, work)) = named.and_then(|agent| Some((agent, agent.spec.works.first()?))) {
            (new.agent, new.work) = (Some(agent.spec.name.clone()), work.clone());
        }
    }

    /// Whether the request that a job came as calls its agent this.
    async fn is_called(&self, job: &Job, name: &str) -> bool {
        if job.request.door != Door::Bridge {
            return false;
        }
        let Ok(Some(document)) = self.engine().document(job.seq()).await else { return false };
        let [called] = incoming::names_in(&document.0, ["agent_name"]);
        called.as_deref() == Some(name)
    }

    /// A job that has not ended. Whoever did not wait cannot be told yet that it is stuck: it has only just come.
    fn as_it_stands(&self, job: &Arc<Job>, asking: &Asking) -> Vec<u8> {
        let stuck = asking.wait.and_then(|_| self.engine().stuck(job, Ahead::Counted));
        view::job(job, &Beside { stuck, ..Beside::default() })
    }
}

/// Refusals know jobs; requesters know the members of their own request.
fn unaccepted(app: &App, asking: &Asking, why: &Unaccepted) -> Refusal {
    match why {
        Unaccepted::Rejected(Rejected::UnknownWork) => {
            let hint = format!("known works: {}", works(app));
            let (message, at) = match asking.work {
                None => ("`agent_name` is no work and no agent's name", Some("/agent_name")),
                Some(_) => ("the query's `work` is no work and no agent's name", None),
            };
            let refusal = Refusal::unsupported(message, hint).clause("BRIDGE-125");
            at.into_iter().fold(refusal, Refusal::at)
        }
        Unaccepted::Rejected(Rejected::UnknownAgent | Rejected::NotItsWork) => {
            Refusal::unaccepted(app, why).at("/context/x_crosspoint/target")
        }
        Unaccepted::Rejected(Rejected::Full { .. })
        | Unaccepted::Conflict(_)
        | Unaccepted::Overloaded
        | Unaccepted::Closed
        | Unaccepted::Lost
        | Unaccepted::Fault(_)
        | Unaccepted::NotTried(_) => Refusal::unaccepted(app, why),
    }
}

/// What the requester calls it, where that could be read.
fn about(refusal: Refusal, document: &Bytes) -> Refusal {
    let [request_id, agent_name] = incoming::names_in(document, ["request_id", "agent_name"]);
    refusal.of_request(request_id).of_work(agent_name)
}
