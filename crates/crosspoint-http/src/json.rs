//! Writing JSON objects by hand: the JSON of agents and callers is inserted as it is, neither parsed nor copied twice.

use std::fmt::Display;
use std::io::Write;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Response as HttpResponse, StatusCode};
use axum::response::Response;

/// An object that is being written.
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    begun: bool,
}

impl<'o> Object<'o> {
    /// Opens an object.
    pub fn open(out: &'o mut Vec<u8>) -> Object<'o> {
        out.push(b'{');
        Object { out, begun: false }
    }

    /// Begins a member whose name needs no escapes, and returns the buffer for its value.
    pub fn name(&mut self, name: &'static str) -> &mut Vec<u8> {
        self.out.extend_from_slice(if self.begun { b",\"" } else { b"\"" });
        self.begun = true;
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Writes a value that is JSON already.
    pub fn raw(&mut self, name: &'static str, json: &[u8]) {
        self.name(name).extend_from_slice(json);
    }

    /// Writes a member that is a text.
    pub fn text(&mut self, name: &'static str, text: &str) {
        push_text(self.name(name), text);
    }

    /// Writes a member that is a text, or null.
    pub fn text_or_null(&mut self, name: &'static str, text: Option<&str>) {
        match text {
            Some(text) => self.text(name, text),
            None => self.raw(name, b"null"),
        }
    }

    /// Writes a string whose text needs no escapes: an id or a time.
    pub fn quoted(&mut self, name: &'static str, shown: impl Display) {
        // Writing to memory does not fail.
        let _ = write!(self.name(name), "\"{shown}\"");
    }

    /// Writes a number or a boolean.
    pub fn plain(&mut self, name: &'static str, shown: impl Display) {
        let _ = write!(self.name(name), "{shown}");
    }

    /// Writes a member that is an object.
    pub fn object(&mut self, name: &'static str) -> Object<'_> {
        Object::open(self.name(name))
    }

    /// Closes the object.
    pub fn close(self) {
        self.out.push(b'}');
    }
}

/// Writes a text as JSON.
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(out, text);
}

/// Writes an array, each item by `write`.
pub fn push_array<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// An answer with JSON.
pub fn response(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = HttpResponse::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
