//! `/api/v1/bridge`: where requests of the bridge contract come in.
//!
//! Files are for programs that watch a directory. Here the request is a body, and the answer is the response that
//! belongs into the response file. As long as there is none (also while a person is asked, ALL-5), the answer is the
//! job, and the same request sent again joins that job. Failed work is answered like any other: requesters have
//! fallbacks of their own (BRIDGE-9).

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use crosspoint_contracts::Contract;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::Ahead;
use crosspoint_exchange::{admission, answer};
use crosspoint_http::body::Received;
use crosspoint_http::door::{SentBy, ended, locate};
use crosspoint_http::held::held;
use crosspoint_http::json::{Object, response};
use crosspoint_http::{Refused, long};

use super::view::{self, Beside};
use super::{App, query};
use crate::backend::{Orchestrator, ahead, snapshot, with_text};

pub(super) const CONTRACT: Contract = Contract::Bridge;

/// Path of this door.
pub(super) const PLACE: &str = "/api/v1/bridge";

/// Returns the id of this store, for drivers that remember to which store they gave a request.
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
    caller: SentBy,
    uri: Uri,
    received: Received,
) -> Result<Response, Refused> {
    let asking = query::asking(&uri, app.0.wait_max);
    let asking = asking.map_err(|refusal| admission::about(refusal, CONTRACT, &received.bytes, &[]))?;
    let waits = asking.wait.is_some();
    let request = app.doors().admit((CONTRACT, caller), asking, received).await?;
    let (job, room) = with_text(app.engine(), ended(&request).await).await?;
    let shown = snapshot(&job);
    let mut response = if job.outcome().is_some() {
        let document = long::look(shown.outcome_bytes(), || answer::document(&shown, CONTRACT, &request.beside));
        response(StatusCode::OK, document)
    } else {
        response(StatusCode::ACCEPTED, app.as_it_stands(&job, waits))
    };
    locate::<Orchestrator>(&mut response, &shown);
    Ok(held(response, room))
}

impl App {
    /// Shows a job that has not ended. Without a wait it cannot be called stuck yet: it has only just arrived.
    fn as_it_stands(&self, job: &Arc<Job>, waited: bool) -> Vec<u8> {
        let stuck = waited.then(|| self.engine().stuck(job, ahead(job, Ahead::Counted))).flatten();
        view::job(job, &Beside { stuck, ..Beside::default() })
    }
}
