//! Writes a stream that breaks no rule.
//!
//! A run may end while a late progress event is still on its way, or fail before anything reported that it had started.
//! Callers would each have to remember which event comes first, and one would forget. So the writer knows where the
//! stream is: it writes `started` first by itself, and refuses, with an error value, any event after the terminal one.
//!
//! Data is examined before it is written, by the same code that judges streams of other programs, and is refused for a
//! warning as for an error: reading is tolerant, writing is strict. Refused data leaves no byte behind. Writing appends
//! to the caller's buffer, so the same call is safe to repeat with an empty buffer.

use std::collections::BTreeSet;
use std::fmt;

use super::event::{Echo, EventData, examine};
use super::life::{Breach, FINAL, Life, PROGRESS, Role, STARTED};
use crate::json::{Levels, quoted};
use crate::report::Report;
use crate::sse;

/// Writes the stream of one run.
pub struct StreamWriter {
    request_id: String,
    task_type: String,
    life: Life,
}

/// Why nothing was written.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The request id or the task type is empty, and these identify every event of a run.
    #[error("a stream needs a request_id and a task_type that are not empty")]
    Nameless,
    /// The stream has had its terminal event.
    #[error("the stream has ended: nothing is written after its terminal event")]
    Ended(Breach),
    /// The data has a finding, if only a warning. Its places are places in the data.
    #[error("the event's data breaks {}", clauses(.0))]
    Faulty(Report),
    /// The terminal event has another task type than the request.
    #[error("the terminal event's task_type is not that of the request")]
    OtherTask,
}

impl StreamWriter {
    /// Returns a writer at the start of the stream that answers this request.
    ///
    /// # Errors
    /// Fails if one of the two is empty, which no request allows.
    pub fn new(request_id: &str, task_type: &str) -> Result<StreamWriter, Refused> {
        if request_id.is_empty() || task_type.is_empty() {
            return Err(Refused::Nameless);
        }
        let (request_id, task_type) = (request_id.to_owned(), task_type.to_owned());
        Ok(StreamWriter { request_id, task_type, life: Life::New })
    }

    /// Returns where the stream is in its life.
    pub fn life(&self) -> Life {
        self.life
    }

    /// Makes sure that the stream has begun. Writes nothing if it has.
    ///
    /// # Errors
    /// Fails if the stream has ended.
    pub fn started(&mut self, out: &mut Vec<u8>) -> Result<(), Refused> {
        match self.life {
            Life::New => {
                let data = format!(
                    r#"{{"request_id": {}, "task_type": {}}}"#,
                    quoted(&self.request_id),
                    quoted(&self.task_type)
                );
                self.append(out, STARTED, &data);
                Ok(())
            }
            Life::Running => Ok(()),
            Life::Ended => Err(Refused::Ended(Breach::AfterTerminal)),
        }
    }

    /// Writes `started` with what an agent said, from data that was read when it came and was written by us. It may
    /// follow a `started` that was written before the agent said anything. The data is not examined again.
    ///
    /// # Errors
    /// Fails if the stream has ended.
    pub fn started_with(&mut self, out: &mut Vec<u8>, data: &str) -> Result<(), Refused> {
        self.may_follow(STARTED)?;
        self.append(out, STARTED, data);
        Ok(())
    }

    /// Writes how far the run is: any JSON value.
    ///
    /// # Errors
    /// Fails if the stream has ended, or if the data is not faultless JSON or carries the id of another request.
    pub fn progress(&mut self, out: &mut Vec<u8>, data: &str) -> Result<(), Refused> {
        self.write(out, PROGRESS, data)
    }

    /// Writes the terminal event, with all that a result needs in its data.
    ///
    /// # Errors
    /// Fails if the stream has ended, or if the data is not that of a faultless terminal event for this request.
    pub fn finish(&mut self, out: &mut Vec<u8>, data: &str) -> Result<(), Refused> {
        self.write(out, FINAL, data)
    }

    /// Writes how far the run is, from data that was read when it came and was written by us. The data is not examined
    /// again.
    ///
    /// # Errors
    /// Fails if the stream has ended.
    pub fn progress_of(&mut self, out: &mut Vec<u8>, data: &str) -> Result<(), Refused> {
        self.write_unseen(out, PROGRESS, data)
    }

    /// Writes the terminal event, from data that was read when it came and was written by us. The data is not examined
    /// again.
    ///
    /// # Errors
    /// Fails if the stream has ended.
    pub fn finish_with(&mut self, out: &mut Vec<u8>, data: &str) -> Result<(), Refused> {
        self.write_unseen(out, FINAL, data)
    }

    /// Writes the terminal event of a run that has no result (RUN-7): it failed, timed out, was cancelled, or its
    /// upstream died. The recommended fields are there too, because we originate the event (RUN-3.6).
    ///
    /// # Errors
    /// Fails if the stream has ended.
    pub fn fail(&mut self, out: &mut Vec<u8>, code: &str, message: &str) -> Result<(), Refused> {
        let data = format!(
            concat!(
                r#"{{"request_id": {}, "task_type": {}, "status": "error", "ok": false, "outputs": {{}}, "#,
                r#""artifacts": [], "provenance": {{}}, "usage": {{}}, "warnings": [], "#,
                r#""error": {{"code": {}, "message": {}}}}}"#
            ),
            quoted(&self.request_id),
            quoted(&self.task_type),
            quoted(code),
            quoted(message)
        );
        self.write(out, FINAL, &data)
    }

    /// Writes a comment, which keeps proxies from closing a quiet stream. It is no event and may come before `started`.
    ///
    /// # Errors
    /// Fails if the stream has ended.
    pub fn comment(&self, out: &mut Vec<u8>) -> Result<(), Refused> {
        if self.life == Life::Ended {
            return Err(Refused::Ended(Breach::AfterTerminal));
        }
        sse::comment(out);
        Ok(())
    }

    fn write(&mut self, out: &mut Vec<u8>, name: &'static str, data: &str) -> Result<(), Refused> {
        self.may_follow(name)?;
        self.check(name, data)?;
        self.write_unseen(out, name, data)
    }

    fn write_unseen(&mut self, out: &mut Vec<u8>, name: &'static str, data: &str) -> Result<(), Refused> {
        self.may_follow(name)?;
        self.started(out)?;
        self.append(out, name, data);
        Ok(())
    }

    fn may_follow(&self, name: &'static str) -> Result<(), Refused> {
        match self.life.step(Role::of(name)).1 {
            Some(breach @ (Breach::SecondTerminal | Breach::AfterTerminal | Breach::NoTerminal)) => {
                Err(Refused::Ended(breach))
            }
            // A stream that has not started is started first.
            Some(Breach::NotStartedFirst) | None => Ok(()),
        }
    }

    fn check(&self, name: &'static str, data: &str) -> Result<(), Refused> {
        let mut echo = Echo::OfRequest(self.request_id.clone());
        let examined = examine(Some(name), data.as_bytes(), &mut echo, Levels::Received);
        let mut report = examined.report;
        if !report.findings.is_empty() {
            report.locate_lines(data.as_bytes());
            return Err(Refused::Faulty(report));
        }
        match examined.data {
            Some(EventData::Terminal(terminal)) if terminal.task_type != *self.task_type => Err(Refused::OtherTask),
            Some(EventData::Started(_) | EventData::Progress(_) | EventData::Terminal(_) | EventData::Other(_))
            | None => Ok(()),
        }
    }

    fn append(&mut self, out: &mut Vec<u8>, name: &'static str, data: &str) {
        // Our names hold no line break, so this cannot fail.
        let _ = sse::event(out, name, None, data);
        (self.life, _) = self.life.step(Role::of(name));
    }
}

impl fmt::Debug for StreamWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamWriter[{:?}]", self.life)
    }
}

/// Returns the ids of the clauses that a report names, each once.
fn clauses(report: &Report) -> String {
    let ids: BTreeSet<&str> = report.findings.iter().map(|finding| finding.clause.id).collect();
    ids.into_iter().collect::<Vec<_>>().join(", ")
}
