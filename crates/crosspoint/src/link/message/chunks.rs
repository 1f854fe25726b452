//! What an agent prints while it works: the output of its steps, whole or in chunks, on its way into the job's output.
//!
//! A status has the text of a step. A short text comes whole and goes into the output of the attempt as it is. A long
//! one comes in chunks (MSG-9): in any order, some of them twice, with a restart of this server in between. The obvious
//! way gathers them in memory and stores the text when it is complete. Then a few long outputs would fill the memory, a
//! restart would lose what was acknowledged, and followers of the job would see nothing until the end.
//!
//! So every chunk is in a file when it is taken ([`mod@file`]), and only then is it acknowledged. What is held from the
//! beginning on goes into the output of the attempt at once. How far it got there is not written down: the store counts
//! the bytes of the output, and so it is known after any crash which bytes are still to come.
//!
//! What happens at the edges:
//! - A set of chunks ends when it is complete, with the next step, or with the result. A text of the same step that
//!   comes without a chunk meanwhile waits for that, so that the set is one stretch of the output ([`set`]).
//! - A chunk that breaks a rule is refused, and so is a set of which bytes never came. The agent is to be told, and a
//!   violation recorded. What is held goes into the output all the same, and the text of the outcome is said not to be
//!   whole ([`Finished`]).
//! - Statuses are repeated as signs of life. What they print is stored once ([`seen`]).
//! - A chunk that comes after the end of its set and repeats it changes nothing. One of the same step that begins where
//!   the set ended goes on with it: the set was ended by another step, as which the agent said how far it is. Any other
//!   begins a new set.
//! - Only the last set is remembered. A chunk of an earlier one begins a new set, because nothing tells it from one.
//!
//! [`set`] and [`state`] decide, [`spool`] has the steps on disk, and [`Chunks`] calls them where waiting for a disk
//! blocks no task. All output of an attempt must go through its [`Chunks`], which otherwise counts wrongly.

mod file;
mod finished;
mod seen;
mod set;
mod spool;
mod state;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::message::WorkState;
use crosspoint_contracts::message::chunk::{Chunk, Refusal};
use crosspoint_engine::id::{Ids, JobId};
use crosspoint_engine::runtime::{Attempt, Gone};
use tokio::sync::Mutex;
use uuid::Uuid;

pub(super) use self::finished::Finished;
use self::set::StepId;
use self::spool::{Entered, Plain, Spool};

/// Namespace of the digests: that of nothing else.
const DIGESTS: Uuid = Uuid::from_u128(0x7f0c_2d5e_93b1_4c1f_9c52_6a1d_0e84_b37a);

/// Where the output of an attempt goes.
pub(super) trait Sink {
    /// Stores a block of output. When it returns, the block is on disk.
    fn output(&mut self, block: Bytes) -> impl Future<Output = Result<(), Gone>> + Send;
}

impl Sink for Attempt {
    async fn output(&mut self, block: Bytes) -> Result<(), Gone> {
        Attempt::output(self, block).await
    }
}

/// What a `work_status` says about the step.
pub(super) struct Status {
    pub(super) message_id: Option<Uuid>,
    pub(super) state: Option<WorkState>,
    pub(super) percent: Option<i64>,
    /// The number of the step.
    pub(super) number: i64,
    /// The name of the step.
    pub(super) name: Box<str>,
    /// What it printed, decoded.
    pub(super) output: Bytes,
    pub(super) chunk: Option<Chunk>,
}

/// What became of a status. It is on disk, and can be acknowledged.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Whether it was taken before.
    pub(super) is_repeat: bool,
    /// What is wrong with its chunk, or with the set that it ended. [`Refusal::error_code`] and [`Refusal::clause`] say
    /// what the agent is told and which rule it broke.
    pub(super) refused: Vec<Refusal>,
}

/// Why output cannot be taken. It must not be acknowledged, so that the agent sends it again.
#[derive(Debug)]
pub(super) enum Fault {
    /// The job goes on without this attempt.
    Gone(Gone),
    /// The file of the attempt cannot be read or written.
    File(io::Error),
}

impl From<Gone> for Fault {
    fn from(gone: Gone) -> Fault {
        Fault::Gone(gone)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::File(error)
    }
}

/// The output of one attempt. A call that is dropped before it returns has taken its status or not, and does no harm:
/// the next call goes on from there.
pub(super) struct Chunks {
    spool: Arc<Mutex<Spool>>,
    attempt: u32,
    /// How much output the attempt has, in bytes.
    output_bytes: u64,
}

impl Chunks {
    /// Returns the output of an attempt, with what was taken of it before a restart. The directory is that of all
    /// attempts; it is made when it is needed. `bytes_max` is how much output the attempt may have, and `output_bytes`
    /// how much it has.
    pub(super) async fn open(
        directory: &Path,
        job: JobId,
        attempt: u32,
        bytes_max: u64,
        output_bytes: u64,
    ) -> io::Result<Chunks> {
        let path = path(directory, job, attempt);
        let spool = blocking(move || Spool::open(&path, bytes_max, output_bytes)).await?;
        Ok(Chunks { spool: Arc::new(Mutex::new(spool)), attempt, output_bytes })
    }

    /// Takes what a status says. When it returns, all of it is on disk, and what can be shown is in the output.
    pub(super) async fn take(&mut self, sink: &mut impl Sink, status: Status) -> Result<Taken, Fault> {
        self.flush(sink).await?;
        let status = Arc::new(status);
        let (entering, output_bytes) = (status.clone(), self.output_bytes);
        let ended = match self.step(move |spool| spool.enter(&entering, output_bytes)).await? {
            Entered::Repeat => return Ok(Taken { is_repeat: true, ..Taken::default() }),
            Entered::New(ended) => ended,
        };
        self.flush(sink).await?;
        let refused = match status.chunk {
            Some(chunk) => self.chunk(sink, status, chunk).await?,
            None => self.plain(sink, status).await?,
        };
        Ok(Taken { is_repeat: false, refused: ended.into_iter().chain(refused).collect() })
    }

    /// Ends the output of the attempt. `output` is the output of its result, if it has one.
    pub(super) async fn finish(&mut self, sink: &mut impl Sink, output: Option<Bytes>) -> Result<Finished, Fault> {
        self.flush(sink).await?;
        let refused = self.step(Spool::close).await?;
        self.flush(sink).await?;
        let text = self.step(move |spool| spool.text_is(output.as_deref())).await?;
        Ok(Finished { attempt: self.attempt, text, refused })
    }

    async fn chunk(
        &mut self,
        sink: &mut impl Sink,
        status: Arc<Status>,
        chunk: Chunk,
    ) -> Result<Option<Refusal>, Fault> {
        let output_bytes = self.output_bytes;
        let refused = self.step(move |spool| spool.chunk(&status, chunk, output_bytes)).await?;
        self.flush(sink).await?;
        Ok(refused)
    }

    async fn plain(&mut self, sink: &mut impl Sink, status: Arc<Status>) -> Result<Option<Refusal>, Fault> {
        let (output, output_bytes) = (status.output.clone(), self.output_bytes);
        match self.step(move |spool| spool.plain(&status, output_bytes)).await? {
            Plain::Now if !output.is_empty() => self.output(sink, output).await.map(|()| None),
            Plain::Now | Plain::Later => Ok(None),
            Plain::Refused(refusal) => Ok(Some(refusal)),
        }
    }

    /// Hands on what is held and can be shown.
    async fn flush(&mut self, sink: &mut impl Sink) -> Result<(), Fault> {
        let output_bytes = self.output_bytes;
        let mut next = self.step(move |spool| spool.next(output_bytes)).await?;
        while let Some(block) = next {
            self.output(sink, block).await?;
            let output_bytes = self.output_bytes;
            next = self.step(move |spool| spool.next(output_bytes)).await?;
        }
        Ok(())
    }

    async fn output(&mut self, sink: &mut impl Sink, block: Bytes) -> Result<(), Fault> {
        // Counted first, as the attempt does: a block that was handed over is stored, also if nobody waits for it.
        self.output_bytes += block.len() as u64;
        Ok(sink.output(block).await?)
    }

    /// Takes one step on disk. It is taken to its end, also if nobody waits for it, and before the next one.
    async fn step<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Spool) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        // The lock belongs to the step, and not to the task that waits for it.
        let mut spool = self.spool.clone().lock_owned().await;
        blocking(move || step(&mut spool)).await
    }
}

impl Status {
    fn step_id(&self) -> StepId {
        StepId::new(self.number, &self.name)
    }

    /// Returns a digest of what it says. The ids and the time of a message do not count.
    fn fingerprint(&self) -> Uuid {
        let state = self.state.map(WorkState::word);
        let (name, chunk) = (digest(self.name.as_bytes()), self.chunk.map(|chunk| chunk.to_string()));
        let about = format!("{state:?} {:?} {} {name} {chunk:?}", self.percent, self.number);
        Uuid::new_v5(&digest(about.as_bytes()), &self.output)
    }
}

/// Removes what is left of the output of an attempt that is over.
pub(super) async fn remove(directory: &Path, job: JobId, attempt: u32) -> io::Result<()> {
    let path = path(directory, job, attempt);
    blocking(move || file::remove(&path)).await
}

/// Returns the attempts of which something is left in the directory. Other files are left alone.
pub(super) async fn left(directory: &Path, ids: &Ids) -> io::Result<Vec<(JobId, u32)>> {
    let (directory, ids) = (directory.to_owned(), ids.clone());
    blocking(move || {
        if !directory.is_dir() {
            return Ok(Vec::new());
        }
        let mut left = Vec::new();
        for entry in directory.read_dir()? {
            left.extend(entry?.file_name().to_str().and_then(|name| attempt_of(name, &ids)));
        }
        Ok(left)
    })
    .await
}

fn path(directory: &Path, job: JobId, attempt: u32) -> PathBuf {
    directory.join(format!("{job}-{attempt}"))
}

fn attempt_of(name: &str, ids: &Ids) -> Option<(JobId, u32)> {
    let (job, attempt) = name.rsplit_once('-')?;
    Some((ids.parse(job)?, attempt.parse().ok()?))
}

/// Returns a digest that is the same in every version of this program.
fn digest(bytes: &[u8]) -> Uuid {
    Uuid::new_v5(&DIGESTS, bytes)
}

/// Does something on a thread where waiting for a disk blocks no task.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and everything with it.
            Err(_) => std::future::pending().await,
        },
    }
}
