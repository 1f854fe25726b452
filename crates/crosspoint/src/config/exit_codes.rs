//! Exit codes of a program: a list in the file, separated by commas elsewhere.

use toml::Spanned;
use toml::de::DeValue;

use super::kind::Wrong;

pub(super) const HINT: &str = "write the codes as [69, 111]; 0 is success, and 75 counts anyway";

/// Reads codes from a file.
pub(super) fn of_items(items: &[Spanned<DeValue<'_>>]) -> Result<Vec<u8>, Wrong> {
    let code = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
        DeValue::Integer(number) => code(u64::from_str_radix(number.as_str(), number.radix()).ok()),
        DeValue::String(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => code(None),
    };
    items.iter().map(code).collect()
}

/// Reads codes from a text.
pub(super) fn of_text(text: &str) -> Result<Vec<u8>, Wrong> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(|item| code(item.parse().ok())).collect()
}

fn code(number: Option<u64>) -> Result<u8, Wrong> {
    let code = number.and_then(|number| u8::try_from(number).ok()).filter(|code| *code > 0);
    code.ok_or_else(|| Wrong::new("an exit code of a program that failed is a whole number from 1 to 255", HINT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_that_a_failed_program_can_have() {
        assert_eq!(of_text(" 1, 255 ,,75"), Ok(vec![1, 255, 75]));
        for wrong in ["0", "256", "-1", "x", "1.5"] {
            assert!(of_text(wrong).is_err(), "{wrong}");
        }
    }
}
