//! Agents of the message contract.

#[expect(dead_code, reason = "no conversation with an agent uses it yet")]
mod chunks;
