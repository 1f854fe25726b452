//! What a client asks for: at which door, for which work, and which answer it expects.

/// All requests of a call are alike except for their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    path: &'static str,
    work: String,
    shape: Shape,
    token: Option<String>,
    /// The status of the answer, and a text that it contains if the work was done.
    pub(crate) status: &'static str,
    pub(crate) done: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Native,
    Run,
    /// A run with this number of progress events.
    Progress(usize),
    Message,
}

impl Call {
    /// At the native door, waiting for the outcome.
    pub(crate) fn native(work: &str) -> Call {
        let done = r#""status":"completed""#;
        Call {
            path: "/api/v1/jobs?wait=30",
            work: work.to_owned(),
            shape: Shape::Native,
            token: None,
            status: "200",
            done,
        }
    }

    /// At the native door, without waiting.
    pub(crate) fn detached(work: &str) -> Call {
        Call { path: "/api/v1/jobs", status: "202", done: "", ..Call::native(work) }
    }

    /// At the run door, or straight at an agent of that contract, which has the same endpoints.
    pub(crate) fn run_sync(work: &str) -> Call {
        let done = r#""status":"ok""#;
        Call { path: "/agents/run/sync", work: work.to_owned(), shape: Shape::Run, token: None, status: "200", done }
    }

    /// The same, as a stream.
    pub(crate) fn run_stream(work: &str) -> Call {
        Call { path: "/agents/run/stream", ..Call::run_sync(work) }
    }

    /// A stream with `events` progress events.
    pub(crate) fn run_progress(work: &str, events: usize) -> Call {
        Call { shape: Shape::Progress(events), ..Call::run_stream(work) }
    }

    /// At the message door, waiting for the outcome on the same connection.
    pub(crate) fn message(work: &str) -> Call {
        let done = r#""status":"success""#;
        Call {
            path: "/api/agent/message?wait=30",
            work: work.to_owned(),
            shape: Shape::Message,
            token: None,
            status: "200",
            done,
        }
    }

    /// The same with a token.
    pub(crate) fn with_token(self, token: String) -> Call {
        Call { token: Some(token), ..self }
    }

    /// Returns the id of a request: no other process and no other number has it. All ids of a call have one length.
    pub(crate) fn id(&self, process: u32, number: u64) -> String {
        match self.shape {
            Shape::Native | Shape::Run | Shape::Progress(_) => format!("load-{process:010}-{number:020}"),
            Shape::Message => format!("{process:08x}-0000-4000-8000-{number:012x}"),
        }
    }

    /// One request, head and body.
    pub(crate) fn request(&self, id: &str) -> String {
        let (path, work) = (self.path, &self.work);
        let body = match self.shape {
            Shape::Native => native_document(work, id),
            Shape::Message => message_document(work, id),
            Shape::Run => format!(r#"{{"request_id":"{id}","task_type":"{work}","inputs":{}}}"#, input()),
            Shape::Progress(events) => {
                format!(r#"{{"request_id":"{id}","task_type":"{work}","inputs":{{"events":{events}}}}}"#)
            }
        };
        let bytes = body.len();
        let token = self.token.as_ref().map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\n{token}content-type: application/json\r\ncontent-length: {bytes}\r\n\r\n{body}"
        )
    }
}

/// A request of the native door; the input is its last member.
pub(crate) fn native_document(work: &str, request_id: &str) -> String {
    format!(r#"{{"work":"{work}","request_id":"{request_id}","input":{}}}"#, input())
}

/// A request of the message contract. Its message, task and trace have the id of the request, which is a UUID.
fn message_document(work: &str, id: &str) -> String {
    format!(
        r#"{{"protocol_version":"1.0","message_id":"{id}","from_agent":"orchestrator","to_agent":"code","timestamp":"2026-01-19T04:21:04Z","trace_id":"{id}","request_id":"{id}","type":"work_request","payload":{{"task_id":"{id}","work_type":"{work}","parameters":{},"hints":{{}}}},"x_custom_fields":{{}}}}"#,
        input()
    )
}

/// An input of 1,000 bytes.
fn input() -> String {
    const TEXT: &str = "Nothing lost, nothing twice. ";
    let mut text = TEXT.repeat(40);
    text.truncate(1_000 - r#"{"text":""}"#.len());
    format!(r#"{{"text":"{text}"}}"#)
}
