//! A member that was perhaps meant as the input of a run. Unknown members are kept and not used, so a slip of the pen
//! would run the work without an input, and nothing would say why.

use crate::json::{Tape, Text, Value};
use crate::nearest::nearest;

/// The member that holds the input.
const INPUTS: &str = "inputs";

/// The names that other contracts and habits have for it.
const OTHER_NAMES: [&str; 6] = ["input", "parameters", "params", "payload", "arguments", "args"];

/// Longest name that is compared, and most members that are looked at.
const NAME_BYTES_MAX: usize = 32;
const MEMBERS_MAX: usize = 64;

/// Returns a warning if a request has no `inputs`, and a member that was perhaps meant as such.
pub fn unused_input(request: &[u8]) -> Option<String> {
    let quoted = br#""inputs""#;
    // Nearly every request has it, and need not be looked at any further.
    if request.windows(quoted.len()).any(|part| part == quoted) {
        return None;
    }
    let tape = Tape::scan(request).ok()?;
    let members = tape.root().into_iter().flat_map(Value::members).take(MEMBERS_MAX).map(|(name, _)| name);
    let names: Vec<_> =
        members.filter(|name: &Text<'_>| name.raw().len() <= NAME_BYTES_MAX).map(Text::decode).collect();
    if names.iter().any(|name| *name == INPUTS) {
        return None;
    }
    let other = OTHER_NAMES.iter().find(|other| names.iter().any(|name| name == **other));
    let meant = match other {
        Some(other) => format!("a member `{other}`"),
        None if names.iter().any(|name| nearest(name, &[INPUTS]).is_some()) => {
            "a member of nearly that name".to_owned()
        }
        None => return None,
    };
    Some(format!("RUN-101: the request has no `inputs`, but {meant}, which is kept and not used"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_without_inputs_is_warned_about() {
        for (request, has_warning) in [
            (r#"{"request_id":"r","task_type":"t","input":{"a":1}}"#, true),
            (r#"{"request_id":"r","task_type":"t","parameters":{"inputs_of":1}}"#, true),
            (r#"{"request_id":"r","task_type":"t","inptus":{}}"#, true),
            (r#"{"request_id":"r","task_type":"t","inputs":{},"input":{}}"#, false),
            (r#"{"request_id":"r","task_type":"t","\u0069nputs":{},"input":{}}"#, false),
            (r#"{"request_id":"r","task_type":"t","user_id":"u"}"#, false),
            ("no JSON", false),
        ] {
            assert_eq!(unused_input(request.as_bytes()).is_some(), has_warning, "{request}");
        }
    }
}
