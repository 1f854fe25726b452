//! Refusals over HTTP: each situation has a status.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use crosspoint_exchange::refusal::{Refusal, Situation};

/// Returns the HTTP status of a refusal.
pub(crate) fn status(refusal: &Refusal) -> StatusCode {
    match refusal.situation() {
        Situation::Invalid => StatusCode::BAD_REQUEST,
        Situation::NotFound => StatusCode::NOT_FOUND,
        Situation::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
        Situation::Foreign | Situation::WrongScope => StatusCode::FORBIDDEN,
        Situation::Unauthenticated => StatusCode::UNAUTHORIZED,
        Situation::Conflict => StatusCode::CONFLICT,
        Situation::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Situation::UrlTooLong => StatusCode::URI_TOO_LONG,
        Situation::HeadTooLong => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        Situation::TooSlow => StatusCode::REQUEST_TIMEOUT,
        Situation::Full => StatusCode::TOO_MANY_REQUESTS,
        Situation::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        Situation::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Situation::Waited => StatusCode::GATEWAY_TIMEOUT,
    }
}

/// Returns the whole answer as bytes, for a connection that the HTTP library does not serve.
pub(crate) fn to_http(refusal: &Refusal) -> Vec<u8> {
    let body = refusal.body();
    let retry = refusal.retry_seconds().map_or_else(String::new, |seconds| format!("retry-after: {seconds}\r\n"));
    let head = format!(
        "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{retry}connection: close\r\n\r\n",
        status(refusal),
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

/// A refusal on its way out over HTTP.
#[derive(Debug)]
pub struct Refused(Box<Refusal>);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        Refused(Box::new(refusal))
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Refusal {
        *refused.0
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Refused(refusal) = self;
        let mut response = status(&refusal).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = refusal.retry_seconds() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if response.status() == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(limit) = refusal.limit() {
            response.extensions_mut().insert(limit);
        }
        // The body is written later, because every door has a shape of its own.
        response.extensions_mut().insert(Arc::<Refusal>::from(refusal));
        response
    }
}

#[cfg(test)]
mod tests {
    use crosspoint_exchange::refusal::TokenStatus;

    use super::*;

    /// MSG-13.4.
    #[test]
    fn a_refused_token_has_a_status_of_its_own() {
        for token in TokenStatus::ALL {
            let response = Refused::from(Refusal::unauthenticated("a", token)).into_response();
            let is_scope = token == TokenStatus::WrongScope;
            assert_eq!(response.status(), if is_scope { StatusCode::FORBIDDEN } else { StatusCode::UNAUTHORIZED });
            assert_eq!(response.headers().contains_key(WWW_AUTHENTICATE), !is_scope, "{}", token.name());
        }
    }
}
