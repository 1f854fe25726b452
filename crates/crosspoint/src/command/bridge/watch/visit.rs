//! A visit to a directory in which something waits: from taking its lock to giving it back.
//!
//! Whatever ends a visit in the middle (a full disk, a directory that vanishes, a kill) leaves the request where it is,
//! noted. The next visit hands it in again and, because its id is its key, gets the outcome of the job that exists.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_bridge::request::Request;
use crosspoint_bridge::{Fault, Mark, Pair};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinError, JoinSet, spawn_blocking};
use tokio::time::Instant;

use super::place::{Left, WatchedDirectory};
use super::scan::{self, Put, Seen, What};
use super::server::Server;
use super::{AGAIN_PAUSE, until, watch_log};
use crate::bridge::driver::DrivenDirectory;
use crate::bridge::record::Known;
use crate::bridge::work;
use crate::client::Failed;
use crate::command::bridge::arguments::Routes;

/// Most requests under way at a time, over all directories. Each is a connection to the server, up to 1 MiB of request
/// and then up to 64 MiB of answer in memory; further requests wait in their files.
const UNDER_WAY_MAX: usize = 256;

/// How long a server may be away with a request, before the driver checks whether it still is the same server.
const AWAY_TIME: Duration = Duration::from_secs(5);

/// How long a request that looks broken is given to become whole: its writer may write in place and not be done.
const WRITING_TIME: Duration = Duration::from_secs(1);

/// What all visits share.
pub(super) struct Shared {
    pub(super) server: Server,
    routes: Routes,
    room: Arc<Semaphore>,
}

impl Shared {
    pub(super) fn new(server: Server, routes: Routes) -> Shared {
        Shared { server, routes, room: Arc::new(Semaphore::new(UNDER_WAY_MAX)) }
    }
}

/// What comes after a visit.
pub(super) enum Next {
    /// Nothing waits that could be answered; look again after this time.
    Rest(Option<Duration>),
    /// The directory is not there.
    Gone,
    /// Another driver works in it.
    InUse,
    /// The visit failed: what is wrong, and what to do about it.
    Trouble(String, String),
}

impl From<Fault> for Next {
    fn from(fault: Fault) -> Next {
        match fault {
            Fault::Gone(_) | Fault::NotADirectory(_) => Next::Gone,
            Fault::InUse(_) => Next::InUse,
            Fault::Denied { .. } | Fault::Full(_) | Fault::NotAFile { .. } | Fault::Other { .. } => {
                Next::Trouble(fault.to_string(), fault.hint().to_owned())
            }
        }
    }
}

impl From<Failed> for Next {
    fn from(failed: Failed) -> Next {
        Next::Trouble(failed.to_string(), failed.hint().unwrap_or_default().to_owned())
    }
}

impl From<JoinError> for Next {
    fn from(_: JoinError) -> Next {
        Next::Trouble("internal error".to_owned(), String::new())
    }
}

/// Has everything answered that waits.
pub(super) async fn visit(directory: Arc<WatchedDirectory>, shared: Arc<Shared>) -> Next {
    match visited(&directory, shared).await {
        Ok(next) | Err(next) => next,
    }
}

async fn visited(directory: &Arc<WatchedDirectory>, shared: Arc<Shared>) -> Result<Next, Next> {
    // What may take long comes first, while no other driver is kept out of the directory.
    let permit = shared.room.clone().acquire_owned().await.map_err(|_| Next::Rest(None))?;
    let store = shared.server.store().await;
    let opening = directory.clone();
    let opened = spawn_blocking(move || {
        let attended = opening.open()?;
        let left = opening.left(&attended.directory)?;
        Ok::<_, Fault>((attended, left))
    });
    let (attended, seen) = opened.await??;
    if let Some(aside) = &attended.odd_record {
        watch_log::odd_record(directory, aside);
    }
    let visit = Visit {
        directory: directory.clone(),
        shared,
        store,
        seen,
        spare: vec![permit],
        under_way: JoinSet::new(),
        in_hand: BTreeMap::new(),
        look_again: None,
        more: false,
        stopped: None,
    };
    visit.go(attended).await
}

struct Visit {
    directory: Arc<WatchedDirectory>,
    shared: Arc<Shared>,
    /// The store of the server that is given the requests.
    store: String,
    /// The marks of the requests that were looked at.
    seen: BTreeMap<Pair, Mark>,
    spare: Vec<OwnedSemaphorePermit>,
    under_way: JoinSet<Done>,
    in_hand: BTreeMap<Pair, InHand>,
    look_again: Option<Instant>,
    /// There are more requests than there is room for.
    more: bool,
    /// Nothing more is begun, for this reason.
    stopped: Option<Next>,
}

struct InHand {
    request_id: String,
    /// The digest of what it asks: written anew with other words it is another request.
    digest: String,
    task: AbortHandle,
}

/// What came of handing in a request.
struct Done {
    pair: Pair,
    request_id: String,
    digest: String,
    agent_name: String,
    job: Option<String>,
    began: Instant,
    came: Came,
    /// Kept until the answer is written, which may be large.
    _permit: OwnedSemaphorePermit,
}

enum Came {
    Answer(String),
    /// The server is another one by now.
    OtherStore,
    Failed(Failed),
}

impl Visit {
    async fn go(mut self, attended: DrivenDirectory) -> Result<Next, Next> {
        let mut attended = self.look(attended).await?;
        loop {
            let (look_again, lacks_room) = (self.look_again, self.more && self.stopped.is_none());
            if self.under_way.is_empty() && !lacks_room {
                break;
            }
            tokio::select! {
                Some(done) = self.under_way.join_next() => attended = self.settle(attended, done).await?,
                permit = self.shared.room.clone().acquire_owned(), if lacks_room => self.spare.extend(permit),
                () = self.directory.nudge.notified() => {}
                () = until(look_again) => self.look_again = None,
            }
            attended = self.look(attended).await?;
        }
        spawn_blocking(move || scan::tidy(&mut attended)).await??;
        let rest = self.look_again.map(|at| at.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
        Ok(self.stopped.unwrap_or(Next::Rest(rest)))
    }

    /// Begins all new requests, as far as there is room.
    async fn look(&mut self, mut attended: DrivenDirectory) -> Result<DrivenDirectory, Next> {
        if self.stopped.is_some() {
            return Ok(attended);
        }
        let pairs = Pair::all().count();
        while self.spare.len() < pairs
            && let Ok(permit) = self.shared.room.clone().try_acquire_owned()
        {
            self.spare.push(permit);
        }
        let (seen, room, store) = (self.seen.clone(), self.spare.len(), self.store.clone());
        let wrote = self.directory.memory().wrote.clone();
        let looking = spawn_blocking(move || {
            let scan = scan::scan(&mut attended, (&seen, &wrote), room, &store);
            (attended, scan)
        });
        let (attended, scan) = looking.await?;
        match scan {
            Ok(scan) => {
                self.more = scan.more;
                scan.aside.iter().for_each(|aside| watch_log::set_aside(&self.directory, aside));
                for seen in scan.found {
                    self.found(seen);
                }
            }
            Err(fault) => self.stop(fault.into())?,
        }
        self.spare.clear();
        Ok(attended)
    }

    /// Begins nothing more; what is under way may end, unless the directory is gone.
    fn stop(&mut self, why: Next) -> Result<(), Next> {
        match why {
            Next::Gone => Err(Next::Gone),
            Next::Rest(_) | Next::InUse | Next::Trouble(..) => {
                self.stopped = Some(why);
                Ok(())
            }
        }
    }

    fn found(&mut self, found: Seen) {
        let Seen { pair, mark, what } = found;
        self.seen.insert(pair, mark);
        let directory = self.directory.clone();
        let mut memory = directory.memory();
        let left = match what {
            What::Request(request) => {
                self.begin(request);
                None
            }
            What::WasAnswered => {
                watch_log::was_answered(&directory, pair);
                None
            }
            What::TooLarge { length, aside } => {
                watch_log::too_large(&directory, pair, length, aside.as_deref());
                None
            }
            What::Elsewhere(record) => {
                // Only the record may have changed since this was logged.
                if memory.left.get(&pair).is_none_or(|left| left.mark() != mark) {
                    watch_log::elsewhere(&directory, pair);
                }
                Some(Left::AsRecorded(mark, record))
            }
            What::Unreadable(fault) => {
                watch_log::unreadable(&directory, pair, &fault);
                Some(Left::AsItIs(mark))
            }
            What::Malformed(malformed) => {
                let now = Instant::now();
                let suspect = memory.suspects.get(&pair).filter(|(known, _)| *known == mark);
                let since = suspect.map_or(now, |(_, since)| *since);
                memory.suspects.insert(pair, (mark, since));
                if now < since + WRITING_TIME {
                    self.seen.remove(&pair);
                    self.look_again = Some(since + WRITING_TIME);
                    None
                } else {
                    watch_log::malformed(&directory, pair, &malformed.report);
                    Some(Left::AsItIs(mark))
                }
            }
        };
        if let Some(left) = left {
            memory.suspects.remove(&pair);
            memory.left.insert(pair, left);
        }
    }

    fn is_in_hand(&self, pair: Pair, request_id: &str, digest: &str) -> bool {
        self.in_hand.get(&pair).is_some_and(|in_hand| in_hand.request_id == request_id && in_hand.digest == digest)
    }

    fn begin(&mut self, request: Box<Request>) {
        let (pair, request_id, digest) = (request.pair, request.request_id.clone(), request.digest.clone());
        if self.is_in_hand(pair, &request_id, &digest) {
            // The same request, written anew.
            return;
        }
        let Some(permit) = self.spare.pop() else { return };
        watch_log::remarks(&self.directory, &request);
        let answering = answered(self.directory.clone(), self.shared.clone(), self.store.clone(), request, permit);
        let task = self.under_way.spawn(answering);
        if let Some(before) = self.in_hand.insert(pair, InHand { request_id, digest, task }) {
            // The earlier request is no longer waited for. Its job goes on.
            watch_log::replaced(&self.directory, pair);
            before.task.abort();
        }
    }

    /// Writes the answer that came.
    async fn settle(
        &mut self,
        attended: DrivenDirectory,
        done: Result<Done, JoinError>,
    ) -> Result<DrivenDirectory, Next> {
        let done = match done {
            Ok(done) => done,
            Err(aborted) if aborted.is_cancelled() => return Ok(attended),
            Err(panicked) => {
                self.stop(panicked.into())?;
                return Ok(attended);
            }
        };
        if !self.is_in_hand(done.pair, &done.request_id, &done.digest) {
            return Ok(attended);
        }
        self.in_hand.remove(&done.pair);
        let document = match done.came {
            Came::Answer(document) => document,
            Came::OtherStore => {
                self.stop(Next::Rest(Some(AGAIN_PAUSE)))?;
                return Ok(attended);
            }
            Came::Failed(failed) => {
                self.stop(failed.into())?;
                return Ok(attended);
            }
        };
        let (pair, request_id, digest) = (done.pair, done.request_id, done.digest);
        let ended = watch_log::Ended::of(&document);
        let putting = spawn_blocking(move || {
            let known = Known { pair, request_id: &request_id, digest: Some(&digest) };
            let put = scan::put(&attended, known, &document);
            (attended, put, digest)
        });
        let (attended, put, digest) = putting.await?;
        let about =
            watch_log::About { directory: &self.directory, pair, agent: &done.agent_name, job: done.job.as_deref() };
        match put {
            Ok(Put::Written(mark, aside)) => {
                self.directory.memory().wrote.extend(mark.map(|mark| (pair, (mark, digest))));
                watch_log::answered(&about, &ended, done.began.elapsed(), aside.as_deref());
                // Whatever has the name now is another request.
                self.seen.remove(&pair);
            }
            Ok(Put::Unwanted) => {
                watch_log::unwanted(&about, &ended);
                self.seen.remove(&pair);
            }
            Err(fault) => self.stop(fault.into())?,
        }
        Ok(attended)
    }
}

/// Has a request answered, however long that takes.
async fn answered(
    directory: Arc<WatchedDirectory>,
    shared: Arc<Shared>,
    store: String,
    request: Box<Request>,
    permit: OwnedSemaphorePermit,
) -> Done {
    let (began, mut job) = (Instant::now(), None);
    let work = shared.routes.work_for(&request.agent_name);
    let came = loop {
        let accepted = |accepted: &crate::client::Job| {
            if job.is_none() {
                let id = accepted.is.id.clone();
                watch_log::accepted(&directory, &request, &id);
                job = Some(id);
            }
        };
        let client = shared.server.client();
        // A server in this process is never another one.
        let away_max = if client.is_embedded() { Duration::MAX } else { AWAY_TIME };
        match work::answered(&client, &request, work, away_max, accepted).await {
            Ok(answered) => {
                job = answered.job.or(job);
                break Came::Answer(answered.document);
            }
            Err(failed) if !failed.passes() => break Came::Failed(failed),
            Err(_) => {}
        }
        // `Server::store` logs that the server is away, and when it is back.
        if shared.server.store().await != store {
            break Came::OtherStore;
        }
    };
    let Request { pair, request_id, digest, agent_name, .. } = *request;
    Done { pair, request_id, digest, agent_name, job, began, came, _permit: permit }
}
