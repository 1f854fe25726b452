//! Places that no artifact may touch, although they are inside the root.
//!
//! A place is recognised by its path, which works before it exists, and by its identity, which works when it is reached
//! by another name: another mount, a hard link, or other letters on a file system that does not tell case.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::fs::{self, Stat};

/// The protected places of one root.
#[derive(Debug)]
pub(super) struct Protected {
    /// Paths from the root. An empty one means that the root itself is inside a protected place.
    inside: Vec<PathBuf>,
    /// Device and number of those that exist.
    identities: BTreeSet<(u64, u64)>,
}

impl Protected {
    /// Prepares the places. `root` must be without links.
    pub(super) fn new<'p>(root: &Path, places: impl IntoIterator<Item = &'p PathBuf>) -> Protected {
        let mut protected = Protected { inside: Vec::new(), identities: BTreeSet::new() };
        for place in places {
            let place = without_links(place);
            if root.starts_with(&place) {
                protected.inside.push(PathBuf::new());
            } else if let Ok(inside) = place.strip_prefix(root) {
                protected.inside.push(inside.to_owned());
            }
            protected.identities.extend(fs::stat(&place).ok().as_ref().map(identity));
        }
        protected
    }

    /// Whether a path from the root is a protected place, is inside one, or would be a file where one has to be.
    pub(super) fn has_path(&self, path: &str) -> bool {
        let path = Path::new(path);
        self.inside.iter().any(|place| path.starts_with(place) || place.starts_with(path))
    }

    /// Whether this is a protected place by another name.
    pub(super) fn has(&self, stat: &Stat) -> bool {
        self.identities.contains(&identity(stat))
    }
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Resolves links in a path as far as it exists.
pub(super) fn without_links(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut existing = path;
    loop {
        if let Ok(mut resolved) = existing.canonicalize() {
            resolved.extend(rest.iter().rev());
            return resolved;
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name);
                existing = parent;
            }
            (None, _) | (_, None) => return path.to_owned(),
        }
    }
}
