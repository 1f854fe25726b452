//! The caller's whole document in a file, for programs that want to know more than their input: the paths of an
//! envelope, the notes of the agent before.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use crate::exec::Program;

/// The variable that names the file.
const VARIABLE: &str = "CROSSPOINT_DOCUMENT";

/// The documents of the jobs that are under way.
#[derive(Debug)]
pub(super) struct Documents {
    directory: PathBuf,
}

/// The file of one document. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Document {
    path: PathBuf,
}

impl Documents {
    /// Makes the directory anew: an earlier process may have been killed before it could remove its files.
    pub(super) async fn open(directory: PathBuf) -> io::Result<Documents> {
        let made = tokio::task::spawn_blocking(move || {
            match fs::remove_dir_all(&directory) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            fs::DirBuilder::new().mode(0o700).create(&directory)?;
            Ok(Documents { directory })
        });
        made.await?
    }

    /// Writes the document of a job. The same work may be begun again while its file is still there, so files have ids
    /// of their own.
    pub(super) async fn write(&self, document: Bytes) -> io::Result<Document> {
        let path = self.directory.join(format!("{}.json", Uuid::new_v4()));
        let written = tokio::task::spawn_blocking(move || {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            let kept = Document { path };
            file.write_all(&document)?;
            Ok(kept)
        });
        written.await?
    }
}

impl Document {
    /// Returns a program that finds the file.
    pub(super) fn given_to(&self, program: &Program) -> Arc<Program> {
        let mut program = program.clone();
        // Variables are texts here. Where the path is none, there is no variable.
        if let Some(path) = self.path.to_str() {
            program.env.insert(VARIABLE.to_owned(), path.to_owned());
        }
        Arc::new(program)
    }
}

impl Drop for Document {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
