//! Copies of a repository.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crosspoint_workflow::repository::{Copied, CopyFault, CopyLimits, copy, remove};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::scratch::{Scratch, tree};

const LIMITS: CopyLimits = CopyLimits { files_max: 100, bytes_max: 1_000 };

fn filled() -> Scratch {
    let scratch = Scratch::new();
    scratch.put("src/main.rs", "fn main() {}");
    scratch.put("run.sh", "#!");
    scratch.put("data/rows", "secret");
    fs::set_permissions(scratch.root().join("run.sh"), fs::Permissions::from_mode(0o755)).expect("it has a mode");
    symlink("/etc/passwd", scratch.root().join("absolute")).expect("it can be linked");
    symlink("src", scratch.root().join("inside")).expect("it can be linked");
    fs::hard_link(scratch.root().join("run.sh"), scratch.root().join("again.sh")).expect("it can be linked");
    mknodat(CWD, scratch.root().join("pipe"), FileType::Fifo, Mode::RUSR, 0).expect("it can be made");
    scratch
}

#[test]
fn a_copy_has_files_modes_and_links_and_leaves_out_the_rest() {
    let scratch = filled();
    let to = scratch.path().join("copy");
    let copied = copy(&scratch.root(), &to, &[scratch.root().join("data")], LIMITS).expect("it is copied");
    assert_eq!(copied, Copied { files: 3, directories: 1, links: 2, bytes: 16, special: 1 });
    let mut expected = scratch.tree();
    expected.retain(|path, _| !path.starts_with("data") && path != "pipe");
    assert_eq!(tree(&to), expected);
    let copied = fs::metadata(to.join("run.sh")).expect("it is there");
    let original = fs::metadata(scratch.root().join("run.sh")).expect("it is there");
    assert_eq!(copied.permissions(), original.permissions());
    assert_eq!(copied.modified().expect("it has one"), original.modified().expect("it has one"));
    fs::write(to.join("run.sh"), "changed").expect("it can be written");
    assert_eq!(scratch.text("run.sh"), "#!");
}

#[test]
fn a_copy_inside_the_root_does_not_copy_itself() {
    let scratch = filled();
    let to = scratch.root().join("copy");
    let copied = copy(&scratch.root(), &to, &[], LIMITS).expect("it is copied");
    assert_eq!((copied.files, to.join("copy").exists()), (4, false));
}

#[test]
fn limits_stop_a_copy() {
    let scratch = filled();
    let too_many = copy(&scratch.root(), &scratch.path().join("a"), &[], CopyLimits { files_max: 3, ..LIMITS });
    assert!(matches!(too_many, Err(CopyFault::TooManyFiles { limit: 3, .. })), "{too_many:?}");
    let too_many = copy(&scratch.root(), &scratch.path().join("b"), &[], CopyLimits { bytes_max: 9, ..LIMITS });
    assert!(matches!(too_many, Err(CopyFault::TooManyBytes { limit: 9, .. })), "{too_many:?}");
    let there = copy(&scratch.root(), &scratch.path().join("b"), &[], LIMITS);
    assert!(matches!(there, Err(CopyFault::Fault(_))), "a copy is not mixed with what is there: {there:?}");
}

#[test]
fn removing_follows_no_link() {
    let scratch = filled();
    let outside = scratch.path().join("outside");
    fs::create_dir(&outside).expect("it can be made");
    fs::write(outside.join("kept"), "").expect("it can be written");
    symlink(&outside, scratch.root().join("src/out")).expect("it can be linked");
    fs::set_permissions(scratch.root().join("src"), fs::Permissions::from_mode(0o500)).expect("it has a mode");
    remove(&scratch.root()).expect("it is removed");
    assert!(!scratch.root().exists() && outside.join("kept").exists());
    remove(&scratch.root()).expect("there is nothing to remove");
}
