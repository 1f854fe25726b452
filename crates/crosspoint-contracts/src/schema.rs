//! JSON Schemas (2020-12) of all kinds, made from the types.
//!
//! A schema says what to write, accepted looseness included, as far as JSON Schema can express it. Readers bear more: a
//! null or a wrong type in an optional member is only a warning to them (ALL-11). JSON Schema cannot express that a day
//! exists, that two paths differ or that a chunk is as long as it says.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::kind::Kind;

/// Returns the schema of one kind.
pub fn of(kind: Kind) -> Value {
    finish(kind, (kind.entry().schema)())
}

/// Returns the schema as it is printed and kept in `schemas/`.
pub fn text(kind: Kind) -> String {
    format!("{:#}\n", of(kind))
}

/// Returns the schema of one type.
pub(crate) fn generate<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    let mut plain = Plain;
    schemars::transform::Transform::transform(&mut plain, &mut schema);
    schema.to_value()
}

fn finish(kind: Kind, mut schema: Value) -> Value {
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), json!(kind.name()));
        root.insert("$id".to_owned(), json!(format!("urn:crosspoint:schema:{}", kind.name())));
    }
    schema
}

/// Undoes two habits of the generator. An optional member does not become nullable: what may be null has a type of its
/// own, [`Nullable`](crate::content::Nullable). The widths of Rust's numbers are removed, because they mean nothing to
/// readers.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl schemars::transform::Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(object) = schema.as_object_mut() {
            if object.get("format").and_then(Value::as_str).is_some_and(is_rust_width) {
                object.remove("format");
            }
            if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
                for property in properties.values_mut().filter_map(Value::as_object_mut) {
                    drop_null(property);
                }
            }
        }
        schemars::transform::transform_subschemas(self, schema);
    }
}

/// Whether a format is `int32`, `uint`, `double` or the like.
fn is_rust_width(format: &str) -> bool {
    ["int", "uint", "float", "double"].iter().any(|width| format.starts_with(width))
}

/// Removes the null that `Option` brought along. A member that may really be null has a mark.
fn drop_null(property: &mut Map<String, Value>) {
    if property.remove("nullable").is_some() {
        return;
    }
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    let null = json!({ "type": "null" });
    let alternatives = property.get_mut("anyOf").and_then(Value::as_array_mut);
    let Some(alternatives) = alternatives.filter(|all| all.contains(&null)) else { return };
    alternatives.retain(|alternative| *alternative != null);
    if let [Value::Object(only)] = alternatives.as_slice() {
        let mut only = only.clone();
        only.remove("nullable");
        property.remove("anyOf");
        for (key, value) in only {
            property.entry(key).or_insert(value);
        }
    }
}
