//! `/api/v1/workflows`: starting runs of workflows, and showing what they changed. A run is a job, so everything else
//! is done at `/api/v1/jobs`.

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use crosspoint_contracts::content::Block;
use crosspoint_contracts::json::{Type, Value};
use crosspoint_contracts::request::{Door, Key, Limits, NewJob, Priority};
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::Refused;
use crosspoint_http::body::Received;
use crosspoint_http::headers::{self, idempotency_key};
use crosspoint_http::json_body::{self, object, scan};
use crosspoint_workflow::repository;

use super::access::Who;
use super::jobs::{located, watch_of};
use super::query::Id;
use super::view::Beside;
use super::{App, submit};
use crate::workflow::{AGENT, Order, WORK};

/// The media type of a diff.
const DIFF: &str = "text/x-diff; charset=utf-8";

/// Longest diff, in bytes. What does not fit is said in its last line.
const DIFF_BYTES_MAX: u64 = 16 << 20;

const EXAMPLE: &str = r#"send {"definition": "name = \"specify\"\n[[stage]]\n...", "root": "/srv/repo"}"#;

pub(super) async fn start_workflow(
    State(app): State<App>,
    who: Who,
    headers: HeaderMap,
    received: Received,
) -> Result<Response, Refused> {
    let (order, request_id) = read(&received)?;
    let key = match idempotency_key(&headers)? {
        Some(key) => Key::Other(key),
        None if request_id.is_some() => Key::RequestId,
        None => Key::None,
    };
    let new = NewJob {
        door: Door::Native,
        caller: who.caller().into(),
        request_id,
        key,
        work: WORK.into(),
        agent: Some(AGENT.into()),
        addressed: None,
        priority: Priority::Normal,
        limits: Limits::default(),
        input: 0..received.bytes.len(),
        document: Block(received.bytes.clone()),
        trace: headers::trace(&headers).map(|trace| trace.stored().into()),
        echo: None,
        notify: None,
    };
    app.doors().backend.expect_open(&new).await.map_err(|why| why.refusal(&[]))?;
    check(&app, order).await?;
    let submitted = app.engine().acting(who.on_record()).submit(new).await.map_err(|why| app.refuse(why, WORK))?;
    let job = watch_of(submitted).job();
    Ok(located(StatusCode::ACCEPTED, &job, &Beside::default()))
}

/// Checks an order, as far as that can be done before the run begins.
async fn check(app: &App, order: Order) -> Result<(), Refused> {
    let (places, agents) = (app.places().clone(), app.engine().agents());
    // A definition may be long, and a root on a disk that is far away.
    let checking = tokio::task::spawn_blocking(move || {
        let works_of = |name: &str| {
            let agent = agents.iter().find(|agent| *agent.spec.name == *name)?;
            Some(agent.spec.works.iter().map(ToString::to_string).collect())
        };
        let checked = order.check(&places).and_then(|checked| checked.check_agents(&works_of));
        checked.map_err(|why| refused(&why.told(&order.definition)))
    });
    Ok(checking.await.map_err(|_| Refusal::internal())??)
}

/// Reads an order, and the caller's own id of the run.
fn read(received: &Received) -> Result<(Order, Option<Box<str>>), Refusal> {
    let tape = scan(&received.bytes)?;
    let root = object(&tape, EXAMPLE)?;
    let mut mistakes = Vec::new();
    misspelt(root, &mut mistakes);
    let mut text = |name: &str, pointer: &'static str, is_required: bool| -> Option<String> {
        match root.get(name) {
            Some(value) if value.kind() == Type::String => value.text().map(|text| text.decode().into_owned()),
            None | Some(_) if !is_required && root.get(name).is_none_or(Value::is_null) => None,
            Some(value) => {
                mistakes.push(json_body::wrong(pointer, value, "a string", EXAMPLE));
                None
            }
            None => {
                mistakes.push(Refusal::invalid(format!("`{name}` is missing"), EXAMPLE).at(pointer));
                None
            }
        }
    };
    let (definition, path) = (text("definition", "/definition", true), text("root", "/root", true));
    let feature = text("feature", "/feature", false);
    let dry_run = match root.get("dry_run").filter(|value| !value.is_null()) {
        None => false,
        Some(value) => value.boolean().unwrap_or_else(|| {
            mistakes.push(json_body::wrong("/dry_run", value, "true or false", EXAMPLE));
            false
        }),
    };
    let request_id =
        match root.get("request_id").filter(|value| !value.is_null()).map(|id| submit::text("/request_id", id)) {
            Some(Ok(id)) => Some(id),
            Some(Err(mistake)) => {
                mistakes.push(mistake);
                None
            }
            None => None,
        };
    let (Some(definition), Some(path), true) = (definition, path, mistakes.is_empty()) else {
        return Err(Refusal::all(mistakes));
    };
    Ok((Order { definition, root: path.into(), feature, dry_run, file: None, home: None }, request_id))
}

/// Refuses members that are ours but for their spelling, as `dryRun`: a run that was to write nothing would write.
/// Others are passed over.
fn misspelt(root: Value<'_, '_>, mistakes: &mut Vec<Refusal>) {
    const KNOWN: [&str; 5] = ["definition", "root", "feature", "dry_run", "request_id"];
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    for (name, _) in root.members() {
        let name = name.decode();
        let meant = KNOWN.into_iter().find(|known| *known != name && plain(known) == plain(&name));
        if let Some(meant) = meant {
            mistakes.push(Refusal::invalid(format!("the body has a member that is nearly `{meant}`"), EXAMPLE).at(""));
        }
    }
}

fn refused(told: &[(String, String, &'static str)]) -> Refusal {
    let mistake =
        |(what, hint, at): &(String, String, &'static str)| Refusal::invalid(what.clone(), hint.clone()).at(*at);
    Refusal::all(told.iter().map(mistake).collect())
}

/// Shows what a run changed in its repository, as a unified diff.
pub(super) async fn show_diff(State(app): State<App>, who: Who, Id(id): Id) -> Result<Response, Refused> {
    let job = app.read_job(&who, id, "diff").await?.job();
    if *job.request.work != *WORK {
        let hint = "GET /api/v1/jobs?work=workflow-run lists the runs of workflows";
        return Err(Refusal::invalid("this job is no run of a workflow", hint).into());
    }
    let record = app.places().record(id.uuid());
    let write = move || {
        let mut out = Vec::new();
        repository::diff(&record, &mut out, DIFF_BYTES_MAX).map(|_| out)
    };
    // How much has to be compared is not known yet.
    let diff = app.0.reading_room.look(usize::MAX, write).await?;
    let diff = diff.map_err(|error| {
        tracing::error!(job = %id, error = %error.kind(), "the record of a run cannot be read");
        Refusal::internal()
    })?;
    let mut response = (StatusCode::OK, diff).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(DIFF));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}
