//! What is under way when it may no longer be: its token is revoked, replaced or expires, or it came without a token
//! and the server asks for tokens from now on. A stream is cut off, and a request that waits is refused.

use std::pin::pin;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use crosspoint_engine::grant::Digest;
use crosspoint_engine::runtime::Engine;
use crosspoint_exchange::refusal::{Refusal, TokenStatus};
use crosspoint_http::{Refused, event_stream};

use super::{closes, status_of};

/// How long a request may still take when it may no longer be under way. What has been done is answered: a token may
/// revoke or replace itself, and only the answer has the new one; so it is with the first token of a server.
const GRACE: Duration = Duration::from_secs(2);

/// For how long a request may be under way.
#[derive(Clone)]
pub(super) enum Allowed {
    /// As long as the token with this digest is good.
    WhileGood(Digest),
    /// As long as the server asks for no tokens.
    WhileOpen,
    /// To its end.
    Always,
}

impl Allowed {
    /// Completes when the request may no longer be under way, with what is wrong with its token.
    async fn over(&self, engine: &Engine) -> TokenStatus {
        match self {
            Allowed::WhileGood(digest) => status_of(engine.unusable(digest).await),
            Allowed::WhileOpen => {
                engine.grants_are(closes).await;
                TokenStatus::Missing
            }
            Allowed::Always => std::future::pending().await,
        }
    }
}

/// Returns the answer to a request, as long as it is allowed.
pub(super) async fn answer(engine: &Engine, allowed: Allowed, answering: impl Future<Output = Response>) -> Response {
    if let Allowed::Always = allowed {
        return answering.await;
    }
    let mut answering = pin!(answering);
    let answered = tokio::select! {
        biased;
        response = &mut answering => Ok(response),
        status = allowed.over(engine) => {
            tokio::time::timeout(GRACE, answering).await.map_err(|_| Refusal::unauthenticated("", status))
        }
    };
    match answered {
        Ok(response) => {
            let engine = engine.clone();
            event_stream::cut_off(response, async move { _ = allowed.over(&engine).await })
        }
        Err(refusal) => Refused::from(refusal).into_response(),
    }
}
