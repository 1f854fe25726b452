//! What there is to validate: files, directories, standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The largest document that is read. Validation holds it in memory, and no contract's documents come near.
pub(crate) const BYTES_MAX: u64 = 256 << 20;

/// Directories nested deeper are not searched; nobody keeps documents there.
const DIRECTORY_DEPTH_MAX: usize = 64;

/// Where one document comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

impl Source {
    /// The name in reports.
    pub(crate) fn name(&self) -> String {
        match self {
            Source::Stdin => "-".to_owned(),
            Source::File(path) => path.display().to_string(),
        }
    }

    /// The last part of its path.
    pub(crate) fn file_name(&self) -> Option<&str> {
        match self {
            Source::Stdin => None,
            Source::File(path) => path.file_name()?.to_str(),
        }
    }

    /// All bytes, up to the limit.
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
    if size > BYTES_MAX {
        bail!("larger than {} MiB, the most that is read", BYTES_MAX >> 20);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    input.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        bail!("larger than {} MiB, the most that is read", BYTES_MAX >> 20);
    }
    Ok(bytes)
}

/// The documents a path stands for, in order of their names.
pub(crate) fn expand(path: &Path) -> Result<Vec<Source>> {
    if path.as_os_str() == "-" {
        return Ok(vec![Source::Stdin]);
    }
    if !path.is_dir() {
        return Ok(vec![Source::File(path.to_owned())]);
    }
    let mut found = Vec::new();
    search(path, 0, &mut found)?;
    if found.is_empty() {
        bail!("no file in it ends in .json or .sse");
    }
    Ok(found)
}

fn search(directory: &Path, depth: usize, found: &mut Vec<Source>) -> Result<()> {
    if depth > DIRECTORY_DEPTH_MAX {
        bail!("directories nest deeper than {DIRECTORY_DEPTH_MAX} levels");
    }
    let listing = std::fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    let mut entries: Vec<std::fs::DirEntry> = listing.collect::<io::Result<_>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != ".git" {
                search(&path, depth + 1, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "json" || extension == "sse") {
            found.push(Source::File(path));
        }
    }
    Ok(())
}
