//! Documents of contracts in the description: they may have members that no contract knows.

use serde_json::{Value, json};

/// Defines a document of the contract that may have any other members too.
macro_rules! open {
    ($($(#[$about:meta])* $name:ident: $document:ty;)*) => {$(
        $(#[$about])*
        struct $name;

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(schemas: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut schema = <$document as schemars::JsonSchema>::json_schema(schemas);
                schema.ensure_object().values_mut().for_each($crate::server::openapi::open::open_up);
                schema.insert("additionalProperties".to_owned(), serde_json::json!(true));
                schema
            }
        }
    )*};
}

pub(super) use open;

/// Allows members that the contract does not know, at every level: they are kept.
pub(super) fn open_up(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.values_mut().for_each(open_up);
            // A condition on some members says nothing about the others.
            if object.contains_key("properties") && object.contains_key("type") {
                object.entry("additionalProperties").or_insert(json!(true));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(open_up),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
