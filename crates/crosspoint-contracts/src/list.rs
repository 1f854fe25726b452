//! The one list of contracts, and what a contract on it provides.
//!
//! The list is in `lib.rs`. From there shared code finds all that it needs to know of a contract in the contract's own
//! [`Entry`]. So no shared file names a contract, and a new one comes with its own files and its lines on the list:
//! `docs/adding-a-contract.md`.

use crate::clause::Clause;
use crate::exchange::Exchange;
use crate::kind::{self, Kind};
use crate::map::Map;

/// What a contract provides, in `<contract>/entry.rs`.
pub(crate) struct Entry {
    /// Its kinds of documents.
    pub(crate) kinds: &'static [kind::Entry],
    /// Its rules, in order.
    pub(crate) clauses: &'static [&'static Clause],
    /// How its documents map to the job.
    pub(crate) map: &'static Map,
    /// What an exchange in it means.
    pub(crate) exchange: &'static Exchange,
}

impl Entry {
    /// Returns the entry of one of its kinds. Evaluated at compile time, so that a kind on the list without an entry
    /// does not compile.
    pub(crate) const fn kind(&self, kind: Kind) -> &'static kind::Entry {
        let mut at = 0;
        while at < self.kinds.len() {
            if self.kinds[at].kind as usize == kind as usize {
                return &self.kinds[at];
            }
            at += 1;
        }
        panic!("the contract has no entry for a kind on the list")
    }
}

/// Makes [`Contract`](crate::Contract), [`Kind`] and [`Document`](crate::Document) from the list.
///
/// A contract is listed as `Variant = module { kinds }`, a kind as `Variant = name: Type`. The public names follow from
/// that: `module` for the contract, `module.name` for the kind. A `cfg` below the comment says when an entry exists.
macro_rules! contracts {
    ($(
        $(#[doc = $contract_doc:literal])+ $(#[cfg($contract_if:meta)])? $Contract:ident = $module:ident {
            $($(#[doc = $kind_doc:literal])+ $(#[cfg($kind_if:meta)])? $Kind:ident = $name:ident: $Type:ty;)+
        }
    )+) => {
        /// One of the ways of talking to agents.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Contract {
            $($(#[doc = $contract_doc])+ $(#[cfg($contract_if)])? $Contract,)+
        }

        impl Contract {
            /// All contracts.
            pub const ALL: [Contract; [$($(#[cfg($contract_if)])? Contract::$Contract),+].len()] =
                [$($(#[cfg($contract_if)])? Contract::$Contract),+];

            /// Returns the name, for example `bridge`.
            pub fn name(self) -> &'static str {
                match self {
                    $($(#[cfg($contract_if)])? Contract::$Contract => stringify!($module),)+
                }
            }

            /// Returns what the contract provides.
            pub(crate) const fn entry(self) -> &'static $crate::list::Entry {
                match self {
                    $($(#[cfg($contract_if)])? Contract::$Contract => &$crate::$module::entry::CONTRACT,)+
                }
            }
        }

        /// What a document is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($($(#[doc = $kind_doc])+ $(#[cfg($kind_if)])? $Kind,)+)+
        }

        impl Kind {
            /// All kinds, grouped by contract.
            pub const ALL: [Kind; [$($($(#[cfg($kind_if)])? Kind::$Kind),+),+].len()] =
                [$($($(#[cfg($kind_if)])? Kind::$Kind),+),+];

            /// Returns the name, for example `bridge.response`.
            pub fn name(self) -> &'static str {
                match self {
                    $($($(#[cfg($kind_if)])? Kind::$Kind => concat!(stringify!($module), ".", stringify!($name)),)+)+
                }
            }

            /// Returns the contract that the kind belongs to.
            pub fn contract(self) -> Contract {
                match self {
                    $($($(#[cfg($kind_if)])? Kind::$Kind => Contract::$Contract,)+)+
                }
            }

            /// Returns what the contract says of this kind.
            pub(crate) const fn entry(self) -> &'static $crate::kind::Entry {
                match self {
                    $($($(#[cfg($kind_if)])? Kind::$Kind => const { $crate::$module::entry::CONTRACT.kind(Kind::$Kind) },)+)+
                }
            }
        }

        /// A document that was read without errors.
        #[derive(Debug)]
        pub enum Document<'s> {
            $($(
                #[doc = concat!("`", stringify!($module), ".", stringify!($name), "`")]
                $(#[cfg($kind_if)])?
                $Kind($Type),
            )+)+
        }
    };
}
pub(crate) use contracts;
