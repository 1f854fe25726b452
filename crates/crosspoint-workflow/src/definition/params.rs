//! The parameters of a stage: written as TOML, handed to the agent as JSON.

use crosspoint_contracts::json::{Tape, quoted};
use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};

use super::mistake::{self, Mistakes};
use super::table::{Table, Value, in_order};

/// The member that a person's answers are put in (WF-7).
const ANSWERS: &str = "answers";

/// How deep parameters may nest: room is left for the envelope around them, which every reader of JSON must read.
const LEVELS_MAX: usize = 100;

/// Reads the parameters of a stage as the text of a JSON object.
pub(super) fn read(stage: &Table<'_>, mistakes: &mut Mistakes) -> Option<String> {
    let Some(value) = stage.get("params") else { return Some("{}".to_owned()) };
    let Some(params) = value.get_ref().as_table() else {
        stage.wrong_type("params", value, "a table", "write params = { depth = 2 }", mistakes);
        return None;
    };
    if let Some((name, _)) = params.get_key_value(ANSWERS) {
        let what = format!("params of {} has the key \"answers\"", stage.shown);
        mistakes.error(name.span(), what, "the answers of people are put there: choose another name");
    }
    let mut json = String::new();
    object(&mut json, params, mistakes);
    shallow(&json, value, mistakes).then_some(json)
}

/// Whether readers of JSON can read something that nests like this.
fn shallow(json: &str, value: &Value<'_>, mistakes: &mut Mistakes) -> bool {
    let shallow = Tape::scan(json.as_bytes()).is_ok_and(|tape| tape.deepest() <= LEVELS_MAX);
    if !shallow {
        let hint = "move the parameters into a file, and name the file in [paths]";
        mistakes.error(value.span(), format!("params nests more than {LEVELS_MAX} levels"), hint);
    }
    shallow
}

fn write(json: &mut String, value: &Value<'_>, mistakes: &mut Mistakes) {
    match value.get_ref() {
        DeValue::String(text) => json.push_str(&quoted(text)),
        DeValue::Integer(number) => integer(json, number, value, mistakes),
        DeValue::Float(number) => float(json, number, value, mistakes),
        DeValue::Boolean(truth) => json.push_str(if *truth { "true" } else { "false" }),
        // JSON has no dates, so a date is its text.
        DeValue::Datetime(date) => json.push_str(&quoted(&date.to_string())),
        DeValue::Array(items) => array(json, items, mistakes),
        DeValue::Table(members) => object(json, members, mistakes),
    }
}

fn object(json: &mut String, members: &DeTable<'_>, mistakes: &mut Mistakes) {
    json.push('{');
    for (number, (name, value)) in in_order(members).into_iter().enumerate() {
        if number > 0 {
            json.push(',');
        }
        json.push_str(&quoted(name.get_ref()));
        json.push(':');
        write(json, value, mistakes);
    }
    json.push('}');
}

fn array(json: &mut String, items: &[Spanned<DeValue<'_>>], mistakes: &mut Mistakes) {
    json.push('[');
    for (number, item) in items.iter().enumerate() {
        if number > 0 {
            json.push(',');
        }
        write(json, item, mistakes);
    }
    json.push(']');
}

fn integer(json: &mut String, number: &DeInteger<'_>, value: &Value<'_>, mistakes: &mut Mistakes) {
    match i64::from_str_radix(number.as_str(), number.radix()) {
        Ok(number) => json.push_str(&number.to_string()),
        Err(_) => unwritable(json, number.as_str(), value, mistakes),
    }
}

/// Writes a fraction with the digits it has, because a number that was read and printed may have others.
fn float(json: &mut String, number: &DeFloat<'_>, value: &Value<'_>, mistakes: &mut Mistakes) {
    let digits = number.as_str().trim_start_matches('+');
    match digits.parse::<f64>() {
        Ok(float) if float.is_finite() => json.push_str(digits),
        Ok(_) | Err(_) => unwritable(json, digits, value, mistakes),
    }
}

fn unwritable(json: &mut String, number: &str, value: &Value<'_>, mistakes: &mut Mistakes) {
    json.push_str("null");
    let what = format!("JSON has no number {}", mistake::quoted(number));
    mistakes.error(value.span(), what, "write a smaller number, or a text in double quotes");
}
