//! An exchange in its written form.

use std::fmt;

const HEADING: &str = "== ";
const GAP: &str = "~~";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    Configuration,
    CallerSends,
    CallerMustGet,
    AgentMustGet,
    AgentMayGet,
    AgentAnswers,
    AgentSends,
    AgentMustHear,
    CallerWrites,
    CallerMustFind,
    AgentMustFind,
    AgentWrites,
}

impl Heading {
    const ALL: [Heading; 12] = [
        Heading::Configuration,
        Heading::CallerSends,
        Heading::CallerMustGet,
        Heading::AgentMustGet,
        Heading::AgentMayGet,
        Heading::AgentAnswers,
        Heading::AgentSends,
        Heading::AgentMustHear,
        Heading::CallerWrites,
        Heading::CallerMustFind,
        Heading::AgentMustFind,
        Heading::AgentWrites,
    ];

    fn name(self) -> &'static str {
        match self {
            Heading::Configuration => "configuration",
            Heading::CallerSends => "caller sends",
            Heading::CallerMustGet => "caller must get",
            Heading::AgentMustGet => "agent must get",
            Heading::AgentMayGet => "agent may get",
            Heading::AgentAnswers => "agent answers",
            Heading::AgentSends => "agent sends",
            Heading::AgentMustHear => "agent must hear",
            Heading::CallerWrites => "caller writes",
            Heading::CallerMustFind => "caller must find",
            Heading::AgentMustFind => "agent must find",
            Heading::AgentWrites => "agent writes",
        }
    }
}

/// One recorded exchange.
#[derive(Clone)]
pub(super) struct Script {
    /// What the exchange shows.
    about: String,
    /// Each heading with its lines, unchanged.
    pub(super) parts: Vec<(Heading, String)>,
}

/// Bytes that are sent in one go.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    /// What happens before it is sent.
    pub(super) gap: Gap,
    /// The text in its written form, in one line.
    pub(super) text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Gap {
    #[default]
    None,
    /// The other side has read what was sent.
    UntilRead,
    CallerHas(String),
    AgentHas(String),
    /// Ends the connection; nothing follows.
    Close,
}

impl Script {
    pub(super) fn parse(text: &str) -> Result<Script, String> {
        let (mut about, mut parts) = (String::new(), Vec::<(Heading, String)>::new());
        for line in text.lines() {
            if let Some(name) = line.strip_prefix(HEADING) {
                let heading = Heading::ALL.into_iter().find(|heading| heading.name() == name);
                parts.push((heading.ok_or_else(|| format!("there is no part {name:?}"))?, String::new()));
                continue;
            }
            let part = parts.last_mut().map_or(&mut about, |(_, part)| part);
            part.push_str(line);
            part.push('\n');
        }
        Ok(Script { about: about.trim().to_owned(), parts })
    }

    pub(super) fn configuration(&self) -> &str {
        let parts = self.parts.iter().find(|(heading, _)| *heading == Heading::Configuration);
        parts.map_or("", |(_, text)| text)
    }

    /// Whether the script has such a part.
    pub(super) fn has(&self, wanted: Heading) -> bool {
        self.parts.iter().any(|(heading, _)| *heading == wanted)
    }

    /// Everything that callers and agents send: values in it are not replaced by names.
    pub(super) fn given(&self) -> String {
        let of_caller = [Heading::CallerSends, Heading::CallerWrites];
        let of_agent = [Heading::AgentAnswers, Heading::AgentSends, Heading::AgentWrites];
        let given = |heading| of_caller.contains(&heading) || of_agent.contains(&heading);
        self.parts.iter().filter(|(heading, _)| given(*heading)).map(|(_, text)| text.as_str()).collect()
    }
}

/// The pieces that a part sends.
pub(super) fn pieces(part: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = vec![Piece::default()];
    for line in part.lines() {
        let Some(gap) = line.strip_prefix(GAP) else {
            pieces.last_mut().expect("there is one").text += line;
            continue;
        };
        let gap = gap.trim();
        let gap = match gap.strip_prefix("until the ").and_then(|rest| rest.split_once(" has: ")) {
            Some(("caller", text)) => Gap::CallerHas(text.to_owned()),
            Some(("agent", text)) => Gap::AgentHas(text.to_owned()),
            None if gap.is_empty() => Gap::UntilRead,
            None if gap == "close" => Gap::Close,
            Some(_) | None => return Err(format!("there is no gap {gap:?}")),
        };
        pieces.push(Piece { gap, text: String::new() });
    }
    Ok(pieces)
}

/// Decodes the written form: `␍` and `␊`, `‹c3›` for a byte that is not a character by itself, and characters.
pub(super) fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('‹') {
        let (byte, after) = after.split_once('›').ok_or("a byte is written ‹c3›")?;
        out.extend_from_slice(lines(before).as_bytes());
        out.push(u8::from_str_radix(byte, 16).map_err(|error| format!("‹{byte}›: {error}"))?);
        rest = after;
    }
    out.extend_from_slice(lines(rest).as_bytes());
    Ok(out)
}

fn lines(text: &str) -> String {
    text.lines().collect::<String>().replace('␍', "\r").replace('␊', "\n")
}

/// Encodes bytes in the written form: one line of the file for each line on the wire.
pub(super) fn written(bytes: &str) -> String {
    let mut out = String::new();
    let mut rest = bytes.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\r' => {
                out.push('␍');
                if rest.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\n' => out.push_str("␊\n"),
            other => out.push(other),
        }
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.about)?;
        self.parts.iter().try_for_each(|(heading, text)| {
            let text = text.trim_end_matches('\n');
            writeln!(f, "\n{HEADING}{}\n{text}", heading.name())
        })
    }
}
