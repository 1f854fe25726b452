//! The envelope around the payload of every message.

use std::borrow::Cow;

use crate::content::Json;
use crate::job::Home;
use crate::json::Value;
use crate::map::{Codec, Fill, In, Member, WriteContext, home};
use crate::message::read::AGENT_TYPES;

/// The members of the envelope, around the payload.
macro_rules! envelope {
    ($type:literal, $from:expr, $to:expr, $timestamp:expr, $payload:expr $(,)?) => {
        &[
            fixed("protocol_version", "\"1.0\""),
            own("message_id", Holds::Text).required(Fill::MessageId),
            $from,
            $to,
            $timestamp.required(Fill::Now),
            home("trace_id", Home::Trace, Codec::HyphenatedTrace).required(Fill::TraceId),
            home("request_id", Home::RequestId, Codec::Uuid).required(Fill::Id),
            fixed("type", $type),
            block("payload", $payload).required(Fill::Raw("{}")),
            loose("priority", read_priority, &[Home::Priority]),
            block("x_custom_fields", &[]).recommended(EMPTY),
        ]
    };
}
pub(super) use envelope;

const ORCHESTRATOR: Fill = Fill::Raw("\"orchestrator\"");
pub(super) const BY_ORCHESTRATOR: Member =
    home("from_agent", Home::Source, Codec::Own(type_or_orchestrator)).required(ORCHESTRATOR);
pub(super) const TO_AGENT: Member = home("to_agent", Home::Target, Codec::Own(type_or_agent)).required(Fill::AgentType);
pub(super) const BY_AGENT: Member =
    home("from_agent", Home::Source, Codec::Own(type_or_agent)).required(Fill::AgentType);
pub(super) const TO_ORCHESTRATOR: Member =
    home("to_agent", Home::Target, Codec::Own(type_or_orchestrator)).required(ORCHESTRATOR);

fn type_or_orchestrator<'j>(held: &'j str, context: &WriteContext<'_>) -> Cow<'j, str> {
    type_or(held, "orchestrator", context)
}

fn type_or_agent<'j>(held: &'j str, context: &WriteContext<'_>) -> Cow<'j, str> {
    type_or(held, context.agent_type, context)
}

/// Keeps a name that is an agent type, and replaces any other name with this type. A request to an agent is from us and
/// to that agent, whoever asked for the work.
fn type_or<'j>(held: &'j str, other: &str, context: &WriteContext<'_>) -> Cow<'j, str> {
    let known = |name: &str| AGENT_TYPES.iter().chain(context.agent_types).any(|known| *known == name);
    let is_type = !context.is_dispatch() && Json::new(held).text().is_some_and(|name| known(&name));
    if is_type { Cow::Borrowed(held) } else { Cow::Owned(Json::string(other).get().to_owned()) }
}

/// The five degrees of the later dialect are four here, so the number is kept too.
pub(super) fn read_priority<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    found.keep(value);
    let word = match value.integer() {
        Some(1 | 2) => "low",
        Some(3) => "normal",
        Some(4) => "high",
        Some(5) => "urgent",
        _ => return,
    };
    found.job.set(Home::Priority, Json::string(word));
}
