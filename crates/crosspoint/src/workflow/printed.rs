//! Envelopes of programs that speak no contract. A program that is started as any other may print an envelope all the
//! same: then it says where its run goes, and what it says must not be passed over.

use crosspoint_contracts::Kind;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::outcome::Text;
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

/// Their names, as JSON writes them.
const NAMES: [&str; 4] = ["\"success\"", "\"summary\"", "\"artifacts\"", "\"recommendation\""];

/// What is said of a text that is nearly an envelope.
pub(super) const NOT_FOLLOWED: &str = "The program printed what looks like an envelope and is none, or is too long to \
    be followed here. Print one envelope at the end, or write contract = \"workflow\".";

const TWO_WAYS: &str =
    "The program gave files by @crosspoint lines and printed an envelope. Give them in one of the two ways.";

/// What an envelope says, and which rules it breaks.
pub(super) type Read = (Result<Success, Failed>, Vec<Violation>);

/// Reads what a stage gave whose agent gave no document as an envelope, if it is one.
pub(super) async fn envelope(job: &Job, result: &Result<Success, Failed>) -> Option<Read> {
    job.request.child_of()?;
    let success = result.as_ref().ok().filter(|success| success.document.is_none())?.clone();
    // It may be long.
    tokio::task::spawn_blocking(move || read(&success)).await.ok().flatten()
}

/// Whether most names of an envelope are in a text that was not read as one. A person is asked then: the program may
/// have wanted just that.
pub(super) fn is_nearly_envelope(text: &str) -> bool {
    NAMES.iter().filter(|name| text.contains(*name)).count() >= NAMES.len() - 1
}

fn read(success: &Success) -> Option<Read> {
    let envelope = success.outputs.clone().filter(is_envelope).or_else(|| at_the_end(&text(success)?))?;
    if success.artifacts.is_some() {
        let failed = Failed::said(Failure::BrokenContract, Dispatched::Yes, TWO_WAYS);
        return Some((Err(failed), Vec::new()));
    }
    let document = envelope.bytes();
    let (result, report) = match reply::read(Kind::WorkflowOutput, document) {
        Ok(Reply { meaning: Meaning::Ended(result), report, .. }) => (result.map_err(|failed| *failed), report),
        Ok(Reply { meaning: Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_), .. }) => return None,
        Err(Unreadable { lack, report }) => (Err(reply::unreadable(lack.sentence(), document)), report),
    };
    let findings = report.findings.into_iter();
    let broken = findings.map(|found| Violation { clause: found.clause.id, level: found.level, what: found.message });
    Some((result, broken.collect()))
}

fn is_envelope(json: &Body) -> bool {
    json.get().starts_with('{') && serde_json::from_str::<Members>(json.get()).is_ok()
}

/// Returns the envelope over several lines that a text ends with.
fn at_the_end(text: &str) -> Option<Body> {
    let before: usize = text.split_inclusive('\n').take_while(|line| !line.starts_with('{')).map(str::len).sum();
    let envelope = Body::read(text[before..].trim().to_owned()).ok()?;
    is_envelope(&envelope).then_some(envelope)
}

/// Returns what a program printed, where that is short.
fn text(success: &Success) -> Option<String> {
    match success.text.as_ref()? {
        Text::Within(range) => {
            let within = success.outputs.as_ref()?.get().get(range.clone())?;
            serde_json::from_str(within).ok()
        }
        Text::Beside(text) => serde_json::from_str(text.get()).ok(),
        Text::Printed(_) | Text::Partial(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENVELOPE: &str = r#"{"success":true,"summary":"Fine.","artifacts":[],"recommendation":"retry"}"#;

    fn outputs(text: &str) -> Option<Read> {
        super::read(&Success::of(Body::trusted(text.to_owned())))
    }

    fn is_followed(read: Option<Read>) -> bool {
        read.is_some_and(|(result, broken)| result.is_ok_and(|success| success.document.is_some()) && broken.is_empty())
    }

    #[test]
    fn only_what_has_all_members_of_an_envelope_is_one() {
        assert!(is_followed(outputs(ENVELOPE)));
        assert!(outputs(&ENVELOPE.replace("true", "false")).is_some_and(|(result, _)| result.is_err()));
        for other in [r#"{"success":true,"summary":"Fine.","recommendation":"retry"}"#, r#"{"gathered":3}"#, "{}"] {
            assert!(outputs(other).is_none(), "{other}");
        }
        let broken = outputs(&ENVELOPE.replace("true", "\"yes\""));
        assert!(broken.is_some_and(|(result, broken)| result.is_err() && !broken.is_empty()));
    }

    #[test]
    fn an_envelope_may_have_several_lines_and_stand_below_a_log() {
        let lines = ENVELOPE.replace(',', ",\n  ");
        for printed in [lines.clone(), format!("a log line\n{lines}\n"), format!("{lines}\n\n")] {
            assert!(is_followed(super::read(&Success::printed(&printed))), "{printed}");
        }
        assert!(super::read(&Success::printed("nothing of the kind")).is_none());
    }

    #[test]
    fn what_is_nearly_an_envelope_is_not_passed_over() {
        for text in
            [format!("{ENVELOPE}\n{{}}"), ENVELOPE.replace("recomm", "recom"), ENVELOPE.replace("artifacts", "files")]
        {
            assert!(is_nearly_envelope(&text), "{text}");
        }
        assert!(!is_nearly_envelope(r#"{"summary":"Two gaps.","recommendation":"Mend them."}"#));
    }

    #[test]
    fn files_are_given_in_one_way() {
        let success = Success::of(Body::trusted(ENVELOPE.to_owned()));
        let both = Success { artifacts: Some(Body::trusted("[]".to_owned())), ..success };
        assert!(super::read(&both).is_some_and(|(result, _)| result.is_err()));
    }
}
