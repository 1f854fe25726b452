//! The requests in one directory, and having them answered: what the drivers of the bridge share.
//!
//! In reading order: `work` has a server answer one request; `driver` handles the requests of one directory, with
//! `record` as its memory, which it keeps beside the files; `file_events` tells of changes to files; `request_notes`
//! reads from a request when it was asked, and by which program.

pub(crate) mod driver;
pub(crate) mod file_events;
pub(crate) mod record;
pub(crate) mod request_notes;
pub(crate) mod work;
