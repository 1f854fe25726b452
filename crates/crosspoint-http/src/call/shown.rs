//! What operators are shown of the way to an agent.

use super::Http;

impl Http {
    /// Returns the address, for people: without what may be secret in it.
    pub fn address(&self) -> String {
        let mut shown = self.base.clone();
        // Neither fails for an address that has a host.
        let _ = (shown.set_username(""), shown.set_password(None));
        shown.set_query(None);
        shown.into()
    }

    /// Returns why the last attempt to connect failed; `None` if it did not.
    pub fn trouble(&self) -> Option<String> {
        self.connections.trouble()
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::super::AnswerRoom;
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        let base = Url::parse("http://me:secret@example.com/a?key=1").expect("an address");
        let http = Http::new("agent", &base, None, &AnswerRoom::new(0));
        assert_eq!((http.address().as_str(), http.trouble()), ("http://example.com/a", None));
    }
}
