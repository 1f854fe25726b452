//! `/health`: whether the process runs; `/health/ready`: whether it accepts work.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use crosspoint_engine::runtime::Readiness;
use crosspoint_http::json::{Object, response};

use super::App;
use crate::backend::reason;

pub(super) async fn alive() -> Response {
    status_document(StatusCode::OK, "ok", Some(("version", env!("CARGO_PKG_VERSION"))))
}

pub(super) async fn ready(State(app): State<App>) -> Response {
    if app.stopping().is_cancelled() {
        return status_document(
            StatusCode::SERVICE_UNAVAILABLE,
            "stopping",
            Some(("reason", "the server is stopping")),
        );
    }
    match app.engine().readiness() {
        Readiness::Ready => status_document(StatusCode::OK, "ready", None),
        Readiness::Failing(fault) => {
            status_document(StatusCode::SERVICE_UNAVAILABLE, "failing", Some(("reason", reason(&fault))))
        }
    }
}

fn status_document(status: StatusCode, word: &str, more: Option<(&'static str, &str)>) -> Response {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    object.text("status", word);
    if let Some((name, text)) = more {
        object.text(name, text);
    }
    object.close();
    response(status, out)
}
