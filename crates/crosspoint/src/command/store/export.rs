//! `crosspoint store export`: writes jobs as lines of JSON.
//!
//! Jobs are read one after the other and written as they are read: memory holds one document, one outcome, or a few
//! blocks of output. A job that the server removes meanwhile is reported as gone. A job that cannot be read is named,
//! and the others are exported all the same.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result};
use crosspoint_contracts::time::Time;
use crosspoint_engine::event::{Entry, What};
use crosspoint_engine::id::{SEQ_MAX, Seq};
use crosspoint_engine::job::{Job, Phase};
use crosspoint_engine::store::{Fault, Readers, Wanted};

use super::audit;
use super::draft::Draft;
use super::line::{self, Line};
use super::progress::Progress;
use crate::Exit;
use crate::command::store::arguments::{Since, StoreExport};
use crate::terminal::{json, render};

/// Most events that are read at once. Each may be a block of output.
const EVENTS_AT_ONCE: usize = 16;

pub(super) fn export(path: &Path, arguments: &StoreExport) -> Result<Exit> {
    let readers = Readers::open(path)?;
    let wanted = wanted(arguments);
    let unread = match &arguments.output {
        Some(file) => {
            let cannot = || format!("cannot write {}", file.display());
            let mut draft = Draft::of(file).with_context(cannot)?;
            let unread = write(&readers, &mut draft, false, &wanted, arguments.audit)?;
            draft.finish().with_context(cannot)?;
            unread
        }
        None => {
            let stdout = io::stdout();
            let harmless = stdout.is_terminal();
            let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
            let unread = write(&readers, &mut out, harmless, &wanted, arguments.audit)?;
            out.flush()?;
            unread
        }
    };
    if unread == 0 {
        return Ok(Exit::Fine);
    }
    let message = if arguments.audit {
        format!("{unread} of the entries could not be read; the lines of kind unread name them")
    } else {
        format!(
            "{unread} of the jobs could not be read whole, or are in parts that cannot be read; the lines of kind unread name them"
        )
    };
    render::problem(&message, "crosspoint store check says what is wrong with them");
    Ok(Exit::NotFine)
}

/// Writes the jobs or the audit. Returns how many of them could not be read.
fn write(readers: &Readers, out: &mut dyn Write, harmless: bool, wanted: &Wanted, audit: bool) -> Result<u64> {
    if audit {
        return audit::export(readers, out, harmless, wanted.since);
    }
    Export::new(readers, out, harmless).everything(wanted)
}

fn wanted(arguments: &StoreExport) -> Wanted {
    let since = arguments.since.map(|since| match since {
        Since::At(at) => Time(at.as_microsecond()),
        Since::Ago(ago) => Time(
            crosspoint_engine::wall_clock::now().0.saturating_sub(i64::try_from(ago.as_micros()).unwrap_or(i64::MAX)),
        ),
    });
    Wanted { phases: arguments.state.iter().filter_map(|state| Phase::from_name(state)).collect(), since }
}

struct Export<'e> {
    readers: &'e Readers,
    out: &'e mut dyn Write,
    /// Whether the output is a terminal, where nothing may move the cursor.
    harmless: bool,
    jobs: u64,
    unread: u64,
}

/// Why a job was not exported to its end.
enum Stopped {
    /// The job cannot be read.
    Fault(Fault),
    /// The output cannot be written.
    Out(io::Error),
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Stopped {
        Stopped::Fault(fault)
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped::Out(error)
    }
}

impl From<serde_json::Error> for Stopped {
    fn from(error: serde_json::Error) -> Stopped {
        Stopped::Out(error.into())
    }
}

impl<'e> Export<'e> {
    fn new(readers: &'e Readers, out: &'e mut dyn Write, harmless: bool) -> Export<'e> {
        Export { readers, out, harmless, jobs: 0, unread: 0 }
    }

    /// Exports everything. Returns the number of jobs that could not be read.
    fn everything(mut self, wanted: &Wanted) -> Result<u64> {
        let progress = Progress::new();
        let (schema, last) = self.readers.origin()?;
        self.line(Line::store(schema, last).bytes()?)?;
        let last = last.unwrap_or(Seq(SEQ_MAX));
        for (name, standing) in self.readers.standings()? {
            self.line(Line::agent(&name, &standing).bytes()?)?;
        }
        for member in self.readers.members()? {
            self.line(Line::member(&member).bytes()?)?;
        }
        // Skips what cannot be read in growing steps.
        let (mut after, mut step) = (Seq(0), 1);
        loop {
            let page = self.readers.numbers(after, wanted)?;
            for seq in page.seqs {
                progress.show("jobs", seq.0, last.0);
                match self.job(seq) {
                    Ok(()) => {}
                    Err(Stopped::Out(error)) => return Err(error.into()),
                    Err(Stopped::Fault(Fault::Damaged { .. })) => {
                        self.unread += 1;
                        self.line(Line::Unread { seq: seq.0 }.bytes()?)?;
                    }
                    Err(Stopped::Fault(fault)) => return Err(fault.into()),
                }
            }
            match page.next {
                Some(at) if page.stuck => {
                    if step == 1 {
                        self.unread += 1;
                        self.line(Line::Unread { seq: at.0 + 1 }.bytes()?)?;
                    }
                    after = Seq(at.0.max(after.0).saturating_add(step));
                    step = step.saturating_mul(2);
                    if after >= last {
                        break;
                    }
                }
                Some(next) => (after, step) = (next, 1),
                None => break,
            }
        }
        self.line(Line::End { jobs: Some(self.jobs), entries: None, unread: self.unread }.bytes()?)?;
        Ok(self.unread)
    }

    /// Exports one job with everything, or nothing if it is already gone.
    fn job(&mut self, seq: Seq) -> Result<(), Stopped> {
        let Some(job) = self.readers.job_at(seq)? else { return Ok(()) };
        let id = job.id();
        let is_owed = job.request.notify.is_some() && self.readers.owed_to(seq)?.is_some();
        let further = self.readers.further_names(seq)?;
        self.line(line::job(&job, &further, is_owed)?)?;
        let document = self.readers.document(seq)?;
        if let Some(document) = &document {
            self.line(Line::document(id, document).bytes()?)?;
        }
        let whole = self.events(&job)? && self.violations(&job)?;
        // Checked last: if the job still exists, everything that was read before belongs to it.
        if self.readers.job_at(seq)?.is_none() {
            self.line(Line::Gone { job: id }.bytes()?)?;
            return Ok(());
        }
        if document.is_none() || !whole {
            self.unread += 1;
            self.line(Line::Unread { seq: seq.0 }.bytes()?)?;
        }
        self.jobs += 1;
        Ok(())
    }

    /// Exports the events that the job had when it was read. Returns whether all of them were there.
    fn events(&mut self, job: &Job) -> Result<bool, Stopped> {
        let (id, seq) = (job.id(), job.seq());
        let accepted = Entry { n: 1, at: job.request.accepted_at, what: What::Accepted };
        self.line(Line::event(id, &accepted).bytes()?)?;
        let mut last = 1;
        let places = self.readers.event_places(seq, 1)?;
        for some in places.chunks(EVENTS_AT_ONCE) {
            for entry in self.readers.events_at(seq, some)? {
                if entry.n <= job.events {
                    last = entry.n;
                    self.line(Line::event(id, &entry).bytes()?)?;
                }
            }
        }
        if let Some(outcome) = job.outcome() {
            last += 1;
            let end = Entry { n: last, at: outcome.at, what: What::Ended(outcome.clone()) };
            self.line(Line::event(id, &end).bytes()?)?;
        }
        Ok(last == job.events)
    }

    fn violations(&mut self, job: &Job) -> Result<bool, Stopped> {
        let mut after = 0;
        loop {
            let (found, last) = self.readers.violations_after(job.seq(), after)?;
            if found.is_empty() {
                return Ok(true);
            }
            for found in &found {
                self.line(Line::Violation { job: job.id(), found }.bytes()?)?;
            }
            after = last;
        }
    }

    fn line(&mut self, line: Vec<u8>) -> io::Result<()> {
        put(self.out, self.harmless, line)
    }
}

/// Writes one line.
pub(super) fn put(out: &mut dyn Write, harmless: bool, mut line: Vec<u8>) -> io::Result<()> {
    if harmless {
        line = json::harmless(&String::from_utf8_lossy(&line)).into_bytes();
    }
    line.push(b'\n');
    out.write_all(&line)
}
