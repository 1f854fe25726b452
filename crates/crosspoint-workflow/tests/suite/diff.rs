//! The difference of a whole run, and programs that apply it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crosspoint_workflow::repository::{Summary, diff};

use crate::scratch::{Scratch, create, tree, update};

const LIMIT: u64 = 1 << 20;

fn shown(scratch: &Scratch) -> (String, Summary) {
    let mut text = Vec::new();
    let summary = diff(&scratch.record(), &mut text, LIMIT).expect("it can be written");
    (String::from_utf8(text).expect("it is text"), summary)
}

#[test]
fn a_difference_is_of_the_whole_run() {
    let scratch = Scratch::new();
    scratch.put("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
    scratch.put("back.txt", "as it was");
    scratch.apply(1, &[update("a.txt", "first try\n"), create("new.txt", "first try\n"), update("back.txt", "other")]);
    let a = "one\ntwo\nTHREE\nfour\nfive\nsix\n";
    scratch.apply(2, &[update("a.txt", a), update("new.txt", "hello\nthere"), update("back.txt", "as it was")]);
    scratch.put("a.txt", "edited by a person");
    let (text, summary) = shown(&scratch);
    insta::assert_snapshot!(text, @r"
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,6 +1,6 @@
     one
     two
    -three
    +THREE
     four
     five
     six
    diff --git a/new.txt b/new.txt
    new file mode 100644
    --- /dev/null
    +++ b/new.txt
    @@ -0,0 +1,2 @@
    +hello
    +there
    \ No newline at end of file
    ");
    assert_eq!(summary, Summary { files: 2, lines_added: 3, lines_removed: 1, not_shown: 0 });
}

#[test]
fn a_run_without_changes_has_no_difference() {
    let scratch = Scratch::new();
    assert_eq!(shown(&scratch), (String::new(), Summary::default()), "not even a record");
    scratch.put("a", "same");
    scratch.apply(1, &[update("a", "same")]);
    scratch.apply(2, &[update("missing", "a conflict")]);
    assert_eq!(shown(&scratch), (String::new(), Summary::default()));
}

/// Files of all shapes, before and after.
fn varied() -> Scratch {
    let scratch = Scratch::new();
    let lines = |from: u32, to: u32| (from..to).map(|number| format!("line {number}\n")).collect::<String>();
    let pairs = [
        ("far", lines(0, 100), lines(0, 10) + "new\n" + &lines(11, 80) + &lines(85, 100)),
        ("end", "a\nb".to_owned(), "a\nb\n".to_owned()),
        ("no end", "a\nb\n".to_owned(), "a\nb".to_owned()),
        ("emptied", "a\n".to_owned(), String::new()),
        ("filled", String::new(), "a\n".to_owned()),
        ("crlf", "a\r\nb\r\n".to_owned(), "a\r\nc\r\n".to_owned()),
        ("with space/in it", "1\n".to_owned(), "2\n".to_owned()),
        ("tab\tand \"quote\"", "1\n".to_owned(), "2\n".to_owned()),
        ("ünï/日本", "1\n".to_owned(), "2\n".to_owned()),
        ("minus", "-- a\n++ b\n".to_owned(), "-- c\n++ d\n".to_owned()),
    ];
    for (path, before, _) in &pairs {
        scratch.put(path, before);
    }
    fs::create_dir(scratch.path().join("before")).expect("it can be made");
    let copied = Command::new("cp").arg("-a").arg(scratch.root().join(".")).arg(scratch.path().join("before")).status();
    assert!(copied.expect("it runs").success());
    let mut changes: Vec<_> = pairs.iter().map(|(path, _, after)| update(path, after)).collect();
    changes.extend([create("new/deep/file", "x\n"), create("new/empty", ""), create("new/no end", "x")]);
    scratch.apply(1, &changes);
    scratch
}

fn applies(program: &str, arguments: &[&str]) {
    let scratch = varied();
    let (text, summary) = shown(&scratch);
    assert_eq!((summary.files, summary.not_shown), (13, 0));
    let before = scratch.path().join("before");
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(&before)
        // Outside any repository, whatever the directory for temporary files is in.
        .env("GIT_CEILING_DIRECTORIES", scratch.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it is installed");
    child.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads");
    assert!(child.wait().expect("it ends").success(), "{text}");
    assert_eq!(tree(&before), scratch.tree(), "{text}");
}

#[test]
fn git_applies_it() {
    applies("git", &["apply", "--whitespace=nowarn", "-"]);
}

#[test]
fn patch_applies_it() {
    applies("patch", &["-p1", "--silent"]);
}

#[test]
fn binary_and_long_files_are_named_and_passed_over() {
    let scratch = Scratch::new();
    scratch.put("binary", "a\0b");
    scratch.put("long", &"x\n".repeat(3 << 20));
    scratch.put("very long", &"x".repeat(17 << 20));
    scratch.put("latin", "");
    fs::write(scratch.root().join("latin"), b"caf\xe9\n").expect("it can be written");
    let changes = ["binary", "long", "very long", "latin"].map(|path| update(path, "new\n"));
    scratch.apply(1, &changes);
    let mut text = Vec::new();
    let summary = diff(&scratch.record(), &mut text, LIMIT).expect("it can be written");
    assert_eq!(summary, Summary { files: 4, lines_added: 1, lines_removed: 1, not_shown: 3 });
    let text = String::from_utf8_lossy(&text).into_owned();
    insta::assert_snapshot!(text, @"
    # not shown: binary (binary)
    diff --git a/latin b/latin
    --- a/latin
    +++ b/latin
    @@ -1 +1 @@
    -caf\u{fffd}
    +new
    # not shown: long (too long to compare)
    # not shown: very long (too long to compare)
    ");
}

/// Returns the difference of at most so many bytes.
fn limited(scratch: &Scratch, bytes_max: u64) -> (String, Summary) {
    let mut text = Vec::new();
    let summary = diff(&scratch.record(), &mut text, bytes_max).expect("it can be written");
    assert!(text.len() as u64 <= bytes_max, "{} bytes of {bytes_max}", text.len());
    (String::from_utf8(text).expect("it is text"), summary)
}

#[test]
fn files_beyond_the_limit_are_named() {
    let scratch = Scratch::new();
    scratch.apply(1, &[create("a", &"a\n".repeat(100)), create("b", &"b\n".repeat(10)), create("c", "c\n")]);
    let (text, summary) = limited(&scratch, 340);
    assert_eq!((summary.files, summary.not_shown), (3, 1));
    assert!(text.starts_with("# not shown: a (beyond the limit of this output)\n"), "{text}");
    assert!(diff(Path::new("/nowhere"), &mut Vec::new(), 1).is_ok());
}

/// Whatever the limit is and whatever the names are, and over all steps of a run together.
#[test]
fn a_difference_is_never_longer_than_the_limit() {
    let scratch = Scratch::new();
    let name = |number: usize| format!("{}{number}", "é\n".repeat(80));
    for step in 0..4 {
        let changes: Vec<_> = (0..50).map(|number| create(&name(number * 4 + step), "\0")).collect();
        scratch.apply(u32::try_from(step).expect("it fits"), &changes);
    }
    let whole = limited(&scratch, LIMIT).0;
    assert_eq!(whole.lines().count(), 200, "each has a line");
    let longest = whole.len() as u64;
    for bytes_max in (0..200).step_by(50).chain((200..longest + 10_000).step_by(9_973)) {
        let (text, summary) = limited(&scratch, bytes_max);
        assert_eq!((summary.files, summary.not_shown), (200, 200), "{bytes_max}");
        let Some(last) = text.lines().last() else {
            assert!(bytes_max < 100, "{bytes_max}: there is room for the last line");
            continue;
        };
        let named = text.lines().filter(|line| line.starts_with("# not shown: ")).count();
        let more = last.strip_prefix("# ").and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(0);
        assert_eq!(named + more, 200, "{bytes_max}: {last}");
    }
}

#[test]
fn one_file_more_is_counted_as_one() {
    let scratch = Scratch::new();
    scratch.apply(1, &[create("a", "\0"), create(&"b".repeat(200), "\0")]);
    assert_eq!(
        limited(&scratch, 160).0,
        "# not shown: a (beyond the limit of this output)\n# 1 more file is not shown (beyond the limit of this output)\n"
    );
}
