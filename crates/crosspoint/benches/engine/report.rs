//! The measurements, as a page.

use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::load::Load;
use crate::machine;

/// The page, which grows section by section.
#[derive(Default)]
pub(crate) struct Report {
    text: String,
    rows: Vec<String>,
    raw: Vec<String>,
}

/// One measurement of everything for one number of clients.
pub(crate) struct Round {
    pub(crate) fsync: Duration,
    pub(crate) bare: f64,
    pub(crate) load: Load,
    /// The same with an agent in another process.
    pub(crate) elsewhere: Load,
    pub(crate) stolen_percent: f64,
}

/// A filtered list, read page by page.
pub(crate) struct Search {
    pub(crate) filter: &'static str,
    pub(crate) pages: usize,
    pub(crate) longest: Duration,
    pub(crate) whole: Duration,
}

/// What a large store costs.
pub(crate) struct Scale {
    pub(crate) ready_empty: Duration,
    pub(crate) ready_many: Duration,
    pub(crate) idle_bytes: u64,
    pub(crate) many_bytes: u64,
    pub(crate) queued: usize,
    pub(crate) queued_bytes: u64,
    pub(crate) stored: usize,
    pub(crate) submit: [Duration; 2],
    pub(crate) list: [Duration; 2],
    pub(crate) searches: Vec<Search>,
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (load, share) = (&self.load, self.load.rate / self.bare);
        write!(
            f,
            "{:.0} jobs/s, p50 {:.2?}, p99 {:.2?}; agent in another process {:.0} jobs/s, p50 {:.2?}, p99 {:.2?}; \
             bare store {:.0}/s, share {share:.2}; fsync {:.2?}; stolen {:.1}%",
            load.rate,
            load.p50,
            load.p99,
            self.elsewhere.rate,
            self.elsewhere.p50,
            self.elsewhere.p99,
            self.bare,
            self.fsync,
            self.stolen_percent
        )
    }
}

impl Report {
    pub(crate) fn machine(&mut self) {
        let _ = writeln!(self.text, "Machine: {}. Load generator and server share it.\n", machine::described());
    }

    pub(crate) fn throughput(&mut self, clients: usize, rounds: &[Round]) {
        let by = |value: &dyn Fn(&Round) -> f64| median(rounds.iter().map(value).collect());
        let (rate, bare) = (by(&|round| round.load.rate), by(&|round| round.bare));
        let share = by(&|round| round.load.rate / round.bare);
        let p50 = by(&|round| round.load.p50.as_secs_f64() * 1e3);
        let p99 = by(&|round| round.load.p99.as_secs_f64() * 1e3);
        let fsync = by(&|round| round.fsync.as_secs_f64() * 1e3);
        let over = by(&|round| (round.load.p50.as_secs_f64() - 2.0 * round.fsync.as_secs_f64()) * 1e3);
        let stolen = by(&|round| round.stolen_percent);
        let judged = if clients == 1 {
            judge(&format!("p50 is two fsyncs and {over:.2} ms"), "at most 0.6 ms", over <= 0.6)
        } else {
            judge(&format!("{:.0}% of the bare store", share * 100.0), "at least 50%", share >= 0.5)
        };
        self.rows.push(format!(
            "| {clients} | {rate:.0} | {p50:.2} | {p99:.2} | {bare:.0} | {fsync:.2} | {stolen:.1}% | {judged} |"
        ));
        let elsewhere = by(&|round| round.elsewhere.rate);
        let slower = by(&|round| round.elsewhere.rate / round.load.rate);
        let elsewhere_p50 = by(&|round| round.elsewhere.p50.as_secs_f64() * 1e3);
        let elsewhere_p99 = by(&|round| round.elsewhere.p99.as_secs_f64() * 1e3);
        self.rows.push(format!(
            "| {clients}, agent in another process | {elsewhere:.0} | {elsewhere_p50:.2} | {elsewhere_p99:.2} | | | {stolen:.1}% | {:.0}% of the built-in agent | |",
            slower * 100.0
        ));
        self.raw.extend(rounds.iter().map(|round| format!("- {clients} clients: {round}")));
    }

    pub(crate) fn scale(&mut self, scale: &Scale) {
        let _ = writeln!(
            self.text,
            "| clients | jobs/s | p50 ms | p99 ms | bare store jobs/s | fsync ms | stolen | result | target |\n|---|---|---|---|---|---|---|---|---|\n{}\n",
            self.rows.join("\n")
        );
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let ratio = |[few, many]: [Duration; 2]| many.as_secs_f64() / few.as_secs_f64();
        let stored = scale.stored;
        let rows = [
            (
                "memory at rest",
                format!("{:.0} MiB", mib(scale.idle_bytes)),
                "under 40 MB",
                scale.idle_bytes < 40_000_000,
            ),
            (
                &*format!("memory that {} queued jobs add", scale.queued),
                format!("{:.0} MiB", mib(scale.queued_bytes)),
                "under 200 MB",
                scale.queued_bytes < 200_000_000,
            ),
            (
                "ready with an empty store",
                format!("{:.0} ms", ms(scale.ready_empty)),
                "under 200 ms",
                scale.ready_empty.as_millis() < 200,
            ),
            (
                &*format!("ready with {stored} jobs that have ended"),
                format!("{:.0} ms, with {:.0} MiB", ms(scale.ready_many), mib(scale.many_bytes)),
                "under 2 s",
                scale.ready_many.as_millis() < 2_000,
            ),
            (
                &*format!("submit and wait with {stored} jobs stored, against 1,000"),
                format!("{:.2} ({:.2} and {:.2} ms)", ratio(scale.submit), ms(scale.submit[1]), ms(scale.submit[0])),
                "at most 1.2",
                ratio(scale.submit) <= 1.2,
            ),
            (
                &*format!("list 50 with {stored} jobs stored, against 1,000"),
                format!("{:.2} ({:.2} and {:.2} ms)", ratio(scale.list), ms(scale.list[1]), ms(scale.list[0])),
                "at most 1.2",
                ratio(scale.list) <= 1.2,
            ),
        ];
        let _ = writeln!(self.text, "| what | result | target |\n|---|---|---|");
        for (what, result, target, met) in rows {
            let _ = writeln!(self.text, "| {what} | {} |", judge(&result, target, met));
        }
        self.searches(scale);
    }

    /// A rare filter reads the whole store, so the time of a single page counts.
    fn searches(&mut self, scale: &Scale) {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        for Search { filter, pages, longest, whole } in &scale.searches {
            let result = format!("{:.1} ms in {pages} pages, the longest {:.1} ms", ms(*whole), ms(*longest));
            let judged = judge(&result, "no page over 50 ms", longest.as_millis() < 50);
            let _ = writeln!(self.text, "| list {filter} with {} jobs stored | {judged} |", scale.stored);
        }
    }

    /// Adds a section with its own text, and its rounds.
    pub(crate) fn section(&mut self, text: &str, rounds: Vec<String>) {
        let _ = write!(self.text, "\n{text}");
        self.raw.extend(rounds);
    }

    pub(crate) fn finish(self) -> String {
        format!("{}\nEvery round:\n\n{}\n", self.text, self.raw.join("\n"))
    }
}

/// A result that misses its target is printed in bold.
pub(crate) fn judge(result: &str, target: &str, met: bool) -> String {
    if met {
        format!("{result} | {target}")
    } else {
        format!("**{result}** | {target} |").trim_end_matches(" |").to_owned()
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
