//! Traces, as W3C Trace Context spells them (TASK-8).
//!
//! A job is a hop of its caller's trace, and every attempt is a span of its own below it. The spans are derived from
//! the job's id and the attempt's number, so that a restart continues the same ones.

use uuid::Uuid;

/// Most bytes of a `tracestate` that are kept, which is what the recommendation asks for at least.
pub const STATE_BYTES_MAX: usize = 512;

/// Most members of a `tracestate`, by the recommendation.
const STATE_MEMBERS_MAX: usize = 32;

/// Longer members go first where not all can be kept, by the recommendation.
const STATE_MEMBER_BYTES_LONG: usize = 128;

/// What separates the two headers where they are stored together. No header can contain it.
const STORED_BETWEEN: char = '\n';

/// A place in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// 32 hexadecimal digits.
    pub trace_id: String,
    /// 16 hexadecimal digits.
    pub span_id: String,
    flags: String,
    /// What tracing systems on the way have noted (`tracestate`). It is handed on as it came.
    state: Option<String>,
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
        fits.then(|| Trace {
            trace_id: trace_id.to_owned(),
            span_id: span_id.to_owned(),
            flags: "01".to_owned(),
            state: None,
        })
    }

    /// Adds a `tracestate` header; several of them are joined by commas before. One that cannot be read counts as
    /// missing, as its recommendation says.
    #[must_use]
    pub fn with_state(self, header: &str) -> Trace {
        Trace { state: kept_state(header), ..self }
    }

    /// Returns the value of the `tracestate` header, if there is one.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Returns the place as it is stored with a job: `traceparent`, and on a second line `tracestate` if there is one.
    pub fn stored(&self) -> String {
        match &self.state {
            Some(state) => format!("{}{STORED_BETWEEN}{state}", self.header()),
            None => self.header(),
        }
    }

    /// Reads a place that was stored with a job.
    pub fn of_stored(stored: &str) -> Option<Trace> {
        match stored.split_once(STORED_BETWEEN) {
            Some((parent, state)) => Some(Trace::parse(parent)?.with_state(state)),
            None => Trace::parse(stored),
        }
    }

    /// Returns the span of one attempt, below the caller's. Without a caller's trace the job is the trace.
    pub fn of_attempt(job: Uuid, caller: Option<&str>, attempt: u32) -> Trace {
        let caller = caller.and_then(Trace::of_stored);
        let (trace_id, flags, state) = match caller {
            Some(caller) => (caller.trace_id, caller.flags, caller.state),
            None => (job.simple().to_string(), "01".to_owned(), None),
        };
        Trace { trace_id, span_id: span_of(job, attempt), flags, state }
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

/// Returns the part of a `tracestate` that is kept: all of it, or else what the recommendation says to keep. Long
/// members are left out first, and then the last ones, which are the oldest.
fn kept_state(header: &str) -> Option<String> {
    let members = header.split(',').map(|member| member.trim_matches([' ', '\t'])).filter(|member| !member.is_empty());
    let mut members: Vec<&str> = members.collect();
    let is_member = |member: &&str| {
        let visible = member.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        visible && member.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())
    };
    if members.len() > STATE_MEMBERS_MAX || !members.iter().all(is_member) {
        return None;
    }
    let bytes = |members: &[&str]| members.iter().map(|member| member.len() + 1).sum::<usize>().saturating_sub(1);
    if bytes(&members) > STATE_BYTES_MAX {
        members.retain(|member| member.len() <= STATE_MEMBER_BYTES_LONG);
    }
    while bytes(&members) > STATE_BYTES_MAX {
        members.pop();
    }
    (!members.is_empty()).then(|| members.join(","))
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

    #[test]
    fn a_state_is_kept_whole_up_to_its_limit_and_survives_being_stored() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let state = |header: &str| {
            let trace = Trace::parse(parent).expect("a header").with_state(header);
            assert_eq!(Trace::of_stored(&trace.stored()).as_ref(), Some(&trace));
            trace.state().map(str::to_owned)
        };
        assert_eq!(state("a=1, b@v=x=y ,,").as_deref(), Some("a=1,b@v=x=y"));
        for none in ["", " , ", "a", "a=1,b", "=1", "a=", "a=\u{e4}", "a=1\nb=2", &["a=1"; 33].join(",")] {
            assert_eq!(state(none), None, "{none:?}");
        }
        let short = |count| (0..count).map(|n| format!("k{n:02}={}", "v".repeat(27))).collect::<Vec<_>>();
        let whole = short(16).join(",");
        assert_eq!(whole.len(), 511);
        assert_eq!(state(&whole), Some(whole.clone()));
        assert_eq!(state(&short(17).join(",")), Some(whole.clone()), "the last member goes");
        let long = format!("long={}", "v".repeat(300));
        assert_eq!(
            state(&format!("{long},{}", short(9).join(","))),
            Some(short(9).join(",")),
            "the long one goes first"
        );
        assert_eq!(state(&long).as_deref(), Some(&*long), "and stays where there is room");
    }

    #[test]
    fn every_attempt_has_the_callers_state() {
        let caller = Trace::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00").expect("a header");
        let caller = caller.with_state("a=1").stored();
        let attempt = Trace::of_attempt(Uuid::nil(), Some(&caller), 2);
        assert_eq!((attempt.state(), attempt.trace_id.as_str()), (Some("a=1"), "4bf92f3577b34da6a3ce929d0e0e4736"));
    }
}
