//! Whether there is a program to start, and if not, why not and what to do about it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Failed;
use rustix::io::Errno;

use super::Program;
use super::control::Step;

/// Where programs are searched when PATH is not set.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// How much of a file the system reads to learn what it is, in bytes.
const FIRST_LINE_BYTES_MAX: u64 = 256;

/// What binaries begin with.
const ELF: &[u8] = b"\x7fELF";

/// The system takes the carriage return for a part of the name, and says only that there is no such file.
const CARRIAGE_RETURN: &str = "its first line (#!) ends with a carriage return, as on Windows; save it with line ends of \
                               Unix (dos2unix does that)";

const NO_PROGRAM: &str = "it is no program of this machine; a script begins with #! and its interpreter";

/// Returns the program's file, as an absolute path. The file may be gone a moment later, which the start then reports.
pub(super) fn find(program: &Program) -> Result<PathBuf, Failed> {
    let name = program.argv.first().map_or("", String::as_str);
    let directory = &program.directory;
    match fs::metadata(directory) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(unavailable(name, &format!("its directory {} is a file", directory.display()))),
        Err(error) => {
            let why = format!("its directory {} cannot be entered: {}", directory.display(), reason(&error));
            return Err(unavailable(name, &why));
        }
    }
    if name.contains('/') {
        let path = program.home.join(name);
        return startable(&path).map(|()| path).map_err(|why| unavailable(name, &why));
    }
    in_path(name, program)
}

/// Like `find`, and checks whether the system would know how to run the file, as far as its first bytes say. The
/// program is not run for that.
pub(super) fn check(program: &Program) -> Result<(), Failed> {
    let name = program.argv.first().map_or("", String::as_str);
    known_format(&find(program)?, &program.directory, &path_of(program)).map_err(|why| unavailable(name, &why))
}

fn known_format(program: &Path, directory: &Path, path: &OsStr) -> Result<(), String> {
    let shown = program.display();
    if !fs::metadata(program).is_ok_and(|found| found.is_file()) {
        return Err(format!("{shown} is no file"));
    }
    // A user who may not read a program may still be allowed to execute it.
    let Ok(file) = File::open(program) else { return Ok(()) };
    let mut first = Vec::new();
    file.take(FIRST_LINE_BYTES_MAX).read_to_end(&mut first).map_err(|error| format!("{shown}: {error}"))?;
    match first.strip_prefix(b"#!") {
        Some(line) => {
            let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
            if line.ends_with(b"\r") {
                return Err(CARRIAGE_RETURN.to_owned());
            }
            let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
            let interpreter = directory.join(OsStr::from_bytes(words.next().unwrap_or_default()));
            startable(&interpreter).map_err(|why| format!("the interpreter on its first line (#!), {why}"))?;
            match words.next().filter(|_| interpreter.file_name() == Some(OsStr::new("env"))) {
                Some(name) => found_by_env(name, path),
                None => Ok(()),
            }
        }
        None if first.starts_with(ELF) || has_more_formats() => Ok(()),
        None => Err(NO_PROGRAM.to_owned()),
    }
}

/// Checks that there is an interpreter which `env` looks for. Options and variables of `env` are left to itself.
fn found_by_env(name: &[u8], path: &OsStr) -> Result<(), String> {
    if name.starts_with(b"-") || name.contains(&b'=') || name.contains(&b'/') {
        return Ok(());
    }
    let name = OsStr::from_bytes(name);
    if env::split_paths(path).any(|entry| startable(&entry.join(name)).is_ok()) {
        return Ok(());
    }
    Err(format!("the interpreter on its first line (#!), {}, is in no directory of PATH", name.display()))
}

/// Whether this machine was taught further formats; only the system knows which they are.
fn has_more_formats() -> bool {
    let own = |name: &OsStr| name == "register" || name == "status";
    let all = fs::read_dir("/proc/sys/fs/binfmt_misc").into_iter().flatten().flatten();
    all.into_iter().any(|entry| !own(&entry.file_name()))
}

fn in_path(name: &str, program: &Program) -> Result<PathBuf, Failed> {
    let mut nearly = None;
    for entry in env::split_paths(&path_of(program)) {
        // An empty or relative entry is meant from where the program is configured.
        let file = program.home.join(entry).join(name);
        match startable(&file) {
            Ok(()) => return Ok(file),
            Err(why) if file.exists() => nearly = nearly.or(Some(why)),
            Err(_) => {}
        }
    }
    let why = nearly.unwrap_or_else(|| {
        "it is in no directory of PATH; install it, or write its path with a slash, as \"./agent\"".to_owned()
    });
    Err(unavailable(name, &why))
}

/// Returns where programs are searched.
fn path_of(program: &Program) -> OsString {
    let path = program.env.get("PATH").map(OsString::from).or_else(|| env::var_os("PATH"));
    path.unwrap_or_else(|| OsString::from(PATH_DEFAULT))
}

fn startable(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let found = fs::metadata(path).map_err(|error| format!("{shown}: {}", reason(&error)))?;
    if found.is_dir() {
        return Err(format!("{shown} is a directory"));
    }
    if found.permissions().mode() & 0o111 == 0 {
        return Err(format!("{shown} is not executable; make it so with chmod +x"));
    }
    Ok(())
}

fn reason(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => "there is no such file",
        Some(Errno::ACCESS) => "the server's user may not",
        Some(_) | None => "it cannot be looked at",
    }
}

/// The failure when a program that was found could not be started.
pub(super) fn not_started(program: &Program, step: Step, errno: i32) -> Failed {
    let name = program.argv.first().map_or("", String::as_str);
    match step {
        Step::Program => not_executed(program, Errno::from_raw_os_error(errno)),
        Step::Supervisor => not_supervised(program, &io::Error::from_raw_os_error(errno)),
        Step::Lock => {
            let error = io::Error::from_raw_os_error(errno);
            unavailable(name, &format!("the lock of programs in the data directory cannot be taken: {error}"))
        }
    }
}

fn not_executed(program: &Program, errno: Errno) -> Failed {
    let name = program.argv.first().map_or("", String::as_str);
    match errno {
        Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE => exhausted(name),
        Errno::NOENT => check(program).err().unwrap_or_else(|| {
            unavailable(name, "the interpreter on its first line (#!) does not exist, or it was removed just now")
        }),
        Errno::ACCESS => {
            unavailable(name, "the server's user may not execute it; see its permissions and those of its directory")
        }
        Errno::NOEXEC => unavailable(name, NO_PROGRAM),
        Errno::TOOBIG => unavailable(name, "its arguments and its environment are too long"),
        Errno::TXTBSY => unavailable(name, "its file is just being written"),
        other => unavailable(name, &format!("the system refuses: {other}")),
    }
}

/// The failure when not even the supervisor could be started.
pub(super) fn not_supervised(program: &Program, error: &io::Error) -> Failed {
    let name = program.argv.first().map_or("", String::as_str);
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => exhausted(name),
        Some(_) | None => unavailable(name, &format!("its supervisor does not start: {error}")),
    }
}

/// The failure when the program of an earlier attempt is alive, and cannot be killed.
pub(super) fn haunted(program: &Program) -> Failed {
    let name = program.argv.first().map_or("", String::as_str);
    unavailable(name, "processes of an earlier attempt are still alive and cannot be killed")
}

/// The failure when the machine has no room for another process, which passes.
fn exhausted(name: &str) -> Failed {
    let message = format!("The program {name} was not started: the machine has no room for another process.");
    not_dispatched(Failure::ResourceLimit, &message)
}

fn unavailable(name: &str, why: &str) -> Failed {
    not_dispatched(Failure::Unavailable, &format!("The program {name} cannot be started: {why}."))
}

fn not_dispatched(failure: Failure, message: &str) -> Failed {
    Failed::said(failure, Dispatched::No, message)
}

/// The variables that every program gets from Crosspoint's own environment, if they are set.
pub(super) fn inherited() -> impl Iterator<Item = (&'static str, OsString)> {
    ["PATH", "HOME", "LANG", "TMPDIR"].into_iter().filter_map(|name| Some((name, env::var_os(name)?)))
}

/// The bytes of a path, for a line of JSON.
pub(super) fn bytes_of(path: impl AsRef<OsStr>) -> Vec<u8> {
    path.as_ref().as_bytes().to_vec()
}
