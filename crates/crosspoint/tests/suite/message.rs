//! The message contract: its agents.

mod push;
