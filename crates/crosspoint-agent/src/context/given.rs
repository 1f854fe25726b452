//! What a handler gives beside its outputs.

use crosspoint_contracts::content::Body;
use crosspoint_contracts::job::Home;
use crosspoint_contracts::json::quoted;
use serde::Serialize;

use crate::{Failure, written};

/// Most bytes of artifacts and notes of one job.
const GIVEN_BYTES_MAX: usize = 16 << 20;

/// What was given so far.
#[derive(Default)]
pub(super) struct Given {
    /// The artifacts, each as a JSON object.
    artifacts: Vec<String>,
    /// The notes, each as a JSON string.
    notes: Vec<String>,
    recommendation: Option<&'static str>,
    bytes: usize,
}

/// One named piece of output, as it is kept.
#[derive(Serialize)]
pub(super) struct Artifact<'a, C: ?Sized> {
    pub(super) name: &'a str,
    #[serde(rename = "type")]
    pub(super) media_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) operation: Option<&'static str>,
    pub(super) content: &'a C,
}

impl Given {
    pub(super) fn artifact<C: Serialize + ?Sized>(&mut self, artifact: &Artifact<'_, C>) -> Result<(), Failure> {
        let artifact = written::json(artifact, "an artifact", GIVEN_BYTES_MAX)?;
        self.weigh(&artifact)?;
        self.artifacts.push(artifact);
        Ok(())
    }

    pub(super) fn note(&mut self, text: &str) -> Result<(), Failure> {
        let note = quoted(text);
        self.weigh(&note)?;
        self.notes.push(note);
        Ok(())
    }

    pub(super) fn recommend(&mut self, word: &'static str) {
        self.recommendation = Some(word);
    }

    fn weigh(&mut self, added: &str) -> Result<(), Failure> {
        let bytes = self.bytes.saturating_add(added.len());
        if bytes > GIVEN_BYTES_MAX {
            return Err(Failure::too_large("the artifacts and notes of a job have", GIVEN_BYTES_MAX));
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Returns the artifacts as a JSON array, and forgets them.
    pub(super) fn take_artifacts(&mut self) -> Option<Body> {
        let artifacts = std::mem::take(&mut self.artifacts);
        (!artifacts.is_empty()).then(|| Body::trusted(format!("[{}]", artifacts.join(","))))
    }

    /// Returns everything else, as an object of the homes that hold it, and forgets it.
    pub(super) fn take_rest(&mut self) -> Option<Body> {
        let notes = std::mem::take(&mut self.notes);
        let notes = (!notes.is_empty()).then(|| format!("\"{}\":[{}]", Home::Notes.name(), notes.join(",")));
        let word = self.recommendation.take();
        let word = word.map(|word| format!("\"{}\":\"{word}\"", Home::Recommendation.name()));
        let homes: Vec<String> = notes.into_iter().chain(word).collect();
        (!homes.is_empty()).then(|| Body::trusted(format!("{{{}}}", homes.join(","))))
    }
}
