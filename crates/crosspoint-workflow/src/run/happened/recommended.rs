//! A recommendation as JSON: the word that the contract has for it.

use crosspoint_contracts::workflow::Recommendation;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(recommendation: &Recommendation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(recommendation.word())
}

pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Recommendation, D::Error> {
    let word = String::deserialize(deserializer)?;
    let known = Recommendation::ALL.into_iter().find(|known| known.word() == word);
    known.ok_or_else(|| D::Error::custom("a recommendation is proceed, retry or escalate"))
}
