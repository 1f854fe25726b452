//! What the system says about this process. Values that the system does not give are left out.

use std::fs;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Measures of this process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Process {
    pub(super) resident_bytes: Option<u64>,
    pub(super) open_files: Option<u64>,
}

/// Reads the measures. They come from a file system in memory, but their amount grows with the number of connections.
pub(super) fn look() -> Process {
    let status = fs::read_to_string("/proc/self/status").ok();
    let open = fs::read_dir("/proc/self/fd").ok();
    Process {
        resident_bytes: status.as_deref().and_then(resident),
        // The listing is itself an open file.
        open_files: open.map(|files| (files.count() as u64).saturating_sub(1)),
    }
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The time at which the server started, in seconds since 1970. It is taken at the first call, which is made at the
/// start.
pub(super) fn started_at() -> f64 {
    static STARTED_AT: OnceLock<f64> = OnceLock::new();
    *STARTED_AT.get_or_init(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()))
}
