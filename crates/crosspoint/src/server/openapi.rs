//! `/openapi.json`: describes what the API takes and returns, for programs that generate clients, forms and tests from
//! it.
//!
//! Bodies are read and written by hand, for speed, so the types here only describe and are never constructed. Tests
//! keep the two together: every answer that any test gets is checked against its schema, the router and this list are
//! compared, and a generator of requests that knows only this description calls the server.
//!
//! In reading order: `table` has every operation; `operation` describes one; `shape` has the types, `run`, `task`,
//! `message` and `bridge` those of these contracts, and `word` the closed lists of words among them.

mod bridge;
mod event;
mod health;
mod message;
mod open;
mod operation;
mod pull;
mod run;
mod shape;
mod table;
mod task;
mod token;
mod word;
mod workflow;
mod workflows;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::schema::Plain;
use crosspoint_http::json::response;
use crosspoint_http::tally::Route;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::App;
use super::access::Needs;
use operation::{Operation, TOKEN};
use table::Facts;

pub(super) async fn describe(State(app): State<App>) -> Response {
    let described = app.0.described.get_or_init(|| {
        let facts = Facts { wait_max: app.0.wait_max };
        Bytes::from(format!("{:#}\n", document(&table::operations(&facts))))
    });
    response(StatusCode::OK, described.clone())
}

/// Returns who may ask for what, by method and path.
pub(super) fn needs() -> Vec<((&'static str, &'static str), Needs)> {
    let one = |operation: &Operation| ((operation.method, operation.path), operation.needs);
    table::operations(&Facts::default()).iter().map(one).collect()
}

/// Returns every route that is described.
pub(super) fn routes() -> Vec<Route> {
    let route = |operation: &Operation| Route { method: operation.method, path: operation.path };
    table::operations(&Facts::default()).iter().map(route).collect()
}

fn document(operations: &[Operation]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.with_transform(Plain).into_generator();
    let mut paths = Map::new();
    for operation in operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.to_ascii_lowercase()] = operation.described(&mut schemas);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Crosspoint",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Connects any caller to any agent, in any contract, and loses nothing. Members that are not \
                described may come in any answer, and are no change of the API.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "The server that this came from." }],
        "tags": table::TAGS.map(|(name, description)| json!({ "name": name, "description": description })),
        "paths": paths,
        "components": { "schemas": schemas.take_definitions(true), "securitySchemes": { TOKEN: token() } },
    })
}

/// Describes the tokens of agents and callers.
fn token() -> Value {
    let description =
        "The token of a caller, of an agent, or of an administrator; what is listed is what it must be for.";
    json!({ "type": "http", "scheme": "bearer", "description": description })
}
