//! What question and answer hold.

use schemars::JsonSchema;

use crate::content::{Extra, RawObject, Text, id};

id!(
    /// The question's id.
    Id { "type": "string", "minLength": 1 }
);

/// What is asked.
#[derive(Debug, JsonSchema)]
#[schemars(title = "demo.ask")]
pub struct Ask<'s> {
    /// The answer repeats it.
    pub id: Id<'s>,
    /// What is to be done.
    #[schemars(length(min = 1))]
    pub work: Text<'s>,
    /// What that needs.
    pub input: Option<RawObject<'s>>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}

/// What came of it.
#[derive(Debug, JsonSchema)]
#[schemars(title = "demo.answer")]
pub struct Answer<'s> {
    /// The question's.
    pub id: Id<'s>,
    /// Whether it worked.
    pub ok: bool,
    /// What came of it; where it failed, why.
    pub output: RawObject<'s>,
    /// Members the contract does not know.
    #[schemars(skip)]
    pub extra: Vec<Extra<'s>>,
}
