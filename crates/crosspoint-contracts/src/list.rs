//! The one list of contracts, and what a contract on it provides.
//!
//! The list stands in `lib.rs`. All that shared code wants to know of a contract it finds from there in the contract's own
//! [`Entry`], so no shared file names a contract, and a new one comes in with files of its own and its lines on the
//! list: `docs/adding-a-contract.md`.

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
    /// What talking in it means.
    pub(crate) exchange: &'static Exchange,
}

impl Entry {
    /// The entry of one of its kinds. Asked while compiling, so that a kind on the list without an entry is found there.
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

/// Makes [`Contract`](crate::Contract), [`Kind`] and [`Document`](crate::Document) of the list.
///
/// A contract stands there as `Variant = module { kinds }`, a kind as `Variant = name: Type`. Names that are seen outside
/// follow: `module` for the contract, `module.name` for the kind.
macro_rules! contracts {
    ($(
        $(#[$contract_doc:meta])* $Contract:ident = $module:ident {
            $($(#[$kind_doc:meta])* $Kind:ident = $name:ident: $Type:ty;)+
        }
    )+) => {
        /// One of the ways of talking to agents.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Contract {
            $($(#[$contract_doc])* $Contract,)+
        }

        impl Contract {
            /// All of them.
            pub const ALL: [Contract; [$(Contract::$Contract),+].len()] = [$(Contract::$Contract),+];

            /// For example `bridge`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Contract::$Contract => stringify!($module),)+
                }
            }

            /// What the contract provides.
            pub(crate) const fn entry(self) -> &'static $crate::list::Entry {
                match self {
                    $(Contract::$Contract => &$crate::$module::entry::CONTRACT,)+
                }
            }
        }

        /// What a document is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($($(#[$kind_doc])* $Kind,)+)+
        }

        impl Kind {
            /// All of them, by contract.
            pub const ALL: [Kind; [$($(Kind::$Kind),+),+].len()] = [$($(Kind::$Kind),+),+];

            /// For example `bridge.response`.
            pub fn name(self) -> &'static str {
                match self {
                    $($(Kind::$Kind => concat!(stringify!($module), ".", stringify!($name)),)+)+
                }
            }

            /// The contract it belongs to.
            pub fn contract(self) -> Contract {
                match self {
                    $($(Kind::$Kind)|+ => Contract::$Contract,)+
                }
            }

            /// What the contract says of this kind.
            pub(crate) const fn entry(self) -> &'static $crate::kind::Entry {
                match self {
                    $($(Kind::$Kind => const { $crate::$module::entry::CONTRACT.kind(Kind::$Kind) },)+)+
                }
            }
        }

        /// A document that was read without errors.
        #[derive(Debug)]
        pub enum Document<'s> {
            $($(
                #[doc = concat!("`", stringify!($module), ".", stringify!($name), "`")]
                $Kind($Type),
            )+)+
        }
    };
}
pub(crate) use contracts;
