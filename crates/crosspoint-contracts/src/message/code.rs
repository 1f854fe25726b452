//! The error codes of the document. They are permanent: none ever gets another meaning (MSG-124).

/// No answer came in time.
pub const TIMEOUT: i64 = 5001;
/// The agent or the broker cannot be reached.
pub const UNAVAILABLE: i64 = 5002;
/// The message cannot be understood.
pub const INVALID_MESSAGE: i64 = 5003;
/// The token or the signature is refused.
pub const AUTHENTICATION_FAILED: i64 = 5004;
/// Something that is bounded ran out.
pub const RESOURCE_LIMIT: i64 = 5005;
/// A kind of work, or a version, that is not known here.
pub const UNSUPPORTED: i64 = 5006;
