//! The blocks of code of the documentation, for tests that run them.

use std::fs;

use crate::support::program::root;

/// The text of a page.
pub(crate) fn page(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The text under a heading, up to the next heading.
pub(crate) fn section<'t>(page: &'t str, heading: &str) -> &'t str {
    let (_, rest) = page.split_once(&format!("{heading}\n")).unwrap_or_else(|| panic!("there is no {heading:?}"));
    rest.split("\n## ").next().unwrap_or_default()
}

/// The blocks of code: language and text.
pub(crate) fn blocks(section: &str) -> Vec<(&str, &str)> {
    let fenced = section.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').expect("a fence ends its line")).collect()
}

/// The blocks of code, each with the text before it, which says what it is.
pub(crate) fn announced(section: &str) -> Vec<(&str, &str, &str)> {
    let prose = section.split("```").step_by(2);
    prose.zip(blocks(section)).map(|(before, (language, text))| (before.trim_end(), language, text)).collect()
}
