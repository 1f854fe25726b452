//! Refusals in the words of an agent that serves its callers itself. It is no server, and has none of its settings and
//! none of its API.

use super::{More, Refusal, Text};

/// What a part of a hint speaks of that an agent does not have.
const OF_A_SERVER: [&str; 3] = ["[limits]", "[store]", "/api/v1"];

impl Refusal {
    /// Returns the refusal as an agent says it.
    #[must_use]
    pub fn by_agent(mut self) -> Refusal {
        self.message = of_agent(&self.message);
        let has = |part: &&str| !OF_A_SERVER.iter().any(|word| part.contains(word));
        let parts: Vec<&str> = self.hint.split("; ").filter(has).collect();
        self.hint = of_agent(&parts.join("; "));
        if let Some(more) = self.more.take() {
            self.more = Some(Box::new(match *more {
                More::Others(others) => More::Others(others.into_iter().map(Refusal::by_agent).collect()),
                More::Report(report) => More::Report(report),
            }));
        }
        self
    }
}

fn of_agent(text: &str) -> Text {
    text.replace("the server", "the agent").replace("this server", "this agent").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::{Limit, TokenStatus};

    #[test]
    fn an_agent_speaks_of_itself_and_of_no_setting_that_it_does_not_have() {
        for refusal in [
            Refusal::stopping(),
            Refusal::ended(),
            Refusal::internal(),
            Refusal::no_such_job(),
            Refusal::too_large(1),
            Refusal::full(Limit::Jobs, 1),
            Refusal::too_many("connections", Limit::Connections, 1),
            Refusal::all(vec![Refusal::stopping(), Refusal::too_large(1)]),
        ]
        .into_iter()
        .chain(TokenStatus::ALL.map(|status| Refusal::unauthenticated("", status)))
        {
            let said = String::from_utf8_lossy(&refusal.by_agent().body()).into_owned();
            assert!(!said.contains("server") && !said.contains("[limits]") && !said.contains("[store]"), "{said}");
            assert!(!said.contains("/api/v1"), "{said}");
        }
        let stopping = Refusal::stopping().by_agent();
        assert_eq!(stopping.message, "the agent is stopping");
        assert_eq!(stopping.hint, "nothing was done; send it again once the agent is back");
    }
}
