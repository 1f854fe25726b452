//! The thread that writes the lines of the store: all that wait together, with one sync.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::file::AnswerFile;
use super::index::{Index, Noted};
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
    while let Ok(first) = waiting.recv() {
        let (mut writes, mut waiters, mut closing) = (Vec::new(), Vec::new(), None);
        for order in std::iter::once(first).chain(waiting.try_iter()) {
            match order {
                Order::Write(write, waiter) => {
                    writes.push(write);
                    waiters.push(waiter);
                }
                Order::Close(closed) => closing = Some(closed),
            }
        }
        let lines = write(file, index, writes);
        for (waiter, written) in waiters.into_iter().zip(lines) {
            let _ = waiter.send(written);
        }
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
