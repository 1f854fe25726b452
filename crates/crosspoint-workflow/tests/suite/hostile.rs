//! Paths and links that are meant to lead outside.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crosspoint_workflow::repository::{Applied, Change, Fault, Misplaced, NotApplied, Operation, REFUSED_MAX, Rules};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};

use crate::crash::{prepared, state_after};
use crate::process::{CHANGED, output, play_around};
use crate::scratch::{Scratch, create, tree, update};

/// How many outputs race with a link at least, and at most until one was applied and one met the link.
const STEPS_MIN: u32 = 200;
const STEPS_MAX: u32 = 20_000;

fn refused(result: Result<impl std::fmt::Debug, NotApplied>) -> Vec<Misplaced> {
    match result {
        Err(NotApplied::Refused(paths)) => paths,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bad_spellings_refuse_the_whole_output() {
    let long_name = "n".repeat(256);
    let long_path = "d/".repeat(2_100) + "f";
    let deep_path = "d/".repeat(128) + "f";
    let bad = [
        ("../../etc/passwd", "WF-4.2"),
        ("/abs", "WF-4"),
        ("a/../../b", "WF-4.2"),
        ("a/..", "WF-4.2"),
        (".. /a", "WF-4.2"),
        ("C:\\x", "WF-4.3"),
        ("C:x", "WF-4.3"),
        ("a\0b", "WF-4.4"),
        ("a\\b", "WF-4.5"),
        ("..\\b", "WF-4.2"),
        ("", "WF-4.6"),
        (".", "WF-4.6"),
        ("a/", "WF-4.6"),
        ("a/.", "WF-4.6"),
        (".git/config", "WF-4.8"),
        (".GIT/config", "WF-4.8"),
        ("a/.git", "WF-4.8"),
        (".git. /config", "WF-4.8"),
        ("git~1/config", "WF-4.8"),
        (".g\u{200c}it/config", "WF-4.8"),
        (".git::$INDEX_ALLOCATION/config", "WF-4.8"),
        (&long_name, "WF-4.10"),
        (&long_path, "WF-4.10"),
        (&deep_path, "WF-4.10"),
    ];
    let scratch = Scratch::new();
    for (path, clause) in bad {
        for operation in [Operation::Create, Operation::Update] {
            let change = Change { operation, ..create(path, "x") };
            let paths = refused(scratch.try_apply(1, &[create("fine", ""), change]));
            assert!(paths.iter().any(|it| it.clause.id == clause), "{path:?}: {paths:?}");
            assert!(paths.iter().all(|it| it.path.chars().count() <= 130), "{paths:?}");
        }
    }
    assert!(scratch.tree().is_empty());
    let many: Vec<_> = (0..1_000).map(|number| create(&format!("../{number}"), "")).collect();
    assert_eq!(refused(scratch.try_apply(1, &many)).len(), REFUSED_MAX);
}

#[test]
fn git_is_written_where_the_workflow_allows_it() {
    let scratch = Scratch::new();
    let rules = Rules { allow_git: true, ..Rules::default() };
    let changes = [create(".git/info/exclude", "x")];
    scratch.open().apply(&scratch.record(), 1, &changes, &rules).expect("it is allowed");
    assert_eq!(scratch.text(".git/info/exclude"), "x");
    let paths = refused(scratch.open().check(&[create(".git/../x", "")], &rules));
    assert_eq!((paths.len(), paths[0].clause.id), (1, "WF-4.2"));
}

#[test]
fn the_same_path_twice_is_refused_however_it_is_spelled() {
    let scratch = Scratch::new();
    for second in ["a/b", "a//b", "./a/b", "a/./b"] {
        let paths = refused(scratch.try_apply(1, &[create("a/b", "1"), create("x", ""), create(second, "2")]));
        assert_eq!((paths.len(), paths[0].clause.id, paths[0].path.as_str()), (1, "WF-4.7", second));
    }
    let paths = refused(scratch.try_apply(1, &[create("a/b/c", ""), create("a-b", ""), create("./a", "")]));
    assert_eq!((paths.len(), paths[0].clause.id, paths[0].path.as_str()), (1, "WF-4.6", "./a"));
    assert!(scratch.tree().is_empty());
}

#[test]
fn what_is_there_refuses_the_whole_output() {
    let scratch = Scratch::new();
    let outside = scratch.path().join("outside");
    fs::create_dir(&outside).expect("it can be made");
    fs::write(outside.join("file"), "outside").expect("it can be written");
    scratch.put("file", "inside");
    scratch.put("directory/inside", "inside");
    let link = |target: &std::path::Path, name: &str| symlink(target, scratch.root().join(name)).expect("it is linked");
    link(&outside, "out");
    link(&outside.join("file"), "link");
    link(&outside.join("new"), "dangling");
    link(std::path::Path::new("directory"), "within");
    link(std::path::Path::new("loop"), "loop");
    link(std::path::Path::new("/proc/self/root"), "magic");
    mknodat(CWD, scratch.root().join("pipe"), FileType::Fifo, Mode::RUSR, 0).expect("it can be made");
    let _socket = UnixListener::bind(scratch.root().join("socket")).expect("it can be bound");
    let (before, outside_before) = (scratch.tree(), tree(&outside));
    let bad = [
        ("out/file", "WF-4.9"),
        ("out/new/deep", "WF-4.9"),
        ("link", "WF-4.9"),
        ("dangling", "WF-4.9"),
        ("dangling/x", "WF-4.9"),
        ("within/inside", "WF-4.9"),
        ("loop", "WF-4.9"),
        ("loop/x", "WF-4.9"),
        ("magic/tmp/x", "WF-4.9"),
        ("directory", "WF-4.6"),
        ("file/x", "WF-4.6"),
        ("file/x/y", "WF-4.6"),
        ("pipe", "WF-4.6"),
        ("pipe/x", "WF-4.6"),
        ("socket", "WF-4.6"),
    ];
    for (path, clause) in bad {
        for change in [create(path, "x"), update(path, "x")] {
            let changes = [create("fine", "x"), change];
            for paths in
                [refused(scratch.open().check(&changes, &Rules::default())), refused(scratch.try_apply(1, &changes))]
            {
                assert_eq!((paths.len(), paths[0].clause.id, paths[0].path.as_str()), (1, clause, path));
            }
        }
    }
    assert_eq!((scratch.tree(), tree(&outside)), (before, outside_before));
}

/// A directory with files of the output is swapped for a link to outside at a place between a check and a write.
#[test]
fn a_link_that_is_planted_between_check_and_write_never_leads_outside() {
    // The last check of the directory is right before its last file is written, through the handle that was checked.
    let met = ["kept_contents", "planned", "staged.1", "synced", "committed", "made.1", "checked.0", "placed.0"];
    let met = met.into_iter().chain(["checked.1", "kept.1", "placed.1"]).map(|place| (place, Some(CHANGED)));
    let passed = ["checked.2", "placed.2", "placed.5", "settled", "cleaned"].map(|place| (place, Some(0)));
    for (place, expected) in met.chain(passed) {
        let scratch = prepared();
        let before = scratch.tree();
        let (outside, planted) = (scratch.path().join("outside"), scratch.path().join("planted"));
        fs::create_dir(&outside).expect("it can be made");
        fs::write(outside.join("two"), "two").expect("it can be written");
        symlink(&outside, &planted).expect("it can be linked");
        let swap = || swap(&scratch.root().join("old"), &planted);
        let status = play_around("output", scratch.path(), place, swap);
        assert_eq!(status.code(), expected, "{place}");
        assert_eq!(tree(&outside), [("two".to_owned(), "two".to_owned())].into(), "{place}");
        swap();
        assert_eq!(scratch.tree(), if expected == Some(0) { state_after() } else { before }, "{place}");
        scratch.apply(1, &output());
        assert_eq!(scratch.tree(), state_after(), "{place}");
    }
}

/// Links are put under the names of the staged files while they wait. A file of the output is a file, or nothing is.
#[test]
fn a_link_that_is_planted_among_the_staged_files_is_not_put_in_place() {
    let places =
        ["synced", "committed", "placed.0", "checked.1", "kept.1", "placed.1", "checked.2", "checked.4", "kept.4"];
    for place in places {
        let scratch = prepared();
        let before = scratch.tree();
        let outside = scratch.path().join("outside");
        let plant = || {
            let entries = fs::read_dir(scratch.root()).expect("it is there").flatten();
            let staging =
                entries.map(|entry| entry.path()).find(|path| path.to_string_lossy().contains("/.crosspoint-"));
            for number in 0..6 {
                let new = staging.as_ref().expect("files are staged").join(format!("new-{number}"));
                if fs::remove_file(&new).is_ok() {
                    symlink(&outside, &new).expect("it can be linked");
                }
            }
        };
        let status = play_around("output", scratch.path(), place, plant);
        let whole = if status.success() { state_after() } else { before };
        assert!(status.success() || status.code() == Some(CHANGED), "{place}: {status}");
        assert_eq!(scratch.tree(), whole, "{place}: {status}");
        scratch.apply(1, &output());
        assert_eq!((scratch.tree(), outside.exists()), (state_after(), false), "{place}");
    }
}

fn swap(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).expect("they can be swapped");
}

/// A second thread swaps a directory for a link to outside, again and again, while outputs are applied.
#[test]
fn a_link_that_is_planted_meanwhile_never_leads_outside() {
    let scratch = Scratch::new();
    let outside = scratch.path().join("outside");
    fs::create_dir_all(outside.join("deep")).expect("it can be made");
    for place in [outside.join("f0"), outside.join("deep/f0")] {
        fs::write(place, "outside").expect("it can be written");
    }
    for number in 0..4 {
        scratch.put(&format!("d/f{number}"), "start");
        scratch.put(&format!("d/deep/f{number}"), "start");
        scratch.put(&format!("e/f{number}"), "start");
    }
    // The directories themselves, wherever they are moved.
    let handles = ["d", "d/deep", "e"].map(|name| fs::File::open(scratch.root().join(name)).expect("it is there"));
    let (real, planted) = (scratch.root().join("d"), scratch.path().join("planted"));
    symlink(&outside, &planted).expect("it can be linked");
    let outside_before = tree(&outside);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // Twice, so that the directory is back at its place.
                for _ in 0..2 {
                    swap(&real, &planted);
                    std::thread::yield_now();
                }
            }
        });
        // Also ends the thread when something below is not as expected.
        let _over = Over(&is_over);
        let (mut last, mut applied, mut met, mut step) = ("start".to_owned(), 0, 0, 0);
        while step < STEPS_MIN || applied == 0 || met == 0 {
            assert!(step < STEPS_MAX, "{applied} outputs were applied, and {met} met the link");
            let text = format!("step {step}");
            let end = apply_once(&scratch, step, &text);
            applied += usize::from(end == End::Applied);
            met += usize::from(end == End::Met);
            last = if end == End::Applied { text } else { last };
            let contents = contents(&handles);
            assert!(contents.iter().all(|it| *it == last), "half of step {step}, {end:?}, {contents:?}");
            step += 1;
        }
        let made = fs::read_dir(format!("/proc/self/fd/{}", handles[0].as_raw_fd())).expect("it can be listed");
        // Its files, the directory in it, and one new directory for each output.
        assert_eq!(made.count(), 4 + 1 + applied, "directories of an output that was taken back are gone");
    });
    assert_eq!(tree(&outside), outside_before);
    assert!(!scratch.tree().keys().any(|path| path.starts_with(".crosspoint")));
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How an output came out that races with a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Applied,
    /// The link was there when the places were looked at.
    Refused,
    /// The link came after that, and what was written is taken back.
    Met,
}

fn apply_once(scratch: &Scratch, step: u32, text: &str) -> End {
    let mut changes = Vec::new();
    for number in 0..4 {
        for directory in ["e", "d", "d/deep"] {
            changes.push(update(&format!("{directory}/f{number}"), text));
        }
    }
    changes.push(create(&format!("d/new-{step}/x"), text));
    match scratch.try_apply(step, &changes) {
        Ok(Applied::Written(_)) => End::Applied,
        Err(NotApplied::Refused(_)) => End::Refused,
        Err(NotApplied::Fault(Fault::Changed(_))) => End::Met,
        other => panic!("{other:?}"),
    }
}

fn contents(directories: &[fs::File]) -> Vec<String> {
    let read = |directory: &fs::File, number: u32| {
        let path = format!("/proc/self/fd/{}/f{number}", directory.as_raw_fd());
        fs::read_to_string(path).expect("it is there")
    };
    directories.iter().flat_map(|directory| (0..4).map(move |number| read(directory, number))).collect()
}
