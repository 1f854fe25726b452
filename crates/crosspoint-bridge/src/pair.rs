//! The names of the files: one pair without a phase, and one pair for each phase (BRIDGE-126).

use std::fmt;

/// A request file and the response file that answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair(Option<u8>);

impl Pair {
    /// `.agent-request.json` and `.agent-response.json`.
    pub const PLAIN: Pair = Pair(None);

    /// Returns the plain pair, then the pairs of the phases in order.
    pub fn all() -> impl Iterator<Item = Pair> {
        std::iter::once(Pair::PLAIN).chain((1..=9).map(|phase| Pair(Some(phase))))
    }

    /// Returns the pair of a phase, or `None` unless the phase is 1 to 9.
    pub fn of_phase(phase: u8) -> Option<Pair> {
        (1..=9).contains(&phase).then_some(Pair(Some(phase)))
    }

    /// Returns the phase in the names, or `None` for the plain pair.
    pub fn phase(self) -> Option<u8> {
        self.0
    }

    /// Returns the name of the request file, which the requester writes.
    pub fn request(self) -> String {
        self.named("request")
    }

    /// Returns the name of the response file, which the driver writes.
    pub fn response(self) -> String {
        self.named("response")
    }

    fn named(self, what: &str) -> String {
        match self.0 {
            None => format!(".agent-{what}.json"),
            Some(phase) => format!(".agent-{what}-phase{phase}.json"),
        }
    }
}

/// Shows the name of the request file.
impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.request())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_pair_and_one_for_each_phase() {
        let names: Vec<String> = Pair::all().map(Pair::request).collect();
        assert_eq!(names.len(), 10);
        assert_eq!((names[0].as_str(), names[9].as_str()), (".agent-request.json", ".agent-request-phase9.json"));
        assert_eq!(Pair::of_phase(3).map(Pair::response).as_deref(), Some(".agent-response-phase3.json"));
        assert_eq!((Pair::of_phase(0), Pair::of_phase(10)), (None, None));
    }
}
