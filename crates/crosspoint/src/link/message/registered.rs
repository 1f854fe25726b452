//! What is stored of an agent that registered (MSG-11).

use crosspoint_contracts::content::Block;
use crosspoint_engine::core::Member;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use crate::config::address;

/// What is stored of an agent that registered, beside its works and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registered {
    /// The version that was picked (MSG-10).
    pub(crate) protocol_version: String,
    /// Where its messages are pushed to; `None` if it pulls them.
    pub(crate) base_url: Option<Url>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    protocol_version: String,
    base_url: Option<String>,
}

impl Registered {
    /// Reads what is stored of a member; `None` if it did not register.
    pub(crate) fn of(member: &Member) -> Option<Registered> {
        let stored: Stored = serde_json::from_slice(&member.registration.as_ref()?.0).ok()?;
        let base_url = stored.base_url.map(|url| address::base(&url, std::iter::empty())).transpose().ok()?;
        Some(Registered { protocol_version: stored.protocol_version, base_url })
    }

    /// Returns it as it is stored.
    pub(crate) fn block(&self) -> Block {
        let Registered { protocol_version, base_url } = self.clone();
        let stored = Stored { protocol_version, base_url: base_url.map(String::from) };
        Block(serde_json::to_vec(&stored).unwrap_or_default().into())
    }
}
