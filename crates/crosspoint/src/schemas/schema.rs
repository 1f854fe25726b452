//! One JSON Schema: compiled once, compared with many values.
//!
//! The schema is the operator's, and the values come from anywhere. So patterns are matched by an engine without
//! backtracking, values have at most the depth that every reader here allows, and the list of mistakes is made only for
//! values that are short: the validator gathers all mistakes before it returns the first.

use std::sync::Arc;

use crosspoint_contracts::Wrong;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

/// Longest file of a schema, in bytes.
pub(crate) const SCHEMA_BYTES_MAX: u64 = 1 << 20;

/// Most mistakes in a value that are listed.
const MISTAKES_MAX: usize = 20;

/// Longest value in bytes of which mistakes are listed. Of a longer one the first is told.
const LISTED_BYTES_MAX: usize = 64 << 10;

/// Longest value of a keyword that a mistake shows, in bytes.
const SHOWN_BYTES_MAX: usize = 100;

/// Keywords with several schemas for one value: a mistake there holds all mistakes of all of them, however long the
/// value is.
const BRANCHING: [&str; 2] = ["anyOf", "oneOf"];

/// A schema. Clones share it.
#[derive(Clone)]
pub(crate) struct Schema {
    /// The path of its file, as it was written.
    pub(crate) written: String,
    compiled: Arc<Compiled>,
}

struct Compiled {
    source: Value,
    validator: Validator,
    is_branching: bool,
}

/// One mistake in a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// Where in the value, as a JSON pointer. A missing member is where it should be.
    pub(super) pointer: String,
    /// What is wanted; it quotes the schema and never the value.
    pub(super) what: String,
    pub(super) wrong: Wrong,
    /// Where in the schema.
    pub(super) schema_at: String,
}

impl Schema {
    /// Compiles the schema in a file. An error says what is wrong with it.
    pub(crate) fn compile(written: &str, text: &[u8]) -> Result<Schema, String> {
        let source: Value = serde_json::from_slice(text).map_err(|error| format!("this is not JSON: {error}"))?;
        if !matches!(source, Value::Object(_) | Value::Bool(_)) {
            return Err("a schema is an object, or true or false".to_owned());
        }
        // Nothing is ever fetched, whatever features the library was built with.
        let options = jsonschema::options().offline().with_pattern_options(PatternOptions::regex());
        let validator = options.build(&source).map_err(|error| unusable(&error))?;
        let is_branching = branches(&source);
        let compiled = Arc::new(Compiled { source, validator, is_branching });
        Ok(Schema { written: written.to_owned(), compiled })
    }

    /// Returns what is wrong with a value; empty if it matches.
    pub(super) fn mistakes(&self, text: &[u8]) -> Vec<Mistake> {
        let Compiled { source, validator, is_branching } = &*self.compiled;
        let Ok(value) = serde_json::from_slice::<Value>(text) else {
            return vec![Mistake::of_whole("it has a number or a text that cannot be compared with a schema")];
        };
        if validator.is_valid(&value) {
            return Vec::new();
        }
        if text.len() <= LISTED_BYTES_MAX {
            let errors = validator.iter_errors(&value).take(MISTAKES_MAX);
            return errors.map(|error| Mistake::of(&error, source)).collect();
        }
        let first = if *is_branching { None } else { validator.validate(&value).err() };
        let whole = || Mistake::of_whole("it does not match the schema of its work");
        vec![first.map_or_else(whole, |error| Mistake::of(&error, source))]
    }
}

impl Mistake {
    /// A mistake that has no more exact place.
    fn of_whole(what: &str) -> Mistake {
        Mistake { pointer: String::new(), what: what.to_owned(), wrong: Wrong::Value, schema_at: String::new() }
    }

    fn of(error: &ValidationError<'_>, schema: &Value) -> Mistake {
        let mut pointer = error.instance_path().as_str().to_owned();
        let schema_at = error.schema_path().as_str().to_owned();
        let kind = error.kind();
        let (what, wrong) = if let ValidationErrorKind::Required { property } = kind {
            let name = property.as_str().unwrap_or_default();
            pointer.push('/');
            pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            (format!("`{name}` is missing"), Wrong::Missing)
        } else if let ValidationErrorKind::Type { kind } = kind {
            (format!("it must be {}", types(kind)), Wrong::Type)
        } else if let ValidationErrorKind::AdditionalProperties { .. }
        | ValidationErrorKind::UnevaluatedProperties { .. } = kind
        {
            ("it has members that the schema of its work does not allow".to_owned(), Wrong::Value)
        } else {
            let wanted = shown(schema, &schema_at);
            (format!("it must match `{}` of the schema{wanted}", kind.keyword()), Wrong::Value)
        };
        Mistake { pointer, what, wrong, schema_at }
    }
}

/// Returns the value of a keyword, if it is short enough to be read in a sentence.
fn shown(schema: &Value, at: &str) -> String {
    let value = schema.pointer(at).filter(|value| !value.is_object()).map(Value::to_string);
    value.filter(|value| value.len() <= SHOWN_BYTES_MAX).map(|value| format!(": {value}")).unwrap_or_default()
}

fn types(kind: &TypeKind) -> String {
    let names: Vec<String> = match kind {
        TypeKind::Single(one) => vec![one.to_string()],
        TypeKind::Multiple(several) => several.iter().map(|one| one.to_string()).collect(),
    };
    let with_article = |name: &String| match name.as_str() {
        "null" => "null".to_owned(),
        "array" | "integer" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    };
    names.iter().map(with_article).collect::<Vec<String>>().join(" or ")
}

fn branches(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.iter().any(|(name, value)| BRANCHING.contains(&name.as_str()) || branches(value))
        }
        Value::Array(items) => items.iter().any(branches),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Says why a schema cannot be used, and where in it. Its file is the operator's own, so it is quoted.
fn unusable(error: &ValidationError<'_>) -> String {
    if let ValidationErrorKind::Referencing(_) = error.kind() {
        return format!("it refers to something that is not in this file, and nothing is fetched: {error}");
    }
    let at = error.instance_path().as_str();
    let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
    format!("this is no JSON Schema{at}: {error}")
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Schema[{}]", self.written)
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Schema) -> bool {
        (&self.written, &self.compiled.source) == (&other.written, &other.compiled.source)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(schema: &Value) -> Schema {
        Schema::compile("s.json", schema.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn mistakes(of: &Value, value: &Value) -> Vec<(String, String)> {
        let found = schema(of).mistakes(value.to_string().as_bytes());
        found.into_iter().map(|mistake| (mistake.pointer, mistake.what)).collect()
    }

    #[test]
    fn mistakes_have_their_place_and_what_is_wanted_and_no_content() {
        let of = json!({
            "type": "object", "required": ["query"], "additionalProperties": false,
            "properties": {"query": {"type": "string", "maxLength": 3}, "a/b": {"enum": [1, 2]}, "n": {"minimum": 7}},
        });
        assert_eq!(mistakes(&of, &json!({"query": "abc", "a/b": 2})), []);
        let one = |value: Value| mistakes(&of, &value).remove(0);
        assert_eq!(one(json!({})), ("/query".into(), "`query` is missing".into()));
        assert_eq!(one(json!({"query": 1})), ("/query".into(), "it must be a string".into()));
        let long = one(json!({"query": "secret"}));
        assert_eq!(long, ("/query".into(), "it must match `maxLength` of the schema: 3".into()));
        let (pointer, what) = one(json!({"query": "a", "a/b": "secret"}));
        assert_eq!((&*pointer, &*what), ("/a~1b", "it must match `enum` of the schema: [1,2]"));
        let (pointer, what) = one(json!({"query": "a", "secret": 1}));
        assert!(pointer.is_empty() && !what.contains("secret"), "{pointer} {what}");
    }

    #[test]
    fn mistakes_are_limited_in_number_whatever_the_value_is() {
        let of = json!({"items": {"type": "string"}});
        assert_eq!(mistakes(&of, &json!(vec![1; 1_000])).len(), MISTAKES_MAX);
        let long = mistakes(&of, &json!(vec![1; LISTED_BYTES_MAX]));
        assert_eq!(long, [("/0".to_owned(), "it must be a string".to_owned())], "the first one, with its place");
        let branching = json!({"anyOf": [{"items": {"type": "string"}}, {"type": "null"}]});
        assert_eq!(mistakes(&branching, &json!(vec![1; LISTED_BYTES_MAX])).len(), 1);
    }

    /// With backtracking this pattern takes years.
    #[test]
    fn no_value_makes_a_pattern_slow() {
        let of = json!({"pattern": "^(a+)+$"});
        assert_eq!(mistakes(&of, &json!(format!("{}!", "a".repeat(50_000)))).len(), 1);
    }

    #[test]
    fn a_schema_that_refers_to_itself_comes_to_an_end() {
        assert_eq!(mistakes(&json!({"$ref": "#"}), &json!([[1]])), []);
        let tree = json!({"type": "array", "items": {"$ref": "#"}});
        assert_eq!(mistakes(&tree, &json!([[], [[7]]]))[0].0, "/1/0/0");
    }

    #[test]
    fn numbers_that_no_validator_reads_do_not_match() {
        let found = schema(&json!({"type": "number"})).mistakes(b"1e999");
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn what_is_no_schema_or_is_elsewhere_cannot_be_used() {
        let why = |text: &str| Schema::compile("s.json", text.as_bytes()).expect_err("it cannot be used");
        assert!(why("{").starts_with("this is not JSON: "), "{}", why("{"));
        assert_eq!(why("7"), "a schema is an object, or true or false");
        let wrong = why(r#"{"properties": {"a": {"type": "text"}}}"#);
        assert!(wrong.starts_with("this is no JSON Schema at /properties/a/type: "), "{wrong}");
        for elsewhere in ["https://example.com/s.json", "http://127.0.0.1:1/s.json", "other.json", "file:///etc/passwd"]
        {
            let why = why(&json!({"$ref": elsewhere}).to_string());
            assert!(why.contains("nothing is fetched"), "{why}");
        }
        let looking_around = why(r#"{"pattern": "(?=a)b"}"#);
        assert!(looking_around.contains("pattern"), "{looking_around}");
    }
}
