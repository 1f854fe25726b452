//! The shapes as a table, for the docs and for tests.

use super::carry::push_token;
use super::shape::{Is, Member, Shape};
use crate::job::Home;
use crate::json::Value;
use crate::kind::{Contract, Kind};

/// What one member of a document is to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The document.
    pub kind: Kind,
    /// Which of its shapes, where there are several.
    pub when: &'static str,
    /// The member's place.
    pub pointer: String,
    /// What it says.
    pub says: Says,
}

/// What a member says of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// Nothing: it is the same in every document of the shape.
    Always(&'static str),
    /// What these homes hold, its own first.
    Homes(Vec<Home>),
    /// The same, but it is read and not written.
    LooseHomes(Vec<Home>),
    /// Which artifacts there are.
    Artifacts,
    /// Something that has no home.
    Own,
}

/// Every member of every document of a contract.
pub fn table(contract: Contract) -> Vec<Row> {
    let mut rows = Vec::new();
    for shape in super::of(contract).shapes {
        push_rows(&mut rows, shape, shape.members, "");
    }
    rows
}

/// Every member that a document of this shape may have.
pub fn table_of(kind: Kind, root: Value<'_, '_>) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(shape) = (super::of(kind.contract()).reading)(kind, root) {
        push_rows(&mut rows, shape, shape.members, "");
    }
    rows
}

fn push_rows(rows: &mut Vec<Row>, shape: &Shape, members: &[Member], above: &str) {
    for member in members {
        let mut pointer = above.to_owned();
        push_token(&mut pointer, member.name);
        let says = match &member.is {
            Is::Block(members) => {
                push_rows(rows, shape, members, &pointer);
                continue;
            }
            Is::Fixed(value) => Says::Always(value),
            Is::Own(_) => Says::Own,
            Is::Artifacts(_) => Says::Artifacts,
            Is::Loose(..) => Says::LooseHomes(member.homes()),
            Is::Home(..)
            | Is::Input
            | Is::Prompt
            | Is::PromptContext
            | Is::OutputObject
            | Is::OutputText
            | Is::Summary
            | Is::Code(_)
            | Is::Made(_) => Says::Homes(member.homes()),
        };
        rows.push(Row { kind: shape.kind, when: shape.when, pointer, says });
    }
}
