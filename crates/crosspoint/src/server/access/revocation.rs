//! What is under way when its token is revoked, replaced or expires: a stream is cut off, and a request that waits is
//! refused.

use std::pin::pin;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use crosspoint_engine::grant::Digest;
use crosspoint_engine::runtime::Engine;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::{Refused, event_stream};

use super::status_of;

/// How long a request may still take when its token is no longer good. What has been done is answered: a token may
/// revoke or replace itself, and only the answer has the new one.
const GRACE: Duration = Duration::from_millis(500);

/// Returns the answer to a request that came with a token of the store, as long as the token is good.
pub(super) async fn answer(engine: &Engine, digest: Digest, answering: impl Future<Output = Response>) -> Response {
    let mut answering = pin!(answering);
    let answered = tokio::select! {
        biased;
        response = &mut answering => Ok(response),
        unusable = engine.unusable(&digest) => {
            tokio::time::timeout(GRACE, answering).await.map_err(|_| Refusal::unauthenticated("", status_of(unusable)))
        }
    };
    match answered {
        Ok(response) => {
            let engine = engine.clone();
            event_stream::cut_off(response, async move { _ = engine.unusable(&digest).await })
        }
        Err(refusal) => Refused::from(refusal).into_response(),
    }
}
