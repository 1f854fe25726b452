//! What the doors of all contracts do over HTTP: they read what came beside a document, and have the work admitted.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use crosspoint_contracts::Contract;

use super::body::Received;
use super::query::Asking;
use super::refusal::Refusal;
use super::{App, submit};
use crate::passage::admission::{self, Admitted, Caller, Headers};

/// Says which caller sends a request. Without tokens all requests come from the same caller.
impl FromRequestParts<App> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, _: &App) -> Result<Caller, Infallible> {
        Ok(Caller::everyone())
    }
}

impl App {
    /// Makes a job of a request, or finds the job that it repeats. `asking` is what the request's query asks for.
    pub(super) async fn admit(
        &self,
        (contract, caller): (Contract, Caller),
        headers: &HeaderMap,
        asking: Asking,
        received: Received,
    ) -> Result<Admitted, Refusal> {
        let about = |refusal| admission::about(refusal, contract, &received.bytes);
        if self.stopping().is_cancelled() {
            return Err(about(Refusal::stopping()));
        }
        let key = submit::idempotency_key(headers).map_err(about)?;
        let Asking { wait, work } = asking;
        let headers = Headers { caller, key, trace: submit::traceparent(headers), work, wait };
        admission::admit(self.engine(), contract, &received.bytes, headers).await
    }
}
