//! Closed lists of words, described by a JSON Schema that follows from the code.

use std::borrow::Cow;

use crosspoint_contracts::failure::{Failure, Repeat};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// The name of a failure.
pub struct FailureName;

/// The word for whether sending the same request again is safe.
pub struct RepeatName;

impl JsonSchema for FailureName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "FailureName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Failure::ALL.map(Failure::name) })
    }
}

impl JsonSchema for RepeatName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RepeatName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = [Repeat::Safe, Repeat::Unknown, Repeat::Never].map(Repeat::name);
        json_schema!({ "type": "string", "enum": words })
    }
}
