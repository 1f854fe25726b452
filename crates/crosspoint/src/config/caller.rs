//! `[[caller]]`: the callers that are told later what became of their work.

use std::collections::BTreeMap;
use std::ops::Range;

use reqwest::Url;
use toml::de::DeValue;

use super::address;
use super::agent::{Reading, header};
use super::file::File;
use super::kind::{Value, described};
use super::token::{self, TOKEN_FILE, Token};

pub(super) const CALLER_TABLE: &str = "caller";

pub(super) const CALLBACK: &str = "callback";

/// The keys, with what they are.
pub(super) const KEYS: [(&str, &str); 3] = [
    ("name", "What the caller is called, as `\"upstream\"`. Agents and callers have different names."),
    (
        CALLBACK,
        "The address at which it is told, as `\"http://127.0.0.1:9000\"`. The paths of its contract are below it. Without it the caller pulls.",
    ),
    (
        TOKEN_FILE,
        "A file with the caller's token, as `\"upstream.token\"`. The caller must present the token, and it is presented at `callback`. If one caller has a token, all callers have one, and every `work_request` needs one.",
    ),
];

/// Most callers: each has its own connections, and its own lines in the metrics.
const CALLERS_MAX: usize = 200;

/// Ends of addresses that belong to endpoints, and not to callers.
const ENDPOINTS: [&str; 2] = ["/api/agent/message", "/api/agent/messages"];

/// A caller that is told later.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Caller {
    pub(crate) name: String,
    /// The base address at which it is told. Without it the caller pulls.
    pub(crate) callback: Option<Url>,
    /// The caller's token.
    pub(crate) token: Option<Token>,
    /// The file of the token, as it was written.
    pub(crate) token_file: Option<String>,
}

type Read = (Caller, BTreeMap<String, usize>);

/// Reads all callers.
pub(super) fn read_callers(file: &mut File, callers: &DeValue<'_>, span: Range<usize>) -> Vec<Read> {
    let mut read: Vec<Read> = Vec::new();
    let DeValue::Array(callers) = callers else {
        let what = format!("it is a list of tables, and this is {}", described(callers));
        file.wrong(span, CALLER_TABLE, &what, "write [[caller]] with two brackets");
        return read;
    };
    for caller in callers {
        let DeValue::Table(keys) = caller.get_ref() else {
            let what = format!("it is a list of tables, and this is {}", described(caller.get_ref()));
            file.wrong(caller.span(), CALLER_TABLE, &what, "write [[caller]] with its keys below");
            continue;
        };
        let reading = Reading::of(keys, header(file, caller.span()), CALLER_TABLE);
        let Some(caller) = caller_of(&reading, file) else { continue };
        if let Some((_, lines)) = read.iter().find(|(other, _)| other.name == caller.name) {
            let first = lines.get("name").copied().unwrap_or_default();
            let what = format!("another caller is called \"{}\" (line {first})", caller.name);
            file.wrong(reading.span_of("name"), &reading.shown, &what, "give each caller a name of its own");
        } else if read.len() == CALLERS_MAX {
            let what = format!("there are more than {CALLERS_MAX} callers");
            file.wrong(
                reading.span_of("name"),
                &reading.shown,
                &what,
                "let callers that are told at one address share a table",
            );
            break;
        }
        read.push((caller, reading.lines(file)));
    }
    read
}

fn caller_of(table: &Reading<'_>, file: &mut File) -> Option<Caller> {
    for (name, _) in table.keys {
        if !KEYS.iter().any(|(known, _)| known == name.get_ref()) {
            file.unknown_key(name, &table.key(name.get_ref()), &KEYS.map(|(known, _)| known));
        }
    }
    let name = table.name(file);
    let callback = callback(table, file);
    let (token_file, token) = token::read(table, file);
    Some(Caller { name: name?, callback, token, token_file })
}

fn callback(table: &Reading<'_>, file: &mut File) -> Option<Url> {
    let hint = "write its address, as callback = \"http://127.0.0.1:8000\", or leave it out if the caller pulls";
    let text = table.text(file, CALLBACK, hint)?;
    let problem = match address::base(&text, ENDPOINTS.into_iter()) {
        Ok(url) => return Some(url),
        Err(problem) => problem,
    };
    let mended = address::mended(&text, &ENDPOINTS).map(|url| format!("write callback = {}", Value::Text(url)));
    file.wrong(table.span_of(CALLBACK), &table.key(CALLBACK), problem, mended.as_deref().unwrap_or(hint));
    None
}

impl Caller {
    /// The keys and values that `config show` prints.
    pub(super) fn shown(&self) -> [(&'static str, Option<Value>); 3] {
        [
            ("name", Some(Value::Text(self.name.clone()))),
            (CALLBACK, self.callback.as_ref().map(|url| Value::Text(url.to_string()))),
            (TOKEN_FILE, self.token_file.clone().map(Value::Text)),
        ]
    }
}
