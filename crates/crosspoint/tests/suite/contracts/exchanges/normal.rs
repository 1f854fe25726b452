//! Replaces values that differ in every run by names.

/// The values of one exchange.
pub(super) struct Names<'n> {
    pub(super) job: Option<String>,
    pub(super) port: u16,
    /// Everything that callers and agents sent: a time in it is not one of ours.
    pub(super) given: &'n str,
}

impl Names<'_> {
    /// Replaces values that differ in every run by their names.
    pub(super) fn normal(&self, text: &str) -> String {
        let mut text = text.replace(&format!("127.0.0.1:{}", self.port), "127.0.0.1:<port>");
        if let Some(job) = &self.job {
            text = text.replace(job, "<job>").replace(&job.replace('-', ""), "<trace>");
        }
        if let Some(span) = span(&text).filter(|span| !self.given.contains(span.as_str())) {
            text = text.replace(&span, "<span>");
        }
        for id in message_ids(&text).iter().filter(|id| !self.given.contains(id.as_str())) {
            text = text.replace(id, "<message>");
        }
        self.durations(&self.times(&text))
    }

    /// Replaces the names by the values that they stand for.
    pub(super) fn filled(&self, text: &str) -> String {
        let text = text.replace("<port>", &self.port.to_string());
        match &self.job {
            Some(job) => text.replace("<job>", job),
            None => text,
        }
    }

    fn times(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((at, length)) = time(rest) {
            let found = &rest[at..at + length];
            out += &rest[..at];
            out += if self.given.contains(found) { found } else { "<time>" };
            rest = &rest[at + length..];
        }
        out + rest
    }

    fn durations(&self, text: &str) -> String {
        let text = self.durations_named(text, "\"duration_ms\":");
        self.durations_named(&text, "\"duration_seconds\":")
    }

    /// Whether a caller or an agent sent this number under this name.
    fn has(&self, name: &str, number: &str) -> bool {
        ["", " "].iter().any(|gap| self.given.contains(&format!("{name}{gap}{number}")))
    }

    fn durations_named(&self, text: &str, name: &str) -> String {
        let mut parts = text.split(name);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let number = part.trim_start_matches(' ');
            let gap = &part[..part.len() - number.len()];
            let rest = number.trim_start_matches(|digit: char| digit.is_ascii_digit() || digit == '.');
            let number = &number[..number.len() - rest.len()];
            let known = self.has(name, number) || self.has("\"duration_ms\":", &format!("{number}000"));
            out += &[name, gap, if known { number } else { "<time>" }, rest].concat();
        }
        out
    }
}

/// The span in a header `traceparent`, or among what is carried.
fn span(text: &str) -> Option<String> {
    let header = text.split_once("traceparent: 00-").and_then(|(_, rest)| rest.split('-').nth(1));
    let carried = || text.split_once("\"span\":").and_then(|(_, rest)| rest.split('"').nth(1));
    header.or_else(carried).filter(|span| span.len() == 16).map(str::to_owned)
}

/// The ids of messages.
fn message_ids(text: &str) -> Vec<String> {
    let ids = text.split("\"message_id\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    ids.map(str::to_owned).collect()
}

/// Where the first point in time is, and how long it is.
fn time(text: &str) -> Option<(usize, usize)> {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let fits = |window: &[u8]| {
        window.iter().zip(SHAPE).all(|(byte, shape)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape })
    };
    let at = text.as_bytes().windows(SHAPE.len()).position(fits)?;
    let rest = &text[at + SHAPE.len()..];
    let fraction = rest.len() - rest.trim_start_matches(|part: char| part == '.' || part.is_ascii_digit()).len();
    let zone = usize::from(rest[fraction..].starts_with('Z'));
    Some((at, SHAPE.len() + fraction + zone))
}
