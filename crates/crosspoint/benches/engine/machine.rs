//! What the machine can do at present, without which no other figure means anything.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// The median time of syncing a small append to a file: no commit can be faster.
pub(crate) fn fsync_median(directory: &Path) -> Duration {
    const ROUNDS: usize = 200;
    const BYTES: usize = 8_192;
    let path = directory.join("fsync");
    let mut file = File::create(&path).expect("a file can be made");
    file.write_all(&vec![0; BYTES * ROUNDS]).expect("it can be written");
    file.sync_all().expect("it can be synced");
    file.seek(SeekFrom::Start(0)).expect("it can be rewound");
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|round| {
            file.write_all(&vec![round as u8; BYTES]).expect("it can be written");
            let start = Instant::now();
            file.sync_data().expect("it can be synced");
            start.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

/// How much of the processors' time went to other tenants of the same host.
pub(crate) struct Stolen {
    stolen: u64,
    all: u64,
}

impl Stolen {
    pub(crate) fn now() -> Stolen {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = first.split_whitespace().skip(1).filter_map(|tick| tick.parse().ok()).collect();
        Stolen { stolen: ticks.get(7).copied().unwrap_or(0), all: ticks.iter().take(8).sum() }
    }

    pub(crate) fn percent(&self) -> f64 {
        let now = Stolen::now();
        let all = now.all.saturating_sub(self.all).max(1);
        now.stolen.saturating_sub(self.stolen) as f64 * 100.0 / all as f64
    }
}

/// The processor time that some processes have used so far, and the idle time, in seconds.
pub(crate) struct Spent {
    at: Instant,
    processes: Vec<f64>,
    idle: f64,
}

/// How the processors were used during an interval, in processors: two of them are 2.0 in all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cores {
    /// In the order of the process ids that were given.
    pub(crate) processes: Vec<f64>,
    /// All other processes, including the kernel's own threads and other machines.
    pub(crate) others: f64,
    pub(crate) idle: f64,
}

impl Spent {
    pub(crate) fn now(processes: &[u32]) -> Spent {
        let processes = processes.iter().map(|pid| processor_seconds(*pid)).collect();
        Spent { at: Instant::now(), processes, idle: idle_seconds() }
    }

    /// The use of the processors since this was taken.
    pub(crate) fn cores(&self, processes: &[u32]) -> Cores {
        let now = Spent::now(processes);
        let time = (now.at - self.at).as_secs_f64();
        let share = |(before, after): (&f64, &f64)| (after - before) / time;
        let processes: Vec<f64> = self.processes.iter().zip(&now.processes).map(share).collect();
        let idle = share((&self.idle, &now.idle));
        let all = std::thread::available_parallelism().map_or(1.0, |all| all.get() as f64);
        let others = (all - idle - processes.iter().sum::<f64>()).max(0.0);
        Cores { processes, others, idle }
    }
}

/// Processor time of all threads of a process, in the kernel too.
fn processor_seconds(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process is there");
    // The process name before it may hold anything.
    let (_, fields) = text.rsplit_once(')').expect("a name in brackets");
    seconds(fields.split_whitespace().skip(11).take(2))
}

/// Idle time of all processors together. A processor that only waits for a disk is idle too.
fn idle_seconds() -> f64 {
    let text = fs::read_to_string("/proc/stat").expect("the kernel counts");
    seconds(text.lines().next().unwrap_or_default().split_whitespace().skip(4).take(2))
}

fn seconds<'t>(ticks: impl Iterator<Item = &'t str>) -> f64 {
    let ticks: u64 = ticks.filter_map(|tick| tick.parse::<u64>().ok()).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Nanoseconds of the clock that all processes of a machine share and that is never set.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let whole = Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default());
    u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX)
}

/// One line about the machine.
pub(crate) fn described() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap_or("0 kB");
    let kib: u64 = memory.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    format!(
        "{cores} cores ({}), {} GiB, Linux {}",
        model.trim_start_matches([' ', '\t', ':']),
        kib >> 20,
        kernel.trim().split('-').next().unwrap_or_default()
    )
}

/// The resident memory of a process, in bytes.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}
