//! What a program asks of an agent, and the id of the question.

use std::fmt;
use std::time::Duration;

use crosspoint_contracts::json::{Tape, Type, quoted};
use crosspoint_contracts::{Kind, Options, read};
use uuid::Uuid;

use super::refused::Refused;
use crate::document::laid_out;
use crate::pair::Pair;
use crate::request;

/// What a program asks of an agent. `Debug` does not print the words, because they are content.
///
/// ```
/// use std::time::Duration;
/// use crosspoint_bridge::Question;
///
/// let question = Question::new("reviewer", "Review this change.")
///     .context(r#"{"files": ["a.rs", "b.rs"]}"#)
///     .phase(2)
///     .phase_name("review")
///     .timeout(Duration::from_secs(600));
/// assert_eq!(format!("{question:?}"), "Question([46 bytes])");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Question {
    agent_name: String,
    prompt: String,
    context: Option<String>,
    phase: Option<u8>,
    phase_name: Option<String>,
    timeout: Option<Duration>,
    model: Option<String>,
}

impl Question {
    /// Asks the work or the agent of this name, and gives it this prompt.
    pub fn new(agent_name: impl Into<String>, prompt: impl Into<String>) -> Question {
        Question {
            agent_name: agent_name.into(),
            prompt: prompt.into(),
            context: None,
            phase: None,
            phase_name: None,
            timeout: None,
            model: None,
        }
    }

    /// Adds structured input beside the prompt: the text of a JSON object.
    #[must_use]
    pub fn context(mut self, json: impl Into<String>) -> Question {
        self.context = Some(json.into());
        self
    }

    /// Sets the phase of the program, 1 to 9. Each phase has its own files, so questions of several phases can wait at
    /// the same time.
    #[must_use]
    pub fn phase(mut self, phase: u8) -> Question {
        self.phase = Some(phase);
        self
    }

    /// Sets the name of the phase.
    #[must_use]
    pub fn phase_name(mut self, name: impl Into<String>) -> Question {
        self.phase_name = Some(name.into());
        self
    }

    /// Sets how long the agent may take. The default is [`request::TIMEOUT_DEFAULT`].
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Question {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the model that the program wants.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Question {
        self.model = Some(name.into());
        self
    }

    /// Returns the pair of files by which the question is asked.
    pub(super) fn pair(&self) -> Result<Pair, Refused> {
        match self.phase {
            None => Ok(Pair::PLAIN),
            Some(phase) => Pair::of_phase(phase).ok_or(Refused::Unfit("the phase is not 1 to 9 (BRIDGE-106)")),
        }
    }

    /// Returns the id of the question in a run. The same words are the same question; the timeout is no part of them.
    pub(super) fn id(&self, run: Uuid) -> Uuid {
        let phase = self.phase.map(|phase| phase.to_string());
        let words = [
            Some(&self.agent_name),
            Some(&self.prompt),
            self.context.as_ref(),
            phase.as_ref(),
            self.phase_name.as_ref(),
            self.model.as_ref(),
        ];
        let mut bytes = Vec::new();
        for word in words {
            // The length before each word keeps the end of one word from being read as the beginning of the next.
            let length = word.map_or_else(|| "-".to_owned(), |word| word.len().to_string());
            bytes.extend_from_slice(length.as_bytes());
            bytes.push(b':');
            bytes.extend_from_slice(word.map(String::as_bytes).unwrap_or_default());
        }
        Uuid::new_v5(&run, &bytes)
    }

    /// Returns the bytes of the request file. `now` is the time at which it is written.
    pub(super) fn document(&self, id: Uuid, now: &str) -> Result<Vec<u8>, Refused> {
        if self.agent_name.is_empty() {
            return Err(Refused::Unfit("no agent is named (BRIDGE-108)"));
        }
        let mut members = vec![
            format!("\"request_id\":\"{id}\""),
            "\"version\":\"1.0\"".to_owned(),
            format!("\"agent_name\":{}", quoted(&self.agent_name)),
            format!("\"prompt\":{}", quoted(&self.prompt)),
        ];
        members.extend(self.phase.map(|phase| format!("\"phase\":{phase}")));
        members.extend(self.phase_name.as_ref().map(|name| format!("\"phase_name\":{}", quoted(name))));
        let seconds = self.timeout.unwrap_or(request::TIMEOUT_DEFAULT).as_secs_f64();
        members.push(format!("\"timeout_seconds\":{seconds}"));
        members.push(format!("\"created_at\":{}", quoted(now)));
        if let Some(context) = &self.context {
            let tape = Tape::scan(context.as_bytes()).ok();
            let object = tape.as_ref().and_then(Tape::root).filter(|root| root.kind() == Type::Object);
            let object = object.ok_or(Refused::Unfit("the context is not a JSON object (BRIDGE-111)"))?;
            members.push(format!("\"context\":{}", object.source()));
        }
        members.extend(self.model.as_ref().map(|model| format!("\"model\":{}", quoted(model))));
        let document = laid_out(&format!("{{{}}}", members.join(",")));
        if document.len() as u64 > request::BYTES_MAX {
            return Err(Refused::TooLarge(document.len()));
        }
        let options = Options { kind: Some(Kind::BridgeRequest), ..Options::default() };
        // Only flaws within the context are left to find, such as a name that stands twice in one object.
        if read(&document, &options).document.is_none() {
            return Err(Refused::Unfit(
                "the context is JSON that readers do not agree on; crosspoint validate says where",
            ));
        }
        Ok(document)
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context = self.context.as_ref().map_or(0, String::len);
        write!(f, "Question([{} bytes])", self.prompt.len() + context)
    }
}
