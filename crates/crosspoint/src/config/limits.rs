//! `[limits]`: how much of everything there may be.

use std::time::Duration;

use crosspoint_engine::core::Room;
use crosspoint_http::limit::Each;
use crosspoint_http::site;

/// `[limits]`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Most jobs that have not ended.
    pub(crate) jobs_max: usize,
    /// Most jobs of one work, and most jobs that only one agent can take. Half of `jobs_max` if not configured, so that
    /// the backlog of one work or agent does not cause jobs of the others to be refused.
    pub(crate) jobs_per_work_max: Option<usize>,
    pub(crate) jobs_per_agent_max: Option<usize>,
    /// Most jobs of one caller that has a token. If not configured, a quarter of `jobs_max`, and no more than half of
    /// what a work or an agent has: no caller can fill the room of either.
    pub(crate) jobs_per_caller_max: Option<usize>,
    /// Most requests that wait to be committed.
    pub(crate) waiting_max: usize,
    /// Most bytes of the requests that wait to be committed.
    pub(crate) waiting_bytes_max: usize,
    /// Most bytes of one body.
    pub(crate) body_bytes_max: usize,
    /// Most bytes of all bodies that are being read or waiting at one time.
    pub(crate) bodies_bytes_max: usize,
    /// Most connections at one time.
    pub(crate) connections_max: usize,
    /// Longest time in which the head of a request must arrive.
    pub(crate) header_time_max: Duration,
    /// Longest time in which a body must arrive.
    pub(crate) body_time_max: Duration,
    /// Longest time in which a caller may take next to nothing of an answer.
    pub(crate) write_time_max: Duration,
    /// Longest time for which nothing is asked over a connection that is kept open.
    pub(crate) idle_time_max: Duration,
    /// Most bytes of the headers of a request, and of its address.
    pub(crate) header_bytes_max: usize,
    pub(crate) url_bytes_max: usize,
    /// What each address or caller may have or do; 0 sets no limit. If not configured, the limit is that of
    /// `site::Limits`, and there is none on the loopback.
    pub(crate) connections_per_address: Option<usize>,
    pub(crate) requests_per_address: Option<usize>,
    pub(crate) requests_per_token: Option<usize>,
    pub(crate) failures_per_address: Option<usize>,
    pub(crate) streams_per_caller: Option<usize>,
    /// Most bytes of all answers of agents that are being read.
    pub(crate) answers_bytes_max: usize,
    /// Most bytes of all long answers that callers have not taken.
    pub(crate) unsent_bytes_max: usize,
    /// Largest size of the database, in bytes.
    pub(crate) store_bytes_max: Option<u64>,
}

impl Limits {
    /// Returns the limits of connections and bodies.
    pub(crate) fn site(&self) -> site::Limits {
        let default = site::Limits::default();
        let each = |set, default| Each { set, ..default };
        site::Limits {
            body_bytes_max: self.body_bytes_max,
            bodies_bytes_max: self.bodies_bytes_max,
            header_time_max: self.header_time_max,
            body_time_max: self.body_time_max,
            write_time_max: self.write_time_max,
            idle_time_max: self.idle_time_max,
            header_bytes_max: self.header_bytes_max,
            url_bytes_max: self.url_bytes_max,
            connections_per_address: each(self.connections_per_address, default.connections_per_address),
            requests_per_address: each(self.requests_per_address, default.requests_per_address),
            requests_per_token: each(self.requests_per_token, default.requests_per_token),
            failures_per_address: each(self.failures_per_address, default.failures_per_address),
            streams_per_caller: each(self.streams_per_caller, default.streams_per_caller),
            unsent_bytes_max: self.unsent_bytes_max,
        }
    }

    /// Returns the limit that is in force for a key that is not set, and where; `None` if there is none.
    pub(super) fn in_force(&self, key: &str) -> Option<(usize, &'static str)> {
        let (room, site) = (self.room(), self.site());
        let of_others = |each: Each| Some((each.number(), ", for other machines"));
        match key {
            "jobs_per_work" => Some((room.of_work, "")),
            "jobs_per_agent" => Some((room.of_agent, "")),
            "jobs_per_caller" => Some((room.of_caller, "")),
            "connections_per_address" => of_others(site.connections_per_address),
            "requests_per_address" => of_others(site.requests_per_address),
            "requests_per_token" => of_others(site.requests_per_token),
            "failures_per_address" => of_others(site.failures_per_address),
            "streams_per_caller" => of_others(site.streams_per_caller),
            _ => None,
        }
    }

    /// Returns how many jobs there may be that have not ended.
    pub(super) fn room(&self) -> Room {
        let room = Room::of(self.jobs_max);
        let of_work = self.jobs_per_work_max.unwrap_or(room.of_work);
        let of_agent = self.jobs_per_agent_max.unwrap_or(room.of_agent);
        let half = of_work.min(of_agent).div_ceil(2);
        let of_caller = self.jobs_per_caller_max.unwrap_or(room.of_caller.min(half));
        Room { of_work, of_agent, of_caller, ..room }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            jobs_max: 200_000,
            jobs_per_work_max: None,
            jobs_per_agent_max: None,
            jobs_per_caller_max: None,
            waiting_max: 10_000,
            waiting_bytes_max: 64 << 20,
            body_bytes_max: 16 << 20,
            bodies_bytes_max: 128 << 20,
            connections_max: 10_000,
            header_time_max: Duration::from_secs(10),
            body_time_max: Duration::from_secs(60),
            write_time_max: Duration::from_secs(60),
            idle_time_max: Duration::from_secs(75),
            header_bytes_max: 32 << 10,
            url_bytes_max: 8 << 10,
            connections_per_address: None,
            requests_per_address: None,
            requests_per_token: None,
            failures_per_address: None,
            streams_per_caller: None,
            answers_bytes_max: 256 << 20,
            unsent_bytes_max: 256 << 20,
            store_bytes_max: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_at_most_half_of_what_a_work_or_an_agent_has() {
        let of_caller = |jobs_per_work_max, jobs_per_agent_max, jobs_per_caller_max| {
            let limits = Limits { jobs_per_work_max, jobs_per_agent_max, jobs_per_caller_max, ..Limits::default() };
            limits.room().of_caller
        };
        assert_eq!(of_caller(None, None, None), 50_000);
        assert_eq!((of_caller(Some(1_000), None, None), of_caller(None, Some(30), None)), (500, 15));
        assert_eq!((of_caller(Some(1), None, None), of_caller(Some(10), Some(10), Some(9))), (1, 9));
        assert_eq!(of_caller(Some(190_000), Some(190_000), None), 50_000);
    }
}
