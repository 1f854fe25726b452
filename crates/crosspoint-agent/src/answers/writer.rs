//! The thread that writes the lines of the store: all that wait together, with one sync.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::file::AnswerFile;
use super::further::{Also, Further, with_names};
use super::index::{Index, Noted};
use super::line::Line;
use super::seal::Sealed;

/// Gives lines to the thread; cloning shares it.
#[derive(Clone)]
pub(super) struct Writer(Sender<Order>);

/// A line to be written.
pub(super) struct Write {
    pub(super) names: Vec<Box<str>>,
    pub(super) line: Sealed,
    pub(super) noted: Noted,
}

/// What the thread is to do.
enum Order {
    /// Write a line. The sender is told whether it is on disk.
    Write(Write, oneshot::Sender<Written>),
    /// Add names to the lines of a request. The sender is told whether that is on disk, as far as there is a line.
    Also(Also, oneshot::Sender<bool>),
    /// Nothing more is written, and another process may have the file. The sender is told when that is so.
    Close(oneshot::Sender<()>),
}

/// What became of a line.
struct Written {
    is_on_disk: bool,
    /// The line, to be freed by the thread that made it: most allocators make another one wait for that.
    _line: Sealed,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(file: Arc<AnswerFile>, index: Arc<Mutex<Index>>) -> io::Result<Writer> {
        let (orders, waiting) = mpsc::channel();
        let thread = std::thread::Builder::new().name("answers".to_owned());
        thread.spawn(move || write_all(&file, &index, &waiting))?;
        Ok(Writer(orders))
    }

    /// Writes a line. Returns whether it is on disk.
    pub(super) async fn put(&self, write: Write) -> bool {
        let (written, waits) = oneshot::channel();
        if self.0.send(Order::Write(write, written)).is_err() {
            tracing::error!("the store of answers is closed; the same request would run again");
            return false;
        }
        waits.await.is_ok_and(|written| written.is_on_disk)
    }

    /// Writes a line without waiting for it.
    pub(super) fn put_at_once(&self, write: Write) {
        let _ = self.0.send(Order::Write(write, oneshot::channel().0));
    }

    /// Adds names to the lines of a request. Returns whether that is on disk, as far as there is a line.
    pub(super) async fn also(&self, also: Also) -> bool {
        let (written, waits) = oneshot::channel();
        if self.0.send(Order::Also(also, written)).is_err() {
            return false;
        }
        waits.await.unwrap_or(false)
    }

    /// Gives the file back. What comes later is not written.
    pub(super) async fn close(&self) {
        let (closed, waits) = oneshot::channel();
        if self.0.send(Order::Close(closed)).is_ok() {
            let _ = waits.await;
        }
    }
}

/// Writes what waits, again and again, until the file is to be given back.
fn write_all(file: &AnswerFile, index: &Mutex<Index>, waiting: &Receiver<Order>) {
    let mut further = Further::default();
    while let Ok(first) = waiting.recv() {
        let (mut writes, mut waiters, mut closing) = (Vec::new(), Vec::new(), None);
        for order in std::iter::once(first).chain(waiting.try_iter()) {
            match order {
                Order::Write(mut write, waiter) => {
                    further.complete(&mut write);
                    writes.push(write);
                    waiters.push(waiter);
                }
                Order::Also(also, written) => {
                    // The line that gets the names may be among those that wait.
                    flush(file, index, &mut writes, &mut waiters);
                    let _ = written.send(add_names(file, index, &mut further, &also));
                }
                Order::Close(closed) => closing = Some(closed),
            }
        }
        flush(file, index, &mut writes, &mut waiters);
        // Nothing waits for this but what is written next.
        if let Err(error) = file.shorten(index, crate::clock::now()) {
            tracing::warn!(%error, "the store of answers cannot be shortened");
        }
        if let Some(closed) = closing {
            file.unlock();
            let _ = closed.send(());
            return;
        }
    }
}

/// Writes what waits, and says what became of it.
fn flush(
    file: &AnswerFile,
    index: &Mutex<Index>,
    writes: &mut Vec<Write>,
    waiters: &mut Vec<oneshot::Sender<Written>>,
) {
    let lines = write(file, index, std::mem::take(writes));
    for (waiter, written) in waiters.drain(..).zip(lines) {
        let _ = waiter.send(written);
    }
}

/// Writes the line of a request again, with names added. Names of work under way are added to its later lines too.
fn add_names(file: &AnswerFile, index: &Mutex<Index>, further: &mut Further, also: &Also) -> bool {
    let (place, is_open) = {
        let index = index.lock().unwrap_or_else(PoisonError::into_inner);
        let place = index.place(&also.held);
        (place, place.is_some_and(|place| index.is_open(place)))
    };
    let Some(place) = place else {
        further.add(also);
        return true;
    };
    let line = file.read(place).ok();
    let Some((line, read)) = line.as_deref().and_then(|line| Some((with_names(line, &also.names)?, Line::read(line)?)))
    else {
        return false;
    };
    let names = read.names().map(Into::into).chain(also.names.iter().cloned()).collect();
    let noted = if is_open { Noted::Open } else { Noted::Ended };
    let written = write(file, index, vec![Write { names, line, noted }]);
    let is_written = written.iter().all(|written| written.is_on_disk);
    if is_written && is_open {
        further.add(also);
    }
    is_written
}

/// Writes lines with one sync. Returns what became of them.
fn write(file: &AnswerFile, index: &Mutex<Index>, writes: Vec<Write>) -> Vec<Written> {
    if writes.is_empty() {
        return Vec::new();
    }
    let lines: Vec<&Sealed> = writes.iter().map(|write| &write.line).collect();
    let places = file.append(&lines).inspect_err(|error| {
        tracing::error!(%error, "answers cannot be kept; the same requests would run again");
    });
    let is_on_disk = places.is_ok();
    let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
    let mut places = places.into_iter().flatten();
    let written = writes.into_iter().map(|Write { names, line, noted }| {
        if let Some(place) = places.next() {
            index.note(names, place, noted);
        }
        Written { is_on_disk, _line: line }
    });
    written.collect()
}
