//! What the server counts itself: requests by route and status, and refusals by the limit that was reached.
//!
//! Each count is one addition to an atomic. A route is a template of the description, such as `/api/v1/jobs/{id}`,
//! never the path of a request. Requests for routes that are not described count as `other`.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{Method, StatusCode};
use crosspoint_exchange::refusal::Limit;

/// The statuses that are counted separately: all that the server uses.
const STATUSES: [u16; 17] = [200, 202, 204, 400, 401, 403, 404, 405, 408, 409, 413, 414, 429, 431, 500, 503, 504];

/// The names of one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The template of the path.
    pub path: &'static str,
}

const OTHER: Route = Route { method: "other", path: "other" };

/// Counts since the start.
pub struct Tally {
    refusals: [AtomicU64; Limit::ALL.len()],
    routes: Vec<Route>,
    /// One row for each route and a last one for all other requests. Each row has a count for each status and a last
    /// one for any other status.
    requests: Vec<[AtomicU64; STATUSES.len() + 1]>,
}

impl Tally {
    /// Makes a tally of these routes.
    pub fn new(routes: Vec<Route>) -> Tally {
        let requests = (0..=routes.len()).map(|_| Default::default()).collect();
        Tally { refusals: Default::default(), routes, requests }
    }

    /// Counts a refusal by its limit.
    pub fn refused(&self, limit: Limit) {
        self.refusals[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the index of a request's route. It must be called before the request is given away.
    pub fn route(&self, method: &Method, path: &str) -> usize {
        let is_it = |route: &Route| route.method == method.as_str() && fits(route.path, path);
        self.routes.iter().position(is_it).unwrap_or(self.routes.len())
    }

    /// Counts an answer.
    pub fn answered(&self, route: usize, status: StatusCode) {
        let at = STATUSES.iter().position(|known| *known == status.as_u16()).unwrap_or(STATUSES.len());
        if let Some(counts) = self.requests.get(route) {
            counts[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often each limit was reached.
    pub fn refusals(&self) -> impl Iterator<Item = (Limit, u64)> {
        Limit::ALL.into_iter().map(|limit| (limit, self.refusals[limit as usize].load(Ordering::Relaxed)))
    }

    /// How often each route was answered with each status, without zeros. `None` stands for any other status.
    pub fn requests(&self) -> impl Iterator<Item = (Route, Option<u16>, u64)> {
        let routes = self.routes.iter().copied().chain([OTHER]);
        let statuses = || STATUSES.into_iter().map(Some).chain([None]);
        let counts = routes.zip(&self.requests);
        let all = counts.flat_map(move |(route, counts)| {
            statuses().zip(counts).map(move |(status, count)| (route, status, count.load(Ordering::Relaxed)))
        });
        all.filter(|(_, _, count)| *count > 0)
    }
}

/// Whether a path fits a template, segment by segment.
pub fn fits(template: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    let fit = template.split('/').all(|wanted| {
        segments
            .next()
            .is_some_and(|segment| if wanted.starts_with('{') { !segment.is_empty() } else { wanted == segment })
    });
    fit && segments.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_counted_under_its_template_and_never_as_it_came() {
        let route = Route { method: "GET", path: "/api/v1/jobs/{id}" };
        let tally = Tally::new(vec![Route { method: "GET", path: "/api/v1/jobs" }, route]);
        for path in ["/api/v1/jobs/1", "/api/v1/jobs/secret", "/api/v1/jobs/1/2", "/api/v1/jobs/"] {
            tally.answered(tally.route(&Method::GET, path), StatusCode::OK);
        }
        tally.answered(tally.route(&Method::POST, "/api/v1/jobs"), StatusCode::IM_A_TEAPOT);
        let counted: Vec<_> = tally.requests().collect();
        assert_eq!(counted, [(route, Some(200), 2), (OTHER, Some(200), 2), (OTHER, None, 1)]);
    }
}
