//! The pieces of an answer that was read so far.

use bytes::{Bytes, BytesMut};

/// The pieces of a body. A single piece is kept as it came.
#[derive(Default)]
pub(super) struct Gathered {
    first: Bytes,
    all: BytesMut,
}

impl Gathered {
    pub(super) fn add(&mut self, chunk: Bytes) {
        if self.length() == 0 {
            self.first = chunk;
            return;
        }
        if self.all.is_empty() {
            self.all.extend_from_slice(&self.first);
        }
        self.all.extend_from_slice(&chunk);
    }

    pub(super) fn length(&self) -> usize {
        self.first.len().max(self.all.len())
    }

    pub(super) fn bytes(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.freeze() }
    }
}
