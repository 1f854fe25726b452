//! Reads bytes into events, incrementally.

use std::fmt;

/// Limits on the size of one event.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest line, in bytes. A line is held in memory until it ends.
    pub line_bytes_max: usize,
    /// Most data of one event, in bytes.
    pub event_bytes_max: usize,
    /// Most data lines of one event; each costs memory of its own, however short it is.
    pub event_lines_max: usize,
}

impl Default for Limits {
    /// 16 MiB for a line and for the data of an event: more than the outputs of any run should be, but little enough to
    /// hold for many streams. Pretty-printed JSON of that size has fewer lines than the limit.
    fn default() -> Self {
        Limits { line_bytes_max: 16 << 20, event_bytes_max: 16 << 20, event_lines_max: 1 << 20 }
    }
}

impl Limits {
    /// Returns no limits, for input that is in memory already.
    pub fn unbounded() -> Limits {
        Limits { line_bytes_max: usize::MAX, event_bytes_max: usize::MAX, event_lines_max: usize::MAX }
    }
}

/// A limit was exceeded. The rest of the stream cannot be understood any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// A line is longer than this, in bytes.
    #[error("a line of the stream is longer than {0} bytes")]
    Line(usize),
    /// An event has more data than this, in bytes.
    #[error("an event of the stream has more than {0} bytes of data")]
    Event(usize),
    /// An event has more data lines than this.
    #[error("an event of the stream has more than {0} lines of data")]
    Lines(usize),
}

/// One event.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The value of the `event:` line; `None` without one or where it is empty.
    pub name: Option<String>,
    /// Whether the name was not UTF-8 and holds replacement characters.
    pub name_is_broken: bool,
    /// The `data:` lines, joined by line feeds; `None` without one.
    pub data: Option<Vec<u8>>,
    /// The value of the `id:` line.
    pub id: Option<String>,
    /// The value of the `retry:` line, in milliseconds.
    pub retry: Option<u64>,
    /// Whether an empty line ended the event.
    pub terminated: bool,
    /// First byte of the event in the stream.
    pub offset: usize,
    /// For each data line: its first byte in `data`, and that byte's place in the stream.
    pub lines: Vec<(usize, usize)>,
}

impl Event {
    /// Returns where a byte of `data` stands in the stream.
    pub fn stream_offset(&self, data_offset: usize) -> usize {
        let after = self.lines.partition_point(|(start, _)| *start <= data_offset);
        let line = after.checked_sub(1).and_then(|line| self.lines.get(line));
        line.map_or(self.offset, |(start, offset)| offset + (data_offset - start))
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.data.as_ref().map_or(0, Vec::len);
        write!(f, "Event[{bytes} bytes at {}]", self.offset)
    }
}

/// Takes bytes and produces events.
#[derive(Debug, Default)]
pub struct Reader {
    limits: Limits,
    /// The line that has not ended yet.
    partial: Vec<u8>,
    /// The event that has not ended yet.
    event: Option<Event>,
    /// Bytes taken so far.
    taken: usize,
    /// Place of the first byte of the current line.
    line_offset: usize,
    /// Whether the last byte was CR: an LF right after it ends no further line.
    after_cr: bool,
    /// Whether the first line has been read, so that a byte order mark can no longer come.
    begun: bool,
}

impl Reader {
    /// Returns a reader at the start of a stream.
    pub fn new(limits: Limits) -> Reader {
        Reader { limits, ..Reader::default() }
    }

    /// Takes the bytes that arrived and appends the events that they complete.
    ///
    /// # Errors
    /// Fails if a limit was exceeded. The stream should be given up.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), TooLarge> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr) && rest[0] == b'\n' {
                self.taken += 1;
                self.line_offset = self.taken;
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.hold(rest);
            };
            self.check_line(end)?;
            self.after_cr = rest[end] == b'\r';
            if self.partial.is_empty() {
                self.line(&rest[..end], events)?;
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(&rest[..end]);
                self.line(&line, events)?;
            }
            self.taken += end + 1;
            self.line_offset = self.taken;
            rest = &rest[end + 1..];
        }
        Ok(())
    }

    /// Returns how many bytes are in memory, because their event has not ended.
    pub fn held_bytes(&self) -> usize {
        let event = self.event.as_ref();
        let data = event.and_then(|event| event.data.as_ref()).map_or(0, Vec::len);
        self.partial.len() + data + event.map_or(0, |event| size_of_val(&*event.lines))
    }

    /// Ends the stream and appends the event that has not ended, if any.
    ///
    /// # Errors
    /// Fails if the last line exceeds a limit.
    pub fn finish(&mut self, events: &mut Vec<Event>) -> Result<(), TooLarge> {
        let line = std::mem::take(&mut self.partial);
        if !line.is_empty() {
            self.line(&line, events)?;
        }
        events.extend(self.take_event());
        Ok(())
    }

    /// Returns the event so far. A block with only `id:` or `retry:` is no event.
    fn take_event(&mut self) -> Option<Event> {
        self.event.take().filter(|event| event.name.is_some() || event.data.is_some())
    }

    fn check_line(&self, more: usize) -> Result<(), TooLarge> {
        let limit = self.limits.line_bytes_max;
        if self.partial.len().saturating_add(more) > limit { Err(TooLarge::Line(limit)) } else { Ok(()) }
    }

    fn hold(&mut self, rest: &[u8]) -> Result<(), TooLarge> {
        self.check_line(rest.len())?;
        self.partial.extend_from_slice(rest);
        self.taken += rest.len();
        Ok(())
    }

    fn line(&mut self, line: &[u8], events: &mut Vec<Event>) -> Result<(), TooLarge> {
        let mut start = self.line_offset;
        let mut line = line;
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(b"\xef\xbb\xbf") {
            line = &line[3..];
            start += 3;
        }
        if line.is_empty() {
            if let Some(mut event) = self.take_event() {
                event.terminated = true;
                events.push(event);
            }
            return Ok(());
        }
        let colon = line.iter().position(|&byte| byte == b':');
        let (field, value) = match colon {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        // One space after the colon belongs to the framing.
        let value_text = value.strip_prefix(b" ").unwrap_or(value);
        let value_offset = start + (line.len() - value_text.len());
        self.field(field, value_text, start, value_offset)
    }

    fn field(&mut self, field: &[u8], value: &[u8], start: usize, value_offset: usize) -> Result<(), TooLarge> {
        // Comments begin with the colon. Unknown fields are ignored.
        if !matches!(field, b"event" | b"data" | b"id" | b"retry") {
            return Ok(());
        }
        let limits = self.limits;
        let event = self.event.get_or_insert_with(|| Event { offset: start, ..Event::default() });
        let text = || String::from_utf8_lossy(value).into_owned();
        match field {
            b"event" => {
                event.name = (!value.is_empty()).then(text);
                event.name_is_broken = std::str::from_utf8(value).is_err();
            }
            b"id" if !value.contains(&0) => event.id = Some(text()),
            // Digits only: `parse` would accept a plus sign.
            b"retry" if value.iter().all(u8::is_ascii_digit) => event.retry = text().parse().ok().or(event.retry),
            b"data" => {
                let data = event.data.get_or_insert_with(Vec::new);
                if !event.lines.is_empty() {
                    data.push(b'\n');
                }
                if data.len().saturating_add(value.len()) > limits.event_bytes_max {
                    return Err(TooLarge::Event(limits.event_bytes_max));
                }
                if event.lines.len() >= limits.event_lines_max {
                    return Err(TooLarge::Lines(limits.event_lines_max));
                }
                event.lines.push((data.len(), value_offset));
                data.extend_from_slice(value);
            }
            _ => {}
        }
        Ok(())
    }
}
