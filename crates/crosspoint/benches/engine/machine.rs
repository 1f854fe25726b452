//! What the machine can do at present, without which no other figure means anything.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// The median of syncing a little that was appended to a file: what one commit cannot be faster than.
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

/// How much of the processors' time went to others of the same host.
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
