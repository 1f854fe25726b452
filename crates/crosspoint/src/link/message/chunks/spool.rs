//! The steps that a status takes on disk. Each is whole: it is synced, or it has changed nothing.

use std::io;
use std::path::Path;

use bytes::Bytes;
use crosspoint_contracts::message::chunk::{BLOCK_BYTES_MAX, Chunk, Piece, Refusal, WHOLE_BYTES_MAX};

use super::Status;
use super::file::{Found, SpoolFile};
use super::set::Set;
use super::state::State;

/// The file of one attempt, and what is known of its output.
pub(super) struct Spool {
    file: SpoolFile,
    pub(super) state: State,
    /// Most output that the attempt may have, in bytes.
    bytes_max: u64,
}

/// What a status is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// It was taken before.
    Repeat,
    /// It is new. If it ended a set of chunks, there may be a refusal.
    New(Option<Refusal>),
}

/// What becomes of text that came without a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plain {
    /// It goes into the output at once, or there is none.
    Now,
    /// It is held until the open set has ended.
    Later,
    /// It is more than the attempt may print, and left out.
    Refused(Refusal),
}

/// What the text of an outcome is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextIs {
    /// The result's own output.
    Own,
    /// These bytes of the attempt's output.
    Printed { start: u64, end: u64 },
    /// The result's own output, of something that would be this long, in bytes.
    Cut { whole_bytes: u64 },
}

impl Spool {
    /// Recalls what is known of an attempt, whose output has this many bytes.
    pub(super) fn open(path: &Path, bytes_max: u64, output_bytes: u64) -> io::Result<Spool> {
        let (file, found) = SpoolFile::open(path.to_owned())?;
        let state = match found {
            Found::Nothing => Some(State::default()),
            Found::State(state) => Some(*state).filter(|state| state.fits(output_bytes)),
            Found::Damaged => None,
        };
        let state = state.unwrap_or_else(|| {
            tracing::warn!(path = %path.display(), "the chunks of an attempt are damaged; its text is not whole");
            State::damaged(output_bytes)
        });
        Ok(Spool { file, state, bytes_max })
    }

    /// Returns the next block for the output of the attempt, which has this many bytes.
    pub(super) fn next(&self, output_bytes: u64) -> io::Result<Option<Bytes>> {
        let Some(places) = self.state.next(output_bytes) else { return Ok(None) };
        Ok(Some(self.file.read(&places)?.into()))
    }

    /// Takes notice of a status: a repeat is recognised, and another step ends the set that is open.
    pub(super) fn enter(&mut self, status: &Status, output_bytes: u64) -> io::Result<Entered> {
        self.state.seen.settle(output_bytes);
        if self.state.seen.has(|| status.fingerprint(), status.message_id) {
            return Ok(Entered::Repeat);
        }
        let refusal = if self.state.ends_with(status) { self.close()? } else { None };
        Ok(Entered::New(refusal))
    }

    /// Ends the set that is open.
    pub(super) fn close(&mut self) -> io::Result<Option<Refusal>> {
        let mut state = self.state.clone();
        let refusal = state.close();
        self.save(state, &[])?;
        Ok(refusal)
    }

    /// Takes text without a chunk. If it goes into the output now, it is remembered where it will be: after a crash,
    /// the length of the output tells whether it got there.
    pub(super) fn plain(&mut self, status: &Status, output_bytes: u64) -> io::Result<Plain> {
        let mut state = self.state.clone();
        if status.output.is_empty() {
            self.state.seen.pass();
            return Ok(Plain::Now);
        }
        let bytes = status.output.len() as u64;
        let open = state.set.as_ref().filter(|set| !set.is_ended());
        let printed = open.map_or(output_bytes, Set::output_bytes).saturating_add(bytes);
        if printed > self.bytes_max {
            state.seen.note(status.fingerprint(), status.message_id, 0);
            self.save(state, &[])?;
            return Ok(Plain::Refused(Refusal::OverLimit { bytes: printed, bytes_max: self.bytes_max }));
        }
        if let Some(set) = state.set.as_mut().filter(|set| !set.is_ended()) {
            let place = set.wait(bytes);
            state.seen.note(status.fingerprint(), status.message_id, 0);
            self.save(state, &[(place, &status.output)])?;
            return Ok(Plain::Later);
        }
        state.seen.note(status.fingerprint(), status.message_id, output_bytes + bytes);
        self.save(state, &[])?;
        Ok(Plain::Now)
    }

    /// Takes a chunk. What is new of it is on disk when this returns.
    pub(super) fn chunk(&mut self, status: &Status, chunk: Chunk, output_bytes: u64) -> io::Result<Option<Refusal>> {
        let step = status.step_id();
        let mut state = self.state.clone();
        state.seen.pass();
        if !state.goes_on(step, chunk, output_bytes) && state.begins(step, chunk, &status.output) {
            state.set = Some(Set::new(step, output_bytes, self.bytes_max));
            // The bytes of the new set overwrite those of the last one, which must not count any more by then.
            self.save(state.clone(), &[])?;
        }
        let Some(set) = &mut state.set else { return Ok(None) };
        let refusal = match set.held.take(chunk, &status.output) {
            Err(refusal) => refusal,
            Ok(plan) => match self.compare(&plan.compare)? {
                Err(refusal) => refusal,
                Ok(()) => {
                    let pieces: Vec<_> = plan.store.iter().map(|piece| (piece.offset, piece.bytes)).collect();
                    plan.commit();
                    return self.save(state, &pieces).map(|()| None);
                }
            },
        };
        state.refuse(chunk);
        state.seen.note(status.fingerprint(), status.message_id, 0);
        self.save(state, &[])?;
        Ok(Some(refusal))
    }

    /// Decides what the text of the outcome is, from the output of the result. To be called after the end of all sets.
    pub(super) fn text_is(&self, output: Option<&[u8]>) -> io::Result<TextIs> {
        if let Some(output) = output
            && let Some((set, bytes)) = self.state.set.as_ref().and_then(|set| Some((set, set.faultless_bytes()?)))
            && self.is_end(output, bytes)?
        {
            return Ok(TextIs::Printed { start: set.base, end: set.base + bytes });
        }
        let own = output.map_or(0, <[u8]>::len) as u64;
        Ok(self.state.lost_bytes.map_or(TextIs::Own, |lost| TextIs::Cut { whole_bytes: lost.max(own) }))
    }

    /// Whether the output of a result stands for a set of this many bytes: it is a long end of the set, or all of a
    /// long one. What a short output says is its own, also where a set happens to end with the same words.
    fn is_end(&self, output: &[u8], set_bytes: u64) -> io::Result<bool> {
        let bytes = output.len() as u64;
        let is_long = bytes >= BLOCK_BYTES_MAX as u64 && set_bytes > WHOLE_BYTES_MAX as u64;
        if !is_long || bytes > set_bytes {
            return Ok(false);
        }
        let piece = Piece { offset: set_bytes - bytes, bytes: output };
        Ok(self.compare(&[piece])?.is_ok())
    }

    /// Compares pieces with the bytes that are held, a block at a time.
    fn compare(&self, pieces: &[Piece<'_>]) -> io::Result<Result<(), Refusal>> {
        for piece in pieces {
            let offsets = (piece.offset..).step_by(BLOCK_BYTES_MAX);
            for (offset, bytes) in offsets.zip(piece.bytes.chunks(BLOCK_BYTES_MAX)) {
                let stored = self.file.read(&(offset..offset + bytes.len() as u64))?;
                if let Err(refusal) = (Piece { offset, bytes }).check(&stored) {
                    return Ok(Err(refusal));
                }
            }
        }
        Ok(Ok(()))
    }

    /// Writes bytes and what is known with them; where nothing has changed, nothing is written.
    fn save(&mut self, state: State, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        if state != self.state {
            self.file.save(&self.state, &state, pieces)?;
            self.state = state;
        }
        Ok(())
    }
}
