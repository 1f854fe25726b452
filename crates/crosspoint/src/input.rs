//! Where documents come from: files, directories, standard input.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Largest document that is read, in bytes. Validation holds it in memory, and no contract's documents come near.
pub(crate) const BYTES_MAX: u64 = 256 << 20;

/// Deepest nesting of directories that are searched. The file system may contain a loop.
const DIRECTORY_DEPTH_MAX: usize = 64;

/// Directories that a search passes over, because they hold documents of other programs.
const PASSED_OVER: [&str; 2] = [".git", "node_modules"];

/// The source of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

impl Source {
    /// Returns the source of the one document that a command needs. A terminal is refused, so that no command waits for
    /// input that the user does not know to type.
    pub(crate) fn one(path: Option<&Path>, command: &str) -> Result<Source> {
        match path {
            Some(path) if path.as_os_str() != "-" => Ok(Source::File(path.to_owned())),
            None if io::stdin().is_terminal() => {
                bail!(
                    "nothing to {command}: name a file, or pipe a document in (crosspoint {command} --help shows how)"
                )
            }
            Some(_) | None => Ok(Source::Stdin),
        }
    }

    /// The source's name in reports.
    pub(crate) fn name(&self) -> String {
        match self {
            Source::Stdin => "-".to_owned(),
            Source::File(path) => path.display().to_string(),
        }
    }

    /// The last part of the file's path.
    pub(crate) fn file_name(&self) -> Option<&str> {
        match self {
            Source::Stdin => None,
            Source::File(path) => path.file_name()?.to_str(),
        }
    }

    /// Reads all bytes, up to the limit.
    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        match self {
            Source::Stdin => bounded(io::stdin().lock(), 0),
            Source::File(path) => {
                let file = File::open(path)?;
                let size = file.metadata().map(|metadata| metadata.len()).unwrap_or(0);
                bounded(file, size)
            }
        }
    }
}

fn bounded(input: impl Read, size: u64) -> Result<Vec<u8>> {
    // The size of a file may be wrong or change: the limit is checked on the bytes that were read.
    let expected = usize::try_from(size.min(BYTES_MAX)).unwrap_or(0);
    let mut bytes = Vec::with_capacity(expected + 1);
    if size <= BYTES_MAX {
        input.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    }
    if size > BYTES_MAX || bytes.len() as u64 > BYTES_MAX {
        bail!("it is larger than {} MiB, the most that is read", BYTES_MAX >> 20);
    }
    Ok(bytes)
}

/// A document, or a path that could not be read.
pub(crate) type Found = std::result::Result<Source, (PathBuf, anyhow::Error)>;

/// Returns the documents that a path stands for, in order of their names.
pub(crate) fn expand(path: &Path) -> Vec<Found> {
    if path.as_os_str() == "-" {
        return vec![Ok(Source::Stdin)];
    }
    if !path.is_dir() {
        return vec![Ok(Source::File(path.to_owned()))];
    }
    let mut found = Vec::new();
    if let Err(error) = search(path, 0, &mut found) {
        found.push(Err((path.to_owned(), error)));
    }
    if found.is_empty() {
        let nothing = anyhow::anyhow!("no file in it ends in .json or .sse");
        found.push(Err((path.to_owned(), nothing)));
    }
    found
}

fn search(directory: &Path, depth: usize, found: &mut Vec<Found>) -> Result<()> {
    if depth > DIRECTORY_DEPTH_MAX {
        bail!("it is more than {DIRECTORY_DEPTH_MAX} directories deep and was not searched");
    }
    let listing = fs::read_dir(directory).context("cannot list it")?;
    let mut entries: Vec<fs::DirEntry> = listing.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let passed_over = PASSED_OVER.iter().any(|name| entry.file_name() == *name);
            if !passed_over && let Err(error) = search(&path, depth + 1, found) {
                // Goes on with the rest of the directory.
                found.push(Err((path, error)));
            }
        } else if is_document(&path) {
            found.push(Ok(Source::File(path)));
        }
    }
    Ok(())
}

/// Whether a search takes this file: it has a known extension, and reading it cannot block until another process
/// writes.
fn is_document(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    (ending.eq_ignore_ascii_case("json") || ending.eq_ignore_ascii_case("sse")) && path.is_file()
}
