//! The codes of errors: the contract's own, and those that an agent chose.

use crate::content::Json;
use crate::failure::Failure;
use crate::job::{Canonical, Home};
use crate::json::Value;
use crate::map::{In, Out};
use crate::message::failure;

/// Returns the error code of a job.
pub(in crate::message) fn error_code(job: &Canonical<'_>) -> i64 {
    let failure = job.failure().unwrap_or(Failure::AgentFailed);
    failure::write(failure).or_else(|| own_code(job)).unwrap_or(OTHER_CODE)
}

/// The code of an agent's failure that must be an error and has no code.
const OTHER_CODE: i64 = 5999;

/// Returns the agent's own code, if it is within the range of the contract (MSG-4).
pub(super) fn own_code(job: &Canonical<'_>) -> Option<i64> {
    let code: i64 = job.get(Home::Code)?.text()?.parse().ok()?;
    let unknown = (5001..=5999).contains(&code) && failure::read(code) == Failure::AgentFailed;
    unknown.then_some(code)
}

pub(super) fn write_code(out: &mut Out<'_, '_>) -> Option<Json<'static>> {
    let job = out.job();
    let code = Json::new(error_code(job).to_string());
    let known = failure::write(job.failure()?).is_some();
    if (known && job.get(Home::Code).is_none()) || (!known && own_code(job).is_some()) {
        out.take(Home::Failure);
        out.take(Home::Code);
    } else {
        out.stands_in(code.clone());
    }
    Some(code)
}

pub(super) fn read_code<'s>(found: &mut In<'s>, value: Value<'_, 's>) {
    if found.is_stand_in(value) {
        let carried = found.job.failure().unwrap_or(Failure::AgentFailed);
        return found.job.set_failure(carried);
    }
    let Some(code) = value.integer() else { return found.keep(value) };
    let failure = failure::read(code);
    found.job.set_failure(failure);
    found.job.clear(Home::Code);
    if failure == Failure::AgentFailed {
        found.job.set(Home::Code, Json::string(&code.to_string()));
    }
}
