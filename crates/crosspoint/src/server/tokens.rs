//! `/api/v1/tokens`: tokens are made, listed, replaced and revoked.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::json::Value;
use crosspoint_engine::grant::{Grant, NAME_BYTES_MAX, Role, Unusable};
use crosspoint_engine::runtime::{Token, Ungranted};
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::Refused;
use crosspoint_http::body::Received;
use crosspoint_http::json::{Object, push_array, response};
use crosspoint_http::json_body::{object, scan};

use super::App;
use super::access::{Identity, Who};
use super::query::Name;
use super::submit::text as named;
use super::view;
use crate::backend::{fault, tried};

/// Longest time that a token may be good, or good beside the next one, in seconds: a hundred years, and one.
const EXPIRES_SECONDS_MAX: u64 = 3_153_600_000;
const OVERLAP_SECONDS_MAX: u64 = 31_536_000;

pub(super) async fn create_token(State(app): State<App>, who: Who, received: Received) -> Result<Response, Refused> {
    let wanted = Wanted::read(&received.bytes)?;
    if app.access().is_configured(&wanted.name) {
        let hint = "give the token another name";
        return Err(Refusal::conflict("a token of this name is in the configuration", hint).at("/name").into());
    }
    let made =
        app.engine().create_token(Some(&who.name_or_no_token()), &wanted.name, wanted.role, wanted.expires_in).await;
    Ok(shown_once(&made.map_err(|why| ungranted(&why))?))
}

pub(super) async fn list_tokens(State(app): State<App>) -> Response {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    let grants = app.engine().grants();
    let mut all: Vec<(&Arc<str>, Option<&Grant>, &Role)> =
        grants.iter().map(|grant| (&grant.name, Some(&**grant), &grant.role)).collect();
    all.extend(app.access().configured().map(|Identity { name, role }| (name, None, role)));
    all.sort_by_key(|(name, ..)| *name);
    push_array(object.name("tokens"), &all, |out, (name, grant, role)| view::push_token(out, name, role, *grant, None));
    object.close();
    response(StatusCode::OK, out)
}

pub(super) async fn revoke_token(State(app): State<App>, who: Who, Name(name): Name) -> Result<Response, Refused> {
    // What is in the store can be revoked, whatever the configuration says.
    if app.engine().grants().get(&name).is_none() {
        app.is_changeable(&name)?;
    }
    let grant = app.engine().revoke_token(Some(&who.name_or_no_token()), &name).await.map_err(|why| ungranted(&why))?;
    let mut out = Vec::new();
    view::push_token(&mut out, &grant.name, &grant.role, Some(&grant), None);
    Ok(response(StatusCode::OK, out))
}

pub(super) async fn rotate_token(
    State(app): State<App>,
    who: Who,
    Name(name): Name,
    received: Received,
) -> Result<Response, Refused> {
    let Rotation { overlap, expires_in } = Rotation::read(&received.bytes)?;
    app.is_changeable(&name)?;
    let made = app.engine().rotate_token(Some(&who.name_or_no_token()), &name, overlap, expires_in).await;
    Ok(shown_once(&made.map_err(|why| ungranted(&why))?))
}

impl App {
    /// A token that is in a file of the configuration is changed there.
    fn is_changeable(&self, name: &str) -> Result<(), Refusal> {
        if !self.access().is_configured(name) {
            return Ok(());
        }
        let hint = "write another token into its token_file, and start the server again";
        Err(Refusal::conflict("the token is in a file that the configuration names", hint))
    }
}

/// What a new token is to be.
struct Wanted {
    name: Arc<str>,
    role: Role,
    expires_in: Option<Duration>,
}

impl Wanted {
    /// Reads `{"name": NAME, "for": "caller"|"agent"|"admin", "agent": NAME?, "expires_seconds": N?}`.
    fn read(document: &Bytes) -> Result<Wanted, Refusal> {
        let tape = scan(document)?;
        let hint = r#"send {"name": "upstream", "for": "caller"}"#;
        let object = object(&tape, hint)?;
        let missing = |name: &str| Refusal::invalid(format!("`{name}` is missing"), hint).at(format!("/{name}"));
        let name: Arc<str> = named("/name", object.get("name").ok_or_else(|| missing("name"))?)?.into();
        let agent = object.get("agent").filter(|value| !value.is_null());
        let agent = agent.map(|value| named("/agent", value)).transpose()?;
        let role = object.get("for").ok_or_else(|| missing("for"))?.text().map(|role| role.decode().into_owned());
        let role = match (role.as_deref(), agent) {
            (Some("agent"), Some(agent)) => Role::Agent(agent.into()),
            (Some("agent"), None) => Role::Agent(name.clone()),
            (Some("caller"), None) => Role::Caller,
            (Some("admin"), None) => Role::Admin,
            (Some("caller" | "admin"), Some(_)) => {
                return Err(Refusal::invalid("only the token of an agent has an `agent`", "leave it out").at("/agent"));
            }
            (Some(_) | None, _) => {
                return Err(Refusal::invalid("`for` must be caller, agent or admin", hint).at("/for"));
            }
        };
        let expires_in = seconds(object.get("expires_seconds"), "/expires_seconds", 1..=EXPIRES_SECONDS_MAX)?;
        Ok(Wanted { name, role, expires_in })
    }
}

/// How a token is replaced.
#[derive(Default)]
struct Rotation {
    overlap: Duration,
    expires_in: Option<Duration>,
}

impl Rotation {
    /// Reads `{"overlap_seconds": N?, "expires_seconds": N?}`. An empty body has neither.
    fn read(document: &Bytes) -> Result<Rotation, Refusal> {
        if document.is_empty() {
            return Ok(Rotation::default());
        }
        let tape = scan(document)?;
        let object = object(&tape, r#"send {"overlap_seconds": 3600}"#)?;
        let overlap = seconds(object.get("overlap_seconds"), "/overlap_seconds", 0..=OVERLAP_SECONDS_MAX)?;
        let expires_in = seconds(object.get("expires_seconds"), "/expires_seconds", 1..=EXPIRES_SECONDS_MAX)?;
        Ok(Rotation { overlap: overlap.unwrap_or_default(), expires_in })
    }
}

fn seconds(
    value: Option<Value<'_, '_>>,
    pointer: &'static str,
    within: std::ops::RangeInclusive<u64>,
) -> Result<Option<Duration>, Refusal> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let seconds = value.integer().and_then(|seconds| u64::try_from(seconds).ok()).filter(|it| within.contains(it));
    let wrong = || {
        let message = format!("`{}` must be a whole number from {} to {}", &pointer[1..], within.start(), within.end());
        Refusal::invalid(message, "give it in seconds").at(pointer)
    };
    Ok(Some(Duration::from_secs(seconds.ok_or_else(wrong)?)))
}

/// Shows a token, which no cache between here and its owner may keep.
fn shown_once((grant, token): &(Arc<Grant>, Token)) -> Response {
    let mut out = Vec::new();
    view::push_token(&mut out, &grant.name, &grant.role, Some(grant), Some(token.get()));
    let mut response = response(StatusCode::OK, out);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn ungranted(why: &Ungranted) -> Refusal {
    match why {
        Ungranted::NameTaken => {
            let hint =
                "give it another name; a name is given once and for all, so that no later token inherits its jobs";
            Refusal::conflict("there is, or was, a token of this name", hint).at("/name")
        }
        Ungranted::BadName => {
            let message =
                format!("a name has 1 to {NAME_BYTES_MAX} bytes, without spaces, slashes and control characters");
            Refusal::invalid(message, "give it a name like upstream-1").at("/name")
        }
        Ungranted::Crowded => Refusal::conflict("there are as many tokens as there may be", "use those that there are"),
        Ungranted::NoChance => Refusal::internal(),
        Ungranted::NotFound => Refusal::not_found("no token has this name", "GET /api/v1/tokens lists them"),
        Ungranted::Unusable(Unusable::Revoked | Unusable::Unknown | Unusable::Expired | Unusable::Replaced) => {
            Refusal::conflict("the token was revoked", "make another one under another name")
        }
        Ungranted::Closed => Refusal::stopping(),
        Ungranted::Lost => Refusal::ended(),
        Ungranted::Fault(error) => tried(error, "it may or may not count: GET /api/v1/tokens says"),
        Ungranted::NotTried(error) => fault(error),
    }
}
