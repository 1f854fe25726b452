//! What is remembered of a request in a directory, in case the server ends meanwhile: what was asked, and where.

use std::borrow::Cow;
use std::path::Path;

use crosspoint_engine::runtime::{Attempt, Unremembered};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct Memory<'m> {
    /// The id of the request. Stores of earlier versions do not have it; it is that of the job.
    #[serde(default)]
    request_id: String,
    asked_in: Cow<'m, str>,
}

impl Memory<'_> {
    /// Remembers that the request of an attempt was put into this directory; that is on disk when this returns.
    pub(super) async fn keep(attempt: &Attempt, directory: &Path) -> Result<(), Unremembered> {
        let memory = Memory { request_id: attempt.job().id().to_string(), asked_in: directory.to_string_lossy() };
        attempt.remember(serde_json::to_vec(&memory).unwrap_or_default()).await
    }

    /// Whether it is remembered that the request of an attempt was put into this very directory: the agent may have
    /// been configured with another one since.
    pub(super) fn tells_of(attempt: &Attempt, directory: &Path) -> bool {
        let memory = attempt.memory().and_then(|memory| serde_json::from_slice::<Memory<'_>>(memory).ok());
        let is_ours = |id: &str| id.is_empty() || id == attempt.job().id().to_string();
        memory.is_some_and(|memory| is_ours(&memory.request_id) && memory.asked_in == directory.to_string_lossy())
    }
}
