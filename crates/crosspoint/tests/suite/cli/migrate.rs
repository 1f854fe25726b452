//! `crosspoint migrate`

use std::fs;

use crate::support::program::{crosspoint, root, stdout, transcript};

const FLAT: &str = "testdata/older/input-flat.json";
const MODE: &str = "testdata/older/input-mode.json";
const DOMAIN: &str = "testdata/older/output-domain.json";
const STATE: &str = "testdata/older/output-state_updates.json";

/// The arguments that turn each of the contract's four patterns into an envelope.
const PATTERNS: [&[&str]; 4] = [
    &["migrate", "--workflow", "plan", "--action", "discover", FLAT],
    &["migrate", MODE],
    &["migrate", DOMAIN],
    &["migrate", "--index", ".workflow/index.md", STATE],
];

#[test]
fn flat_input_becomes_parameters() {
    insta::assert_snapshot!(transcript(&mut crosspoint(PATTERNS[0])));
}

#[test]
fn a_mode_becomes_the_action() {
    insta::assert_snapshot!(transcript(&mut crosspoint(PATTERNS[1])));
}

#[test]
fn output_of_the_domain_becomes_notes() {
    insta::assert_snapshot!(transcript(&mut crosspoint(PATTERNS[2])));
}

#[test]
fn state_updates_become_the_index_file() {
    insta::assert_snapshot!(transcript(&mut crosspoint(PATTERNS[3])));
}

/// `validate --strict` accepts what is printed, and migrating it again changes nothing.
#[test]
fn envelopes_are_valid_and_stay_as_they_are() {
    for arguments in PATTERNS {
        let envelope = stdout(&mut crosspoint(arguments));
        let valid = transcript(crosspoint(&["validate", "--strict"]).write_stdin(envelope.clone()));
        assert!(valid.starts_with("exit 0"), "{valid}");
        let again = transcript(crosspoint(&["migrate"]).write_stdin(envelope.clone()));
        let kind = if envelope.contains("\"success\"") { "workflow.output" } else { "workflow.input" };
        let unchanged = format!("nothing was changed: it is a valid {kind} already\n");
        assert_eq!(again, format!("exit 0\n--- stdout\n{envelope}--- stderr\n{unchanged}"));
    }
}

#[test]
fn refusals_say_what_to_add() {
    let clash = r#"{"workflow": "w", "mode": "m", "params": {"a": 1}, "a": 2}"#;
    let wrong = r#"{"workflow": "w", "mode": "m", "iteration": 0}"#;
    let nothing_said = r#"{"state_updates": {"a": 1}}"#;
    let written = r#"{"success": true, "summary": "s", "state_updates": {"a": 1},
        "artifacts": [{"path": "i.md", "operation": "update", "content": ""}]}"#;
    let told: Vec<String> = [
        transcript(&mut crosspoint(&["migrate", FLAT])),
        transcript(&mut crosspoint(&["migrate", "--as", "workflow.input", FLAT])),
        transcript(&mut crosspoint(&["migrate", STATE])),
        transcript(&mut crosspoint(&["migrate", "--index", "../index.md", STATE])),
        transcript(crosspoint(&["migrate", "--index", "i.md"]).write_stdin(written)),
        transcript(crosspoint(&["migrate"]).write_stdin(nothing_said)),
        transcript(crosspoint(&["migrate"]).write_stdin(clash)),
        transcript(crosspoint(&["migrate"]).write_stdin(wrong)),
        transcript(crosspoint(&["migrate"]).write_stdin("{\"mode\": None}")),
    ]
    .into();
    insta::assert_snapshot!(told.join("\n"));
}

/// What the hint shows can be run as it is, and has the document rewritten.
#[test]
fn the_command_in_the_hint_rewrites_the_document() {
    let directory = std::env::temp_dir().join(format!("crosspoint-migrate-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("it can be made");
    let file = directory.join("it's old.json");
    fs::write(&file, r#"{"state_updates": {"a": 1}, "next_recommendation": "retry"}"#).expect("it can be written");
    let mut first = crosspoint(&["migrate", "--index", "i.md", file.to_str().expect("UTF-8")]);
    let told = transcript(&mut first);
    let command = told.lines().find_map(|line| Some(line.split_once("hint: ")?.1.split_once(": ")?.1));
    let command = command.expect("a command is shown");
    let path = std::path::PathBuf::from(first.get_program());
    let path = format!("{}:/usr/bin:/bin", path.parent().expect("it is somewhere").display());
    let ran = std::process::Command::new("sh").args(["-c", command]).env("PATH", path).output().expect("it starts");
    fs::remove_dir_all(directory).expect("it is there");
    assert!(ran.status.success(), "{command}: {ran:?}");
    let envelope: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("it is JSON");
    assert_eq!((&envelope["success"], &envelope["recommendation"]), (&true.into(), &"retry".into()), "{envelope}");
    assert_eq!(envelope["summary"], "What happened, in one sentence.");
    assert_eq!(envelope["artifacts"][0]["path"], "i.md");
    let code = |arguments: &[&str]| crosspoint(&["migrate"]).args(arguments).output().expect("it starts").status.code();
    assert_eq!((code(&["--success", "maybe", MODE]), code(&["--summary", "", MODE])), (Some(2), Some(2)));
}

#[test]
fn exit_codes() {
    let code = |arguments: &[&str]| crosspoint(&["migrate"]).args(arguments).output().expect("it starts").status.code();
    assert_eq!(code(&[MODE]), Some(0));
    assert_eq!(code(&["testdata/workflow/output-full.json"]), Some(0));
    assert_eq!(code(&["--as", "workflow.output", MODE]), Some(1));
    assert_eq!(code(&["Cargo.toml"]), Some(1), "not JSON: that is an answer");
    assert_eq!(code(&[FLAT]), Some(2), "it cannot be told what it is");
    assert_eq!(code(&["testdata/nowhere.json"]), Some(2));
    assert_eq!(code(&["--as", "run.request", MODE]), Some(2));
    assert_eq!(code(&["--workflow", "", MODE]), Some(2));
}

#[test]
fn members_left_in_a_valid_envelope_are_named() {
    let path = "testdata/workflow/input-unknown.json";
    let document = fs::read_to_string(root().join(path)).expect("it is there");
    let said = "nothing was changed: it is a valid workflow.input already\n\
                left /tenant where it is: members of other names are allowed\n";
    let told = transcript(&mut crosspoint(&["migrate", path]));
    assert_eq!(told, format!("exit 0\n--- stdout\n{document}--- stderr\n{said}"));
}

/// A member's name cannot colour the terminal or move its cursor.
#[test]
fn names_are_safe_to_show() {
    let document = "{\"workflow\": \"w\", \"mode\": \"m\", \"\\u001b[31m\\u202e\\n\": 1}";
    let output = crosspoint(&["migrate"]).write_stdin(document).output().expect("it starts");
    let said = String::from_utf8(output.stderr).expect("it is UTF-8");
    assert!(!said.contains(['\u{1b}', '\u{202e}']) && said.contains("to /task/params/"), "{said:?}");
}

/// A valid document of another contract does not come from an older agent: the user is sent to `translate`.
#[test]
fn documents_of_other_contracts_are_not_migrated() {
    let told = transcript(&mut crosspoint(&["migrate", "testdata/run/request-full.json"]));
    assert!(
        told.contains("exit 1")
            && told.contains("a valid run.request")
            && told.contains("crosspoint translate --to workflow"),
        "{told}"
    );
    let forced =
        ["migrate", "testdata/run/request-full.json", "--as", "workflow.input", "--workflow", "w", "--action", "a"];
    crosspoint(&forced).assert().code(0);
}
