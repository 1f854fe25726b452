//! A document in another contract: what `crosspoint translate` and `POST /api/v1/translate` have in common.

use crosspoint_contracts::AGENT_TYPES;
use crosspoint_contracts::json::Levels;
use crosspoint_contracts::map::{Carrying, WriteContext};
use crosspoint_contracts::translate::{Homeless, Refused, Translation, Written};
use crosspoint_contracts::{Contract, Extent, Finding, Kind, Options};
use uuid::Uuid;

/// The clause that limits how deep JSON may nest.
const TOO_DEEP: &str = "ALL-107";

/// Default type of the agent in messages.
pub(crate) const AGENT_DEFAULT: &str = "code";

/// The request for a translation.
pub(crate) struct TranslateOptions<'a> {
    pub(crate) to: Contract,
    /// The document's kind, if it need not be detected.
    pub(crate) kind: Option<Kind>,
    /// The type of the agent in messages, if the document names none.
    pub(crate) agent: &'a str,
    /// Agent types in addition to those of the contract.
    pub(crate) agent_types: &'a [&'a str],
    pub(crate) carrying: Carrying,
}

impl TranslateOptions<'_> {
    pub(crate) fn options(&self) -> Options<'_> {
        Options {
            kind: self.kind,
            agent_types: self.agent_types,
            // A document that has not ended is an event, and a single event is worth translating.
            extent: Extent::Part,
            ..Options::default()
        }
    }

    /// Whether the given agent type is known.
    pub(crate) fn knows_its_agent(&self) -> bool {
        AGENT_TYPES.iter().chain(self.agent_types).any(|known| *known == self.agent)
    }

    pub(crate) fn translate(&self, bytes: &[u8]) -> Translation {
        self.translate_to(bytes, self.to)
    }

    fn translate_to(&self, bytes: &[u8], to: Contract) -> Translation {
        // The contracts' own examples are no finer than seconds.
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let id = Uuid::new_v4();
        let context = WriteContext {
            now: &now,
            id,
            message_id: Uuid::new_v5(&id, b"message"),
            agent_types: self.agent_types,
            agent_type: self.agent,
            carrying: self.carrying,
            known_as: None,
            completing: false,
            levels: Levels::Received,
            facts: &[],
        };
        crosspoint_contracts::translate(bytes, &self.options(), to, &context)
    }

    /// Names the contracts in which the document has a counterpart, for a document that has none in the requested
    /// contract.
    pub(crate) fn goes_to(&self, bytes: &[u8]) -> String {
        let has_one = |to: &Contract| self.translate_to(bytes, *to).written.iter().any(Result::is_ok);
        let others: Vec<&str> = Contract::ALL.into_iter().filter(has_one).map(Contract::name).collect();
        match others.split_last() {
            None => "no contract has one".to_owned(),
            Some((last, [])) => format!("it goes to {last}"),
            Some((last, others)) => format!("it goes to {} and {last}", others.join(", ")),
        }
    }
}

/// The result of a translation.
pub(crate) struct Translated {
    pub(crate) documents: Vec<Written>,
    /// Number of documents without a counterpart, and the reason for the last of them.
    pub(crate) without: usize,
    pub(crate) refused: Option<Refused>,
}

impl Translated {
    /// Collects the results. One document that breaks its contract discards all: half a stream is worse than none.
    pub(crate) fn of(results: Vec<Result<Written, Refused>>) -> Result<Translated, Refused> {
        let mut translated = Translated { documents: Vec::with_capacity(results.len()), without: 0, refused: None };
        for result in results {
            match result {
                Ok(written) => translated.documents.push(written),
                Err(none @ Refused::NoCounterpart { .. }) => {
                    translated.without += 1;
                    translated.refused = Some(none);
                }
                Err(broken @ Refused::Broken { .. }) => return Err(broken),
            }
        }
        Ok(translated)
    }

    /// Whether the translation loses anything.
    pub(crate) fn loses(&self, carrying: Carrying) -> bool {
        self.without > 0 || (carrying == Carrying::Off && !self.homeless().is_empty())
    }

    /// The places that were filled in, of all documents, each once.
    pub(crate) fn filled(&self) -> Vec<&str> {
        let mut seen = std::collections::BTreeSet::new();
        self.documents.iter().flat_map(Written::filled).filter(|place| seen.insert(*place)).collect()
    }

    /// The names of the facts that have no field, of all documents, each once.
    pub(crate) fn homeless(&self) -> Vec<&str> {
        let mut seen = std::collections::BTreeSet::new();
        let all = self.documents.iter().flat_map(|written| &written.homeless).map(Homeless::name);
        all.filter(|name| seen.insert(*name)).collect()
    }
}

/// Says what to do about a document that would break its contract.
pub(crate) fn mend(refused: &Refused) -> &'static str {
    if let Refused::Broken { report, .. } = refused {
        let too_deep = |finding: &Finding| finding.clause.id == TOO_DEEP;
        if !report.findings.is_empty() && !report.findings.iter().any(too_deep) {
            return "something carried does not fit: mend or remove `x_crosspoint` in the document";
        }
    }
    "it nests too deep; flatten what is in it"
}
