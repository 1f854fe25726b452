//! `/api/v1/callers`: the callers that are told later, and what they are owed.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use crosspoint_http::Refused;
use crosspoint_http::json::{Object, push_array, response};

use super::{App, view};
use crate::backend::fault;

pub(super) async fn list_callers(State(app): State<App>) -> Result<Response, Refused> {
    let standings = app.deliveries().standings().await.map_err(|error| fault(&error))?;
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    push_array(object.name("callers"), &standings, view::push_caller);
    object.close();
    Ok(response(StatusCode::OK, out))
}
