//! What an agent is told of artifacts that clashed with the repository (WF-5.4).

use super::notes::cut_to;
use crate::repository::{Clash, ClashReason};

/// Most clashes that are named: an agent that sees twenty knows what it did wrong.
const NAMED_MAX: usize = 20;

/// Longest path that is named, in bytes: the longest that systems have.
const PATH_BYTES_MAX: usize = 4_096;

/// Returns a sentence for each clash, with the operation to use.
pub(super) fn sentences(clashes: &[Clash]) -> Vec<String> {
    let mut sentences: Vec<String> = clashes.iter().take(NAMED_MAX).map(sentence).collect();
    match clashes.len().saturating_sub(NAMED_MAX) {
        0 => {}
        1 => sentences.push("1 more file clashed in this way.".to_owned()),
        more => sentences.push(format!("{more} more files clashed in this way.")),
    }
    sentences
}

fn sentence(clash: &Clash) -> String {
    let path = cut_to(&clash.path, PATH_BYTES_MAX);
    match clash.why {
        ClashReason::Exists => format!("Nothing was written: {path} exists already, so use the operation update."),
        ClashReason::Missing => format!("Nothing was written: {path} does not exist yet, so use the operation create."),
    }
}
