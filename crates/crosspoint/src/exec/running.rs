//! The parent's side of a running program: what it says, its answers, its end.
//!
//! The program's pipe is read only while a caller waits for what comes next. So a program that prints faster than its
//! output is stored waits, and costs no memory. Dropping a [`Running`] closes the connection to its supervisor, which
//! kills the program.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::Failed;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::control::{Report, STOP};
use super::directive::{self, Directive};
use super::end::{self, End};
use super::gathered::{Gathered, TooMuch};
use super::job_lock::JobLock;
use super::launch::{self, Started, Supervisor};
use super::lines::{Lines, More, Piece};
use super::tree::{self, Children};
use super::{Given, Next, Program, ProgramEvent, find, input};

/// How long a line that has not ended is kept without more arriving, before it is passed on.
const PARTIAL_AFTER: Duration = Duration::from_millis(200);

/// How long the pipe is read without anything arriving, once no process of the program is left that could print.
/// Normally nothing more comes then, but another process may have got hold of the pipe.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Longest line of a supervisor, in bytes; stderr may be all escapes.
const REPORT_BYTES_MAX: usize = 64 << 10;

const TOO_LONG: &str = "an @crosspoint line was longer than 16 MiB, and was kept as output";
const LOOSE_FAIL: &str = "a fail line had a member of a wrong type, which was not used";
const LEFT_BEHIND: &str = "processes that the program had started were still alive when it ended, and were killed";

/// A program that runs.
pub(crate) struct Running {
    program: Arc<Program>,
    job_id: String,
    supervisor: Supervisor,
    /// `None` once the supervisor has closed it, which is when the supervisor ends.
    control: Option<UnixStream>,
    /// Whether the supervisor was asked to end the program. It may not have read that yet.
    asked_to_stop: bool,
    reports: BytesMut,
    /// `None` once nothing more comes.
    stdout: Option<pipe::Receiver>,
    lines: Lines,
    /// When the part of a line that has come is passed on, or when waiting for last output ends. It counts from the
    /// moment a caller waits: how long the caller took over what came before is not the program's fault.
    deadline: Option<Instant>,
    events: VecDeque<ProgramEvent>,
    broken: BTreeSet<&'static str>,
    gathered: Gathered,
    /// The attempt as whose output it is stored what the program prints, and the offset in it.
    output_at: (u32, u64),
    answers: Option<mpsc::UnboundedSender<Body>>,
    writer: JoinHandle<()>,
    end: End,
    /// The search for what a killed supervisor has left.
    orphans: Option<JoinHandle<Children>>,
}

/// Starts a program for a job, once nothing is left of an earlier program of that job. An error says that nothing was
/// started.
pub(crate) async fn start(program: Arc<Program>, given: Given) -> Result<Running, Failed> {
    let order = launch::order_of(&program, &given)?;
    let turn = JobLock::take(&given.job_id).await;
    if given.may_be_haunted && leftovers(&given.job_id).await == Children::Some {
        return Err(find::haunted(&program));
    }
    let started = tokio::task::spawn_blocking(move || Started::new(&order, turn)).await;
    let started = started.map_err(io::Error::other).and_then(|started| started).and_then(Started::into_async);
    let started = started.map_err(|error| find::not_supervised(&program, &error))?;
    let (answers, questions) = mpsc::unbounded_channel();
    let writer = tokio::spawn(input::write(started.stdin, given.input, questions));
    Ok(Running {
        job_id: given.job_id,
        supervisor: started.supervisor,
        control: Some(started.control),
        asked_to_stop: false,
        reports: BytesMut::new(),
        stdout: Some(started.stdout),
        lines: Lines::new(),
        deadline: None,
        events: VecDeque::new(),
        broken: BTreeSet::new(),
        gathered: Gathered::default(),
        output_at: (given.attempt, given.output_offset),
        answers: program.ask.then_some(answers),
        writer,
        end: End::default(),
        orphans: None,
        program,
    })
}

/// Ends the processes that an earlier attempt has left. There are none as long as its supervisor lived to end them; but
/// whatever killed a server may have killed its supervisors along with it.
async fn leftovers(job_id: &str) -> Children {
    let job_id = job_id.to_owned();
    tokio::task::spawn_blocking(move || tree::end_orphans(None, None, &job_id)).await.unwrap_or(Children::Some)
}

impl Running {
    /// Returns what comes next. The future may be dropped and called again, and loses nothing.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Next::Event(event);
            }
            if let Some(orphans) = &mut self.orphans {
                let _ = orphans.await;
                self.orphans = None;
            }
            if self.control.is_none() && self.stdout.is_none() {
                let (mut gathered, (attempt, offset)) = (std::mem::take(&mut self.gathered), self.output_at);
                let given = gathered.given().if_any();
                let outputs = given.as_ref().and_then(|given| given.outputs.clone());
                outputs.into_iter().for_each(|outputs| gathered.outputs(outputs));
                let result = self.end.result(&self.program, || gathered.success(attempt, offset));
                return Next::Ended(result.map_err(|failed| Failed { given, ..failed }));
            }
            let deadline = self.deadline();
            tokio::select! {
                // What has arrived is read first, however late it is.
                biased;
                read = read(self.stdout.as_mut(), &mut self.lines) => self.printed(read),
                read = report(self.control.as_mut(), &mut self.reports) => self.reported(read),
                () = until(deadline) => self.deadline_over(),
            }
        }
    }

    /// Returns when the program has ended, also while its output is not being read.
    pub(crate) async fn ended(&mut self) {
        while self.control.is_some() {
            let read = report(self.control.as_mut(), &mut self.reports).await;
            self.reported(read);
        }
    }

    /// Whether the program has not been seen to end.
    pub(crate) fn is_alive(&self) -> bool {
        self.control.is_some()
    }

    /// Gives the program an answer: one line of JSON.
    pub(crate) fn answer(&mut self, answer: Body) {
        // A program that has closed its stdin gets no answer, and ends as it likes.
        let _ = self.answers.as_ref().map(|answers| answers.send(answer));
    }

    /// Asks the program to end: SIGTERM to its process group, and after the grace SIGKILL to all that is left.
    /// [`Running::next`] returns the end soon after.
    pub(crate) fn stop(&mut self) {
        self.end.stopped = true;
        self.say_stop();
    }

    fn say_stop(&mut self) {
        self.asked_to_stop = true;
        // It is one byte, now and then: there is always room for it, and if not, the supervisor is as good as gone.
        let _ = self.control.as_ref().map(|control| rustix::io::write(control, &[STOP]));
        self.supervisor.awake();
    }

    fn printed(&mut self, read: io::Result<usize>) {
        let more = if read.is_ok_and(|count| count > 0) { More::Comes } else { More::Never };
        if more == More::Never {
            self.stdout = None;
        }
        self.deadline = None;
        self.take(more);
    }

    fn take(&mut self, more: More) {
        while let Some(piece) = self.lines.take(more) {
            match piece {
                Piece::Output(block) => self.output(block),
                Piece::Directive(line) if !self.program.has_directives => self.output(line),
                Piece::TooLong if !self.program.has_directives => {}
                Piece::TooLong => self.breaks(TOO_LONG),
                Piece::Directive(line) => match directive::read(&line) {
                    Ok((directive, rule)) => {
                        rule.into_iter().for_each(|rule| self.breaks(rule));
                        self.follow(directive);
                    }
                    Err(rule) => {
                        self.breaks(rule);
                        self.output(line);
                    }
                },
            }
        }
    }

    fn output(&mut self, block: bytes::Bytes) {
        self.gathered.output(&block);
        self.events.push_back(ProgramEvent::Output(block));
    }

    fn follow(&mut self, directive: Directive) {
        match directive {
            Directive::Progress { percent, step } => self.events.push_back(ProgramEvent::Progress { percent, step }),
            Directive::Outputs(outputs) => self.gathered.outputs(outputs),
            Directive::Artifact(artifact) => {
                if self.gathered.artifact(artifact) == Err(TooMuch) {
                    self.fail(end::too_many_artifacts());
                }
            }
            Directive::Ask(question) if self.answers.is_some() => self.events.push_back(ProgramEvent::Ask(question)),
            Directive::Ask(_) => self.fail(end::may_not_ask()),
            Directive::Fail(said) => {
                if said.is_loose {
                    self.breaks(LOOSE_FAIL);
                }
                // The program ends by itself: it may have to clean up.
                self.end.said = Some(said);
            }
        }
    }

    /// Notes that the attempt has failed, whatever else the program does, and asks the program to end.
    fn fail(&mut self, failed: Failed) {
        self.end.failed.get_or_insert(failed);
        self.say_stop();
    }

    /// Reports a broken rule, each rule once: a program that breaks one breaks it in every line.
    fn breaks(&mut self, rule: &'static str) {
        if self.broken.insert(rule) {
            self.events.push_back(ProgramEvent::Broken(rule));
        }
    }

    fn reported(&mut self, read: io::Result<usize>) {
        let closed = !read.is_ok_and(|count| count > 0) || self.reports.len() > REPORT_BYTES_MAX;
        while let Some(end) = super::lines::line_end(&self.reports) {
            let line = self.reports.split_to(end);
            match serde_json::from_slice(&line) {
                Ok(Report::Started { pid }) => self.end.pid = Some(pid),
                Ok(Report::NotStarted { step, errno }) => self.end.hindered = Some((step, errno)),
                // While no caller takes them, one sign of life is as good as many.
                Ok(Report::Heard) if self.events.iter().any(|event| matches!(event, ProgramEvent::Heard)) => {}
                Ok(Report::Heard) => self.events.push_back(ProgramEvent::Heard),
                Ok(Report::Ended(ending)) => self.end.ending = Some(ending),
                Err(_) => {}
            }
        }
        // How the program ended is the last thing that a supervisor says. It may then wait for a process that cannot be
        // killed, which holds up no outcome.
        if closed || self.end.is_known() {
            let control = self.control.take();
            // A byte that the supervisor has not read would be taken for the beginning of the next order.
            if let Some(control) = control.filter(|_| self.end.is_free() && !closed && !self.asked_to_stop) {
                self.supervisor.keep(control);
            }
            self.last_words();
        }
    }

    fn last_words(&mut self) {
        if self.end.left() > 0 && self.end.failed.is_none() && !self.end.stopped {
            self.breaks(LEFT_BEHIND);
        }
        if !self.end.is_known() {
            // The supervisor was killed. What it watched over must be ended here.
            let (session, pid, job_id) = (self.supervisor.pid(), self.end.pid, self.job_id.clone());
            self.orphans = Some(tokio::task::spawn_blocking(move || tree::end_orphans(session, pid, &job_id)));
        }
        self.deadline = None;
    }

    /// Until when to wait, if there is anything that time brings on.
    fn deadline(&mut self) -> Option<Instant> {
        let wait = match (&self.stdout, &self.control) {
            (Some(_), None) => LAST_WORDS,
            (Some(_), Some(_)) if self.lines.is_waiting() => PARTIAL_AFTER,
            (Some(_) | None, Some(_) | None) => return None,
        };
        Some(*self.deadline.get_or_insert_with(|| Instant::now() + wait))
    }

    fn deadline_over(&mut self) {
        self.deadline = None;
        if self.control.is_none() {
            self.stdout = None;
            self.take(More::Never);
        } else {
            self.take(More::Late);
        }
    }
}

async fn read(stdout: Option<&mut pipe::Receiver>, lines: &mut Lines) -> io::Result<usize> {
    match stdout {
        Some(stdout) => stdout.read_buf(lines.room()).await,
        None => std::future::pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn report(control: Option<&mut UnixStream>, reports: &mut BytesMut) -> io::Result<usize> {
    match control {
        Some(control) => control.read_buf(reports).await,
        None => std::future::pending().await,
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.writer.abort();
    }
}
