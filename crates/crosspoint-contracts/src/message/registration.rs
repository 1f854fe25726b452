//! The registration of an agent (MSG-11): who it is, which versions it speaks, which works it takes, where it is.
//!
//! The contract says that agents register on connect, and not how. Over REST it is the body of a request; over a queue
//! the same fields stand among the custom fields of the first heartbeat. So it is read from an object, wherever that
//! stands. Members that are not known are ignored: over a queue they are anybody's.

use serde_json::json;

use super::clause::{MSG_1_4, MSG_11, MSG_11_5};
use super::read::agent_type;
use super::version::{NoCommonVersion, Picked, SPOKEN, pick};
use crate::clause::Clause;
use crate::clause::all::ALL_108;
use crate::content::Text;
use crate::document::{note_flaws, note_syntax};
use crate::fields::{Fields, array, complain, integer, name};
use crate::json::{Tape, Type, Value};
use crate::report::{Findings, Place, Report};

/// Longest name of an agent, in bytes. It is shown and logged whole.
pub const AGENT_ID_BYTES_MAX: usize = 200;

/// Longest name of a work, in bytes: longer ones cannot be asked for.
pub const WORK_BYTES_MAX: usize = 512;

/// Most attempts at a time that an agent may ask for.
pub const CONCURRENCY_MAX: u32 = 1_000;

/// Most versions, and most works, that an agent may name.
pub const NAMES_MAX: usize = 1_000;

/// How an agent introduces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The agent's name.
    pub agent_id: String,
    /// Its type.
    pub agent_type: String,
    /// The versions that it speaks, as it spells them.
    pub supported_versions: Vec<String>,
    /// The works that it takes.
    pub work_types: Vec<String>,
    /// Where work is pushed to. Without it the agent pulls.
    pub base_url: Option<String>,
    /// How many attempts it takes at a time.
    pub concurrency: Option<u32>,
}

impl Registration {
    /// Reads the object that a registration is. The report says what is wrong with it.
    pub fn read(object: &[u8], agent_types: &[&str]) -> (Report, Option<Registration>) {
        let mut findings = Findings::default();
        let tape = match Tape::scan(object) {
            Ok(tape) => tape,
            Err(broken) => {
                note_syntax(&broken.error, &crate::clause::all::ALL_101, &mut findings);
                return (findings.into_report(None, &broken.so_far, object), None);
            }
        };
        note_flaws(&tape, &mut findings);
        let Some(root) = tape.root().filter(|root| root.kind() == Type::Object) else {
            findings.note(&ALL_108, Place::Value(0), "the registration is no object");
            return (findings.into_report(None, &tape, object), None);
        };
        let registration = registration(&mut Fields::new(root, &mut findings), agent_types);
        let is_valid = !findings.any_error();
        (findings.into_report(None, &tape, object), is_valid.then_some(registration))
    }

    /// Returns the version to speak with the agent (MSG-10).
    ///
    /// # Errors
    /// Fails if there is no version that both sides speak.
    pub fn version(&self) -> Result<Picked<'static>, NoCommonVersion> {
        let theirs: Vec<&str> = self.supported_versions.iter().map(String::as_str).collect();
        pick(SPOKEN, &theirs)
    }

    /// Writes the answer to a registration (MSG-11.4).
    pub fn answer(&self, version: Picked<'_>, heartbeat_seconds: u32) -> String {
        let agent_id = &self.agent_id;
        json!({ "protocol_version": version.get(), "heartbeat_seconds": heartbeat_seconds, "agent_id": agent_id })
            .to_string()
    }
}

fn registration(fields: &mut Fields<'_, '_, '_>, agent_types: &[&str]) -> Registration {
    let owned = |names: Vec<Text<'_>>| names.into_iter().map(|name| name.decode().into_owned()).collect();
    let options = crate::document::Options { agent_types, ..Default::default() };
    Registration {
        agent_id: fields.required("agent_id", &MSG_11, agent_id),
        agent_type: fields.required("agent_type", &MSG_11, agent_type(&options, &MSG_1_4)).get().into_owned(),
        supported_versions: owned(fields.required("supported_versions", &MSG_11, names(&MSG_11))),
        work_types: owned(fields.required("work_types", &MSG_11, works)),
        base_url: fields.optional_input("base_url", base_url),
        concurrency: fields.optional_input("concurrency", concurrency),
    }
}

fn agent_id(value: Value<'_, '_>, findings: &mut Findings) -> Option<String> {
    let id = name(&MSG_11)(value, findings)?.decode().into_owned();
    if id.len() > AGENT_ID_BYTES_MAX {
        complain(value, &MSG_11, &format!("has more than {AGENT_ID_BYTES_MAX} bytes"), findings);
        return None;
    }
    if id.chars().any(char::is_control) || id.trim() != id {
        complain(value, &MSG_11, "has control characters, or spaces at an end", findings);
        return None;
    }
    Some(id)
}

/// The works of an agent: names that a request can have.
fn works<'t, 's: 't>(value: Value<'t, 's>, findings: &mut Findings) -> Option<Vec<Text<'s>>> {
    let works = names(&MSG_11)(value, findings)?;
    let decoded: Vec<_> = works.iter().map(|work| work.decode()).collect();
    if decoded.iter().any(|work| work.len() > WORK_BYTES_MAX) {
        complain(value, &MSG_11, &format!("has a name of more than {WORK_BYTES_MAX} bytes"), findings);
        return None;
    }
    if decoded.iter().any(|work| work.chars().any(char::is_control)) {
        complain(value, &MSG_11, "has a name with control characters", findings);
        return None;
    }
    Some(works)
}

/// A list of names, at least one.
fn names<'t, 's: 't>(clause: &'static Clause) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<Vec<Text<'s>>> {
    move |value, findings| {
        let names = array(clause, name(clause))(value, findings)?;
        if value.items().next().is_none() {
            complain(value, clause, "is empty", findings);
            return None;
        }
        if names.len() > NAMES_MAX {
            complain(value, clause, &format!("has more than {NAMES_MAX} items"), findings);
            return None;
        }
        Some(names)
    }
}

/// Only where work is pushed to: a password or a query in it would be shown and logged.
fn base_url(value: Value<'_, '_>, findings: &mut Findings) -> Option<String> {
    let url = name(&MSG_11_5)(value, findings)?.decode().into_owned();
    let lower = url.to_ascii_lowercase();
    let rest = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://"));
    let authority = rest.map(|rest| rest.split('/').next().unwrap_or_default());
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'\\' | b'"' | b'<' | b'>');
    let fits = authority.is_some_and(|authority| !authority.is_empty() && !authority.contains('@'));
    if !fits || !url.bytes().all(is_plain) {
        complain(value, &MSG_11_5, "is no http or https address without credentials, query and fragment", findings);
        return None;
    }
    Some(url)
}

fn concurrency(value: Value<'_, '_>, findings: &mut Findings) -> Option<u32> {
    u32::try_from(integer(&MSG_11, 1..=i64::from(CONCURRENCY_MAX))(value, findings)?).ok()
}
