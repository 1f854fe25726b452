//! Content that is kept and handed on between threads: shared, never copied, and never printed.

use std::fmt;

use bytes::Bytes;
use serde_json::value::RawValue;

/// JSON text as a caller or an agent wrote it: passed on, not parsed and printed again.
///
/// Cloning shares the bytes. It has no `Display`, and `Debug` shows the size only.
#[derive(Clone, PartialEq, Eq)]
pub struct Body(Bytes);

impl Body {
    /// Wraps JSON text that was read before, so is known to be JSON.
    pub fn trusted(bytes: impl Into<Bytes>) -> Body {
        Body(bytes.into())
    }

    /// Serialises a value.
    pub fn of(value: &impl serde::Serialize) -> Body {
        // This cannot fail, because our own types hold no map whose keys JSON cannot write. `null` stands in all the
        // same.
        Body(serde_json::to_vec(value).map_or_else(|_| Bytes::from_static(b"null"), Bytes::from))
    }

    /// Reads bytes as one JSON value.
    pub fn read(bytes: impl Into<Bytes>) -> Result<Body, serde_json::Error> {
        let bytes = bytes.into();
        serde_json::from_slice::<&RawValue>(&bytes)?;
        Ok(Body(bytes))
    }

    /// Returns the JSON text.
    pub fn get(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("null")
    }

    /// Returns the bytes of the JSON text.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.0.len())
    }
}

impl serde::Serialize for Body {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(self.get()) {
            Ok(raw) => raw.serialize(serializer),
            Err(_) => serializer.serialize_none(),
        }
    }
}

/// Any bytes of output, which are shared and never printed for the same reasons.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Block(pub Bytes);

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.0.len())
    }
}
