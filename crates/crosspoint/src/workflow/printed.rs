//! Envelopes of programs that speak no contract. A program that is started as any other may print an envelope all the
//! same: then it says where its run goes, and what it says must not be passed over.

use crosspoint_contracts::Kind;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_engine::event::Violation;
use crosspoint_engine::job::Job;
use crosspoint_exchange::reply::{self, Meaning, Reply, Unreadable};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The members that every envelope has (WF-106). Hardly anything else has all of them.
#[derive(Deserialize)]
struct Members {
    #[serde(rename = "success")]
    _success: IgnoredAny,
    #[serde(rename = "summary")]
    _summary: IgnoredAny,
    #[serde(rename = "artifacts")]
    _artifacts: IgnoredAny,
    #[serde(rename = "recommendation")]
    _recommendation: IgnoredAny,
}

/// What an envelope says, and which rules it breaks.
pub(super) type Read = (Result<Success, Failed>, Vec<Violation>);

/// Reads the outputs of a stage whose agent gave no document as an envelope, if they are one.
pub(super) async fn envelope(job: &Job, result: &Result<Success, Failed>) -> Option<Read> {
    job.request.child_of()?;
    let success = result.as_ref().ok().filter(|success| success.document.is_none())?;
    let outputs = success.outputs.clone().filter(|outputs| outputs.get().starts_with('{'))?;
    // It may be long.
    tokio::task::spawn_blocking(move || read(&outputs)).await.ok().flatten()
}

fn read(outputs: &Body) -> Option<Read> {
    serde_json::from_str::<Members>(outputs.get()).ok()?;
    let document = outputs.bytes();
    let (result, report) = match reply::read(Kind::WorkflowOutput, document) {
        Ok(Reply { meaning: Meaning::Ended(result), report, .. }) => (result.map_err(|failed| *failed), report),
        Ok(Reply { meaning: Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_), .. }) => return None,
        Err(Unreadable { lack, report }) => (Err(reply::unreadable(lack.sentence(), document)), report),
    };
    let findings = report.findings.into_iter();
    let broken = findings.map(|found| Violation { clause: found.clause.id, level: found.level, what: found.message });
    Some((result, broken.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_all_members_of_an_envelope_is_one() {
        let envelope = r#"{"success":true,"summary":"Fine.","artifacts":[],"recommendation":"retry"}"#;
        let read = |text: &str| read(&Body::trusted(text.to_owned()));
        let (result, broken) = read(envelope).expect("an envelope");
        assert!(result.is_ok_and(|success| success.document.is_some()) && broken.is_empty());
        let failed = envelope.replace("true", "false");
        assert!(read(&failed).is_some_and(|(result, _)| result.is_err()));
        for other in [r#"{"success":true,"summary":"Fine.","recommendation":"retry"}"#, r#"{"gathered":3}"#, "{}"] {
            assert!(read(other).is_none(), "{other}");
        }
        let broken = envelope.replace("true", "\"yes\"");
        assert!(read(&broken).is_some_and(|(result, broken)| result.is_err() && !broken.is_empty()));
    }
}
