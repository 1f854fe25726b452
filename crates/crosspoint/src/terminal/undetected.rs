//! Why the kind of a document could not be detected.

use std::fmt::Write as _;

use crosspoint_contracts::Kind;
use crosspoint_contracts::kind::{Candidate, Undetected};

use super::render;

/// Says in one sentence why the kind of a document could not be detected.
pub(crate) fn sentence(undetected: &Undetected) -> String {
    match undetected {
        Undetected::Unknown => "cannot tell what it is: it has no member of any kind of document".to_owned(),
        Undetected::Ambiguous(candidates) if told_by(candidates).is_some() => {
            let (contract, member, words) = told_by(candidates).unwrap_or_default();
            format!("cannot tell which {contract} it is: its `{member}` is none of {}", one_of(&words))
        }
        Undetected::Ambiguous(candidates) => {
            let kinds: Vec<&str> = candidates.iter().map(|candidate| candidate.kind.name()).collect();
            format!("cannot tell what it is: it could be {}", kinds.join(" or "))
        }
    }
}

/// Returns the contract that all these kinds belong to, and the one member that tells them apart. Only kinds that share
/// an envelope have such a member.
fn told_by(candidates: &[Candidate]) -> Option<(&'static str, &'static str, Vec<&'static str>)> {
    let contract = candidates.first()?.kind.contract();
    let (member, words) = contract.told_by()?;
    candidates.iter().all(|candidate| candidate.kind.contract() == contract).then(|| (contract.name(), member, words))
}

/// `a, b or c`
fn one_of(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        words => words.concat(),
    }
}

/// Like [`sentence`], for people: with the kinds that were tried, and the option that names a kind.
pub(crate) fn report(name: &str, undetected: &Undetected, option: &str) {
    let mut message = format!("{name}: {}", sentence(undetected));
    let hint = match undetected {
        Undetected::Unknown => {
            let kinds = Kind::ALL.map(Kind::name).join(", ");
            let _ = write!(message, "\n  tried: {kinds}");
            format!("say what it is: {option} KIND; give one document at a time, with its envelope")
        }
        Undetected::Ambiguous(candidates) if told_by(candidates).is_some() => {
            format!("correct its `{}`", told_by(candidates).unwrap_or_default().1)
        }
        Undetected::Ambiguous(candidates) => {
            for candidate in candidates {
                let _ = write!(message, "\n  {:<22} by {}", candidate.kind, candidate.found.join(", "));
            }
            let choices: Vec<String> =
                candidates.iter().map(|candidate| format!("{option} {}", candidate.kind)).collect();
            format!("say what it is: {}", choices.join(" or "))
        }
    };
    render::problem(&message, &hint);
}
