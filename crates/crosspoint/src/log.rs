//! The log: lines on stderr, as text or JSON.
//!
//! Lines are written by a thread of their own. The task that answers callers after a commit logs every transition, and
//! must not wait for a terminal or a pipe. The buffer of lines has a limit; lines beyond it are dropped, and the log
//! says how many.

mod line;

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::{LogFormat, Server};
use line::Plain;

/// Longest wait for the last lines to be written, in case stderr is not being read.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

/// Most bytes of lines that wait to be written.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// Starts logging with the configured level and format.
pub(crate) fn start(settled: &Server) -> Result<Log> {
    let level: LevelFilter =
        settled.log.parse().map_err(|_| anyhow!("the log level must be one of off, error, warn, info, debug"))?;
    start_for(&["crosspoint", "crosspoint_engine", "crosspoint_exchange", "crosspoint_http"], level, settled.log_format)
}

/// Starts logging for a long-running command that logs its own lines, all from the module `module`. The lines of a
/// server in the same process are left out, because they would repeat them.
pub(crate) fn start_own(module: &'static str) -> Result<Log> {
    start_for(&[module], LevelFilter::INFO, LogFormat::Text)
}

fn start_for(ours: &[&'static str], level: LevelFilter, format: LogFormat) -> Result<Log> {
    // The other targets, above all libraries, log about their own internals: only their warnings and errors are shown.
    let theirs = level.min(LevelFilter::WARN);
    let filter = Targets::new().with_default(theirs).with_targets(ours.iter().map(|target| (*target, level)));
    let log = Log(Arc::default());
    let writer = log.clone();
    thread::Builder::new().name("log".to_owned()).spawn(move || writer.write_out()).context("cannot start the log")?;
    let lines = fmt::layer().with_writer(log.clone()).with_target(false).with_ansi(false);
    let lines = match format {
        LogFormat::Text => lines.event_format(Plain).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init().context("the log was started before")?;
    Ok(log)
}

/// The buffer of lines; clones share it.
#[derive(Clone)]
pub(crate) struct Log(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    dropped: u64,
    /// Whether the thread is writing the lines that it took.
    writing: bool,
}

impl Log {
    /// Waits until every line is written, but no longer than [`FLUSH_TIME_MAX`].
    pub(crate) fn flush(&self) {
        let until = Instant::now() + FLUSH_TIME_MAX;
        let mut waiting = self.lock();
        while waiting.writing || !waiting.lines.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            waiting = self.0.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn write_out(&self) {
        let mut taken = Vec::new();
        loop {
            let dropped = self.take(&mut taken);
            let mut stderr = io::stderr().lock();
            // A failed write to stderr cannot be reported anywhere.
            let _ = stderr.write_all(&taken);
            if dropped > 0 {
                let _ = writeln!(stderr, "{dropped} lines of the log were dropped: stderr is not read fast enough");
            }
            taken.clear();
        }
    }

    /// Waits for lines, takes all of them and leaves an empty buffer. Returns the number of lines dropped meanwhile.
    fn take(&self, taken: &mut Vec<u8>) -> u64 {
        let mut waiting = self.lock();
        waiting.writing = false;
        self.0.changed.notify_all();
        while waiting.lines.is_empty() {
            waiting = self.0.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.writing = true;
        std::mem::swap(&mut waiting.lines, taken);
        std::mem::take(&mut waiting.dropped)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

/// The writer of one line: the subscriber writes each line with one call.
pub(crate) struct Line<'a>(&'a Log);

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut waiting = self.0.lock();
        if waiting.lines.len() + bytes.len() > WAITING_BYTES_MAX {
            waiting.dropped += 1;
            return Ok(bytes.len());
        }
        let was_empty = waiting.lines.is_empty();
        waiting.lines.extend_from_slice(bytes);
        drop(waiting);
        if was_empty {
            self.0.0.changed.notify_all();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
