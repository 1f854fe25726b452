//! Reads an agent's own document again, together with the parts that an outcome keeps beside it.

use crosspoint_contracts::Contract;
use crosspoint_contracts::content::{Body, Json};
use crosspoint_contracts::exchange::Holds;
use crosspoint_contracts::job::{Canonical, Home};
use crosspoint_contracts::json::{Tape, quoted};
use crosspoint_contracts::outcome::{Outcome, Text};
use crosspoint_contracts::reply::AgentDocument;
use crosspoint_contracts::translate::read_response;

use super::outcome::put_partial;

/// Returns the agent's last document with everything that it gave, for a caller of this contract.
pub(super) fn at_the_end(outcome: &Outcome, to: Contract) -> Option<Canonical<'_>> {
    let agent_document = outcome.document.as_ref()?;
    // The last event of a stream is a response like any other.
    let kind = if agent_document.kind.is_framed() {
        agent_document.kind.contract().exchange().response
    } else {
        agent_document.kind
    };
    let mut canonical = match with_artifacts(outcome, agent_document) {
        Some(whole) => read_response(kind, whole.as_bytes()).job.ok()?.into_owned(),
        None => read_response(kind, agent_document.document.bytes()).job.ok()?,
    };
    if let Some(reason) = &outcome.reason {
        // What the agent's answer means is already decided; its document alone may say less.
        let code = canonical.get(Home::Code).cloned();
        canonical.fail(reason.failure);
        if let Some(code) = code {
            canonical.put(Home::Code, code);
        }
        // The agent's words may stand where its contract has no place for them.
        let is_own = |message: &&Body| message.get() != quoted(reason.failure.sentence());
        let own = reason.message.as_ref().filter(is_own);
        if let Some(message) = own.filter(|_| canonical.get(Home::Message).is_none()) {
            canonical.put(Home::Message, Json::new(message.get()));
        }
    }
    // The document of a failure may hold what the agent gave; of a success, an outcome always holds it.
    if let Some(Text::Partial(partial)) = &outcome.text {
        put_partial(&mut canonical, outcome, partial, to);
    } else if outcome.reason.is_none() || outcome.outputs.is_some() {
        give(&mut canonical, outcome);
    }
    Some(canonical)
}

/// Puts the outputs back into their place. They are long and were read when they arrived, so they are not read again.
fn give<'o>(canonical: &mut Canonical<'o>, outcome: &'o Outcome) {
    let outputs = outcome.outputs.as_ref().map(Body::get);
    let is_text = outputs.is_some_and(|outputs| outputs.starts_with('"'));
    let text = match &outcome.text {
        Some(Text::Beside(text)) => Some(text.get()),
        // A printed text was put together, and one that is not whole is put into its place elsewhere.
        Some(Text::Within(_) | Text::Printed(_) | Text::Partial(_)) | None => outputs.filter(|_| is_text),
    };
    canonical.give(outputs.filter(|_| !is_text).map(Json::new), text.map(Json::new));
}

/// Returns the document with its artifacts in their place. Further facts about them may be carried in the document, and
/// both are read together. `None` if the artifacts are in the document already.
fn with_artifacts(outcome: &Outcome, agent_document: &AgentDocument) -> Option<String> {
    let artifacts = outcome.artifacts.as_ref()?;
    let part = agent_document.kind.contract().exchange().parts.iter().find(|part| part.holds == Holds::Artifacts)?;
    let tape = Tape::scan(agent_document.document.bytes()).ok()?;
    let value = part.path.iter().try_fold(tape.root()?, |value, name| value.get(name))?;
    let (start, end) = value.span();
    let document = agent_document.document.get();
    Some([&document[..start], artifacts.get(), &document[end..]].concat())
}
