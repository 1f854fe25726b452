//! Traces, as W3C Trace Context spells them (TASK-8).
//!
//! A job is a hop of its caller's trace, and every attempt is a span of its own below it. The spans are derived from
//! the job's id and the attempt's number, so that a restart continues the same ones.

use uuid::Uuid;

/// A place in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// 32 hexadecimal digits.
    pub trace_id: String,
    /// 16 hexadecimal digits.
    pub span_id: String,
    flags: String,
}

impl Trace {
    /// Reads the `traceparent` header. Later versions may have more after the flags.
    pub fn parse(header: &str) -> Option<Trace> {
        let mut parts = header.trim().split('-');
        let (version, trace_id, span_id, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let known = is_hex(version, 2) && version != "ff" && is_hex(flags, 2);
        let alone = version != "00" || parts.next().is_none();
        let trace = Trace::of(trace_id, span_id)?;
        (known && alone).then(|| Trace { flags: flags.to_owned(), ..trace })
    }

    /// Makes a trace from the two ids of an observability block, or returns `None` if they have another form.
    pub fn of(trace_id: &str, span_id: &str) -> Option<Trace> {
        let is_id = |id: &str, digits| is_hex(id, digits) && id.bytes().any(|digit| digit != b'0');
        let fits = is_id(trace_id, 32) && is_id(span_id, 16);
        fits.then(|| Trace { trace_id: trace_id.to_owned(), span_id: span_id.to_owned(), flags: "01".to_owned() })
    }

    /// Returns the span of one attempt, below the caller's. Without a caller's trace the job is the trace.
    pub fn of_attempt(job: Uuid, caller: Option<&str>, attempt: u32) -> Trace {
        let caller = caller.and_then(Trace::parse);
        let (trace_id, flags) = match caller {
            Some(caller) => (caller.trace_id, caller.flags),
            None => (job.simple().to_string(), "01".to_owned()),
        };
        Trace { trace_id, span_id: span_of(job, attempt), flags }
    }

    /// Whether both are the same place in the same trace. Flags are not compared.
    pub fn is_place_of(&self, other: &Trace) -> bool {
        (&self.trace_id, &self.span_id) == (&other.trace_id, &other.span_id)
    }

    /// Returns the value of the `traceparent` header.
    pub fn header(&self) -> String {
        format!("00-{}-{}-{}", self.trace_id, self.span_id, self.flags)
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn span_of(id: Uuid, attempt: u32) -> String {
    let span = Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{id} {attempt}").as_bytes());
    format!("{:016x}", span.as_u64_pair().0.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_the_recommendation_says() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        assert_eq!(Trace::parse(good).map(|trace| trace.header()).as_deref(), Some(good));
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes";
        assert!(Trace::parse(later).is_some());
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        ] {
            assert_eq!(Trace::parse(bad), None, "{bad}");
        }
    }
}
