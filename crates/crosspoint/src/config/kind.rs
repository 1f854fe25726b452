//! The values that keys of the configuration take: reading them, printing them, and their mistakes.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use super::names::{self, Of};
use super::{Store, UNIX, exit_codes};

const NAME_BYTES_MAX: usize = 200;
pub(super) const STORE_PREFIX: &str = "sqlite:";

/// The values that a key takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// HOST:PORT, or [`UNIX`].
    Address,
    /// A short text on one line.
    Name,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The place of the store.
    Store,
    /// A whole number from 1 to this.
    Whole(u64),
    /// A whole number from 0 to this; 0 sets no limit.
    Count(u64),
    /// A number of seconds, more than 0 and at most this.
    Seconds(u64),
    /// A number of days from 0 to this, with fractions; 0 is for ever.
    Days(u64),
    /// `true` or `false`.
    YesNo,
    /// A list of the server's host names.
    Hosts,
    /// A list of agent types.
    Names,
    /// A list of directories.
    Paths,
    /// A list of exit codes of programs that failed.
    ExitCodes,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Whole(u64),
    Time(Duration),
    Days(f64),
    YesNo(bool),
    Texts(Vec<String>),
    Codes(Vec<u8>),
}

/// What is wrong with a value, and how to mend it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) what: String,
    pub(super) hint: String,
}

/// A kind returns only values of its own form, so the fallbacks below for other forms are never used.
impl Value {
    pub(super) fn count(count: usize) -> Value {
        Value::Whole(count as u64)
    }

    pub(super) fn text(self) -> String {
        if let Value::Text(text) = self { text } else { String::new() }
    }

    pub(super) fn texts(self) -> Vec<String> {
        if let Value::Texts(texts) = self { texts } else { Vec::new() }
    }

    pub(super) fn codes(self) -> Vec<u8> {
        if let Value::Codes(codes) = self { codes } else { Vec::new() }
    }

    pub(super) fn whole(&self) -> u64 {
        if let Value::Whole(number) = self { *number } else { 0 }
    }

    pub(super) fn whole_usize(&self) -> usize {
        usize::try_from(self.whole()).unwrap_or(usize::MAX)
    }

    pub(super) fn days(&self) -> f64 {
        if let Value::Days(days) = self { *days } else { 0.0 }
    }

    pub(super) fn time(&self) -> Duration {
        if let Value::Time(time) = self { *time } else { Duration::ZERO }
    }
}

/// Prints the value as TOML.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => fmt::Display::fmt(&toml::Value::String(text.clone()), f),
            Value::Whole(number) => write!(f, "{number}"),
            Value::Time(time) => write!(f, "{}", time.as_secs_f64()),
            Value::Days(days) => write!(f, "{days}"),
            Value::YesNo(yes) => write!(f, "{yes}"),
            Value::Codes(codes) => write!(f, "{codes:?}"),
            Value::Texts(texts) => {
                let texts = texts.iter().map(|text| toml::Value::String(text.clone())).collect();
                fmt::Display::fmt(&toml::Value::Array(texts), f)
            }
        }
    }
}

impl Wrong {
    pub(super) fn new(what: impl Into<String>, hint: impl Into<String>) -> Wrong {
        Wrong { what: what.into(), hint: hint.into() }
    }
}

impl Kind {
    /// Describes the values that the key takes, with an article.
    pub(super) fn expected(self) -> String {
        match self {
            Kind::Address => "an address, as \"127.0.0.1:7420\", or \"unix\"".to_owned(),
            Kind::Name => "a text".to_owned(),
            Kind::Choice(words) => format!("one of {}", quoted(words)),
            Kind::Store => {
                format!("the place of the store, as \"{STORE_PREFIX}{}\"", Store::default().path.display())
            }
            Kind::Whole(max) => format!("a whole number from 1 to {max}"),
            Kind::Count(max) => format!("a whole number from 0 to {max}"),
            Kind::Days(max) => format!("a number of days from 0 to {max}"),
            Kind::Seconds(max) => format!("a number of seconds, more than 0 and at most {max}"),
            Kind::YesNo => "true or false".to_owned(),
            Kind::Hosts => "a list of host names".to_owned(),
            Kind::Names => "a list of names".to_owned(),
            Kind::Paths => "a list of directories".to_owned(),
            Kind::ExitCodes => "a list of whole numbers from 1 to 255".to_owned(),
        }
    }

    /// Reads a value from a file.
    pub(super) fn of_toml(self, value: &DeValue<'_>) -> Result<Value, Wrong> {
        match (self, value) {
            (Kind::Address | Kind::Name | Kind::Choice(_) | Kind::Store, DeValue::String(text)) => self.of_text(text),
            (Kind::Whole(_) | Kind::Count(_) | Kind::Seconds(_) | Kind::Days(_), DeValue::Integer(number)) => {
                let parsed = i128::from_str_radix(number.as_str(), number.radix());
                parsed.map_or_else(|_| Err(self.out_of_range(&number.to_string())), |number| self.of_whole(number))
            }
            (Kind::Seconds(_) | Kind::Days(_), DeValue::Float(number)) => self.of_text(number.as_str()),
            (Kind::YesNo, DeValue::Boolean(yes)) => Ok(Value::YesNo(*yes)),
            (Kind::Hosts, DeValue::Array(items)) => names::of_items(Of::Hosts, items).map(Value::Texts),
            (Kind::Names, DeValue::Array(items)) => names::of_items(Of::Types, items).map(Value::Texts),
            (Kind::Paths, DeValue::Array(items)) => names::of_items(Of::Paths, items).map(Value::Texts),
            (Kind::ExitCodes, DeValue::Array(items)) => exit_codes::of_items(items).map(Value::Codes),
            (
                Kind::Whole(_) | Kind::Count(_) | Kind::Seconds(_) | Kind::Days(_) | Kind::YesNo,
                DeValue::String(text),
            ) if self.of_text(text).is_ok() => {
                let what = format!("it must be {}, and this is a text", self.expected());
                Err(Wrong::new(what, format!("write it without quotes: {text}")))
            }
            (_, other) => {
                let what = format!("it must be {}, and this is {}", self.expected(), described(other));
                Err(Wrong::new(what, self.only_text(other).unwrap_or_else(|| self.hint())))
            }
        }
    }

    /// Reads a value from the environment or a flag, where everything is text.
    pub(super) fn of_text(self, text: &str) -> Result<Value, Wrong> {
        match self {
            Kind::Address => address(text),
            Kind::Name => name(text).map(Value::Text),
            Kind::Choice(words) if words.contains(&text) => Ok(Value::Text(text.to_owned())),
            Kind::Choice(words) => {
                let hint = super::problem::suggestion(text, words).unwrap_or_else(|| format!("write {}", words[0]));
                Err(Wrong::new(format!("\"{text}\" is not {}", self.expected()), hint))
            }
            Kind::Store => store(text),
            Kind::Whole(_) | Kind::Count(_) => match text.parse::<i128>() {
                Ok(number) => self.of_whole(number),
                Err(_) => Err(self.out_of_range(text)),
            },
            Kind::Seconds(max) => match text.parse::<f64>() {
                // A microsecond is the shortest time that the engine knows.
                Ok(seconds) if seconds >= 1e-6 && seconds <= max as f64 => {
                    Ok(Value::Time(Duration::from_secs_f64(seconds)))
                }
                Ok(_) | Err(_) => Err(self.out_of_range(text)),
            },
            Kind::Days(max) => match text.parse::<f64>() {
                Ok(days) if days >= 0.0 && days <= max as f64 => Ok(Value::Days(days)),
                Ok(_) | Err(_) => Err(self.out_of_range(text)),
            },
            Kind::YesNo => match text.parse::<bool>() {
                Ok(yes) => Ok(Value::YesNo(yes)),
                Err(_) => Err(self.out_of_range(text)),
            },
            Kind::Hosts => names::of_text(Of::Hosts, text).map(Value::Texts),
            Kind::Names => names::of_text(Of::Types, text).map(Value::Texts),
            Kind::Paths => names::of_text(Of::Paths, text).map(Value::Texts),
            Kind::ExitCodes => exit_codes::of_text(text).map(Value::Codes),
        }
    }

    /// Says how to write a list of one text where the text alone is wanted.
    fn only_text(self, value: &DeValue<'_>) -> Option<String> {
        let DeValue::Array(items) = value else { return None };
        let [item] = &items[..] else { return None };
        let DeValue::String(text) = item.get_ref() else { return None };
        let is_text = matches!(self, Kind::Address | Kind::Name | Kind::Choice(_) | Kind::Store);
        let is_good = is_text && self.of_text(text).is_ok();
        is_good.then(|| format!("write it without brackets: {}", Value::Text(text.to_string())))
    }

    fn of_whole(self, number: i128) -> Result<Value, Wrong> {
        let (least, max) = match self {
            Kind::Whole(max) | Kind::Seconds(max) => (1, max),
            Kind::Count(max) | Kind::Days(max) => (0, max),
            Kind::Address
            | Kind::Name
            | Kind::Choice(_)
            | Kind::Store
            | Kind::YesNo
            | Kind::Hosts
            | Kind::Names
            | Kind::Paths
            | Kind::ExitCodes => {
                return Err(self.out_of_range(&number.to_string()));
            }
        };
        match u64::try_from(number) {
            Ok(whole) if whole >= least && whole <= max => Ok(match self {
                Kind::Seconds(_) => Value::Time(Duration::from_secs(whole)),
                Kind::Days(_) => Value::Days(whole as f64),
                Kind::Address
                | Kind::Name
                | Kind::Choice(_)
                | Kind::Store
                | Kind::Whole(_)
                | Kind::Count(_)
                | Kind::YesNo
                | Kind::Hosts
                | Kind::Names
                | Kind::Paths
                | Kind::ExitCodes => Value::Whole(whole),
            }),
            Ok(_) | Err(_) => Err(self.out_of_range(&number.to_string())),
        }
    }

    fn out_of_range(self, found: &str) -> Wrong {
        Wrong::new(format!("{found} is not {}", self.expected()), self.hint())
    }

    fn hint(self) -> String {
        match self {
            Kind::Address => "write \"127.0.0.1:7420\", or port 0 for any free one".to_owned(),
            Kind::Name => "write it in quotes".to_owned(),
            Kind::Choice(words) => format!("write \"{}\"", words[0]),
            Kind::Store => format!("write \"{STORE_PREFIX}PATH\""),
            Kind::Whole(_) => "write a number within that range, or leave the key out for the default".to_owned(),
            Kind::Count(_) => "write a number within that range, or 0 for no limit".to_owned(),
            Kind::Days(_) => "write days, as 30 or 0.5, or 0 for ever".to_owned(),
            Kind::Seconds(_) => "write seconds, as 30 or 0.5, or leave the key out for the default".to_owned(),
            Kind::YesNo => "write true or false, without quotes".to_owned(),
            Kind::Hosts => Of::Hosts.hint().to_owned(),
            Kind::Names => Of::Types.hint().to_owned(),
            Kind::Paths => Of::Paths.hint().to_owned(),
            Kind::ExitCodes => exit_codes::HINT.to_owned(),
        }
    }
}

fn address(text: &str) -> Result<Value, Wrong> {
    let good = text.rsplit_once(':').is_some_and(|(host, port)| {
        let bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        let clean = host.chars().all(|character| !character.is_whitespace() && !character.is_control());
        !host.is_empty() && clean && !host.contains('/') && !bare_v6 && port.parse::<u16>().is_ok()
    });
    if good || text == UNIX {
        Ok(Value::Text(text.to_owned()))
    } else {
        Err(Kind::Address.out_of_range(&format!("\"{text}\"")))
    }
}

/// Checks a name that can be shown on one line and used in an address.
pub(super) fn name(text: &str) -> Result<String, Wrong> {
    let hint = "write a short name without spaces, as \"report-writer\"";
    if text.is_empty() {
        return Err(Wrong::new("it is empty", hint));
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(Wrong::new(format!("it is longer than {NAME_BYTES_MAX} bytes"), hint));
    }
    match text.chars().find(|character| character.is_control() || character.is_whitespace() || *character == '/') {
        Some(_) => Err(Wrong::new("it has a space, a slash or a control character in it", hint)),
        None => Ok(text.to_owned()),
    }
}

fn store(text: &str) -> Result<Value, Wrong> {
    let hint = format!("write \"{STORE_PREFIX}PATH\"");
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return Err(Wrong::new(
            "PostgreSQL comes with a later version; this one keeps jobs in an embedded database",
            hint,
        ));
    }
    match text.strip_prefix(STORE_PREFIX) {
        Some("" | ":memory:") => Err(Wrong::new("it names no file, and jobs must be on disk", hint)),
        Some(path) if path.starts_with("//") => {
            let hint = format!("write \"{STORE_PREFIX}{}\"", path.trim_start_matches("//"));
            Err(Wrong::new(format!("{STORE_PREFIX} is followed by a path, not by //"), hint))
        }
        Some(path) if path.contains('\0') => Err(Wrong::new("the path has a null byte in it", hint)),
        Some(_) => Ok(Value::Text(text.to_owned())),
        // The address may hold a password, so it is not repeated here.
        None => Err(Wrong::new(format!("it does not begin with {STORE_PREFIX}"), hint)),
    }
}

pub(super) fn store_path(url: &str) -> PathBuf {
    PathBuf::from(url.strip_prefix(STORE_PREFIX).unwrap_or(url))
}

/// Describes the type of a written value, with an article.
pub(super) fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

pub(super) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}
