//! The error codes of the contract's document, and those added to it from 5900 up. They are permanent: no code ever
//! gets another meaning (MSG-124).

/// No answer came in time.
pub const TIMEOUT: i64 = 5001;
/// The agent or the broker cannot be reached.
pub const UNAVAILABLE: i64 = 5002;
/// The message cannot be understood.
pub const INVALID_MESSAGE: i64 = 5003;
/// The token or the signature is refused.
pub const AUTHENTICATION_FAILED: i64 = 5004;
/// A limited resource ran out.
pub const RESOURCE_LIMIT: i64 = 5005;
/// The kind of work, or the version, is not known here.
pub const UNSUPPORTED: i64 = 5006;
/// The fault is in the orchestrator.
pub const INTERNAL: i64 = 5900;
/// The work was cancelled.
pub const CANCELLED: i64 = 5901;
/// The work went in a circle, or through too many agents.
pub const DELEGATION: i64 = 5902;
/// The same request id came with other work or parameters.
pub const CONFLICT: i64 = 5903;
/// The agent's answer cannot be read.
pub const BROKEN_CONTRACT: i64 = 5904;

/// Returns whether a message that was answered with this code is sent again (MSG-5.3).
pub fn is_retried(error_code: i64) -> bool {
    super::failure::read(error_code).is_retried()
}
