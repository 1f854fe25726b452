//! A log line for people: time, level, job, fields, and then the message.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// `TIME LEVEL job=ID name=value... message`
pub(super) struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut parts = Parts::default();
        event.record(&mut parts);
        SystemTime.format_time(&mut out)?;
        writeln!(out, " {:>5}{}{} {}", event.metadata().level(), parts.job, parts.fields, parts.message)
    }
}

/// The parts of a line. Each field and the job begin with a space.
#[derive(Default)]
struct Parts {
    job: String,
    fields: String,
    message: String,
}

impl Visit for Parts {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            "job" => write!(self.job, " job={value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
