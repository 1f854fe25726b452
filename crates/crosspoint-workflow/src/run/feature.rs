//! The feature that a run works on.

use std::fmt;

use crosspoint_contracts::workflow::misplaced;

/// Longest name of a feature, in bytes: names of files are shorter than 256, and a path may put more around it.
const FEATURE_BYTES_MAX: usize = 128;

/// The name of a feature. It becomes a part of paths, so it is harmless as the name of a file on every system.
#[derive(Clone, PartialEq, Eq)]
pub struct Feature(String);

/// Why a text cannot name a feature. It says nothing of the text, which may be content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misnamed {
    /// There is nothing in it, or only dots and spaces.
    #[error("the feature's name is empty, or has only dots and spaces; write a name such as 005-user-auth")]
    Empty,
    /// It is too long.
    #[error("the feature's name is longer than {FEATURE_BYTES_MAX} bytes; shorten it")]
    Long,
    /// It has a character that no name of a file may have.
    #[error("the feature's name has a slash, a backslash or a control character in it; remove it")]
    Character,
    /// Some system takes it for `.git`, for a drive or for the directory above.
    #[error("the feature's name is a name of git or of a drive; choose another")]
    Reserved,
}

impl Feature {
    /// Reads the name of a feature.
    pub fn new(name: &str) -> Result<Feature, Misnamed> {
        if name.chars().all(|character| matches!(character, '.' | ' ')) {
            return Err(Misnamed::Empty);
        }
        if name.len() > FEATURE_BYTES_MAX {
            return Err(Misnamed::Long);
        }
        if name.chars().any(|character| character.is_control() || matches!(character, '/' | '\\')) {
            return Err(Misnamed::Character);
        }
        if !misplaced(name).is_empty() {
            return Err(Misnamed::Reserved);
        }
        Ok(Feature(name.to_owned()))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A feature says what the work is about, so its size is shown.
impl fmt::Debug for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.0.len())
    }
}
