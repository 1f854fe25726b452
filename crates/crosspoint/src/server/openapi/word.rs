//! Closed lists of words as the engine and the contracts spell them, so that a new word is described without a change
//! here, and strings and numbers of a certain form.

use std::borrow::Cow;

use crosspoint_contracts::Kind;
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::outcome::Status;
use crosspoint_contracts::request::{ATTEMPTS_MAX, Door, Priority};
use crosspoint_engine::job::Phase;
use crosspoint_engine::policy::OUTPUT_BYTES_MAX;
use crosspoint_exchange::admission::NAME_BYTES_MAX;
pub(crate) use crosspoint_exchange::refusal::{FailureName, RepeatName};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::pull::CONCURRENCY_MAX;

/// Defines types whose values are one of the given words.
macro_rules! words {
    ($($(#[$about:meta])* $name:ident: $words:expr;)*) => {$(
        $(#[$about])*
        pub(crate) struct $name;

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": $words })
            }
        }
    )*};
}

words! {
    /// Where in its life a job is.
    StateName: Phase::ALL.map(Phase::name);
    /// How much it matters that a rule was broken.
    LevelName: [Level::Error, Level::Warning].map(Level::name);
    /// How a job ended.
    StatusName: Status::ALL.map(Status::name);
    /// Where work comes in.
    DoorName: Door::all().map(Door::name).collect::<Vec<_>>();
    /// Who goes first.
    PriorityName: Priority::ALL.map(Priority::name);
    /// What a document is.
    KindName: Kind::ALL.map(Kind::name);
    /// How a run ended: well in two words, of which this door writes the first by itself.
    RunStatusName: ["ok", "success", "error"];
    /// How a breaker is.
    BreakerName: ["closed", "open", "half_open"];
    /// Whether an agent is there.
    PresenceName: ["online", "offline", "busy"];
    /// What became of a report.
    HeardName: ["taken", "gone"];
    /// How a breaker can be set.
    BreakerWish: ["open", "closed"];
}

/// Defines types whose values have the given form.
macro_rules! forms {
    ($($(#[$about:meta])* $name:ident: $schema:tt;)*) => {$(
        $(#[$about])*
        pub(crate) struct $name;

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

forms! {
    /// The id of a job.
    Id: { "type": "string", "format": "uuid" };
    /// A point in time: RFC 3339 in UTC with milliseconds.
    When: { "type": "string", "format": "date-time" };
    /// A name that callers give.
    Given: { "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX };
    /// A time that is not nothing.
    Seconds: { "type": "number", "exclusiveMinimum": 0 };
    /// As much as can be configured.
    OutputBytes: { "type": "integer", "minimum": 0, "maximum": OUTPUT_BYTES_MAX };
    /// As often as can be configured.
    Attempts: { "type": "integer", "minimum": 1, "maximum": ATTEMPTS_MAX };
    /// A UUID that an agent chooses for itself, the same in all its calls.
    Session: { "type": "string", "format": "uuid" };
    /// A number that counts from 1.
    Above: { "type": "integer", "minimum": 1, "maximum": u32::MAX };
    /// A number that counts from 0.
    Count: { "type": "integer", "minimum": 0, "maximum": u32::MAX };
    /// As many as a session may have; none says that it finishes what it has.
    Concurrency: { "type": "integer", "minimum": 0, "maximum": CONCURRENCY_MAX };
    /// For as many as a session may have, or none.
    Room: { "type": "integer", "minimum": 0, "maximum": CONCURRENCY_MAX };
    /// Not so short that a pause of the machine ends it.
    LeaseSeconds: { "type": "number", "minimum": 5, "maximum": 300 };
    /// A time that is not nothing, and not for ever.
    WorkSeconds: { "type": "number", "minimum": 0.001, "maximum": u32::MAX };
    /// One line of a few words.
    Rule: { "type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$" };
    /// Yes, and nothing else.
    True: { "type": "boolean", "const": true };
    /// Any JSON.
    Any: {};
}
