//! Other processes: this test binary, started again to play a role, so that it can be killed.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use crosspoint_workflow::repository::{
    Change, CopyFault, CopyLimits, Fault, KEPT_FILE_BYTES_MAX, NotApplied, Repository, Rules, failpoint, recover,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::process::{Resource, Rlimit};

use crate::scratch::{create, update};

const PART: &str = "CROSSPOINT_TEST_PART";
const DIRECTORY: &str = "CROSSPOINT_TEST_DIRECTORY";

/// What a role ends with when the apply had a fault.
pub(crate) const FAULT: i32 = 42;

/// What a role ends with when the fault left a step unfinished.
pub(crate) const UNFINISHED: i32 = 43;

/// What a role ends with when another program changed a path meanwhile.
pub(crate) const CHANGED: i32 = 44;

pub(crate) fn command(part: &str, directory: &Path, places: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("it is known"));
    prepare(&mut command, part, directory, places);
    command
}

fn prepare(command: &mut Command, part: &str, directory: &Path, places: &[(&str, &str)]) {
    command.args(["--exact", "process::plays_its_part", "--nocapture", "--test-threads", "1"]);
    command.env(PART, part).env(DIRECTORY, directory);
    command.env_remove(failpoint::KILL).env_remove(failpoint::FAIL).env_remove(failpoint::WAIT);
    command.envs(places.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
}

pub(crate) fn start(part: &str, directory: &Path) -> Child {
    command(part, directory, &[]).spawn().expect("it starts")
}

pub(crate) fn play(part: &str, directory: &Path, places: &[(&str, &str)]) -> ExitStatus {
    command(part, directory, places).status().expect("it ends")
}

/// Plays a role, and does something else when the role comes to a place, before it goes on.
pub(crate) fn play_around(part: &str, directory: &Path, place: &str, meddle: impl FnOnce()) -> ExitStatus {
    let pipe = directory.join(format!("pipe-{place}"));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("it can be made");
    let wait = format!("{place}:{}", pipe.display());
    let mut child = command(part, directory, &[(failpoint::WAIT, &wait)]).spawn().expect("it starts");
    let opened = loop {
        // Fails as long as the role does not wait for it.
        if let Ok(opened) = open(&pipe, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
            break opened;
        }
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended before it came to {place}");
        std::thread::yield_now();
    };
    meddle();
    drop(opened);
    child.wait().expect("it ends")
}

/// Plays a role in which no file may be longer than a number of blocks of 512 or 1024 bytes, whichever the shell takes.
/// Writing more is an error and not a signal, as with a full disk.
pub(crate) fn play_with_short_files(part: &str, directory: &Path, blocks: u32) -> ExitStatus {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"")]);
    shell.arg(std::env::current_exe().expect("it is known"));
    prepare(&mut shell, part, directory, &[]);
    shell.status().expect("it ends")
}

pub(crate) fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(9)
}

pub(crate) fn was_fine(status: ExitStatus) -> bool {
    status.success()
}

/// The output that is applied in crashes: new files in new directories, files in old ones, and an unchanged one.
pub(crate) fn output() -> Vec<Change> {
    vec![
        create("new/deep/one", "one"),
        update("old/two", "two, new"),
        create("old/three", "three"),
        update("same", "same"),
        update("four", "four, new"),
        create("new/five", "five"),
    ]
}

/// An output whose update is as long as the original: only its content tells which of the two a file is.
pub(crate) fn as_long() -> Vec<Change> {
    vec![update("four", "FOUR"), create("new/one", "one")]
}

/// The output of the random kills: long enough to be killed in the middle of it, in each file more than a page.
pub(crate) fn long_output() -> Vec<Change> {
    let new = (0..40).map(|number| create(&format!("new/{}/f{number}", number % 7), &"n".repeat(5_000)));
    new.chain((0..40).map(|number| update(&format!("old/f{number}"), &"u".repeat(5_000)))).collect()
}

#[test]
fn plays_its_part() {
    let Ok(part) = std::env::var(PART) else {
        // In the test itself, checks that the role is played at all.
        assert_eq!(play("end", Path::new("."), &[]).code(), Some(7));
        return;
    };
    let path = PathBuf::from(std::env::var_os(DIRECTORY).expect("a directory is given"));
    match part.as_str() {
        "end" => std::process::exit(7),
        "output" => apply(&path, 1, &output()),
        "as long" => apply(&path, 1, &as_long()),
        "deep record" => apply_with(&path, "records/deep", 1, &output()),
        "long output" => apply(&path, 1, &long_output()),
        "recover" => drop(recover(&path.join("record")).unwrap_or_else(|fault| end_with(&fault))),
        "apply 022" => with_umask(0o022, &path),
        "apply 077" => with_umask(0o077, &path),
        "copy" => copy_all(&path),
        "large" => apply(&path, 1, &[create("new/small", "x"), create("large", &"x".repeat(200_000))]),
        "very long" => {
            let long = format!("{}y", "x".repeat(usize::try_from(KEPT_FILE_BYTES_MAX).expect("it fits")));
            apply(&path, 1, &[update("long", &long), create("small", "x")]);
        }
        "ten thousand" => ten_thousand(&path),
        other => panic!("nobody knows the part {other}"),
    }
}

fn apply(path: &Path, step: u32, changes: &[Change]) {
    apply_with(path, "record", step, changes);
}

fn apply_with(path: &Path, record: &str, step: u32, changes: &[Change]) {
    let repository = Repository::open(&path.join("root")).expect("it is there");
    match repository.apply(&path.join(record), step, changes, &Rules::default()) {
        Ok(_) => {}
        Err(NotApplied::Fault(fault)) => end_with(&fault),
        Err(refused @ NotApplied::Refused(_)) => panic!("{refused}"),
    }
}

fn copy_all(path: &Path) {
    let limits = CopyLimits { files_max: 100, bytes_max: 1_000 };
    let copied = Repository::open(&path.join("root")).map_err(CopyFault::Fault);
    match copied.and_then(|repository| repository.copy_to(&path.join("copy"), &[], limits)) {
        Ok(_) => {}
        Err(CopyFault::Fault(fault)) => end_with(&fault),
        Err(limit) => panic!("{limit}"),
    }
}

fn end_with(fault: &Fault) -> ! {
    let (is_unfinished, is_changed) = (matches!(fault, Fault::Unfinished { .. }), matches!(fault, Fault::Changed(_)));
    std::process::exit(if is_unfinished {
        UNFINISHED
    } else if is_changed {
        CHANGED
    } else {
        FAULT
    })
}

fn with_umask(umask: u32, path: &Path) {
    rustix::process::umask(Mode::from_raw_mode(umask));
    apply(path, 1, &[create("new/file", "x")]);
}

/// Two hundred handles are all that there are.
fn ten_thousand(path: &Path) {
    let limit = Rlimit { current: Some(200), maximum: Some(200) };
    rustix::process::setrlimit(Resource::Nofile, limit).expect("it can be lowered");
    let name = |number: usize| format!("d/{}/f{number}", number % 500);
    let changes: Vec<Change> = (0..10_000).map(|number| create(&name(number), &format!("content {number}"))).collect();
    apply(path, 1, &changes);
    let changes: Vec<Change> = changes.into_iter().map(|it| update(&it.path, &it.content)).collect();
    apply(path, 2, &changes);
}
