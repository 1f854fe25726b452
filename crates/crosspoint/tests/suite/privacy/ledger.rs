//! Canaries: texts and numbers that stand nowhere else, and the list of where each was planted.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::{Kind, Options, read};
use serde_json::{Value, json};

use super::kept;

/// How every text begins. Only this is looked for, so that a text that was cut off is found too.
const MARK: &str = "cq7z";

/// How many digits of a text follow its mark.
const DIGITS: usize = 6;

/// Every number is this, ten times its place on the list, and 1.
const NUMBER_FIRST: u64 = 7_300_000_001;

/// All that was planted.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Kind and pointer of each canary.
    planted: RefCell<Vec<(String, String)>>,
    /// Texts that a server made, which must stay as secret: tokens.
    secrets: RefCell<Vec<(String, String)>>,
    /// Places on the list of those that were seen where they belong.
    arrived: RefCell<BTreeSet<usize>>,
}

impl Ledger {
    /// A text for one place.
    pub(crate) fn text(&self, kind: &str, pointer: &str) -> String {
        format!("{MARK}{:0DIGITS$}k", self.next(kind, pointer))
    }

    /// A number for one place.
    fn number(&self, kind: &str, pointer: &str) -> u64 {
        NUMBER_FIRST + 10 * self.next(kind, pointer) as u64
    }

    fn next(&self, kind: &str, pointer: &str) -> usize {
        let mut planted = self.planted.borrow_mut();
        planted.push((kind.to_owned(), pointer.to_owned()));
        planted.len() - 1
    }

    /// A text that a server made, and that must not be found either.
    pub(crate) fn secret(&self, what: &str, text: &str) {
        self.secrets.borrow_mut().push((what.to_owned(), text.to_owned()));
    }

    pub(crate) fn count(&self) -> usize {
        self.planted.borrow().len()
    }

    /// Notes which canaries have come to a reader that they are meant for.
    pub(crate) fn arrives(&self, text: &[u8]) {
        self.arrived.borrow_mut().extend(numbers_in(&String::from_utf8_lossy(text)));
    }

    /// How many canaries of each kind were planted, and how many of them have arrived.
    pub(crate) fn arrived(&self) -> BTreeMap<String, (usize, usize)> {
        let mut counts = BTreeMap::new();
        let arrived = self.arrived.borrow();
        for (number, (kind, _)) in self.planted.borrow().iter().enumerate() {
            let (planted, there): &mut (usize, usize) = counts.entry(kind.clone()).or_default();
            *planted += 1;
            *there += usize::from(arrived.contains(&number));
        }
        counts
    }

    /// What of the list is in a text: kind and pointer of each, and the line.
    pub(crate) fn found(&self, place: &str, text: &str) -> Vec<Found> {
        text.lines().flat_map(|line| self.found_in_line(place, line)).collect()
    }

    fn found_in_line(&self, place: &str, line: &str) -> Vec<Found> {
        let planted = self.planted.borrow();
        let unknown = ("a text that was cut off".to_owned(), String::new());
        let canaries = numbers_in(line).map(|number| planted.get(number).unwrap_or(&unknown).clone());
        let secrets = self.secrets.borrow();
        let secrets = secrets.iter().filter(|(_, text)| line.contains(text.as_str()));
        let secrets = secrets.map(|(what, _)| (what.clone(), "the token itself".to_owned()));
        canaries
            .chain(secrets)
            .map(|(kind, pointer)| Found { kind, pointer, place: place.to_owned(), line: line.to_owned() })
            .collect()
    }

    /// Tokens that are in a text, by what they are for.
    pub(crate) fn tokens_in(&self, text: &str) -> Vec<String> {
        let (secrets, planted) = (self.secrets.borrow(), self.planted.borrow());
        let made = secrets.iter().filter(|(_, secret)| text.contains(secret.as_str())).map(|(what, _)| what.clone());
        let known = numbers_in(text).filter_map(|number| planted.get(number));
        let known = known.filter(|(kind, _)| kind == TOKEN).map(|(kind, name)| format!("{kind} {name}"));
        made.chain(known).collect()
    }

    /// The document with a canary in each place where its contract finds neither more nor less wrong than before.
    pub(crate) fn plant(&self, kind: &str, document: &Value) -> Value {
        let judged = judgement(kind, document);
        let mut planted = document.clone();
        let mut attempt = |change: &dyn Fn(&mut Value)| {
            let (before, mut tried) = (self.count(), planted.clone());
            change(&mut tried);
            if judgement(kind, &tried) == judged {
                planted = tried;
            } else {
                self.planted.borrow_mut().truncate(before);
            }
        };
        for pointer in leaves(document) {
            if kept::is_kept(kind, &pointer) || kept::decides_how_it_runs(&pointer) {
                continue;
            }
            attempt(&|tried| {
                let place = tried.pointer_mut(&pointer).expect("it is there");
                match place {
                    Value::String(_) => *place = json!(self.text(kind, &pointer)),
                    Value::Number(_) => *place = json!(self.number(kind, &pointer)),
                    Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
                }
            });
        }
        for pointer in objects(document) {
            attempt(&|tried| {
                let name = self.text(kind, &format!("{pointer} (a name)"));
                tried.pointer_mut(&pointer).expect("it is there")[name] = json!(self.text(kind, &pointer));
            });
        }
        planted
    }

    /// Documents each of which has one place spoiled: by a text, by a number or by an object.
    pub(crate) fn spoiled(&self, kind: &str, document: &Value) -> Vec<Value> {
        let mut all = Vec::new();
        for pointer in leaves(document) {
            let inner = format!("{pointer}/...");
            // An object is no id and no name, so it is content in every place.
            let mut values = vec![json!({ self.text(kind, &inner): self.text(kind, &inner) })];
            if !kept::is_kept(kind, &pointer) {
                values.push(json!(self.text(kind, &pointer)));
                values.push(json!(self.number(kind, &pointer)));
            }
            for value in values {
                let mut spoiled = document.clone();
                *spoiled.pointer_mut(&pointer).expect("it is there") = value;
                all.push(spoiled);
            }
        }
        all
    }

    /// A text that need not be JSON, with a canary at the beginning of each quoted value that is no name or id.
    pub(crate) fn plant_text(&self, kind: &str, text: &str) -> String {
        let mut planted = String::new();
        for part in text.split_inclusive("\": \"") {
            planted += part;
            let name = part.strip_suffix("\": \"").and_then(|before| before.rsplit('"').next());
            if let Some(name) = name.filter(|name| !kept::is_kept_somewhere(name)) {
                planted += &self.text(kind, &format!("{name} in a text"));
            }
        }
        planted
    }
}

/// The kind of those that are tokens.
pub(crate) const TOKEN: &str = "the token of an agent";

/// A canary where it does not belong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) kind: String,
    pub(crate) pointer: String,
    pub(crate) place: String,
    pub(crate) line: String,
}

/// The clauses that a document breaks. A document of no contract is never wrong.
fn judgement(kind: &str, document: &Value) -> Vec<&'static str> {
    let Some(kind) = Kind::from_name(kind) else { return Vec::new() };
    let text = if kind == Kind::RunStream { super::corpus::stream(document) } else { document.to_string() };
    let findings = read(text.as_bytes(), &Options { kind: Some(kind), ..Options::default() }).report.findings;
    findings.iter().filter(|one| one.level == Level::Error).map(|one| one.clause.id).collect()
}

/// The pointers of all values that hold no others.
pub(super) fn leaves(document: &Value) -> Vec<String> {
    pointers(document).into_iter().filter(|(_, value)| !value.is_object() && !value.is_array()).map(|it| it.0).collect()
}

fn objects(document: &Value) -> Vec<String> {
    pointers(document).into_iter().filter(|(_, value)| value.is_object()).map(|(pointer, _)| pointer).collect()
}

fn pointers(document: &Value) -> Vec<(String, &Value)> {
    let inner: Vec<(String, &Value)> = match document {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let mut all = vec![(String::new(), document)];
    for (name, value) in inner {
        let name = name.replace('~', "~0").replace('/', "~1");
        all.extend(pointers(value).into_iter().map(|(rest, value)| (format!("/{name}{rest}"), value)));
    }
    all
}

/// The places on the list of all canaries in a text; one past all lists for a text that was cut off.
fn numbers_in(text: &str) -> impl Iterator<Item = usize> + '_ {
    let texts = text.match_indices(MARK).map(|(at, _)| {
        let digits = text.get(at + MARK.len()..at + MARK.len() + DIGITS);
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(usize::MAX)
    });
    // A number stands alone: digits within an id are none.
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    let numbers = words.filter_map(|word| {
        let number: u64 = word.parse().ok()?;
        let times = number.checked_sub(NUMBER_FIRST).filter(|rest| rest % 10 == 0)?;
        usize::try_from(times / 10).ok().filter(|number| *number < 1_000_000)
    });
    texts.chain(numbers)
}

#[test]
fn a_canary_is_found_whole_cut_off_and_as_a_number() {
    let ledger = Ledger::default();
    let document = json!({"work": "echo", "input": {"text": "hello", "number": 7, "is": true}, "request_id": "r"});
    let planted = ledger.plant("native.job", &document);
    assert_eq!((&planted["work"], &planted["request_id"]), (&json!("echo"), &json!("r")), "names and ids are kept");
    let (text, number) = (planted["input"]["text"].as_str().expect("a text"), &planted["input"]["number"]);
    let pointers =
        |line: &str| -> Vec<String> { ledger.found("somewhere", line).into_iter().map(|one| one.pointer).collect() };
    assert_eq!(pointers(&format!("x={text}&y")), ["/input/text"]);
    assert_eq!(pointers(&format!("{{\"n\":{number}}}")), ["/input/number"]);
    assert_eq!(pointers(&text[..7]), [""], "{text}");
    assert!(pointers(&format!("echo r 1{number} 73 7300000002")).is_empty());
    ledger.secret("a token", "s3cret");
    assert_eq!(ledger.found("somewhere", "bearer s3cret.").len(), 1);
}
