//! The schemas of works (TASK-10): what the input and the output of a work must be, as the operator says.
//!
//! [`schema`] compiles a schema and compares values with it. Here is which work has which schema, and when it is looked
//! at: inputs before they become jobs, at every door; outputs before the outcome is committed, where a mismatch is only
//! recorded.

mod schema;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crosspoint_contracts::json::Tape;
use crosspoint_contracts::outcome::Text;
use crosspoint_contracts::reply::Success;
use crosspoint_contracts::report::POINTER_BYTES_MAX;
use crosspoint_contracts::request::NewJob;
use crosspoint_contracts::{Finding, Report, TASK_10};
use crosspoint_engine::event::Violation;
use crosspoint_http::long::{self, LONG_BYTES};
use tokio::sync::Semaphore;

use self::schema::Mistake;
pub(crate) use self::schema::{SCHEMA_BYTES_MAX, Schema};

/// Most long values that are compared with a schema at a time. A value takes up to sixteen times its length in memory
/// meanwhile, so a limit on bodies alone would not bound it.
const LONG_AT_ONCE_MAX: usize = 2;

/// Where the input is in a request of the native API.
const NATIVE_INPUT_AT: &str = "/input";

/// The schemas of all works that have some.
pub(crate) struct Schemas {
    works: BTreeMap<String, WorkSchemas>,
    /// Long values that are being looked at.
    long: Semaphore,
}

/// The schemas of one work.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WorkSchemas {
    pub(crate) input: Option<Schema>,
    pub(crate) output: Option<Schema>,
}

impl Schemas {
    pub(crate) fn new(works: BTreeMap<String, WorkSchemas>) -> Schemas {
        Schemas { works, long: Semaphore::new(LONG_AT_ONCE_MAX) }
    }

    /// Returns the works that have schemas, by name.
    pub(crate) fn works(&self) -> &BTreeMap<String, WorkSchemas> {
        &self.works
    }

    /// Compares the input of a request with the schema of its work. Returns what is wrong with it, at places of the
    /// caller's own document.
    pub(crate) async fn mistakes_in(&self, new: &NewJob) -> Option<Report> {
        let schema = self.works.get(&*new.work)?.input.as_ref()?;
        let document = &new.document.0;
        let look = || {
            let input = input_of(new);
            let mistakes = schema.mistakes(&input);
            let findings: Vec<Finding> = match mistakes.is_empty() {
                true => Vec::new(),
                false => {
                    let at = input_at(new, &input);
                    mistakes.into_iter().map(|mistake| finding(mistake, at)).collect()
                }
            };
            (!findings.is_empty()).then(|| Report::of_pointers(findings, document))
        };
        self.look(document.len(), look).await
    }

    /// Looks at a value of this length in bytes. A long one waits for its turn and holds no other request up.
    async fn look<T>(&self, bytes: usize, look: impl FnOnce() -> T) -> T {
        let _turn = if bytes > LONG_BYTES { self.long.acquire().await.ok() } else { None };
        long::look(bytes, look)
    }

    /// Whether the outputs of this work have a schema.
    pub(crate) fn has_output(&self, work: &str) -> bool {
        self.works.get(work).is_some_and(|schemas| schemas.output.is_some())
    }

    /// Returns the rule that a result of this work breaks, without content.
    pub(crate) async fn violated(&self, work: &str, success: &Success) -> Option<Violation> {
        let schema = self.works.get(work)?.output.as_ref()?;
        // A text that is long, or no text, is stored elsewhere, and is what `{"output": ""}` says of it. The text
        // of an agent of a contract is a text also where it is stored elsewhere.
        let is_printed = matches!(success.text, Some(Text::Printed(_)));
        let none = match (is_printed, &success.document) {
            (true, None) => r#"{"output":""}"#,
            (true, Some(_)) => r#""""#,
            (false, _) => "{}",
        };
        let output = success.outputs.as_ref().map_or(none, |outputs| outputs.get());
        let mistakes = self.look(output.len(), || schema.mistakes(output.as_bytes())).await;
        let first = mistakes.first()?;
        // The agent chooses the names in its output, so the place is that in the schema.
        let more = if mistakes.len() > 1 { format!(" (one of {} mistakes)", mistakes.len()) } else { String::new() };
        let at = if first.schema_at.is_empty() { String::new() } else { format!(" ({} there)", first.schema_at) };
        let what = format!("the output does not match output_schema of its work{at}: {}{more}", first.what);
        Some(Violation { clause: TASK_10.id, level: TASK_10.level, what: what.into() })
    }
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.works).finish()
    }
}

impl PartialEq for Schemas {
    fn eq(&self, other: &Schemas) -> bool {
        self.works == other.works
    }
}

impl Default for Schemas {
    fn default() -> Schemas {
        Schemas::new(BTreeMap::new())
    }
}

/// Returns the input of a request, as its agent will get it.
fn input_of(new: &NewJob) -> Cow<'_, [u8]> {
    let document = &new.document.0;
    if let Some(make) = new.door.contract().and_then(|contract| contract.exchange().input) {
        return Cow::Owned(make(document).unwrap_or_default().into_bytes());
    }
    match document.get(new.input.clone()) {
        Some(input) if !input.is_empty() => Cow::Borrowed(input),
        Some(_) | None => Cow::Borrowed(b"{}"),
    }
}

/// Returns the pointer to the input in the caller's own document; `None` if it has no place that the caller knows,
/// because it travelled in carried members.
fn input_at(new: &NewJob, input: &[u8]) -> Option<&'static str> {
    let Some(contract) = new.door.contract() else { return Some(NATIVE_INPUT_AT) };
    let exchange = contract.exchange();
    let is_there = exchange.input.is_none() || has_members_of(&new.document.0, input);
    is_there.then_some(exchange.input_at)
}

/// Whether all members of an input are members of the document too.
fn has_members_of(document: &[u8], input: &[u8]) -> bool {
    let (Ok(document), Ok(input)) = (Tape::scan(document), Tape::scan(input)) else { return false };
    let (Some(document), Some(input)) = (document.root(), input.root()) else { return false };
    input.members().all(|(name, _)| document.get(&name.decode()).is_some())
}

/// Places a mistake in the caller's own document.
fn finding(mistake: Mistake, input_at: Option<&str>) -> Finding {
    let pointer = input_at.map(|at| format!("{at}{}", mistake.pointer)).unwrap_or_default();
    Finding::at(&TASK_10, shortened(pointer), mistake.what, mistake.wrong)
}

fn shortened(mut pointer: String) -> String {
    if pointer.len() > POINTER_BYTES_MAX {
        pointer.truncate(pointer.floor_char_boundary(POINTER_BYTES_MAX));
        pointer.push('\u{2026}');
    }
    pointer
}

#[cfg(test)]
mod tests {
    use crosspoint_contracts::Kind;
    use crosspoint_contracts::content::Body;
    use crosspoint_contracts::printed::Printed;
    use crosspoint_contracts::reply::AgentDocument;

    use super::*;

    #[tokio::test]
    async fn a_long_text_is_judged_as_what_a_short_one_of_its_agent_is() {
        let compiled = |schema: &str| Schema::compile("s.json", schema.as_bytes()).expect("it is a schema");
        let output = |schema: &str| WorkSchemas { input: None, output: Some(compiled(schema)) };
        let works = [("object", r#"{"type":"object"}"#), ("text", r#"{"type":"string"}"#)];
        let schemas = Schemas::new(works.map(|(work, schema)| (work.to_owned(), output(schema))).into());
        let text = Some(Text::Printed(Printed { attempt: 1, start: 0, end: 9_000_000 }));
        let program = Success { text, ..Success::default() };
        let document = Some(AgentDocument { kind: Kind::ALL[0], document: Body::trusted("{}") });
        let agent = Success { document, ..program.clone() };
        for (work, success, is_right) in
            [("object", &program, true), ("object", &agent, false), ("text", &program, false), ("text", &agent, true)]
        {
            assert_eq!(schemas.violated(work, success).await.is_none(), is_right, "{work}");
        }
    }
}
