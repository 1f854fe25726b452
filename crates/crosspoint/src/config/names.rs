//! Lists of names, of hosts, agent types or directories: a list in the file, separated by commas in the environment.

use crosspoint_http::host::Host;
use toml::Spanned;
use toml::de::DeValue;

use super::kind::{self, Wrong, described};

/// Most names: more than any server has. The host of each request is compared with all of them.
const NAMES_MAX: usize = 100;

/// What the names of a list belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Hosts.
    Hosts,
    /// Agent types.
    Types,
    /// Directories.
    Paths,
}

impl Of {
    pub(super) fn hint(self) -> &'static str {
        match self {
            Of::Hosts => "write names as [\"jobs.example.org\"]: no scheme, port, path or wildcard",
            Of::Types => "write names as [\"billing\"]: short, without spaces",
            Of::Paths => "write directories as [\"repos\", \"/srv/specs\"]: relative ones are meant from this file",
        }
    }
}

/// Reads names from a file.
pub(super) fn of_items(of: Of, items: &[Spanned<DeValue<'_>>]) -> Result<Vec<String>, Wrong> {
    let text = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
        DeValue::String(text) => Ok(text.as_ref().to_owned()),
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => {
            let what = format!("a name is a text, and this has {} in it", described(item.get_ref()));
            Err(Wrong::new(what, of.hint()))
        }
    };
    checked(of, items.iter().map(text).collect::<Result<_, Wrong>>()?)
}

/// Reads names from the environment.
pub(super) fn of_text(of: Of, text: &str) -> Result<Vec<String>, Wrong> {
    checked(of, text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn checked(of: Of, names: Vec<String>) -> Result<Vec<String>, Wrong> {
    if names.len() > NAMES_MAX {
        return Err(Wrong::new(format!("there are more than {NAMES_MAX} names"), of.hint()));
    }
    let (is_good, what): (fn(&str) -> bool, &str) = match of {
        Of::Hosts => (|name| Host::read(name).is_some(), "the name of a host"),
        Of::Types => (|name| kind::name(name).is_ok(), "the name of a type"),
        Of::Paths => (|path| !path.is_empty() && !path.contains('\0'), "the path of a directory"),
    };
    match names.iter().find(|name| !is_good(name)) {
        Some(name) => Err(Wrong::new(format!("\"{name}\" is not {what}"), of.hint())),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hosts_and_nothing_more() {
        assert_eq!(
            of_text(Of::Hosts, " a.example, 10.0.0.1 ,,B ").expect("they are names"),
            ["a.example", "10.0.0.1", "B"]
        );
        assert_eq!(of_text(Of::Hosts, "").expect("there are none"), Vec::<String>::new());
        for wrong in ["http://a.example", "a.example:80", "*.example", "a/b", "\u{e4}.example", "a b"] {
            assert!(of_text(Of::Hosts, wrong).is_err_and(|problem| problem.what.contains(wrong)), "{wrong}");
        }
        assert!(of_text(Of::Hosts, &vec!["a"; NAMES_MAX + 1].join(",")).is_err());
        assert_eq!(of_text(Of::Types, "billing,x_ray").expect("they are names"), ["billing", "x_ray"]);
        assert!(of_text(Of::Types, "two words").is_err());
    }
}
