//! Tells kinds of documents apart.
//!
//! A document does not say what it is, so its members are weighed: a name that only one kind has counts most, a name
//! that many kinds share counts little, and a status or type that belongs to the kind counts for it. A broken document
//! is still recognised by what is left of it. Where two kinds are too close the answer is "ambiguous", with what was
//! found of each.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::{Contract, Kind, Marks};
use crate::json::Value;

/// Weight of a member that only one contract's documents have. The weight of a shared member is divided among them.
const WEIGHT: u32 = 60;

/// Weight of a word that belongs to the kind.
const WORD_WEIGHT: u32 = WEIGHT / 2;

/// Weight of a member within the envelope: all of them together weigh less than the word that names the type.
const INSIDE_WEIGHT: u32 = 5;

/// What was found of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The kind that the document may be.
    pub kind: Kind,
    /// The members of that kind that the document has.
    pub found: Vec<&'static str>,
}

/// Why the kind could not be detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undetected {
    /// No member of any kind was found. All kinds were tried.
    Unknown,
    /// Several kinds fit about equally well; the best first.
    Ambiguous(Vec<Candidate>),
}

/// Detects the kind of an object.
pub(crate) fn detect(object: Value<'_, '_>) -> Result<Kind, Undetected> {
    let weights = weigh(object);
    let (best, &weight) = weights.iter().enumerate().max_by_key(|(_, weight)| **weight).unwrap_or((0, &0));
    if weight == 0 {
        return Err(Undetected::Unknown);
    }
    let clear = (0..weights.len()).filter(|&kind| kind != best).all(|kind| clearly_behind(&weights, kind, best));
    if clear { Ok(Kind::ALL[best]) } else { Err(Undetected::Ambiguous(candidates(object, &weights, weight / 2))) }
}

/// The weight of an object as each of [`Kind::ALL`].
type Weights = [u32; Kind::ALL.len()];

/// Kinds of one contract share most members, so a slightly higher weight decides. Other contracts must be well behind.
fn clearly_behind(weights: &Weights, kind: usize, best: usize) -> bool {
    if Kind::ALL[kind].contract() == Kind::ALL[best].contract() {
        weights[kind] < weights[best]
    } else {
        weights[kind] * 4 <= weights[best] * 3
    }
}

/// Returns the kinds that weigh enough, the heaviest first, with what was found of each.
fn candidates(object: Value<'_, '_>, weights: &Weights, enough: u32) -> Vec<Candidate> {
    let mut weighed: Vec<(Kind, &Marks, u32)> =
        marked().map(|(kind, marks)| (kind, marks, weights[kind as usize])).collect();
    weighed.retain(|(_, _, weight)| *weight >= enough);
    weighed.sort_by_key(|(_, _, weight)| Reverse(*weight));
    let found = |marks: &Marks| marks.signs().filter(|member| object.get(member).is_some()).collect();
    weighed.into_iter().map(|(kind, marks, _)| Candidate { kind, found: found(marks) }).collect()
}

/// Returns the kinds that are objects, each with what tells it apart.
fn marked() -> impl Iterator<Item = (Kind, &'static Marks)> {
    Kind::ALL.into_iter().filter_map(|kind| Some((kind, kind.entry().marks()?)))
}

/// Weighs an object in one pass over its members.
fn weigh(object: Value<'_, '_>) -> Weights {
    let mut weights = [0; Kind::ALL.len()];
    let mut counted = [false; KNOWN_MAX];
    for (name, value) in object.members() {
        let name = name.decode();
        let Ok(at) = KNOWN.binary_search_by_key(&by_length(&name), |known| by_length(known.name)) else { continue };
        // A member that occurs a million times tells no more than one that occurs once.
        if std::mem::replace(&mut counted[at], true) {
            continue;
        }
        let known = &KNOWN[at];
        for &(kind, marks) in &known.kinds {
            weights[kind as usize] +=
                known.weight + marks.word_weight(&name, value) + marks.inside_weight(&name, value);
        }
    }
    weights
}

impl Marks {
    fn word_weight(&self, name: &str, value: Value<'_, '_>) -> u32 {
        let Some((_, words)) = self.word.filter(|(member, _)| *member == name) else { return 0 };
        let fits = value.text().is_some_and(|text| words.iter().any(|word| text.decode().eq_ignore_ascii_case(word)));
        if fits { WORD_WEIGHT } else { 0 }
    }

    fn inside_weight(&self, name: &str, value: Value<'_, '_>) -> u32 {
        let Some((_, members)) = self.inside.filter(|(member, _)| *member == name) else { return 0 };
        let inside = value.members().filter(|(name, _)| members.iter().any(|member| *name == **member));
        INSIDE_WEIGHT * u32::try_from(inside.take(members.len()).count()).unwrap_or(0)
    }
}

/// The number of signs that all kinds have together. There are fewer names, because many are shared.
const KNOWN_MAX: usize = {
    let (mut signs, mut at) = (0, 0);
    while at < Kind::ALL.len() {
        if let Some(marks) = Kind::ALL[at].entry().marks() {
            signs += marks.signs_max();
        }
        at += 1;
    }
    signs
};

/// A member that some kind has.
struct Known {
    name: &'static str,
    weight: u32,
    /// The kinds that have the member.
    kinds: Vec<(Kind, &'static Marks)>,
}

/// Most names differ in length already, which is cheaper to compare than their bytes.
fn by_length(name: &str) -> (usize, &str) {
    (name.len(), name)
}

/// The signs of all kinds, in the order of [`by_length`].
static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let mut names: Vec<&'static str> = marked().flat_map(|(_, marks)| marks.signs()).collect();
    names.sort_unstable_by_key(|name| by_length(name));
    names.dedup();
    names.into_iter().map(known).collect()
});

fn known(name: &'static str) -> Known {
    let kinds: Vec<_> = marked().filter(|(_, marks)| marks.signs().any(|sign| sign == name)).collect();
    Known { name, weight: WEIGHT / sorts(&kinds), kinds }
}

/// Returns how many sorts of documents these are: kinds of one contract with the same members share one envelope and
/// count once.
fn sorts(kinds: &[(Kind, &Marks)]) -> u32 {
    let envelopes: BTreeSet<(Contract, &[&str])> =
        kinds.iter().map(|(kind, marks)| (kind.contract(), marks.members)).collect();
    u32::try_from(envelopes.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    /// The lists of members and the types must not drift apart.
    #[test]
    fn marks_are_the_members_of_the_types() {
        for (kind, marks) in marked() {
            let schema = schema::of(kind);
            let properties = schema["properties"].as_object().expect("every kind is an object");
            let mut members: Vec<&str> = properties.keys().map(String::as_str).collect();
            let mut marked: Vec<&str> = marks.members.to_vec();
            members.sort_unstable();
            marked.sort_unstable();
            assert_eq!(marked, members, "{kind}");
        }
    }
}
