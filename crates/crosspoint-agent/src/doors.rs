//! The doors of an agent, one for each contract in which it can be called.

use std::collections::BTreeSet;

use axum::Router;
use crosspoint_contracts::Contract;
use crosspoint_http::door::{message, run, task, workflow};

use crate::message::{self as messages, Messages};

/// The door of one contract.
pub(crate) struct Door {
    pub(crate) contract: Contract,
    /// The path that it is under.
    pub(crate) place: &'static str,
    /// How work is asked for there, for people.
    example: &'static str,
    routes: fn(&Messages) -> Router,
}

/// All doors.
pub(crate) static DOORS: [Door; 4] = [
    Door {
        contract: run::CONTRACT,
        place: run::PLACE,
        example: "POST /agents/run/sync",
        routes: |messages| run::routes().with_state(messages.doors.clone()),
    },
    Door {
        contract: task::CONTRACT,
        place: task::PLACE,
        example: "POST /tasks",
        routes: |messages| task::routes().with_state(messages.doors.clone()),
    },
    Door {
        contract: message::CONTRACT,
        place: message::PLACE,
        example: "POST /api/agent/message",
        routes: |messages| messages::routes().with_state(messages.clone()),
    },
    Door {
        contract: workflow::CONTRACT,
        place: workflow::PLACE,
        example: "POST /agents/NAME/envelope",
        routes: |messages| workflow::routes().with_state(messages.doors.clone()),
    },
];

/// The doors of these contracts.
pub(crate) fn doors(contracts: &BTreeSet<Contract>) -> impl Iterator<Item = &'static Door> + '_ {
    DOORS.iter().filter(|door| contracts.contains(&door.contract))
}

/// The endpoints of all doors of these contracts.
pub(crate) fn routes(contracts: &BTreeSet<Contract>, messages: &Messages) -> Router {
    doors(contracts).fold(Router::new(), |router, door| router.merge((door.routes)(messages)))
}

/// How work is asked for in these contracts.
pub(crate) fn hint(contracts: &BTreeSet<Contract>) -> String {
    let examples: Vec<&str> = doors(contracts).map(|door| door.example).collect();
    format!("ask for work with {}", examples.join(", "))
}
