//! Refusals in the shape of a contract. The code and the message go into their fields. The rest (`repeat`, `clause`,
//! `hint`, the place and the findings) goes into the error's open `details`, which a contract without such a field
//! carries.

use crosspoint_contracts::content::Json;
use crosspoint_contracts::exchange::{Exchange, Known};
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::job::{Canonical, Home, State};
use crosspoint_contracts::json::quoted;
use crosspoint_contracts::map::{Carrying, WriteContext};
use crosspoint_contracts::{Contract, translate};
use uuid::Uuid;

use super::{Refusal, Situation};
use crate::incoming::names_in;

/// The type of the side that refuses, where it cannot be read whom the request was for.
const OURSELVES: &str = "orchestrator";

/// Writes the refusal as a document of this contract. `id` is an unused id, `now` the time.
pub fn document(refusal: &Refusal, contract: Contract, id: Uuid, now: &str) -> String {
    let exchange = contract.exchange();
    let mut canonical = Canonical::made(exchange.response, Some(State::Failed));
    let failure = failure(refusal, exchange);
    canonical.fail(failure);
    canonical.put(Home::Message, Json::string(&refusal.message));
    let echo = refusal.own.as_ref().map(|own| own.echo.clone()).unwrap_or_default();
    echo.put(&mut canonical, contract);
    let too_large = exchange.refusing.too_large.filter(|_| refusal.situation == Situation::TooLarge);
    if let Some(code) = refusal.own_code().or(too_large) {
        canonical.put(Home::Code, Json::string(code));
    }
    canonical.put(Home::Details, Json::new(refusal.details()));
    match refusal.request_id() {
        Some(request_id) => drop(canonical.put(Home::RequestId, Json::string(request_id))),
        // Requests of this contract have no id.
        None if exchange.id.is_empty() => {}
        None => {
            // RUN-5: an id that could not be read is generated, and the document says so.
            canonical.put(Home::RequestId, Json::string(&id.to_string()));
            if !refusal.own.as_ref().is_some_and(|own| own.has_no_id) {
                let warnings = Json::new("[\"request_id was generated: none could be read from the request\"]");
                canonical.place(contract, exchange.warnings, warnings);
            }
        }
    }
    let has_duration = translate::has_member(&canonical, contract, Home::Duration);
    for known in exchange.response_has {
        let value = match known {
            Known::Work => refusal.work().map(Json::string),
            // A contract that carries would otherwise note that the value was filled in.
            Known::ReportedAt if exchange.refusing.carries => Some(Json::string(now)),
            Known::Duration if exchange.refusing.carries && has_duration => Some(Json::new("0.0")),
            Known::ReportedAt | Known::Duration | Known::Seconds => None,
            Known::StartedAt | Known::Agent | Known::Retries => None,
        };
        if let Some(value) = value {
            canonical.put(known.home(), value);
        }
    }
    let types = echo.types();
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    let facts = refusal.facts(exchange, failure, now);
    let context = WriteContext {
        message_id: Uuid::new_v5(&id, b"message"),
        agent_types: &types,
        agent_type: OURSELVES,
        // The other contracts have fields for everything that is written here.
        carrying: if exchange.refusing.carries { Carrying::On } else { Carrying::Off },
        completing: true,
        facts: &facts,
        ..crate::write_context(id, now)
    };
    let written = |canonical: &Canonical<'_>| {
        translate::write(canonical, contract, &context).map(translate::Written::into_text).unwrap_or_default()
    };
    let text = written(&canonical);
    let [echoed] = names_in(text.as_bytes(), [exchange.id]);
    if refusal.request_id().is_none_or(|id| echoed.as_deref() == Some(id)) {
        return text;
    }
    // ALL-7: the contract wants another form of ids, and its own stands in for the caller's.
    let warning = format!("{0} was generated: that of the request is no UUID, and is carried", exchange.id);
    canonical.place(contract, exchange.warnings, Json::new(format!("[{}]", quoted(&warning))));
    written(&canonical)
}

/// Returns the failure to write. A refusal is never a cancellation, for which a contract may have no error. A body over
/// its limit is a mistake of the request, which waiting does not mend, unless the contract has a code for it.
fn failure(refusal: &Refusal, exchange: &Exchange) -> Failure {
    let too_large = refusal.situation == Situation::TooLarge && exchange.refusing.too_large.is_none();
    if refusal.failure == Failure::Cancelled || too_large { Failure::Invalid } else { refusal.failure }
}
