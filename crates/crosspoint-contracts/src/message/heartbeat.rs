//! Signs of life of agents (MSG-12), read as tolerantly as any answer of an agent (ALL-11).

use super::read::{PROGRESS_MARKS, is_heartbeat};
use super::wire::Presence;
use crate::content::Body;
use crate::document::read_answer;
use crate::fields::Word;
use crate::json::{Type, Value};
use crate::kind::Kind;
use crate::report::Report;

/// A sign of life of an agent. Without its name and its status it is none; whatever else is wrong with it is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    /// The agent.
    pub agent_id: String,
    /// Its type, if it says so.
    pub agent_type: Option<String>,
    /// Whether it takes work.
    pub presence: Presence,
    /// What it is working on.
    pub current_task_id: Option<String>,
    /// What it has left, as a JSON object. It is shown, and decides nothing (MSG-19.3).
    pub resources: Option<Body>,
    /// A registration in `x_custom_fields` (MSG-11.2): the object that it stands in, if there is any sign of one.
    pub registration: Option<Body>,
}

impl Sign {
    /// Reads a heartbeat. The report says what is wrong with it, even where it could be read.
    pub fn read(message: &[u8], agent_types: &[&str]) -> (Report, Option<Sign>) {
        let (report, sign) = read_answer(message, Kind::WorkStatus, agent_types, |_, root| sign(root));
        (report, sign.flatten())
    }
}

/// Whether the payload of a status is a sign of life: it has the members of one, or at least its word.
pub(super) fn is_sign(payload: Value<'_, '_>) -> bool {
    let has = |name: &str| payload.get(name).is_some();
    let is_word = || payload.get("status").and_then(Value::text).and_then(Presence::of).is_some();
    is_heartbeat(has) || (is_word() && !PROGRESS_MARKS.iter().any(|mark| has(mark)))
}

fn sign(root: Value<'_, '_>) -> Option<Sign> {
    let payload = root.get("payload").filter(|payload| is_sign(*payload))?;
    let text = |name: &str| Some(payload.get(name)?.text()?.decode().into_owned()).filter(|text| !text.is_empty());
    let object = |value: Value<'_, '_>| Body::trusted(value.source().to_owned());
    let is_object = |value: &Value<'_, '_>| value.kind() == Type::Object;
    let is_registration = |value: &Value<'_, '_>| value.get("supported_versions").is_some();
    Some(Sign {
        agent_id: text("agent_id")?,
        agent_type: text("agent_type"),
        presence: payload.get("status").and_then(Value::text).and_then(Presence::of)?,
        current_task_id: text("current_task_id"),
        resources: payload.get("resources").filter(is_object).map(object),
        registration: root.get("x_custom_fields").filter(is_object).filter(is_registration).map(object),
    })
}
