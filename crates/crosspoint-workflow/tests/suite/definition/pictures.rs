//! Workflows drawn.

use super::{SPECIFY, read, with_stage};

fn odd() -> String {
    let long = "l".repeat(70);
    with_stage("proceed = \"b\"\nretry = { limit = 0 }").replace("\"x\"", "'a \"quoted\" <b>agent</b> `x` #1;'")
        + &format!("[[stage]]\nid = \"b\"\nagent = \"{long}\"\naction = \"übersetzen\"\nretry = {{ limit = 1 }}\n")
}

#[test]
fn as_text() {
    insta::assert_snapshot!(read(SPECIFY).drawn());
    insta::assert_snapshot!(read(&odd()).drawn());
}

#[test]
fn text_is_narrow_where_names_allow() {
    for text in [SPECIFY.to_owned(), odd()] {
        assert!(read(&text).drawn().lines().all(|line| line.chars().count() <= 80));
    }
}

#[test]
fn as_a_flowchart() {
    insta::assert_snapshot!(read(SPECIFY).mermaid());
    insta::assert_snapshot!(read(&odd()).mermaid());
}
