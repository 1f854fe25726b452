//! The thread that writes the lines of the store: all that wait together, with one sync.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::file::{AnswerFile, Index, Noted};
use super::further::{Also, Further, with_names};
use super::line::Line;

/// Gives lines to the thread; cloning shares it.
#[derive(Clone)]
pub(super) struct Writer(Sender<Order>);

/// A line to be written.
pub(super) struct Write {
    pub(super) names: Vec<Box<str>>,
    pub(super) line: Vec<u8>,
    pub(super) noted: Noted,
}

/// What the thread is to do.
enum Order {
    /// Write a line. The sender is told whether it is on disk.
    Write(Write, oneshot::Sender<bool>),
    /// Add names to the lines of a request. The sender is told whether that is on disk, as far as there is a line.
    Also(Also, oneshot::Sender<bool>),
    /// Nothing more is written, and another process may have the file. The sender is told when that is so.
    Close(oneshot::Sender<()>),
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
        waits.await.unwrap_or(false)
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
        let (mut writes, mut told, mut closing) = (Vec::new(), Vec::new(), None);
        for order in std::iter::once(first).chain(waiting.try_iter()) {
            match order {
                Order::Write(mut write, written) => {
                    further.complete(&mut write);
                    writes.push(write);
                    told.push(written);
                }
                Order::Also(also, written) => {
                    // The line that gets the names may be among those that wait.
                    flush(file, index, &mut writes, &mut told);
                    let _ = written.send(add_names(file, index, &mut further, &also));
                }
                Order::Close(closed) => closing = Some(closed),
            }
        }
        flush(file, index, &mut writes, &mut told);
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

/// Writes what waits, and says whether it is on disk.
fn flush(file: &AnswerFile, index: &Mutex<Index>, writes: &mut Vec<Write>, told: &mut Vec<oneshot::Sender<bool>>) {
    let is_written = writes.is_empty() || write(file, index, writes);
    writes.clear();
    for written in told.drain(..) {
        let _ = written.send(is_written);
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
    let is_written = write(file, index, &[Write { names, line, noted }]);
    if is_written && is_open {
        further.add(also);
    }
    is_written
}

/// Writes lines with one sync. Returns whether they are on disk.
fn write(file: &AnswerFile, index: &Mutex<Index>, writes: &[Write]) -> bool {
    let lines: Vec<&[u8]> = writes.iter().map(|write| &*write.line).collect();
    let places = match file.append(&lines) {
        Ok(places) => places,
        Err(error) => {
            tracing::error!(%error, "answers cannot be kept; the same requests would run again");
            return false;
        }
    };
    let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
    for (write, place) in writes.iter().zip(places) {
        index.note(&write.names, place, write.noted);
    }
    true
}
