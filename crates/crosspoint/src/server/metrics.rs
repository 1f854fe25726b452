//! `/metrics`: all metrics as text that Prometheus reads.
//!
//! The format is lines of a name, labels and a number. Writing them takes a page of code, while a library would want to
//! own the counters too, and those belong to the engine, which knows nothing of HTTP.

use std::fmt::{Display, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::Response;
use crosspoint_engine::runtime::{Distribution, Numbers};
use crosspoint_exchange::refusal::{Limit, Refusal};
use crosspoint_http::Refused;
use crosspoint_http::tally::Tally;

use super::App;
use super::process::{self, Process};
use crate::deliver;

pub(super) async fn measure(State(app): State<App>) -> Result<Response, Refused> {
    // Sizes of files and similar values are asked of the system, which must not block a serving thread.
    let looking = tokio::task::spawn_blocking(move || {
        text(&app.engine().numbers(), &app.deliveries().numbers(), process::look(), &limited(&app))
    });
    let mut response = Response::new(Body::from(looking.await.map_err(|_| Refusal::internal())?));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// What is counted of requests and of the limits that were reached.
struct Limited<'t> {
    tally: &'t Tally,
    /// How many answers of agents had to wait for room.
    answers_waited: u64,
}

fn limited(app: &App) -> Limited<'_> {
    Limited { tally: app.0.site.tally(), answers_waited: app.0.side.answers.waits() }
}

fn text(numbers: &Numbers, owed: &[deliver::Numbers], process: Process, limited: &Limited<'_>) -> String {
    let mut page = Page::default();
    jobs(&mut page, numbers);
    attempts(&mut page, numbers);
    commits(&mut page, numbers);
    agents(&mut page, numbers);
    callers(&mut page, owed);
    requests(&mut page, limited);
    of_process(&mut page, process);
    #[cfg(feature = "leaks")]
    page.0.push_str(&crate::leak::metrics());
    page.0
}

fn jobs(page: &mut Page, numbers: &Numbers) {
    let mut jobs = page.gauge("crosspoint_jobs", "Jobs that have not ended, by state.");
    for (phase, count) in numbers.phases {
        jobs.line(&[("state", phase.name())], count);
    }
    let mut accepted = page.counter("crosspoint_jobs_accepted_total", "Jobs accepted, which is: on disk.");
    for (work, count) in &numbers.accepted {
        accepted.line(&[("work", work)], count);
    }
    let mut ended = page.counter("crosspoint_jobs_ended_total", "Jobs ended; failure says why one failed.");
    for series in &numbers.ended {
        let (work, agent) = (&*series.work, &*series.agent);
        let labels = [("work", work), ("agent", agent), ("outcome", series.outcome), ("failure", series.failure)];
        ended.line(&labels, series.count);
    }
    let mut depth = page.gauge("crosspoint_queue_jobs", "Jobs that wait for an agent.");
    for queue in &numbers.queues {
        depth.line(&[("work", &queue.work)], queue.jobs);
    }
    let help = "How long ago the oldest job that waits for an agent was accepted.";
    let mut oldest = page.gauge("crosspoint_queue_oldest_seconds", help);
    for queue in &numbers.queues {
        oldest.line(&[("work", &queue.work)], queue.oldest.as_secs_f64());
    }
    let help = "Rules of contracts that were broken about jobs, by level.";
    let mut violations = page.counter("crosspoint_violations_total", help);
    for (level, count) in &numbers.violations {
        violations.line(&[("level", level)], count);
    }
    let mut times = page.histogram("crosspoint_job_seconds", "From acceptance to outcome.");
    times.all("work", &numbers.job_times);
}

fn attempts(page: &mut Page, numbers: &Numbers) {
    let mut ended = page.counter("crosspoint_attempts_total", "Attempts that ended, also those that are repeated.");
    for series in &numbers.attempts {
        let labels = [("agent", &*series.agent), ("outcome", series.outcome), ("failure", series.failure)];
        ended.line(&labels, series.count);
    }
    let mut times = page.histogram("crosspoint_attempt_seconds", "From the start of an attempt to its end.");
    times.all("agent", &numbers.attempt_times);
}

fn commits(page: &mut Page, numbers: &Numbers) {
    let commits = &numbers.commits;
    page.histogram("crosspoint_commit_commands", "Commands that one commit took to the disk.")
        .buckets(&[], &commits.commands);
    page.histogram("crosspoint_commit_seconds", "How long a commit took.").buckets(&[], &commits.time);
    page.histogram("crosspoint_commit_sync_seconds", "The part of a commit that writes the log and syncs it.")
        .buckets(&[], &commits.sync);
    page.counter("crosspoint_commits_failed_total", "Commits that failed.").line(&[], commits.failed);
    let purged = numbers.purged;
    page.counter("crosspoint_jobs_purged_total", "Jobs removed because they were kept long enough.")
        .line(&[], purged.jobs);
    page.counter("crosspoint_purge_steps_total", "Short transactions that removed something of them.")
        .line(&[], purged.steps);
    page.gauge("crosspoint_purge_given_up", "1 if old jobs are not removed because the store is damaged.")
        .line(&[], u8::from(purged.given_up));
    let overfull = "1 if more jobs are kept than [store] retention_jobs, because they ended too recently to go.";
    page.gauge("crosspoint_retention_overfull", overfull).line(&[], u8::from(purged.overfull));
    if let Some(bytes) = numbers.sizes.database {
        page.gauge("crosspoint_store_bytes", "The size of the database.").line(&[], bytes);
    }
    if let Some(bytes) = numbers.sizes.log {
        page.gauge("crosspoint_store_log_bytes", "The size of the database's log.").line(&[], bytes);
    }
}

fn agents(page: &mut Page, numbers: &Numbers) {
    let mut running = page.gauge("crosspoint_agent_running", "Jobs that the agent has.");
    for (name, load) in &numbers.agents {
        running.line(&[("agent", name)], load.running);
    }
    let mut concurrency = page.gauge("crosspoint_agent_concurrency", "Jobs that the agent may have.");
    for (name, load) in &numbers.agents {
        concurrency.line(&[("agent", name)], load.concurrency);
    }
    let mut drained = page.gauge("crosspoint_agent_drained", "1 if an operator wants the agent to get no new work.");
    for (name, load) in &numbers.agents {
        drained.line(&[("agent", name)], load.drained);
    }
    let mut breakers = page.gauge("crosspoint_agent_breaker", "1 for the state that the agent's breaker is in.");
    for (name, load) in &numbers.agents {
        for (state, count) in ["closed", "open", "half_open"].into_iter().zip(load.breakers) {
            breakers.line(&[("agent", name), ("state", state)], count);
        }
    }
}

fn callers(page: &mut Page, numbers: &[deliver::Numbers]) {
    let help = "Jobs that have ended whose outcome the caller was not told yet.";
    let mut owed = page.gauge("crosspoint_owed", help);
    for caller in numbers {
        owed.line(&[("caller", &caller.name)], caller.owed);
    }
    let mut messages = page.counter("crosspoint_deliveries_total", "Messages to callers, by how that went.");
    for caller in numbers {
        for (result, count) in caller.results {
            messages.line(&[("caller", &caller.name), ("result", result)], count);
        }
    }
}

fn requests(page: &mut Page, limited: &Limited<'_>) {
    let mut requests = page.counter("crosspoint_http_requests_total", "Requests answered.");
    for (route, status, count) in limited.tally.requests() {
        let status = status.map_or_else(|| "other".to_owned(), |status| status.to_string());
        requests.line(&[("method", route.method), ("route", route.path), ("status", &status)], count);
    }
    let help = "Requests that were refused, connections that were closed, or answers that waited, because a limit was reached; `foreign`: not meant for this server.";
    let mut refusals = page.counter("crosspoint_refusals_total", help);
    for (limit, count) in limited.tally.refusals() {
        // Answers of agents wait, and are counted where they do.
        let count = if limit == Limit::AnswersBytes { limited.answers_waited } else { count };
        refusals.line(&[("limit", limit.name())], count);
    }
}

fn of_process(page: &mut Page, process: Process) {
    if let Some(bytes) = process.resident_bytes {
        page.gauge("crosspoint_process_resident_memory_bytes", "Memory that the process occupies.").line(&[], bytes);
    }
    if let Some(files) = process.open_files {
        page.gauge("crosspoint_process_open_files", "Files and sockets that are open.").line(&[], files);
    }
    let help = "When the server started, in seconds since 1970.";
    page.gauge("crosspoint_process_start_time_seconds", help).line(&[], process::started_at());
    page.gauge("crosspoint_build_info", "1, with the version.").line(&[("version", env!("CARGO_PKG_VERSION"))], 1);
}

/// The text so far.
#[derive(Default)]
struct Page(String);

/// The lines of one metric.
struct Family<'p> {
    page: &'p mut String,
    name: &'static str,
}

impl Page {
    fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "counter", help)
    }

    fn histogram(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "histogram", help)
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { page: &mut self.0, name }
    }
}

impl Family<'_> {
    fn line(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.write("", labels, value);
    }

    fn write(&mut self, ending: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.page, "{}{ending}", self.name);
        for (at, (name, value)) in labels.iter().enumerate() {
            let _ = write!(self.page, "{}{name}=\"{}\"", if at == 0 { "{" } else { "," }, escaped(value));
        }
        let _ = writeln!(self.page, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn all(&mut self, label: &str, distributions: &[(Arc<str>, Distribution)]) {
        for (name, distribution) in distributions {
            self.buckets(&[(label, name)], distribution);
        }
    }

    fn buckets(&mut self, labels: &[(&str, &str)], distribution: &Distribution) {
        let bounds = distribution.bounds.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(&distribution.at_most) {
            let mut labels = labels.to_vec();
            labels.push(("le", &bound));
            self.write("_bucket", &labels, count);
        }
        self.write("_sum", labels, distribution.sum);
        self.write("_count", labels, distribution.count());
    }
}

/// Escapes the value of a label: a configured name may hold any character.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_name_cannot_make_another_line() {
        let mut page = Page::default();
        page.gauge("x", "y").line(&[("agent", "a\"b\\c\nd 1"), ("b", "")], 2.5);
        assert_eq!(page.0, "# HELP x y\n# TYPE x gauge\nx{agent=\"a\\\"b\\\\c\\nd 1\",b=\"\"} 2.5\n");
    }
}
