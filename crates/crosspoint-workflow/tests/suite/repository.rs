//! Stories of applying outputs: WF-4 and WF-5 on a real file system.

mod copies;
mod damaged;
mod faults;
mod locks;
mod unfinished;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crosspoint_workflow::repository::{
    Applied, Clash, ClashReason, Fault, FileChange, NotApplied, Repository, Rules, recover,
};

use crate::process::{play, was_fine};
use crate::scratch::{Scratch, create, update, written};

#[test]
fn an_output_is_written_in_nested_directories_and_over_files() {
    let scratch = Scratch::new();
    scratch.put("src/main.rs", "old");
    let changes = [create("docs/a/b/c.md", "new"), update("src/main.rs", "newer"), create("./src//lib.rs", "")];
    let expected = [
        ("docs/a/b/c.md", FileChange::Created),
        ("src/main.rs", FileChange::Updated),
        ("./src//lib.rs", FileChange::Created),
    ];
    assert_eq!(written(&scratch.apply(1, &changes)), expected);
    let names: Vec<String> = scratch.tree().into_keys().collect();
    let all = ["docs/", "docs/a/", "docs/a/b/", "docs/a/b/c.md", "src/", "src/lib.rs", "src/main.rs"];
    assert_eq!(names, all, "and nothing is left of the staging directory");
    assert_eq!((scratch.text("docs/a/b/c.md").as_str(), scratch.text("src/main.rs").as_str()), ("new", "newer"));
}

#[test]
fn conflicts_write_nothing_and_are_all_listed() {
    let scratch = Scratch::new();
    scratch.put("there", "old");
    let before = scratch.tree();
    let changes = [create("new", "x"), create("there", "other"), update("missing", "x"), update("no/where", "x")];
    let clash = |path: &str, why| Clash { path: path.to_owned(), why };
    let expected = Applied::Conflict(vec![
        clash("there", ClashReason::Exists),
        clash("missing", ClashReason::Missing),
        clash("no/where", ClashReason::Missing),
    ]);
    assert_eq!(scratch.apply(1, &changes), expected);
    assert_eq!(scratch.tree(), before);
    // The same output has the same result, although it would not be a conflict any more.
    fs::remove_file(scratch.root().join("there")).expect("it can be removed");
    assert_eq!(scratch.apply(1, &changes), expected);
}

#[test]
fn identical_content_is_no_change_and_no_conflict() {
    let scratch = Scratch::new();
    scratch.put("a", "same");
    scratch.put("b", "same");
    let inodes = (scratch.inode("a"), scratch.inode("b"));
    let applied = scratch.apply(1, &[create("a", "same"), update("b", "same")]);
    assert_eq!(written(&applied), [("a", FileChange::Unchanged), ("b", FileChange::Unchanged)]);
    let applied = scratch.apply(2, &[create("a", "same"), update("b", "new!"), create("c", "")]);
    let expected = [("a", FileChange::Unchanged), ("b", FileChange::Updated), ("c", FileChange::Created)];
    assert_eq!(written(&applied), expected);
    assert_eq!(scratch.inode("a"), inodes.0, "it was not touched");
}

#[test]
fn an_empty_output_is_applied() {
    let scratch = Scratch::new();
    assert_eq!(scratch.apply(1, &[]), Applied::Written(vec![]));
    assert!(scratch.tree().is_empty());
}

#[test]
fn a_step_is_applied_once() {
    let scratch = Scratch::new();
    let changes = [create("a", "first")];
    let first = scratch.apply(1, &changes);
    scratch.put("a", "edited by a person");
    assert_eq!(scratch.apply(1, &changes), first);
    assert_eq!(scratch.text("a"), "edited by a person");
    match scratch.try_apply(1, &[create("a", "other")]) {
        Err(NotApplied::Fault(Fault::AnotherStep { step: 1, .. })) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_record_belongs_to_one_root() {
    let scratch = Scratch::new();
    scratch.apply(1, &[create("a", "")]);
    let other = scratch.path().join("other");
    fs::create_dir(&other).expect("it can be made");
    let repository = Repository::open(&other).expect("it is there");
    // Neither the step of before is taken for done there, nor is the next one written there.
    for step in [1, 2] {
        let applied = repository.apply(&scratch.record(), step, &[create("a", "")], &Rules::default());
        assert!(matches!(applied, Err(NotApplied::Fault(Fault::AnotherRoot { .. }))), "{applied:?}");
    }
    assert!(fs::read_dir(&other).expect("it is there").next().is_none(), "nothing was written");
}

#[test]
fn an_update_keeps_the_mode_and_breaks_hard_links() {
    let scratch = Scratch::new();
    scratch.put("run.sh", "old");
    fs::set_permissions(scratch.root().join("run.sh"), fs::Permissions::from_mode(0o751)).expect("it has a mode");
    let outside = scratch.path().join("outside");
    fs::hard_link(scratch.root().join("run.sh"), &outside).expect("it can be linked");
    scratch.apply(1, &[update("run.sh", "new")]);
    assert_eq!((scratch.mode("run.sh"), scratch.text("run.sh").as_str()), (0o751, "new"));
    assert_eq!(fs::read_to_string(outside).expect("it is there"), "old");
}

#[test]
fn new_files_and_directories_have_the_usual_modes() {
    for (part, file, directory) in [("apply 022", 0o644, 0o755), ("apply 077", 0o600, 0o700)] {
        let scratch = Scratch::new();
        assert!(was_fine(play(part, scratch.path(), &[])));
        assert_eq!((scratch.mode("new/file"), scratch.mode("new")), (file, directory), "{part}");
    }
}

#[test]
fn names_may_be_of_any_language_and_are_taken_literally() {
    let scratch = Scratch::new();
    let names = ["öäü/日本語.md", "a b/$HOME", "~", "*.rs", "-rf", "a\nb", "\"q\"", "%2e%2e", "{x}"];
    let changes: Vec<_> = names.iter().map(|name| create(name, name)).collect();
    scratch.apply(1, &changes);
    for name in names {
        assert_eq!(scratch.text(name), name);
    }
}

#[test]
fn ten_thousand_files_are_applied_with_few_handles() {
    let scratch = Scratch::new();
    assert!(was_fine(play("ten thousand", scratch.path(), &[])));
    assert_eq!(scratch.tree().len(), 10_000 + 500 + 1);
    assert_eq!(scratch.text("d/499/f9999"), "content 9999");
}

/// The inside of a git repository is under `.git` also where the root is.
#[test]
fn a_root_under_git_is_written_to_where_that_is_allowed() {
    let scratch = Scratch::new();
    for inside in [".git", ".git/hooks", "deep/.GIT"] {
        let root = scratch.root().join(inside);
        std::fs::create_dir_all(&root).expect("it can be made");
        let repository = Repository::open(&root).expect("it is there");
        let changes = [create("pre-commit", "x")];
        match repository.apply(&scratch.record(), 1, &changes, &Rules::default()) {
            Err(NotApplied::Refused(paths)) => assert_eq!(paths[0].clause.id, "WF-4.8", "{inside}"),
            other => panic!("{inside}: {other:?}"),
        }
        let allowed = Rules { allow_git: true, ..Rules::default() };
        let record = scratch.path().join(inside.replace('/', "-"));
        repository.apply(&record, 1, &changes, &allowed).expect("it is allowed");
    }
}

#[test]
fn applies_to_the_same_root_do_not_interleave() {
    let scratch = Scratch::new();
    scratch.apply(0, &(0..20).map(|number| create(&format!("f{number}"), "0")).collect::<Vec<_>>());
    std::thread::scope(|threads| {
        for thread in 1..=4 {
            let scratch = &scratch;
            threads.spawn(move || {
                let repository = scratch.open();
                let record = scratch.path().join(format!("record-{thread}"));
                for step in 0..10 {
                    let text = format!("{thread}.{step}");
                    let changes: Vec<_> = (0..20).map(|number| update(&format!("f{number}"), &text)).collect();
                    repository.apply(&record, step, &changes, &Rules::default()).expect("it is applied");
                    // Another thread may have applied its output since, but whole.
                }
            });
        }
    });
    let tree = scratch.tree();
    let texts: std::collections::BTreeSet<&String> = tree.values().collect();
    assert_eq!((tree.len(), texts.len()), (20, 1), "{tree:?}");
}

#[test]
fn protected_places_are_refused_however_they_are_reached() {
    let scratch = Scratch::new();
    scratch.put("data/db", "rows");
    scratch.put("config.toml", "port = 1");
    symlink(scratch.root(), scratch.path().join("alias")).expect("it can be linked");
    let alias = scratch.path().join("alias");
    fs::hard_link(scratch.root().join("config.toml"), scratch.root().join("other.toml")).expect("it can be linked");
    let protected = vec![alias.join("data"), alias.join("config.toml"), alias.join("later/secret")];
    let rules = Rules { allow_git: false, protected };
    let refuse = |root: &Path, path: &str| {
        let repository = Repository::open(root).expect("it is there");
        for change in [create(path, "x"), update(path, "x")] {
            match repository.check(&[create("fine", ""), change], &rules) {
                Err(NotApplied::Refused(paths)) => assert_eq!((paths.len(), paths[0].path.as_str()), (1, path)),
                other => panic!("{path}: {other:?}"),
            }
        }
    };
    for root in [scratch.root(), alias] {
        for path in
            ["data", "data/db", "./data//new", "config.toml", "other.toml", "later", "later/secret", "later/secret/x"]
        {
            refuse(&root, path);
        }
        let repository = Repository::open(&root).expect("it is there");
        repository.check(&[create("later/other", ""), create("data2", "")], &rules).expect("it is allowed");
    }
}

#[test]
fn the_record_is_protected_but_may_hold_the_repository() {
    let scratch = Scratch::new();
    let record = scratch.root().join(".run");
    let applied = scratch.open().apply(&record, 1, &[create(".run/step-1.done.json", "")], &Rules::default());
    assert!(matches!(applied, Err(NotApplied::Refused(_))), "{applied:?}");
    let applied = scratch.open().apply(scratch.path(), 1, &[create("fine", "")], &Rules::default());
    assert!(applied.is_ok(), "{applied:?}");
}

#[test]
fn recovering_without_a_crash_does_nothing() {
    let scratch = Scratch::new();
    assert_eq!(recover(&scratch.record()).expect("there is no record"), Default::default());
    scratch.apply(1, &[create("a", "")]);
    assert_eq!(recover(&scratch.record()).expect("there is nothing to do"), Default::default());
}

#[test]
fn contents_and_paths_are_not_printed() {
    let change = format!("{:?}", create("a/secret", "secret"));
    assert_eq!(change, "Change(path of 8 bytes, Create, content of 6 bytes)");
    let scratch = Scratch::new();
    scratch.put("there", "old");
    let applied = scratch.apply(1, &[create("secret", "")]);
    assert_eq!(format!("{applied:?}"), "Written([Written(path of 6 bytes, Created)])");
    let applied = scratch.apply(2, &[create("there", "")]);
    assert_eq!(format!("{applied:?}"), "Conflict([Clash(path of 5 bytes, Exists)])");
    let refused = scratch.try_apply(3, &[create("/secret", "")]).expect_err("it is absolute");
    assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
}
