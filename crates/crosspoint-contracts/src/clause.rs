//! Every rule of every contract, as data.
//!
//! A clause is one normative sentence with an id that never changes: validator, checker, error texts and docs all cite
//! it. The rules of a contract are in its own `clause` module, those that all contracts share are in [`all`].
//!
//! Ids below 100 are this project's rulings on what the contracts' documents leave open (`MSG-3`, and `MSG-3.2` for the
//! second sentence of that ruling); from 101 up they are the documents' own sentences. Sentences that say the same
//! share one clause, under the ruling's id.

pub mod all;

use crate::Contract;

/// How serious it is to break a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The documents say "should", "preferably" or "recommended", or the form is a looseness that we read.
    Warning,
    /// The documents say "must" or state the rule plainly.
    Error,
}

impl Level {
    /// Returns `error` or `warning`, as printed.
    pub fn name(self) -> &'static str {
        match self {
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// What can break a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One document by itself.
    Document,
    /// A conversation of several documents.
    Exchange,
    /// How a program behaves.
    Operation,
}

impl Scope {
    /// Returns `document`, `exchange` or `operation`, as printed.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Document => "document",
            Scope::Exchange => "exchange",
            Scope::Operation => "operation",
        }
    }
}

/// One rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Clause {
    /// The id, for example `BRIDGE-2`.
    pub id: &'static str,
    /// Whether breaking it is an error or a warning.
    pub level: Level,
    /// What can break it.
    pub scope: Scope,
    /// Where the rule is written: the document and its section, or `rulings`.
    pub document: &'static str,
    /// The rule in one line.
    pub text: &'static str,
    /// How to mend what breaks it.
    pub hint: &'static str,
    /// Ids of clauses that follow from this one: a document that keeps this one keeps them too.
    pub implies: &'static [&'static str],
    /// The tests that show the rule, for clauses that no single document can break.
    pub shown_by: &'static [&'static str],
}

/// Defines clauses as constants, so that citing a clause that does not exist fails to compile, and the table that lists
/// them in order.
macro_rules! clauses {
    ($($name:ident = $id:literal $level:ident $scope:ident, $document:literal:
        $text:literal
        => $hint:literal
        $(, implies [$($implied:literal),+])?
        $(, shown_by [$($test:literal),+])?
    ;)+) => {
        $(
            #[doc = $text]
            pub static $name: $crate::clause::Clause = $crate::clause::Clause {
                id: $id,
                level: $crate::clause::Level::$level,
                scope: $crate::clause::Scope::$scope,
                document: $document,
                text: $text,
                hint: $hint,
                implies: &[$($($implied),+)?],
                shown_by: &[$($($test),+)?],
            };
        )+
        pub(crate) static TABLE: &[&$crate::clause::Clause] = &[$(&$name),+];
    };
}
pub(crate) use clauses;

/// Returns the rules that hold for every contract, in order.
pub fn shared() -> &'static [&'static Clause] {
    all::TABLE
}

/// Returns the rules of one contract, in order.
pub fn of(contract: Contract) -> &'static [&'static Clause] {
    contract.entry().clauses
}

/// Returns all rules, the shared ones first.
pub fn every() -> impl Iterator<Item = &'static Clause> {
    let contracts = Contract::ALL.iter().flat_map(|&contract| of(contract));
    shared().iter().chain(contracts).copied()
}
