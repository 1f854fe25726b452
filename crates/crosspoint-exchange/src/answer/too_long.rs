//! Answers that are longer than a contract allows (ALL-12): an error that says so takes their place.

use crosspoint_contracts::Contract;
use crosspoint_contracts::exchange::{Holds, TextLimit};
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::json::{Levels, Tape};
use crosspoint_contracts::outcome::{Outcome, Text};
use crosspoint_contracts::reply::Failed;

use super::{Beside, failed_instead};
use crate::snapshot::Snapshot;

/// Returns the document, or an error in its place if its text is longer than the contract allows.
pub(super) fn checked(document: String, job: &Snapshot<'_>, to: Contract, beside: &Beside) -> String {
    let Some(limit) = &to.exchange().text_limit else { return document };
    let Some(bytes) = printed(job, limit).or_else(|| written(&document, to, limit)) else { return document };
    let message = format!(
        "The answer is {bytes} bytes long, and a response holds {}. All that was printed: GET /api/v1/jobs/{}/output.",
        limit.bytes_max, job.id
    );
    // The work is done, and would give as much again.
    let failed = Failed::said(Failure::ResourceLimit, Dispatched::Yes, &message).coded(limit.code);
    failed_instead(job, to, beside, &Outcome::failed(failed, Repeat::Never))
}

/// Returns how long a text is of which only the end was put together, if it is over the limit.
fn printed(job: &Snapshot<'_>, limit: &TextLimit) -> Option<u64> {
    let Some(Text::Partial(partial)) = &job.ended()?.outcome.text else { return None };
    let truncated = partial.truncated.as_ref()?;
    // Bytes that are no text take more room as text, so a text may be too long of which fewer bytes were printed.
    (truncated.bytes > limit.bytes_max as u64 || partial.is_lossy).then_some(truncated.bytes)
}

/// Returns how long the text in a document is, in bytes of UTF-8, if it is over the limit.
fn written(document: &str, to: Contract, limit: &TextLimit) -> Option<u64> {
    // Nothing in a document is longer than the document.
    if document.len() <= limit.bytes_max {
        return None;
    }
    let part = to.exchange().parts.iter().find(|part| part.holds == Holds::Output)?;
    let tape = Tape::scan_within(document.as_bytes(), Levels::Wrapped).ok()?;
    let text = part.path.iter().try_fold(tape.root()?, |value, name| value.get(name))?.text()?;
    let bytes = text.decode().len();
    (bytes > limit.bytes_max).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use crosspoint_contracts::Kind;
    use crosspoint_contracts::content::Body;
    use crosspoint_contracts::outcome::text_within;
    use crosspoint_contracts::printed::{Partial, TEXT_BYTES_MAX, Truncated, with_remark};
    use crosspoint_contracts::reply::{Given, Success};
    use crosspoint_contracts::request::Door;
    use crosspoint_contracts::time::Time;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::answer::document;
    use crate::reply::{self, Meaning};
    use crate::snapshot::{Ended, State};

    /// What a caller of this contract gets of an outcome.
    fn written(outcome: &Outcome, to: Contract) -> Value {
        let job = Snapshot {
            id: Uuid::nil(),
            request_id: "r-1",
            work: "w",
            door: Door::Contract(to),
            pinned: None,
            agent: Some("a"),
            agent_type: None,
            echo: None,
            state: State::Ended(Ended { at: Time::default(), outcome, is_unjudged: false, is_kept: true }),
            progress: None,
            began: None,
            progress_at: Time::default(),
            events: 3,
            answers: 0,
            attempts: 1,
            retries: 0,
            started_at: Some(Time::default()),
            updated_at: Time::default(),
        };
        serde_json::from_str(&document(&job, to, &Beside::default())).expect("it is JSON")
    }

    fn partial(bytes: u64, outputs: Option<&'static str>) -> Outcome {
        let truncated = Some(Truncated { bytes, href: "/all".into() });
        let text = Partial { text: Body::trusted("\"end\\n\""), truncated, is_lossy: false };
        let text = Text::Partial(Box::new(text));
        let outputs = outputs.map(Body::trusted);
        Outcome::completed(Success { outputs, text: Some(text), ..Success::default() })
    }

    #[test]
    fn a_text_is_counted_in_characters_and_not_in_how_it_is_spelled() {
        for (bytes, error) in [(TEXT_BYTES_MAX, Value::Null), (TEXT_BYTES_MAX + 1, json!("ResponseTooLarge"))] {
            // Each of them takes two bytes in the document.
            let text = "\n".repeat(bytes);
            let response = written(&Outcome::completed(Success::printed(&text)), Contract::Bridge);
            assert_eq!(response["error_type"], error, "{bytes} bytes");
            assert_eq!(response["response"].is_null(), !error.is_null());
        }
        let object = format!("{{\"a\":\"{}\"}}", "x".repeat(TEXT_BYTES_MAX));
        let response = written(&Outcome::completed(Success::of(Body::trusted(object))), Contract::Bridge);
        assert_eq!(response["error_type"], "ResponseTooLarge", "an object as text is a text");
    }

    #[test]
    fn a_text_that_is_not_whole_says_so_where_the_contract_is_open() {
        let truncated = json!({"bytes": 99_999_999, "href": "/all"});
        let mere = partial(99_999_999, None);
        assert_eq!(written(&mere, Contract::Run)["outputs"], json!({"output": "end\n", "truncated": truncated}));
        assert_eq!(written(&mere, Contract::Task)["result"], json!({"output": "end\n", "truncated": truncated}));
        let message = written(&mere, Contract::Message);
        assert_eq!(message["payload"]["output"], "end\n", "{message}");
        assert_eq!(message["x_custom_fields"]["x_crosspoint"]["truncated"], truncated, "{message}");
        assert_eq!(written(&mere, Contract::Bridge)["error_type"], "ResponseTooLarge");
        let both = written(&partial(99_999_999, Some("{\"a\":1}")), Contract::Run);
        assert_eq!((&both["outputs"], &both["x_crosspoint"]["text"]), (&json!({"a": 1}), &json!("end\n")), "{both}");
        assert_eq!(both["x_crosspoint"]["truncated"], truncated, "{both}");
    }

    #[test]
    fn a_short_text_of_which_a_part_was_lost_says_so_in_the_bridge_too() {
        let response = written(&partial(9, None), Contract::Bridge);
        assert_eq!((&response["status"], &response["response"]), (&json!("success"), &json!("end\n")), "{response}");
        assert_eq!(response["metadata"]["x_crosspoint"]["truncated"]["bytes"], 9, "{response}");
    }

    /// The outcome of a result of the message contract, of whose output a part never came.
    fn cut_short(status: &str, exit_code: u8, bytes: u64) -> Outcome {
        let id = Uuid::from_u128(1).to_string();
        let result = json!({
            "protocol_version": "1.0", "message_id": id, "from_agent": "code", "to_agent": "orchestrator",
            "timestamp": "2026-01-19T04:21:04Z", "trace_id": id, "request_id": id, "type": "work_result",
            "payload": {
                "task_id": id, "status": status, "exit_code": exit_code, "output": "end\n",
                "resources_used": {"duration_seconds": 1, "gpu_vram_mb": 0, "cpu_time_ms": 0},
            },
        });
        let read = reply::read(Kind::WorkResult, &result.to_string().into()).expect("it can be read");
        let Meaning::Ended(result) = read.meaning else { panic!("it has ended") };
        let whole_bytes = Some(bytes);
        let outcome = match result {
            Ok(success) => Outcome::completed(Success { whole_bytes, ..success }),
            Err(failed) => {
                // The output of a failed task explains its failure, and is what the task gave.
                let outputs = failed.message.clone();
                let text = outputs.as_ref().and_then(text_within).map(Text::Within);
                let given = Given { outputs, text, whole_bytes, artifacts: None }.if_any();
                Outcome::failed(Failed { given, ..*failed }, Repeat::Never)
            }
        };
        with_remark(&outcome, || "/all".to_owned()).expect("a part is missing")
    }

    #[test]
    fn a_text_of_which_a_part_never_came_says_so_beside_the_document_of_its_agent() {
        let truncated = json!({"bytes": 3_000_000, "href": "/all"});
        for outcome in [cut_short("success", 0, 3_000_000), cut_short("failed", 7, 3_000_000)] {
            let message = written(&outcome, Contract::Message);
            assert_eq!(message["payload"]["output"], "end\n", "{message}");
            assert_eq!(message["x_custom_fields"]["x_crosspoint"]["truncated"], truncated, "{message}");
            let run = written(&outcome, Contract::Run);
            assert_eq!(run["outputs"], json!({"output": "end\n", "truncated": truncated}), "{run}");
        }
        let done = cut_short("success", 0, 3_000_000);
        assert_eq!(written(&done, Contract::Task)["result"], json!({"output": "end\n", "truncated": truncated}));
        let bridge = written(&done, Contract::Bridge);
        assert_eq!((&bridge["response"], &bridge["error_type"]), (&json!("end\n"), &Value::Null), "{bridge}");
        assert_eq!(bridge["metadata"]["x_crosspoint"]["truncated"], truncated, "{bridge}");
        let workflow = written(&done, Contract::Workflow);
        assert_eq!(workflow["summary"], "end\n", "{workflow}");
        assert_eq!(workflow["x_crosspoint"]["truncated"], truncated, "{workflow}");
        let much = cut_short("success", 0, TEXT_BYTES_MAX as u64 + 1);
        assert_eq!(written(&much, Contract::Bridge)["error_type"], "ResponseTooLarge");
    }
}
