//! A caller of the workflow contract. An envelope has no id: the caller's id is its feature and its `Idempotency-Key`.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::Order;
use super::calls::{encoded, fetch};

/// Where envelopes for this agent are posted to.
pub(super) fn path(agent: &str) -> String {
    format!("/agents/{agent}/envelope")
}

/// The envelope of an order.
pub(super) fn document(order: &Order) -> String {
    let (id, action, params) = (&order.id, json!(order.work), &order.input);
    let more: String = order.members.iter().map(|(name, value)| format!(", {}: {value}", json!(name))).collect();
    format!(
        "{{\"context\": {{\"feature_id\": {id}, \"workflow\": \"matrix\", \"iteration\": 1}}, \"paths\": {{}}, \
         \"task\": {{\"action\": {action}, \"params\": {params}}}{more}}}"
    )
}

/// The header by which a repeat is the same work.
pub(super) fn key(id: &str) -> (&'static str, String) {
    ("idempotency-key", encoded(id))
}

/// Whether a job came as the envelope with this id.
pub(super) fn is_of(address: SocketAddr, job: &Value, id: &str) -> bool {
    let path = format!("/api/v1/jobs/{}/document", job["id"].as_str().expect("an id"));
    fetch(address, &path).json()["context"]["feature_id"] == *id
}
