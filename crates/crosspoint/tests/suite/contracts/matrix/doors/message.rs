//! A caller of the message contract. It does not wait at first, and asks how its work is by sending it again.

use serde_json::{Value, json};

use super::Order;
use crate::support::message_caller;

/// The request of an order. Members of the order are members of the envelope.
pub(super) fn document(order: &Order) -> String {
    let id: String = serde_json::from_str(&order.id).expect("the id is a string");
    let mut request = message_caller::request(&id, &order.work, &order.input);
    order.members.iter().for_each(|(name, value)| request[*name] = value.clone());
    // The id as the order spells it.
    request["request_id"] = json!("@id");
    request.to_string().replace("\"@id\"", &order.id)
}

/// The message that cancels the work of a request.
pub(super) fn cancel(request: &str) -> String {
    message_caller::cancel(&serde_json::from_str(request).expect("JSON")).to_string()
}

/// The question of an answer that says that the work waits for a person (ALL-5).
pub(super) fn question(said: &Value) -> Option<Value> {
    let question = &said["x_custom_fields"]["x_crosspoint"]["question"];
    (said["payload"]["status"] == "paused" && question.is_object()).then(|| question.clone())
}
