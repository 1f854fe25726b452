//! What callers and agents wrote, in types that never print it.
//!
//! Content may be a patient's record or a bank's ledger. Its types show their size under `Debug` and have no `Display`,
//! so that a log line or a panic cannot leak it. Only code that asks for the text by name gets it.

mod body;

use std::borrow::Cow;
use std::fmt;

pub use body::{Block, Body};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

pub use crate::json::Text;

/// Any JSON value, as it was written: an opaque payload that is passed on, not parsed and printed again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Raw<'s>(&'s str);

impl<'s> Raw<'s> {
    pub(crate) fn new(source: &'s str) -> Raw<'s> {
        Raw(source)
    }

    /// Returns the JSON text.
    pub fn get(self) -> &'s str {
        self.0
    }
}

impl Default for Raw<'_> {
    fn default() -> Self {
        Raw("null")
    }
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.0.len())
    }
}

/// A JSON object, as it was written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawObject<'s>(&'s str);

impl<'s> RawObject<'s> {
    pub(crate) fn new(source: &'s str) -> RawObject<'s> {
        RawObject(source)
    }

    /// Returns the JSON text, from brace to brace.
    pub fn get(self) -> &'s str {
        self.0
    }
}

impl Default for RawObject<'_> {
    fn default() -> Self {
        RawObject("{}")
    }
}

impl fmt::Debug for RawObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.0.len())
    }
}

/// A JSON value as text, passed on from a document or made on the way.
///
/// Two values are equal if they are spelled alike, even where they mean the same otherwise.
#[derive(Clone, PartialEq, Eq)]
pub struct Json<'s>(Cow<'s, str>);

impl<'s> Json<'s> {
    /// Wraps JSON text that was read before, so is known to be JSON.
    pub fn new(source: impl Into<Cow<'s, str>>) -> Json<'s> {
        Json(source.into())
    }

    /// Makes a JSON string of this text.
    pub fn string(text: &str) -> Json<'static> {
        Json(Cow::Owned(crate::json::quoted(text)))
    }

    /// Returns the JSON text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Returns the same value, no longer borrowed from the document it was read from.
    pub fn into_owned(self) -> Json<'static> {
        Json(Cow::Owned(self.0.into_owned()))
    }

    /// Returns the characters of a JSON string, or `None` for any other value.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        Some(crate::json::Text::of_string(inner).decode())
    }
}

impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.0.len())
    }
}

/// A value that must be there but may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nullable<T>(pub Option<T>);

impl<T> Default for Nullable<T> {
    fn default() -> Self {
        Nullable(None)
    }
}

/// A member that the contract does not know. It is kept, in the order in which it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra<'s> {
    /// The member's name.
    pub name: Text<'s>,
    /// The member's value.
    pub value: Raw<'s>,
}

/// Declares an id that travels as it was spelled. Ids that trace work are for logs and may be shown. Ids that say whom
/// or what the work is about are `hidden`, like any content.
macro_rules! id {
    ($(#[$doc:meta])* hidden $name:ident $schema:tt) => {
        $crate::content::id!(@type $(#[$doc])* $name $schema);

        impl std::fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, f)
            }
        }
    };
    ($(#[$doc:meta])* $name:ident $schema:tt) => {
        $crate::content::id!(@type $(#[$doc])* $name $schema);

        impl std::fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.0.raw())
            }
        }
    };
    (@type $(#[$doc:meta])* $name:ident $schema:tt) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name<'s>(pub(crate) $crate::content::Text<'s>);

        impl<'s> $name<'s> {
            /// Returns the id byte for byte as it was spelled, once escapes are undone.
            pub fn get(self) -> std::borrow::Cow<'s, str> {
                self.0.decode()
            }
        }

        $crate::content::inline_schema!($name<'_>, $schema);
    };
}
pub(crate) use id;

/// Gives a type a schema that is written in place rather than referred to.
macro_rules! inline_schema {
    ($type:ty, $schema:tt) => {
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
pub(crate) use inline_schema;

inline_schema!(Text<'_>, { "type": "string" });
inline_schema!(Raw<'_>, {});
inline_schema!(RawObject<'_>, { "type": "object" });

impl<T: JsonSchema> JsonSchema for Nullable<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Nullable_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        // The mark keeps this null when the null of optional members is taken away.
        json_schema!({ "anyOf": [value, { "type": "null" }], "nullable": true })
    }
}
