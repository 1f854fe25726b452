//! `crosspoint bridge watch`: answers the requests in directories, for as long as it runs.
//!
//! At rest there is one thread that sleeps, and a few words of memory for each directory. A notice leads to a *glance*,
//! which takes no lock and reads no file. If something waits, a *visit* follows: a task that takes the directory's
//! lock, has everything answered that is there or comes meanwhile, cleans up and leaves. A fault of one directory is
//! logged once and retried with growing pauses, and does not affect the other directories.
//!
//! In reading order: `place` is what is remembered of a directory, `scan` is all work on its files, `visit` is the
//! task, `server` is the server that answers, and `watch_log` is the lines of the log.

mod place;
mod scan;
mod server;
mod visit;
mod watch_log;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use crosspoint_bridge::Fault;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::bridge::file_events::{FileEvents, POLL_PAUSE, WatchMethod};
use crate::client::{Need, Session};
use crate::command::bridge::arguments::BridgeWatch;
use crate::signals::Signals;
use crate::terminal::render;
use crate::{Exit, log};
use place::WatchedDirectory;
use server::Server;
use visit::{Next, Shared, visit};

/// Most threads that work on files. As many syncs are under way at a time, and as many directories on a dead mount can
/// hold up the other directories.
const FILE_THREADS_MAX: usize = 8;

/// How long a file thread lives without work: at rest there are none.
const FILE_THREAD_REST: Duration = Duration::from_secs(2);

/// Limit of open files that is asked for: two for each visited directory, a connection for each request (two if the
/// server is in this process), and what an engine and its agents need.
const FILES_WANTED: u64 = 4096;

/// Directories that one thread glances at in one go. One whose mount is dead holds up at most as many.
const GLANCES_AT_ONCE: usize = 256;

/// Longest wait at a stop for a file that is being written.
const STOP_TIME_MAX: Duration = Duration::from_secs(2);

/// Pause before a directory is looked at again in which another driver works or a file is being written.
const AGAIN_PAUSE: Duration = Duration::from_secs(1);

/// First and longest pause before a directory that cannot be worked in is tried again.
const TROUBLE_PAUSE_FIRST: Duration = Duration::from_millis(500);
const TROUBLE_PAUSE_MAX: Duration = Duration::from_secs(30);

/// How long another driver's lock must be in the way before that is logged.
const IN_USE_LOGGED_AFTER: Duration = Duration::from_secs(10);

pub(crate) fn run(arguments: &BridgeWatch) -> Result<Exit> {
    let Some(directories) = settle(&arguments.directories) else { return Ok(Exit::CouldNot) };
    let log = log::start_own(module_path!())?;
    // If the system allows fewer, some directories are tried again later.
    let _ = rlimit::increase_nofile_limit(FILES_WANTED);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(FILE_THREADS_MAX)
        .thread_keep_alive(FILE_THREAD_REST)
        .build()
        .context("cannot begin")?;
    let outcome = runtime.block_on(watch(arguments, directories));
    runtime.shutdown_timeout(STOP_TIME_MAX);
    log.flush();
    outcome
}

/// The directories, each once; `None` if some are not directories, which was said.
fn settle(paths: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let (mut known, mut settled, mut all_there) = (BTreeSet::new(), Vec::new(), true);
    for path in paths {
        let fault = match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                if known.insert((metadata.dev(), metadata.ino())) {
                    settled.push(path.clone());
                }
                continue;
            }
            Ok(_) => Fault::NotADirectory(path.clone()),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => Fault::Gone(path.clone()),
            Err(source) => Fault::Other { path: path.clone(), source },
        };
        render::refused(&fault.to_string(), fault.hint());
        all_there = false;
    }
    all_there.then_some(settled)
}

async fn watch(arguments: &BridgeWatch, paths: Vec<PathBuf>) -> Result<Exit> {
    let mut signals = Signals::new()?;
    let session = tokio::select! {
        session = Session::begin(&arguments.reach, Need::Often) => session?,
        () = signals.next() => return Ok(Exit::Fine),
    };
    let shared = Arc::new(Shared::new(Server::new(session.client.clone()), arguments.routes.clone()));
    let mut watcher = Watcher::new(paths, arguments.poll, shared.clone());
    watch_log::server(&session.client);
    // So that it is logged at once if no server answers.
    let asked = tokio::spawn(async move { shared.server.store().await });
    tokio::select! {
        () = watcher.watch() => {}
        () = signals.next() => {}
    }
    // Jobs under way go on at the server, and their responses are written at the next start.
    asked.abort();
    watch_log::stopped(watcher.visits.len());
    watcher.visits.shutdown().await;
    session.end().await;
    Ok(Exit::Fine)
}

struct Watcher {
    shared: Arc<Shared>,
    notices: FileEvents,
    watched: Vec<Watched>,
    /// Each gives, for its directories, whether something waits there.
    glances: JoinSet<Vec<(usize, Result<bool, Fault>)>>,
    visits: JoinSet<(usize, Next)>,
    /// When directories are looked at again without a notice.
    due: BTreeSet<(Instant, usize)>,
}

/// One directory, as the watcher sees it.
struct Watched {
    directory: Arc<WatchedDirectory>,
    standing: Standing,
    /// Whether it is being glanced at or visited.
    is_busy: bool,
    /// Whether a notice came meanwhile.
    is_stirred: bool,
}

/// What was logged about the state of a directory, so that only changes are logged.
enum Standing {
    Fine,
    Gone,
    InUse { since: Instant, is_logged: bool },
    Trouble { logged: String, pause: Duration },
}

impl Watcher {
    fn new(paths: Vec<PathBuf>, poll: bool, shared: Arc<Shared>) -> Watcher {
        let mut notices = FileEvents::new(poll);
        let mut polled: BTreeMap<&'static str, usize> = BTreeMap::new();
        for path in &paths {
            if let WatchMethod::Polled(why) = notices.add(path) {
                *polled.entry(why).or_default() += 1;
            }
        }
        watch_log::watching(paths.len(), &polled, POLL_PAUSE);
        let watched = |path| Watched {
            directory: Arc::new(WatchedDirectory::new(path)),
            standing: Standing::Fine,
            is_busy: false,
            is_stirred: false,
        };
        let watched = paths.into_iter().map(watched).collect();
        Watcher { shared, notices, watched, glances: JoinSet::new(), visits: JoinSet::new(), due: BTreeSet::new() }
    }

    /// Watches for ever.
    async fn watch(&mut self) {
        self.glance(0..self.watched.len());
        loop {
            let next_due = self.due.first().map(|(at, _)| *at);
            tokio::select! {
                indexes = self.notices.next() => self.notified(&indexes),
                // Glances do not panic, and neither do the tasks around visits; none is aborted while this loop runs.
                Some(Ok(glanced)) = self.glances.join_next() => self.glanced(glanced),
                Some(Ok((index, next))) = self.visits.join_next() => self.ended(index, next),
                () = until(next_due) => {
                    let due = self.taken_due();
                    self.glance(due.into_iter());
                }
            }
        }
    }

    fn notified(&mut self, indexes: &BTreeSet<usize>) {
        let mut worth = Vec::new();
        for &index in indexes {
            let watched = &mut self.watched[index];
            if watched.is_busy {
                watched.is_stirred = true;
                watched.directory.nudge.notify_one();
            } else if !matches!(watched.standing, Standing::Trouble { .. }) {
                // If there is trouble, its pause counts.
                worth.push(index);
            }
        }
        self.glance(worth.into_iter());
    }

    fn taken_due(&mut self) -> Vec<usize> {
        let later = self.due.split_off(&(Instant::now(), usize::MAX));
        let due = std::mem::replace(&mut self.due, later);
        due.into_iter().map(|(_, index)| index).filter(|index| !self.watched[*index].is_busy).collect()
    }

    /// Looks whether something waits in these directories, none of which is busy.
    fn glance(&mut self, indexes: impl Iterator<Item = usize>) {
        let mut indexes = indexes.peekable();
        while indexes.peek().is_some() {
            let mut directories = Vec::new();
            for index in indexes.by_ref().take(GLANCES_AT_ONCE) {
                let watched = &mut self.watched[index];
                (watched.is_busy, watched.is_stirred) = (true, false);
                directories.push((index, watched.directory.clone()));
            }
            self.glances.spawn_blocking(move || {
                directories.into_iter().map(|(index, directory)| (index, directory.glance())).collect()
            });
        }
    }

    fn glanced(&mut self, glanced: Vec<(usize, Result<bool, Fault>)>) {
        for (index, seen) in glanced {
            match seen {
                Ok(true) => self.visit(index),
                Ok(false) => self.ended(index, Next::Rest(None)),
                Err(fault) => self.ended(index, fault.into()),
            }
        }
    }

    fn visit(&mut self, index: usize) {
        let visiting = visit(self.watched[index].directory.clone(), self.shared.clone());
        self.visits.spawn(async move {
            // Within a task of its own: a defect that shows in one directory must not end the visits to the others.
            let next = tokio::spawn(visiting).await;
            (index, next.unwrap_or_else(Next::from))
        });
    }

    fn ended(&mut self, index: usize, next: Next) {
        let watched = &mut self.watched[index];
        watched.is_busy = false;
        let directory = &watched.directory;
        let again = match next {
            Next::Rest(again) => {
                match watched.standing {
                    Standing::Fine | Standing::InUse { is_logged: false, .. } => {}
                    Standing::Gone | Standing::Trouble { .. } | Standing::InUse { is_logged: true, .. } => {
                        watch_log::fine_again(directory);
                    }
                }
                watched.standing = Standing::Fine;
                // What came while the visit ended was not seen by it.
                again.or(watched.is_stirred.then_some(Duration::ZERO))
            }
            Next::Gone => {
                if !matches!(watched.standing, Standing::Gone) {
                    watch_log::gone(directory);
                }
                watched.standing = Standing::Gone;
                directory.forget();
                // `FileEvents` polls a directory that is gone.
                None
            }
            Next::InUse => {
                watched.standing = in_use(directory, &watched.standing);
                Some(AGAIN_PAUSE)
            }
            Next::Trouble(message, hint) => {
                let pause = match &watched.standing {
                    Standing::Trouble { pause, .. } => (*pause * 2).min(TROUBLE_PAUSE_MAX),
                    Standing::Fine | Standing::Gone | Standing::InUse { .. } => TROUBLE_PAUSE_FIRST,
                };
                if !matches!(&watched.standing, Standing::Trouble { logged, .. } if *logged == message) {
                    watch_log::trouble(directory, &message, &hint);
                }
                watched.standing = Standing::Trouble { logged: message, pause };
                Some(pause)
            }
        };
        if let Some(pause) = again {
            self.due.insert((Instant::now() + pause, index));
        }
    }
}

fn in_use(directory: &WatchedDirectory, standing: &Standing) -> Standing {
    let (since, is_logged) = match standing {
        Standing::InUse { since, is_logged } => (*since, *is_logged),
        Standing::Fine | Standing::Gone | Standing::Trouble { .. } => (Instant::now(), false),
    };
    let is_due = !is_logged && since.elapsed() >= IN_USE_LOGGED_AFTER;
    if is_due {
        watch_log::in_use(directory);
    }
    Standing::InUse { since, is_logged: is_logged || is_due }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
