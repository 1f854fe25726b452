//! The address of a service: the part before the paths that its contract has.

use reqwest::Url;

/// Hosts that mean this machine, on one of its addresses or on all.
const HERE: [&str; 5] = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]"];

/// Reads an address to which paths can be added, or returns what is wrong with it. Users paste addresses of endpoints:
/// `endpoints` are their ends.
pub(crate) fn base<'e>(text: &str, mut endpoints: impl Iterator<Item = &'e str>) -> Result<Url, &'static str> {
    let url = whole(text)?;
    if endpoints.any(|end| url.path().trim_end_matches('/').ends_with(end)) {
        return Err("it is that of an endpoint; write the part before it, to which the contract's paths are added");
    }
    Ok(below(url))
}

/// Reads an address that is used as it is, or returns what is wrong with it.
pub(super) fn whole(text: &str) -> Result<Url, &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    let url = Url::parse(text)
        .map_err(|_| if text.contains("://") { "this is not an address" } else { "http:// is missing before it" })?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        Err("it is neither http nor https")
    } else if !url.username().is_empty() || url.password().is_some() {
        // A password in an address ends up in logs.
        Err("it holds a name or a password; give a token by token_file")
    } else if url.query().is_some() || url.fragment().is_some() {
        Err("it has a query or a fragment")
    } else {
        Ok(url)
    }
}

/// Returns the address that the user may have meant: with a scheme, and without the path of an endpoint. `None` if
/// it cannot be told.
pub(super) fn mended(text: &str, endpoints: &[&str]) -> Option<String> {
    let scheme = if text.contains("://") { "" } else { "http://" };
    let whole = format!("{scheme}{text}");
    let bare = whole.trim_end_matches('/');
    let bare = endpoints.iter().find_map(|end| bare.strip_suffix(end)).unwrap_or(bare);
    // A word alone is more likely a name than a host.
    let is_word = !text.contains([':', '.']);
    (!is_word && base(bare, endpoints.iter().copied()).is_ok()).then(|| bare.to_owned())
}

/// Returns an address to which paths can be added.
fn below(mut url: Url) -> Url {
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    url
}

/// Whether a server that listens on `listen` is what is at this address.
pub(super) fn is_here(url: &Url, listen: &str) -> bool {
    let Some((host, port)) = listen.rsplit_once(':') else { return false };
    let Some(port) = port.parse::<u16>().ok().filter(|port| *port > 0) else { return false };
    let there = url.host_str().unwrap_or_default();
    let same = there == host || (HERE.contains(&there) && HERE.contains(&host));
    same && url.port_or_known_default() == Some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_in_addresses_are_mended_and_secrets_are_not_repeated() {
        let mended = |text| mended(text, &["/api/agent/message"]);
        for (typed, meant) in [
            ("127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("localhost:8000/", "http://localhost:8000"),
            ("http://a.example/base/api/agent/message/", "http://a.example/base"),
            ("a.example/api/agent/message", "http://a.example"),
        ] {
            assert_eq!(mended(typed).as_deref(), Some(meant), "{typed}");
        }
        for unclear in ["", "papers", "ftp://a.example", "http://me:s3cret@a.example", "http://a.example/?key=1"] {
            assert_eq!(mended(unclear), None, "{unclear}");
        }
    }
}
