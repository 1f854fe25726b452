//! `{feature}` in paths: filled in, and found in the paths of files (WF-10).

use crosspoint_workflow::run::Feature;

use super::{read, with_stage};

fn found(template: &str, file: &str) -> Option<String> {
    let definition = read(&with_stage(&format!("[paths]\np = \"{template}\"")));
    definition.paths()[0].templates()[0].feature_of(file).map(|feature| feature.as_str().to_owned())
}

#[test]
fn a_feature_is_found_where_the_path_matches() {
    for (template, file, feature) in [
        ("specs/{feature}/", "specs/005/spec.md", "005"),
        ("specs/{feature}/", "specs/005/deep/er.md", "005"),
        ("./specs//{feature}/", "specs/./005/x", "005"),
        ("specs/{feature}/spec.md", "specs/005 user/spec.md", "005 user"),
        ("specs/spec-{feature}.md", "specs/spec-é.md", "é"),
        ("{feature}/{feature}.md", "a/a.md", "a"),
        ("{feature}-{feature}.md", "ab-ab.md", "ab"),
        ("{feature}", "a", "a"),
    ] {
        assert_eq!(found(template, file).as_deref(), Some(feature), "{template} in {file}");
    }
}

#[test]
fn no_feature_is_found_elsewhere() {
    for (template, file) in [
        ("specs/{feature}/", "specs/005"),
        ("specs/{feature}/", "other/005/spec.md"),
        ("specs/{feature}/spec.md", "specs/005/spec.md/more"),
        ("specs/{feature}/spec.md", "specs/005/deep/spec.md"),
        ("specs/spec-{feature}.md", "specs/spec-.md"),
        ("specs/spec-{feature}.md", "specs/x"),
        ("specs/\u{e9}{feature}", "specs/\u{e8}a"),
        ("{feature}/{feature}.md", "a/b.md"),
        ("{feature}-{feature}.md", "ab-cd.md"),
        ("specs/{feature}/", "specs/.git/x"),
        ("specs/{feature}/", "specs/../x"),
        ("fixed.md", "fixed.md"),
    ] {
        assert_eq!(found(template, file), None, "{template} in {file}");
    }
}

#[test]
fn a_feature_is_one_harmless_part_of_a_path() {
    for good in ["005-user-auth", "a", "ü b", "..x", "x.", &"x".repeat(128)] {
        assert_eq!(Feature::new(good).expect("it is a name").as_str(), good);
    }
    for bad in [
        "",
        ".",
        "..",
        "...",
        " ",
        ".. ",
        "a/b",
        "a\\b",
        "a\0",
        "a\n",
        ".git",
        ".GIT ",
        "git~1",
        "C:x",
        &"x".repeat(129),
    ] {
        assert!(Feature::new(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn why_a_feature_is_misnamed_is_said_without_its_name() {
    let said: Vec<String> = ["", "a/b", ".git", &"x".repeat(129)]
        .map(|bad| Feature::new(bad).expect_err("it is misnamed").to_string())
        .to_vec();
    insta::assert_snapshot!(said.join("\n"));
    assert_eq!(format!("{:?}", Feature::new("secret").expect("it is a name")), "[6 bytes]");
}
