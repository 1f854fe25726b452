//! Where a run began. Another directory may be put at the path of the root while nothing drives the run, or a link on
//! the way may lead elsewhere by then. A run that went on there would miss what it did before.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crosspoint_workflow::repository::{self, Fault, Repository};
use serde::{Deserialize, Serialize};

/// The file in the record of a run that says where it began, and what it is called until it is whole.
const FILE: &str = "began.json";
const UNFINISHED: &str = "began.new";

/// The directory in which a run began: its path without links, and its number.
#[derive(Deserialize, PartialEq, Serialize)]
struct Began<'t> {
    /// JSON escapes some characters of paths, so it is not always borrowed.
    #[serde(borrow)]
    root: Cow<'t, str>,
    inode: u64,
}

/// The file that has the feature which a run found (WF-10): it is shown where runs are listed.
const FEATURE: &str = "feature";

/// Returns the feature that a run found.
pub(super) fn feature(record: &Path) -> Option<String> {
    fs::read_to_string(record.join(FEATURE)).ok()
}

/// Remembers the feature that a run found. It follows from the steps of the run, so it need not be synced.
pub(super) fn note_feature(record: &Path, feature: &str) {
    let mut private = OpenOptions::new();
    let file = private.write(true).create(true).truncate(true).mode(0o600).open(record.join(FEATURE));
    let _ = file.and_then(|mut file| file.write_all(feature.as_bytes()));
}

/// Whether a record says where its run began, also where that cannot be read.
pub(super) fn is_noted(record: &Path) -> bool {
    record.join(FILE).exists()
}

/// Returns the path without links of the directory in which a run began, and its number, if they are known.
pub(super) fn root(record: &Path) -> Option<(PathBuf, u64)> {
    let stored = fs::read_to_string(record.join(FILE)).ok()?;
    let began = serde_json::from_str::<Began<'_>>(&stored).ok()?;
    Some((PathBuf::from(&*began.root), began.inode))
}

/// Checks that a run goes on in the directory that it began in. A run that begins there remembers it: when this
/// returns, that is on disk.
pub(super) fn expect(record: &Path, opened: &Repository) -> Result<(), Fault> {
    let path = opened.path();
    let root = path.to_str().ok_or_else(|| Fault::NotUtf8(path.to_owned()))?.into();
    let now = Began { root, inode: opened.inode() };
    let other = |source| Fault::Other { path: record.join(FILE), source };
    let stored = match fs::read_to_string(record.join(FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            repository::make_record(record)?;
            return remember(record, &now).map_err(other);
        }
        stored => stored.map_err(other)?,
    };
    match serde_json::from_str::<Began<'_>>(&stored) {
        Ok(began) if began == now => Ok(()),
        Ok(_) => Err(Fault::AnotherRoot { root: path.to_owned() }),
        Err(error) => Err(Fault::Record { file: FILE.to_owned(), why: error.to_string() }),
    }
}

fn remember(record: &Path, began: &Began<'_>) -> io::Result<()> {
    let unfinished = record.join(UNFINISHED);
    let mut private = OpenOptions::new();
    let mut file = private.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(&serde_json::to_vec(began)?)?;
    file.sync_all()?;
    fs::rename(unfinished, record.join(FILE))?;
    File::open(record)?.sync_all()
}
