//! How the output of an attempt ended, and what that makes of its result.

use crosspoint_contracts::message::chunk::Refusal;
use crosspoint_contracts::outcome::{Text, text_within};
use crosspoint_contracts::printed::Printed;
use crosspoint_contracts::reply::{Failed, Given, Success};

use super::spool::TextIs;

/// How the output of an attempt ended.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Finished {
    pub(super) attempt: u32,
    pub(super) text: TextIs,
    /// What is wrong with the set that the result ended.
    pub(in super::super) refused: Option<Refusal>,
}

impl Finished {
    /// Returns a result with its text: the output in chunks of which the result has only the end, or its own output,
    /// which may have to be called not whole (MSG-9).
    pub(in super::super) fn result(&self, result: Result<Success, Failed>) -> Result<Success, Failed> {
        match result {
            Ok(success) => Ok(self.success(success)),
            Err(failed) => Err(self.failed(failed)),
        }
    }

    fn success(&self, success: Success) -> Success {
        let Success { outputs, text, .. } = success;
        let Given { outputs, text, whole_bytes, .. } = self.given(Given { outputs, text, ..Given::default() });
        Success { outputs, text, whole_bytes, ..success }
    }

    /// What a failed task printed is the explanation of its failure. If it is only a part, it is also what the task
    /// gave (ALL-11), because only a text can say that it is not whole.
    fn failed(&self, failed: Failed) -> Failed {
        if self.text == TextIs::Own {
            return failed;
        }
        let mut given = failed.given.map_or_else(Given::default, |given| *given);
        if given.text.is_none() && given.outputs.is_none() {
            given.outputs = failed.message.clone();
            given.text = given.outputs.as_ref().and_then(text_within).map(Text::Within);
        }
        Failed { given: self.given(given).if_any(), ..failed }
    }

    fn given(&self, given: Given) -> Given {
        match self.text {
            TextIs::Own => given,
            TextIs::Printed { start, end } => {
                // Outputs that hold the text hold nothing else, and only the end of it.
                let is_within = matches!(given.text, Some(Text::Within(_)));
                let text = Some(Text::Printed(Printed { attempt: self.attempt, start, end }));
                Given { outputs: given.outputs.filter(|_| !is_within), text, ..given }
            }
            TextIs::Cut { whole_bytes } => Given { whole_bytes: Some(whole_bytes), ..given },
        }
    }
}
