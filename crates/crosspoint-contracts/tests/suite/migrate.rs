//! Rewriting documents of agents that are older than the envelopes.

use crosspoint_contracts::Kind;
use crosspoint_contracts::workflow::migrate;
use crosspoint_contracts::workflow::migrate::{Envelope, Migrated, Options, Refused};
use serde_json::{Value, json};

use crate::corpus;

const GIVEN: Options<'_> = Options {
    envelope: None,
    index: Some("index.md"),
    workflow: Some("specify"),
    action: Some("discover"),
    summary: None,
    success: None,
};

pub(crate) fn as_input<'o>() -> Options<'o> {
    Options { envelope: Some(Envelope::Input), ..GIVEN }
}

pub(crate) fn as_output<'o>() -> Options<'o> {
    Options { envelope: Some(Envelope::Output), ..GIVEN }
}

/// The envelope, and the notes on what was done.
fn rewritten(source: &Value, options: &Options<'_>) -> (Value, Vec<String>) {
    let migrated = migrate(source.to_string().as_bytes(), options).unwrap_or_else(|refused| panic!("{refused}"));
    let envelope = serde_json::from_str(migrated.document.get()).expect("it is JSON");
    (envelope, migrated.changes.iter().map(ToString::to_string).collect())
}

fn refused(source: &Value, options: &Options<'_>) -> Refused {
    migrate(source.to_string().as_bytes(), options).expect_err("it is refused")
}

/// WF-9: all four patterns of the contract's document.
#[test]
fn the_patterns_of_the_contract_are_a_translation() {
    let (envelope, changes) = rewritten(&json!({"bounds": {"a": [1]}, "brownfield_overrides": {}}), &as_input());
    assert_eq!(
        envelope["task"],
        json!({"action": "discover", "params": {"bounds": {"a": [1]}, "brownfield_overrides": {}}})
    );
    assert_eq!(envelope["context"], json!({"feature_id": null, "workflow": "specify", "iteration": 1}));
    assert!(changes.contains(&"moved /bounds to /task/params/bounds".to_owned()), "{changes:?}");

    let (envelope, changes) = rewritten(&json!({"mode": "classify_gaps"}), &GIVEN);
    assert_eq!(envelope["task"], json!({"action": "classify_gaps", "params": {}}));
    assert!(changes.contains(&"moved /mode to /task/action".to_owned()), "{changes:?}");

    let domain = json!({
        "success": true, "summary": "s", "notes": ["kept"],
        "validation_report": {"passed": 8, "failed": 1}, "collision_risks": ["a", "b"],
    });
    let (envelope, changes) = rewritten(&domain, &GIVEN);
    let notes = json!(["kept", "2 collision risks: [\"a\",\"b\"]", "Validation: 1 failed, 8 passed"]);
    assert_eq!(envelope["notes"], notes);
    assert_eq!((&envelope["artifacts"], &envelope["recommendation"]), (&json!([]), &json!("proceed")));
    assert!(changes.contains(&"summarised /validation_report in /notes/2".to_owned()), "{changes:?}");

    let state = json!({"success": true, "summary": "s", "paths": {"index": ".workflow/index.md"}, "state_updates": {"queue": [1]}});
    let (envelope, changes) = rewritten(&state, &Options::default());
    let content = "# State updates\n\n```json\n{\n  \"queue\": [\n    1\n  ]\n}\n```\n";
    let artifact = json!({"path": ".workflow/index.md", "operation": "update", "content": content});
    assert_eq!(envelope["artifacts"], json!([artifact]));
    assert_eq!(envelope["notes"], json!(["Paths: index: .workflow/index.md"]));
    assert!(changes[0].starts_with("wrote /state_updates as the file of /artifacts/0"), "{changes:?}");
}

#[test]
fn flat_ids_go_into_the_context() {
    let old = json!({
        "feature_id": "005", "workflow": "plan", "iteration": 2, "action": "create", "params": {"a": 1},
        "paths": {"spec": "s.md"}, "prior_context": ["n"], "depth": 3, "x_crosspoint": {"kept": true},
    });
    let (envelope, changes) = rewritten(&old, &Options::default());
    let expected = json!({
        "context": {"feature_id": "005", "workflow": "plan", "iteration": 2},
        "paths": {"spec": "s.md"},
        "task": {"action": "create", "params": {"a": 1, "depth": 3}},
        "prior_context": ["n"],
        "x_crosspoint": {"kept": true},
    });
    assert_eq!(envelope, expected);
    assert_eq!(changes.len(), 6, "{changes:?}");
}

#[test]
fn values_keep_their_spelling_and_the_envelope_its_order() {
    let source = r#"{"mode":"m","workflow":"w","b":1.50,"a":"\u00e9"}"#;
    let migrated = migrate(source.as_bytes(), &Options::default()).expect("it can be rewritten");
    let expected = r#"{
  "context": {
    "feature_id": null,
    "workflow": "w",
    "iteration": 1
  },
  "paths": {},
  "task": {
    "action": "m",
    "params": {
      "b": 1.50,
      "a": "\u00e9"
    }
  }
}"#;

    assert_eq!((migrated.document.get(), migrated.kind), (expected, Kind::WorkflowInput));
}

#[test]
fn a_mode_beside_an_action_is_a_parameter() {
    let with = |task: Value| json!({"workflow": "w", "mode": "m", "task": task});
    let (envelope, changes) = rewritten(&with(json!({"action": "a", "params": {}})), &Options::default());
    assert_eq!(envelope["task"], json!({"action": "a", "params": {"mode": "m"}}));
    assert!(changes.contains(&"moved /mode to /task/params/mode".to_owned()), "{changes:?}");
    let (envelope, changes) = rewritten(&with(json!({"action": "m", "params": {}, "kept": 1})), &Options::default());
    assert_eq!(envelope["task"], json!({"action": "m", "params": {}, "kept": 1}));
    assert!(changes.contains(&"left out /mode: /task/action says the same".to_owned()), "{changes:?}");
    let (envelope, _) = rewritten(&json!({"workflow": "w", "mode": 2}), &GIVEN);
    assert_eq!(envelope["task"], json!({"action": "discover", "params": {"mode": 2}}));
}

#[test]
fn nothing_is_written_over() {
    for (old, from, to) in [
        (json!({"task": {"params": {"a": 1}}, "a": 2}), "/a", "/task/params/a"),
        (json!({"task": {"params": {"a": 1}}, "params": {"a": 1}}), "/params/a", "/task/params/a"),
        (json!({"context": {"workflow": "w"}, "workflow": "v"}), "/workflow", "/context/workflow"),
        (json!({"task": {"action": "w"}, "action": "v"}), "/action", "/task/action"),
        (json!({"task": {"action": "a", "params": {"mode": 1}}, "mode": "m"}), "/mode", "/task/params/mode"),
    ] {
        let Refused::Taken { from: found, to: place } = refused(&old, &as_input()) else { panic!("{old}") };
        assert_eq!((found.as_str(), place.as_str()), (from, to), "{old}");
    }
    let (_, changes) = rewritten(&json!({"context": {"workflow": "w"}, "workflow": "w"}), &as_input());
    assert_eq!(changes[1], "left out /workflow: /context/workflow says the same");
}

/// WF-9
#[test]
fn members_that_name_files_are_paths() {
    let old = json!({
        "workflow": "w", "mode": "m", "paths": {"index": "i.md"}, "spec_path": "s.md", "doc_paths": ["a", "b"],
        "log_file": "l", "none_paths": [], "depth": 3, "path": "p", "_path": "p", "open_file": {"a": 1},
        "mixed_paths": ["a", 1], "null_path": null,
    });
    let (envelope, changes) = rewritten(&old, &Options::default());
    let paths =
        json!({"index": "i.md", "spec_path": "s.md", "doc_paths": ["a", "b"], "log_file": "l", "none_paths": []});
    assert_eq!(envelope["paths"], paths);
    let others = json!({
        "depth": 3, "path": "p", "_path": "p", "open_file": {"a": 1}, "mixed_paths": ["a", 1], "null_path": null,
    });
    assert_eq!(envelope["task"]["params"], others, "what `paths` cannot hold is a parameter");
    assert!(changes.contains(&"moved /spec_path to /paths/spec_path".to_owned()), "{changes:?}");
    let twice = |there: &str| json!({"workflow": "w", "mode": "m", "paths": {"a_path": there}, "a_path": "x"});
    let (envelope, changes) = rewritten(&twice("x"), &Options::default());
    assert_eq!(envelope["paths"], json!({"a_path": "x"}));
    assert!(changes.contains(&"left out /a_path: /paths/a_path says the same".to_owned()), "{changes:?}");
    assert!(matches!(refused(&twice("y"), &Options::default()), Refused::Taken { .. }));
    let wrong = json!({"workflow": "w", "mode": "m", "paths": "p", "a_path": "x"});
    assert_eq!(refused(&wrong, &Options::default()).to_string(), "/paths is a string, not an object (WF-104)");
}

/// WF-9
#[test]
fn the_older_name_of_the_recommendation_is_read() {
    let old = |members: Value| {
        let mut old = json!({"success": true, "summary": "s", "artifacts": []});
        old.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
        old
    };
    let (envelope, changes) = rewritten(&old(json!({"next_recommendation": "retry"})), &Options::default());
    assert_eq!((&envelope["recommendation"], &envelope["notes"]), (&json!("retry"), &Value::Null));
    assert_eq!(changes, ["moved /next_recommendation to /recommendation"]);
    let (envelope, changes) = rewritten(&old(json!({"next_recommendation": null})), &Options::default());
    assert_eq!(envelope["recommendation"], "proceed");
    assert_eq!(changes, ["left out /next_recommendation: it is null", "made up /recommendation: \"proceed\""]);
    let both = |own: &str| old(json!({"state_updates": null, "recommendation": own, "next_recommendation": "retry"}));
    let (_, changes) = rewritten(&both("retry"), &Options::default());
    assert!(changes.contains(&"left out /next_recommendation: /recommendation says the same".to_owned()));
    assert!(matches!(refused(&both("proceed"), &Options::default()), Refused::Taken { .. }));
    let other = refused(&old(json!({"next_recommendation": "ask Ann"})), &Options::default());
    let Refused::Invalid { report, .. } = other else { panic!("{other}") };
    assert_eq!((report.findings[0].clause.id, report.findings[0].pointer.as_str()), ("WF-3", "/recommendation"));
}

#[test]
fn what_the_document_does_not_say_may_be_given() {
    let given = Options { summary: Some("It \"worked\"."), success: Some(true), ..Options::default() };
    let (envelope, changes) = rewritten(&json!({"state_updates": {}, "success": null}), &given);
    let expected = json!({"success": true, "summary": "It \"worked\".", "artifacts": [], "recommendation": "proceed"});
    assert_eq!(envelope, expected);
    assert_eq!(changes[..3], ["left out /success: it is null", "set /success as given", "set /summary as given"]);
    // A failure that is given has its error as the summary, and is not recommended to proceed.
    let failed = Options { success: Some(false), ..Options::default() };
    let (envelope, _) = rewritten(&json!({"error": "no spec", "artifacts": []}), &failed);
    let expected = json!({"success": false, "summary": "no spec", "artifacts": [], "recommendation": "escalate"});
    assert_eq!(envelope, expected);
    // What the document says counts.
    let (envelope, changes) = rewritten(&json!({"success": false, "summary": "s"}), &given);
    assert_eq!((&envelope["success"], &envelope["summary"]), (&json!(false), &json!("s")));
    assert!(!changes.iter().any(|change| change.contains("given")), "{changes:?}");
    // Nothing else speaks for an output.
    assert_eq!(rewritten(&json!({"bounds": {}}), &given).0["notes"], json!(["Bounds: {}"]));
}

#[test]
fn the_index_is_found_by_its_older_names() {
    for name in ["index_path", "index_file"] {
        let old = json!({"success": true, "summary": "s", "state_updates": {"a": 1}, name: "old/index.md"});
        let (envelope, _) = rewritten(&old, &Options::default());
        assert_eq!(envelope["artifacts"][0]["path"], "old/index.md");
    }
    let both = json!({
        "success": true, "summary": "s", "state_updates": {"a": 1}, "index_path": "old.md", "paths": {"index": "new.md"},
    });
    assert_eq!(rewritten(&both, &GIVEN).0["artifacts"][0]["path"], "new.md");
}

#[test]
fn what_cannot_be_made_up_is_asked_for() {
    let nothing = Options::default();
    let names = |old: Value| {
        let Refused::Unnamed { workflow, action } = refused(&old, &nothing) else { panic!("{old}") };
        (workflow, action)
    };
    assert_eq!(names(json!({"params": {}})), (true, true));
    assert_eq!(names(json!({"mode": "m"})), (true, false));
    assert_eq!(names(json!({"workflow": "w"})), (false, true));
    assert_eq!(names(json!({"workflow": "w", "mode": 7})), (false, true));
    let missing = |old: Value| {
        let Refused::Missing(missing) = refused(&old, &nothing) else { panic!("{old}") };
        missing
    };
    assert_eq!(missing(json!({"state_updates": {"a": 1}})), ["success", "summary"]);
    assert_eq!(missing(json!({"success": true, "error": "e"})), ["summary"], "only a failure is described by an error");
    assert_eq!(missing(json!({"success": false, "error": ""})), ["summary"]);
}

#[test]
fn an_error_is_the_summary_of_a_failure() {
    let (envelope, changes) = rewritten(&json!({"success": false, "error": "no spec"}), &Options::default());
    let expected = json!({"success": false, "summary": "no spec", "artifacts": [], "recommendation": "escalate"});
    assert_eq!(envelope, expected);
    assert_eq!(changes[0], "moved /error to /summary");
    let nested = json!({"success": false, "error": {"code": 3, "message": "no spec"}});
    let (envelope, changes) = rewritten(&nested, &Options::default());
    assert_eq!(
        (&envelope["summary"], &envelope["notes"]),
        (&json!("no spec"), &json!(["Error: 3 code, message: no spec"]))
    );
    assert_eq!(changes[0], "copied /error/message to /summary");
    let said = json!({"success": false, "summary": "s", "artifacts": [], "recommendation": "retry", "error": "e", "error_message": null});
    let (envelope, changes) = rewritten(&said, &Options::default());
    assert_eq!((&envelope["summary"], &envelope["notes"]), (&json!("s"), &json!(["Error: e"])));
    assert!(changes.contains(&"left out /error_message: it is null, and an output has no error object".to_owned()));
}

#[test]
fn the_index_needs_a_path_that_is_free_and_inside() {
    let old = |artifacts: Value, paths: Value| json!({"success": true, "summary": "s", "artifacts": artifacts, "state_updates": {"a": 1}, "paths": paths});
    let no_path = old(json!([]), json!({"index": ["not a string"]}));
    assert!(matches!(refused(&no_path, &Options::default()), Refused::NoIndex));
    let (envelope, _) = rewritten(&no_path, &GIVEN);
    assert_eq!(envelope["artifacts"][0]["path"], "index.md");
    let outside = refused(&old(json!([]), json!({"index": "../index.md"})), &GIVEN);
    assert_eq!(outside.to_string(), "the path of the index file has a part `..` (WF-4.2)");
    let artifacts = json!([{"path": "a", "operation": "create", "content": ""}, {"path": "./index.md", "operation": "update", "content": ""}]);
    let Refused::IndexWritten { artifact } = refused(&old(artifacts, json!({})), &GIVEN) else { panic!("it is free") };
    assert_eq!(artifact, "/artifacts/1");
}

/// An artifact is a whole file, so an absent update must not empty the index.
#[test]
fn state_updates_without_any_are_left_out() {
    for nothing in [json!({}), json!([]), json!(null)] {
        let (envelope, changes) =
            rewritten(&json!({"success": true, "summary": "s", "state_updates": nothing}), &GIVEN);
        assert_eq!(envelope["artifacts"], json!([]));
        assert_eq!(changes[0], "left out /state_updates: it updates nothing");
    }
}

#[test]
fn notes_say_what_the_members_held() {
    let cases = [
        (r#""validation_report": {"passed": 8, "failed": 1}"#, "Validation: 8 passed, 1 failed"),
        (r#""collision_risks": []"#, "0 collision risks"),
        (r#""collision_risks": [{"a": 1.50}]"#, r#"1 collision risk: [{"a":1.50}]"#),
        (r#""entries": [true]"#, "1 entry: [true]"),
        (r#""confidence": 0.90"#, "Confidence: 0.90"),
        (r#""next-step": "review, then plan""#, "Next step: review, then plan"),
        (r#""count": "8""#, r#"Count: "8""#),
        (r#""text": "a\nb""#, r#"Text: "a\nb""#),
        (r#""gate": {"open": true, "by": "ann, bob", "at": null}"#, r#"Gate: open: true, by: "ann, bob", at: null"#),
        (r#""gate": {"open": {"by": "ann"}}"#, r#"Gate: {"open":{"by":"ann"}}"#),
        (r#""gate": {}"#, "Gate: {}"),
        (r#""": 1"#, r#""": 1"#),
    ];
    for (member, note) in cases {
        let source = format!(r#"{{"success": true, "summary": "s", {member}}}"#);
        let migrated = migrate(source.as_bytes(), &Options::default()).expect("it can be rewritten");
        let envelope: Value = serde_json::from_str(migrated.document.get()).expect("it is JSON");
        assert_eq!(envelope["notes"], json!([note]));
    }
}

#[test]
fn what_it_is_is_told_by_its_members_or_by_the_caller() {
    let kind = |old: Value, options: &Options<'_>| migrate(old.to_string().as_bytes(), options).map(|done| done.kind);
    let echoing = json!({"success": true, "summary": "s", "feature_id": "f", "workflow": "w", "iteration": 1});
    assert_eq!(kind(echoing, &GIVEN).ok(), Some(Kind::WorkflowOutput));
    let open = json!({"bounds": {}});
    let names_given = Options { index: None, ..GIVEN };
    assert_eq!(kind(open.clone(), &names_given).ok(), Some(Kind::WorkflowInput));
    assert!(matches!(kind(open.clone(), &GIVEN), Err(Refused::Undecided { .. })));
    assert!(matches!(refused(&open, &Options { index: Some("i"), ..Options::default() }), Refused::Missing(_)));
    let both = refused(&json!({"mode": "m", "summary": "s"}), &Options::default());
    let sentence =
        "cannot tell whether this is an input or an output: it has mode like an input and summary like an output";
    assert_eq!(both.to_string(), sentence);
}

#[test]
fn valid_envelopes_stay_as_they_are() {
    for case in corpus::golden().iter().filter(|case| case.contract() == "workflow" && !case.stem().contains("loose")) {
        let Migrated { document, kind, changes, left } =
            migrate(&case.bytes, &Options::default()).expect("it is valid already");
        let source = std::str::from_utf8(&case.bytes).expect("it is UTF-8");
        assert_eq!((document.get(), kind, changes), (source.trim(), case.kind(), vec![]), "{}", case.path.display());
        assert_eq!(!left.is_empty(), case.stem().contains("unknown"), "{}: {left:?}", case.path.display());
    }
}

#[test]
fn what_is_wrong_elsewhere_is_said() {
    let report = |old: &str| match migrate(old.as_bytes(), &as_input()) {
        Err(Refused::Unreadable(report) | Refused::Invalid { report, .. }) => {
            report.findings.iter().map(|finding| (finding.clause.id, finding.pointer.clone())).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(report("{"), [("ALL-101", String::new())]);
    assert_eq!(report("[]"), [("ALL-108", String::new())]);
    assert_eq!(report(r#"{"a": 1, "a": 2}"#), [("ALL-103", "/a".to_owned())]);
    assert_eq!(report(r#"{"iteration": 0}"#), [("WF-1.2", "/context/iteration".to_owned())]);
    let deep = format!(r#"{{"a": {}{}}}"#, "[".repeat(126), "]".repeat(126));
    assert_eq!(report(&deep)[0].0, "ALL-107", "moving it inwards nests it too deep");
    let wrong = |old: Value, options: &Options<'_>| refused(&old, options).to_string();
    assert_eq!(wrong(json!({"task": "validate"}), &as_input()), "/task is a string, not an object (WF-102)");
    assert_eq!(wrong(json!({"task": {"params": []}}), &as_input()), "/task/params is an array, not an object (WF-1.3)");
    assert_eq!(wrong(json!({"success": "yes"}), &as_output()), "/success is a string, not a boolean (WF-107)");
    assert_eq!(wrong(json!({"notes": "one"}), &as_output()), "/notes is a string, not an array (WF-113)");
}

/// The answer is a refusal or a valid envelope, for any bytes.
#[test]
fn every_document_of_the_corpus_is_refused_or_becomes_valid() {
    let mut rewritten = 0;
    for case in corpus::golden().into_iter().chain(corpus::broken()) {
        for options in [as_input(), as_output()] {
            let Ok(migrated) = migrate(&case.bytes, &options) else { continue };
            let kind = crosspoint_contracts::Options { kind: Some(migrated.kind), ..Default::default() };
            let report = crosspoint_contracts::read(migrated.document.get().as_bytes(), &kind).report;
            assert!(report.is_valid(), "{}: {:?}", case.path.display(), report.findings);
            rewritten += 1;
        }
    }
    assert!(rewritten > 50, "only {rewritten} were rewritten");
}

#[test]
fn changes_and_refusals_never_quote_content() {
    const SECRET: &str = "Mustermann";
    let old = json!({"success": true, "summary": SECRET, "a": SECRET, "error": SECRET, "state_updates": SECRET});
    let migrated = migrate(old.to_string().as_bytes(), &GIVEN).expect("it can be rewritten");
    let said = format!("{migrated:?} {:?}", migrated.changes.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert!(!said.contains(SECRET) && migrated.document.get().contains(SECRET), "{said}");
    for old in [
        json!({"iteration": SECRET, "a": SECRET}),
        json!({"task": SECRET}),
        json!({"context": {"workflow": SECRET}, "workflow": "x"}),
    ] {
        let refused = refused(&old, &as_input());
        assert!(!format!("{refused} {refused:?}").contains(SECRET), "{refused:?}");
    }
}
