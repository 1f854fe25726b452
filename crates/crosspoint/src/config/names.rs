//! Host names of a server: a list in the file, separated by commas in the environment.

use crosspoint_http::host::Host;
use toml::Spanned;
use toml::de::DeValue;

use super::kind::{Wrong, described};

/// Most names: more than any server has. The host of each request is compared with all of them.
const NAMES_MAX: usize = 100;

pub(super) const HINT: &str = "write names as [\"jobs.example.org\"]: no scheme, port, path or wildcard";

/// Reads names from a file.
pub(super) fn of_items(items: &[Spanned<DeValue<'_>>]) -> Result<Vec<String>, Wrong> {
    let text = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
        DeValue::String(text) => Ok(text.as_ref().to_owned()),
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => {
            Err(Wrong::new(format!("a name is a text, and this has {} in it", described(item.get_ref())), HINT))
        }
    };
    checked(items.iter().map(text).collect::<Result<_, Wrong>>()?)
}

/// Reads names from the environment.
pub(super) fn of_text(text: &str) -> Result<Vec<String>, Wrong> {
    checked(text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn checked(names: Vec<String>) -> Result<Vec<String>, Wrong> {
    if names.len() > NAMES_MAX {
        return Err(Wrong::new(format!("there are more than {NAMES_MAX} names"), HINT));
    }
    match names.iter().find(|name| Host::read(name).is_none()) {
        Some(name) => Err(Wrong::new(format!("\"{name}\" is not the name of a host"), HINT)),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hosts_and_nothing_more() {
        assert_eq!(of_text(" a.example, 10.0.0.1 ,,B ").expect("they are names"), ["a.example", "10.0.0.1", "B"]);
        assert_eq!(of_text("").expect("there are none"), Vec::<String>::new());
        for wrong in ["http://a.example", "a.example:80", "*.example", "a/b", "\u{e4}.example", "a b"] {
            assert!(of_text(wrong).is_err_and(|problem| problem.what.contains(wrong)), "{wrong}");
        }
        assert!(of_text(&vec!["a"; NAMES_MAX + 1].join(",")).is_err());
    }
}
