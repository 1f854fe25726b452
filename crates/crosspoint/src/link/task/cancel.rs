//! Telling an agent that a task is no longer wanted.

use crosspoint_contracts::Kind;
use crosspoint_engine::id::JobId;
use crosspoint_exchange::reply::{self, Meaning};
use crosspoint_exchange::trace::Trace;
use crosspoint_http::call::{Http, Media};
use reqwest::StatusCode;

use crate::link::cancelling::{ANSWER_BYTES_MAX, Told};
use crate::link::status::is_absent;

/// Tells the agent once.
pub(super) async fn tell(http: &Http, job: JobId, trace: &Trace) -> Told {
    let endpoint = http.endpoint(&format!("tasks/{job}/cancel"));
    let Ok(answer) = http.post(&endpoint, "{}", trace, Media::Json).await else { return Told::Unheard };
    let status = answer.status;
    // An answer that is cut off has its status all the same.
    heard(status, &answer.whole(ANSWER_BYTES_MAX).await.unwrap_or_default(), job)
}

/// Decides whether an answer shows that the agent knows.
fn heard(status: StatusCode, body: &bytes::Bytes, job: JobId) -> Told {
    let knows = status.is_success() || is_absent(status) || [StatusCode::CONFLICT, StatusCode::GONE].contains(&status);
    let has_ended = || {
        let reply = reply::read(Kind::TaskResponse, body);
        reply.is_ok_and(|reply| {
            let is_about = reply.request_id.is_some_and(|id| id == job.to_string());
            is_about && matches!(reply.meaning, Meaning::Ended(_))
        })
    };
    if knows || has_ended() { Told::Heard } else { Told::Unheard }
}

#[cfg(test)]
mod tests {
    use crosspoint_contracts::time::Time;
    use crosspoint_engine::id::Seq;

    use super::*;

    #[test]
    fn an_agent_that_knows_is_told_no_more() {
        let job = JobId::new(Seq(7), Time(1), 3);
        let told = |status: u16, body: &str| {
            heard(StatusCode::from_u16(status).expect("a status"), &body.to_owned().into(), job)
        };
        for status in [200, 202, 204, 404, 405, 409, 410] {
            assert_eq!(told(status, ""), Told::Heard, "{status}");
        }
        for status in [302, 400, 401, 403, 408, 425, 429, 500, 502, 503] {
            assert_eq!(told(status, ""), Told::Unheard, "{status}");
            let ended = format!(r#"{{"id": "{job}", "status": "cancelled"}}"#);
            assert_eq!(told(status, &ended), Told::Heard, "{status}: the document says that it has ended");
            let goes_on = format!(r#"{{"id": "{job}", "status": "in_progress"}}"#);
            assert_eq!(told(status, &goes_on), Told::Unheard, "{status}");
            assert_eq!(told(status, r#"{"id": "other", "status": "cancelled"}"#), Told::Unheard, "{status}");
        }
    }
}
