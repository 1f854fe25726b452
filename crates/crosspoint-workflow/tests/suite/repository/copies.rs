//! Copies of a repository.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crosspoint_workflow::repository::{Copied, CopyFault, CopyLimits, Fault, Repository, failpoint, remove};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::process::{FAULT, play, play_around};
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

fn copy(root: &Path, to: &Path, skip: &[PathBuf], limits: CopyLimits) -> Result<Copied, CopyFault> {
    Repository::open(root)?.copy_to(to, skip, limits)
}

/// A copy of half an output would be a state that the repository never had.
#[test]
fn a_copy_waits_for_outputs_and_leaves_out_what_is_half_written() {
    let scratch = filled();
    let staging = format!(".crosspoint-{:016x}", 7);
    scratch.put(&format!("{staging}/new-0"), "half");
    // A root inside this one is written to under a lock of its own.
    let deeper = format!("src/{staging}-again");
    scratch.put(&format!("{deeper}/new-0"), "half");
    scratch.put(".crosspoint-notes/of.mine", "mine");
    let held = fs::File::open(scratch.root()).expect("it is there");
    held.try_lock().expect("nothing else has it");
    let repository = Repository::open(&scratch.root()).expect("it is there").with_lock_wait(Duration::from_millis(10));
    let to = scratch.path().join("copy");
    let locked = repository.copy_to(&to, &[], LIMITS);
    assert!(matches!(locked, Err(CopyFault::Fault(Fault::Locked { .. }))) && !to.exists(), "{locked:?}");
    drop(held);
    repository.copy_to(&to, &[], LIMITS).expect("it is copied");
    assert!(to.join(".crosspoint-notes/of.mine").exists());
    assert!(!to.join(staging).exists() && !to.join(deeper).exists());
}

/// A file with holes may be longer than any disk, and copying its holes would fill this one.
#[test]
fn nothing_is_copied_of_a_file_that_is_longer_than_the_limit() {
    let scratch = Scratch::new();
    fs::File::create(scratch.root().join("holes")).and_then(|file| file.set_len(1 << 40)).expect("it can be made");
    let to = scratch.path().join("copy");
    let copied = copy(&scratch.root(), &to, &[], LIMITS);
    assert!(matches!(copied, Err(CopyFault::TooManyBytes { limit: 1_000, .. })), "{copied:?}");
    let copied = fs::metadata(to.join("holes")).map_or(0, |file| file.len());
    assert_eq!(copied, 0);
}

/// Whoever may write in the directory above could have any directory copied.
#[test]
fn a_link_that_is_planted_at_the_root_is_not_followed() {
    let scratch = filled();
    let repository = Repository::open(&scratch.root()).expect("it is there");
    let other = scratch.path().join("other");
    fs::create_dir(&other).expect("it can be made");
    fs::write(other.join("secret"), "secret").expect("it can be written");
    fs::rename(scratch.root(), scratch.path().join("moved")).expect("it can be moved");
    symlink(&other, scratch.root()).expect("it can be linked");
    let to = scratch.path().join("copy");
    let copied = repository.copy_to(&to, &[], LIMITS);
    assert!(matches!(copied, Err(CopyFault::Fault(Fault::Changed(_)))), "{copied:?}");
    assert!(!to.join("secret").exists(), "what the link leads to is not copied");
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
fn a_copy_that_is_not_wanted_any_more_is_left_where_it_is() {
    let scratch = filled();
    let (asked, to) = (Cell::new(0), scratch.path().join("copy"));
    let is_wanted = || asked.replace(asked.get() + 1) < 3;
    let copied = Repository::open(&scratch.root()).expect("it is there").copy_while(&to, &[], LIMITS, &is_wanted);
    assert!(matches!(copied, Err(CopyFault::Fault(Fault::Unwanted))), "{copied:?}");
    assert!(tree(&to).len() < scratch.tree().len());
}

/// Another program removes the only thing in the root, between two looks at it.
#[test]
fn what_is_removed_while_it_is_copied_is_left_out() {
    type Fill = fn(&Scratch);
    let fills: [(&str, &str, Fill, &[&str]); 5] = [
        ("a file", "copy_seen.0", |scratch| scratch.put("it", "x"), &[]),
        ("a link", "copy_seen.0", |scratch| symlink("x", scratch.root().join("it")).expect("it is linked"), &[]),
        ("a directory that is not open", "copy_seen.0", |scratch| scratch.put("it/x", "x"), &[]),
        ("a directory that is open", "copy_opened.1", |scratch| scratch.put("it/x", "x"), &["it/"]),
        ("a file in a directory", "copy_seen.1", |scratch| scratch.put("it/x", "x"), &["it/"]),
    ];
    for (what, place, fill, left) in fills {
        let scratch = Scratch::new();
        fill(&scratch);
        let status = play_around("copy", scratch.path(), place, || {
            let it = scratch.root().join("it");
            let removed = if it.is_dir() { fs::remove_dir_all(it) } else { fs::remove_file(it) };
            removed.expect("it can be removed");
        });
        assert_eq!(status.code(), Some(0), "{what}");
        assert!(tree(&scratch.path().join("copy")).keys().eq(left), "{what}");
    }
}

#[test]
fn a_root_that_is_removed_is_not_copied_as_an_empty_one() {
    let scratch = filled();
    let status = play_around("copy", scratch.path(), "copy_opened.0", || {
        remove(&scratch.root()).expect("it can be removed");
    });
    assert_eq!(status.code(), Some(FAULT));
}

/// The caller remembers that the copy is whole, and that has to be true after a power cut.
#[test]
fn a_copy_that_cannot_be_synced_is_none() {
    let scratch = filled();
    assert_eq!(play("copy", scratch.path(), &[(failpoint::FAIL, "copied")]).code(), Some(FAULT));
    assert_eq!(tree(&scratch.path().join("copy")).len() + 1, scratch.tree().len(), "it is synced when all is copied");
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
