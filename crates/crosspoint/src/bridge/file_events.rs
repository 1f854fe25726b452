//! FileEvents that something has come into a directory.
//!
//! The system reports (inotify) files that were moved into place or closed after writing, and nothing else. A build
//! that writes ten thousand other files there costs a look at each name and no more, and while nothing changes there is
//! nothing to do at all. If the system cannot report changes (file systems of other machines, too many watches, another
//! system), the directory is polled. A notice only says that a look may be worth it: its receiver looks for itself.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

/// How often directories are looked at whose changes the system does not report.
pub(crate) const POLL_PAUSE: Duration = Duration::from_millis(250);

/// How often all directories are looked at, in case a change was not reported.
const RESCAN_PAUSE: Duration = Duration::from_secs(60);

/// How the names that matter begin and end. Names of files that are being written or were set aside end otherwise.
const PREFIX: &[u8] = b".agent-re";
const SUFFIX: &[u8] = b".json";

/// Most reads in a row from the system: a build that never ends must not keep the caller here.
const READS_MAX: usize = 64;

/// File systems whose changes may be made by another machine, or by a program that does not report them: NFS, CIFS,
/// SMB2, 9P, FUSE, Ceph, AFS, vboxsf.
const UNTOLD: [u64; 8] =
    [0x6969, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997, 0x6573_5546, 0x00C3_6400, 0x5346_414F, 0x786F_4256];

/// How changes of a directory are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchMethod {
    /// The system reports them.
    BySystem,
    /// By polling, and why.
    Polled(&'static str),
}

/// The watched directories, by the order in which they were added.
pub(crate) struct FileEvents {
    inotify: Option<AsyncFd<OwnedFd>>,
    watched: BTreeMap<i32, usize>,
    paths: Vec<PathBuf>,
    /// Why the system reports nothing, if that is so for all directories.
    untold: &'static str,
    /// The directories that are polled.
    polled: BTreeSet<usize>,
    poll_at: Instant,
    rescan_at: Instant,
}

impl FileEvents {
    /// `poll` asks to poll all of them.
    pub(crate) fn new(poll: bool) -> FileEvents {
        let opened = (!poll).then(|| inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()).flatten();
        let now = Instant::now();
        FileEvents {
            inotify: opened.and_then(async_descriptor),
            watched: BTreeMap::new(),
            paths: Vec::new(),
            untold: if poll { "as you asked" } else { "the system does not tell of changes here" },
            polled: BTreeSet::new(),
            poll_at: now + POLL_PAUSE,
            rescan_at: now + RESCAN_PAUSE,
        }
    }

    /// Watches one more directory. Files that came before are not reported: look after this call.
    pub(crate) fn add(&mut self, path: &Path) -> WatchMethod {
        self.paths.push(path.to_owned());
        self.watch(self.paths.len() - 1)
    }

    fn watch(&mut self, index: usize) -> WatchMethod {
        let method = self.try_watch(index);
        match method {
            WatchMethod::BySystem => self.polled.remove(&index),
            WatchMethod::Polled(_) => self.polled.insert(index),
        };
        method
    }

    fn try_watch(&mut self, index: usize) -> WatchMethod {
        let Some(inotify) = &self.inotify else { return WatchMethod::Polled(self.untold) };
        let path = &self.paths[index];
        if rustix::fs::statfs(path)
            .is_ok_and(|system| UNTOLD.contains(&u64::try_from(system.f_type).unwrap_or_default()))
        {
            return WatchMethod::Polled("its file system does not tell of changes that are made elsewhere");
        }
        let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        match inotify::add_watch(inotify.get_ref(), path, flags | WatchFlags::ONLYDIR) {
            Ok(watch) => {
                self.watched.insert(watch, index);
                WatchMethod::BySystem
            }
            Err(Errno::NOSPC) => {
                WatchMethod::Polled("the system's limit of watches is reached (fs.inotify.max_user_watches)")
            }
            Err(_) => WatchMethod::Polled("it cannot be watched"),
        }
    }

    /// Waits for the directories that may be worth a look. The system keeps what it reports while no caller waits here.
    pub(crate) async fn next(&mut self) -> BTreeSet<usize> {
        loop {
            let until = if self.polled.is_empty() { self.rescan_at } else { self.poll_at.min(self.rescan_at) };
            let events = tokio::select! {
                events = read_events(self.inotify.as_ref()) => Some(events),
                () = tokio::time::sleep_until(until) => None,
            };
            let worth = match events {
                Some(events) => self.sorted(events),
                None => self.due(),
            };
            if !worth.is_empty() {
                return worth;
            }
        }
    }

    fn due(&mut self) -> BTreeSet<usize> {
        let now = Instant::now();
        self.poll_at = now + POLL_PAUSE;
        if now < self.rescan_at {
            // A directory that was gone, and is there again, may be reported from now on.
            let polled = self.polled.clone();
            for index in &polled {
                self.watch(*index);
            }
            return polled;
        }
        self.rescan_at = now + RESCAN_PAUSE;
        self.watch_anew();
        (0..self.paths.len()).collect()
    }

    /// Watches what the paths lead to now: a link may have been turned to another directory, which the system does not
    /// report. Directories that no path leads to any more are no longer watched.
    fn watch_anew(&mut self) {
        let before = std::mem::take(&mut self.watched);
        for index in 0..self.paths.len() {
            self.watch(index);
        }
        let Some(inotify) = &self.inotify else { return };
        for watch in before.into_keys().filter(|watch| !self.watched.contains_key(watch)) {
            // If the directory is gone, its watch is gone already.
            let _ = inotify::remove_watch(inotify.get_ref(), watch);
        }
    }

    fn sorted(&mut self, events: Vec<Event>) -> BTreeSet<usize> {
        let mut worth = BTreeSet::new();
        for event in events {
            match event {
                Event::Missed => worth.extend(0..self.paths.len()),
                Event::Named(watch) => worth.extend(self.watched.get(&watch)),
                Event::Gone(watch) => {
                    if let Some(index) = self.watched.remove(&watch) {
                        self.polled.insert(index);
                        worth.insert(index);
                    }
                }
            }
        }
        worth
    }
}

/// Wraps the descriptor to be woken when there is something to read.
#[expect(
    deprecated,
    reason = "its successor is unsafe, because of descriptors that can be exchanged; an owned one cannot"
)]
fn async_descriptor(descriptor: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor, Interest::READABLE).ok()
}

enum Event {
    /// A file whose name matters has come; identified by the directory's watch.
    Named(i32),
    /// The directory has gone.
    Gone(i32),
    /// There were more events than the system could keep.
    Missed,
}

/// Waits for what the system reports; without inotify it waits for ever.
async fn read_events(inotify: Option<&AsyncFd<OwnedFd>>) -> Vec<Event> {
    let Some(inotify) = inotify else { return std::future::pending().await };
    let Ok(mut ready) = inotify.readable().await else { return std::future::pending().await };
    let mut buffer = [MaybeUninit::uninit(); 16 << 10];
    let mut reader = inotify::Reader::new(inotify.get_ref(), &mut buffer);
    let mut events = Vec::new();
    let mut reads = 0;
    loop {
        reads += usize::from(reader.is_buffer_empty());
        if reads > READS_MAX {
            // The rest comes next time.
            return events;
        }
        let Ok(event) = reader.next() else { break };
        let flags = event.events();
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            events.push(Event::Missed);
        } else if flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED) {
            events.push(Event::Gone(event.wd()));
        } else if event.file_name().is_some_and(|name| matters(name.to_bytes())) {
            events.push(Event::Named(event.wd()));
        }
    }
    ready.clear_ready();
    events
}

fn matters(name: &[u8]) -> bool {
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Longest time for anything in these tests, on however slow a machine.
    const PATIENCE: Duration = Duration::from_secs(30);

    fn directory() -> PathBuf {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("crosspoint-notice-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("it can be made");
        path
    }

    async fn reported(notices: &mut FileEvents) -> Vec<usize> {
        let reported = tokio::time::timeout(PATIENCE, notices.next()).await.expect("it is told of");
        reported.into_iter().collect()
    }

    #[tokio::test]
    async fn files_that_are_moved_in_or_closed_are_told_of_and_other_names_are_not() {
        let (one, other) = (directory(), directory());
        let mut notices = FileEvents::new(false);
        assert_eq!((notices.add(&one), notices.add(&other)), (WatchMethod::BySystem, WatchMethod::BySystem));
        fs::write(other.join("request.json"), "").expect("it can be written");
        fs::write(other.join(".agent-request.json.tmp-1"), "").expect("it can be written");
        fs::write(other.join(".agent-bridge.json"), "").expect("it can be written");
        fs::rename(other.join("request.json"), one.join(".agent-request-phase3.json")).expect("it can be renamed");
        assert_eq!(reported(&mut notices).await, [0]);
        fs::write(other.join(".agent-response.json"), "").expect("it can be written");
        assert_eq!(reported(&mut notices).await, [1]);
        fs::write(one.join(".agent-request.json"), "").expect("it can be written");
        fs::write(other.join(".agent-request.json"), "").expect("it can be written");
        assert_eq!(reported(&mut notices).await, [0, 1]);
        let _ = (fs::remove_dir_all(one), fs::remove_dir_all(other));
    }

    #[tokio::test]
    async fn a_directory_that_is_removed_and_made_again_is_told_of_again() {
        let path = directory();
        let mut notices = FileEvents::new(false);
        notices.add(&path);
        fs::remove_dir(&path).expect("it can be removed");
        assert_eq!(reported(&mut notices).await, [0]);
        assert_eq!(notices.polled.len(), 1);
        fs::create_dir(&path).expect("it can be made");
        assert_eq!(reported(&mut notices).await, [0]);
        assert!(notices.polled.is_empty(), "the system tells again");
        fs::write(path.join(".agent-request.json"), "").expect("it can be written");
        assert_eq!(reported(&mut notices).await, [0]);
        let _ = fs::remove_dir_all(path);
    }

    #[tokio::test]
    async fn a_link_that_is_turned_to_another_directory_is_followed_at_the_next_look_at_all() {
        let (first, second) = (directory(), directory());
        let (link, new) = (first.join("link"), first.join("new"));
        std::os::unix::fs::symlink(&first, &link).expect("a link can be made");
        let mut notices = FileEvents::new(false);
        assert_eq!(
            (notices.add(&link), notices.add(&second.join("missing"))),
            (WatchMethod::BySystem, WatchMethod::Polled("it cannot be watched"))
        );
        std::os::unix::fs::symlink(&second, &new).expect("a link can be made");
        fs::rename(&new, &link).expect("it can be turned");
        notices.rescan_at = Instant::now();
        assert_eq!(reported(&mut notices).await, [0, 1]);
        assert_eq!(notices.watched.len(), 1, "the old one is let go");
        notices.polled.clear();
        fs::write(second.join(".agent-request.json"), "").expect("it can be written");
        assert_eq!(reported(&mut notices).await, [0]);
        fs::write(first.join(".agent-request.json"), "").expect("it can be written");
        let quiet = tokio::time::timeout(POLL_PAUSE, notices.next()).await;
        assert!(quiet.is_err(), "nobody tells of the old one: {quiet:?}");
        let _ = (fs::remove_dir_all(first), fs::remove_dir_all(second));
    }

    #[tokio::test]
    async fn what_cannot_be_watched_is_looked_at_again_and_again_and_so_is_everything_on_demand() {
        let path = directory();
        let mut notices = FileEvents::new(false);
        assert_eq!(notices.add(&path.join("missing")), WatchMethod::Polled("it cannot be watched"));
        assert_eq!(notices.add(&path), WatchMethod::BySystem);
        assert_eq!((reported(&mut notices).await, reported(&mut notices).await), (vec![0], vec![0]));
        let mut notices = FileEvents::new(true);
        assert!(matches!(notices.add(&path), WatchMethod::Polled(_)));
        assert_eq!((reported(&mut notices).await, reported(&mut notices).await), (vec![0], vec![0]));
        let _ = fs::remove_dir_all(path);
    }

    #[tokio::test]
    async fn a_flood_of_other_files_hides_nothing() {
        let path = directory();
        let mut notices = FileEvents::new(false);
        notices.add(&path);
        // This is more than the system keeps by default. It then reports that it has lost some, and all directories are
        // worth a look.
        for number in 0..20_000 {
            fs::write(path.join(format!("file-{}", number % 10)), "").expect("it can be written");
        }
        fs::write(path.join(".agent-request.json"), "").expect("it can be written");
        assert_eq!(reported(&mut notices).await, [0]);
        let _ = fs::remove_dir_all(path);
    }
}
