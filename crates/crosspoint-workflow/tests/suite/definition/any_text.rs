//! Any text at all: read, or refused with mistakes that are places of the text.

use crosspoint_workflow::definition::Definition;
use proptest::prelude::*;

use super::SPECIFY;

fn read_and_look(text: &str) {
    let found = Definition::read(text).map_or_else(|mistakes| mistakes, |read| read.warnings().to_vec());
    for mistake in &found {
        assert!(text.get(mistake.span.clone()).is_some(), "{mistake:?} is no place of the text");
        assert!(!mistake.what.is_empty() && !mistake.hint.is_empty());
    }
}

/// Parts of files, good and bad.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "name",
        "id",
        "agent",
        "action",
        "params",
        "proceed",
        "retry",
        "escalate",
        "allow_git",
        "exec",
        "env",
        "contract",
        "paths.x",
        "retry.goto",
        "retry.limit",
        "params.a",
        "total_seconds",
        "\"\"",
    ]);
    let value = prop::sample::select(vec![
        "\"a\"",
        "\"b\"",
        "\"done\"",
        "3",
        "-1",
        "true",
        "[]",
        "{}",
        "[\"a\"]",
        "{ goto = \"a\" }",
        "{ then = \"b\" }",
        "nan",
        "1979-05-27",
        "\"specs/{feature}/\"",
        "\"../x\"",
        "{ limit = 2 }",
        "\"\\u0000\"",
    ]);
    let header = prop::sample::select(vec!["[[stage]]", "[paths]", "[[agent]]", "[stage.params]", "[x]", "[[stage"]);
    prop_oneof![
        4 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        2 => header.prop_map(str::to_owned),
        1 => "[ -~]{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_lines_are_read_or_refused(lines in prop::collection::vec(line(), 0..24)) {
        read_and_look(&lines.join("\n"));
    }

    #[test]
    fn a_good_file_with_a_piece_cut_out_is_read_or_refused(from in 0..SPECIFY.len(), length in 0_usize..60, put in "\\PC{0,3}") {
        let mut text = SPECIFY.to_owned();
        text.replace_range(from..(from + length).min(SPECIFY.len()), &put);
        read_and_look(&text);
    }
}
