//! The shapes as a table, for the docs and for tests.

use super::carry::push_token;
use super::shape::{Is, Member, Shape};
use crate::artifact::Form;
use crate::job::{Home, State};
use crate::json::Value;
use crate::kind::{Contract, Kind};

/// What one member of a document means to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The kind of the document.
    pub kind: Kind,
    /// Which of the kind's shapes, where there are several.
    pub when: &'static str,
    /// The part of a job's life that such a document is about.
    pub part: Part,
    /// The member's place, as a JSON pointer.
    pub pointer: String,
    /// What the member says.
    pub says: Says,
}

/// The parts of a job's life, which are the same for the documents of every contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A caller asks for the work.
    Request,
    /// The work is being done.
    Underway,
    /// The job ended with success.
    Completed,
    /// The job failed or was cancelled.
    Failed,
}

fn part(shape: &Shape) -> Part {
    let says_why = shape.says_why();
    match shape.state {
        Some(State::Queued | State::Running | State::Waiting) => Part::Underway,
        Some(State::Completed) => Part::Completed,
        Some(State::Failed | State::Cancelled) => Part::Failed,
        None if says_why => Part::Failed,
        None => Part::Request,
    }
}

impl Shape {
    /// Whether documents of this shape have a member for this fact.
    pub(crate) fn has(&self, home: Home) -> bool {
        self.members.iter().any(|member| holds(member, home))
    }

    /// Whether documents of this shape say why work failed.
    pub(super) fn says_why(&self) -> bool {
        self.has(Home::Failure)
    }
}

fn holds(member: &Member, home: Home) -> bool {
    let inside = if let Is::Block(members) = member.is { members } else { &[] };
    inside.iter().any(|member| holds(member, home)) || member.homes().contains(&home)
}

/// What a member says of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// Nothing, because it is the same in every document of the shape.
    Always(&'static str),
    /// What these homes hold, its own first.
    Homes(Vec<Home>),
    /// What these homes hold, in a member that is read and not written.
    LooseHomes(Vec<Home>),
    /// Which artifacts there are.
    Artifacts,
    /// A part of each artifact: its name, media type, operation or content.
    ArtifactPart(&'static str),
    /// A fact that has no home.
    Own,
}

/// Returns every member of every document of a contract.
pub fn table(contract: Contract) -> Vec<Row> {
    let mut rows = Vec::new();
    for shape in super::of(contract).shapes {
        push_rows(&mut rows, shape, shape.members, "");
    }
    rows
}

/// Returns every member that a document of this shape may have.
pub fn table_of(kind: Kind, root: Value<'_, '_>) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(shape) = (super::of(kind.contract()).reading)(kind, root) {
        push_rows(&mut rows, shape, shape.members, "");
    }
    rows
}

fn push_artifact_rows(rows: &mut Vec<Row>, shape: &Shape, form: Form, list: &str) {
    let members = match form {
        Form::Names => vec![("", "name")],
        Form::Objects(names) => [Some((names.name, "name")), names.media_type.map(|name| (name, "type"))]
            .into_iter()
            .chain([names.operation.map(|name| (name, "operation")), Some(("content", "content"))])
            .flatten()
            .collect(),
    };
    for (member, says) in members {
        let mut pointer = format!("{list}/*");
        if !member.is_empty() {
            push_token(&mut pointer, member);
        }
        let says = Says::ArtifactPart(says);
        rows.push(Row { kind: shape.kind, when: shape.when, part: part(shape), pointer, says });
    }
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
            Is::Artifacts(form) => {
                push_artifact_rows(rows, shape, *form, &pointer);
                Says::Artifacts
            }
            _ if shape.loose => Says::LooseHomes(member.homes().to_vec()),
            Is::Loose(..) | Is::Alias(..) => Says::LooseHomes(member.homes().to_vec()),
            Is::Home(..)
            | Is::Input
            | Is::Prompt
            | Is::PromptContext
            | Is::OutputObject
            | Is::OutputText
            | Is::Summary
            | Is::Code(_)
            | Is::Made(_) => Says::Homes(member.homes().to_vec()),
        };
        rows.push(Row { kind: shape.kind, when: shape.when, part: part(shape), pointer, says });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::read::MEMBERS_MAX;

    fn widest(members: &[Member]) -> usize {
        let inner = members.iter().map(|member| if let Is::Block(members) = member.is { widest(members) } else { 0 });
        inner.max().unwrap_or(0).max(members.len())
    }

    /// The reader sorts members into an array of this size.
    #[test]
    fn no_object_of_a_shape_has_too_many_members() {
        for shape in Contract::ALL.iter().flat_map(|contract| crate::map::of(*contract).shapes) {
            assert!(widest(shape.members) <= MEMBERS_MAX, "{} {}", shape.kind, shape.when);
        }
    }

    /// The carrier is written last, when it is known what is left.
    #[test]
    fn what_carries_is_the_last_member() {
        for shape in Contract::ALL.iter().flat_map(|contract| crate::map::of(*contract).shapes) {
            let last = shape.members.last().map(|member| member.name);
            assert!(shape.carrier.is_none() || shape.carrier == last, "{} {}", shape.kind, shape.when);
        }
    }
}
