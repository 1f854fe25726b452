//! The limits that requests can reach.

/// A limit that requests can reach, named by its key under `[limits]` if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Jobs that have not ended: of all, of one work, for one agent, of one caller.
    Jobs,
    /// Jobs of one work that have not ended.
    JobsPerWork,
    /// Jobs for one agent that have not ended.
    JobsPerAgent,
    /// Jobs of one caller that have not ended.
    JobsPerCaller,
    /// Requests that wait to be committed, and their bytes.
    Waiting,
    /// Bytes of one body.
    BodyBytes,
    /// Bytes of all bodies that are being read.
    BodiesBytes,
    /// Connections at a time.
    Connections,
    /// Connections of one address at a time.
    ConnectionsPerAddress,
    /// Requests of one address in a second.
    RequestsPerAddress,
    /// Requests with one token in a second.
    RequestsPerToken,
    /// Failures of one address to show who it is, in a minute.
    FailuresPerAddress,
    /// Event streams of one caller at a time.
    StreamsPerCaller,
    /// Bytes of the headers of a request.
    HeaderBytes,
    /// Bytes of the address of a request.
    UrlBytes,
    /// Time that the head of a request may take.
    HeaderSeconds,
    /// Time that a body may take.
    BodySeconds,
    /// Time in which nothing of an answer is taken.
    WriteSeconds,
    /// Time in which nothing is asked over a connection.
    IdleSeconds,
    /// Bytes of all answers of agents that are being read.
    AnswersBytes,
    /// Long answers that callers have not taken.
    UnsentBytes,
    /// The size of the store, or of the disk.
    StoreBytes,
    /// Documents that wait to be judged.
    Documents,
    /// Output of one job.
    OutputBytes,
    /// Agents that have joined or registered.
    Agents,
    /// No limit: the request was meant for another server, or came from a page of another site.
    Foreign,
}

impl Limit {
    /// All limits.
    pub const ALL: [Limit; 26] = [
        Limit::Jobs,
        Limit::JobsPerWork,
        Limit::JobsPerAgent,
        Limit::JobsPerCaller,
        Limit::Waiting,
        Limit::BodyBytes,
        Limit::BodiesBytes,
        Limit::Connections,
        Limit::ConnectionsPerAddress,
        Limit::RequestsPerAddress,
        Limit::RequestsPerToken,
        Limit::FailuresPerAddress,
        Limit::StreamsPerCaller,
        Limit::HeaderBytes,
        Limit::UrlBytes,
        Limit::HeaderSeconds,
        Limit::BodySeconds,
        Limit::WriteSeconds,
        Limit::IdleSeconds,
        Limit::AnswersBytes,
        Limit::UnsentBytes,
        Limit::StoreBytes,
        Limit::Documents,
        Limit::OutputBytes,
        Limit::Agents,
        Limit::Foreign,
    ];

    /// Returns the key under `[limits]`, or the word that metrics use where there is no key.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Jobs => "jobs",
            Limit::JobsPerWork => "jobs_per_work",
            Limit::JobsPerAgent => "jobs_per_agent",
            Limit::JobsPerCaller => "jobs_per_caller",
            Limit::Waiting => "waiting",
            Limit::BodyBytes => "body_bytes",
            Limit::BodiesBytes => "bodies_bytes",
            Limit::Connections => "connections",
            Limit::ConnectionsPerAddress => "connections_per_address",
            Limit::RequestsPerAddress => "requests_per_address",
            Limit::RequestsPerToken => "requests_per_token",
            Limit::FailuresPerAddress => "failures_per_address",
            Limit::StreamsPerCaller => "streams_per_caller",
            Limit::HeaderBytes => "header_bytes",
            Limit::UrlBytes => "url_bytes",
            Limit::HeaderSeconds => "header_seconds",
            Limit::BodySeconds => "body_seconds",
            Limit::WriteSeconds => "write_seconds",
            Limit::IdleSeconds => "idle_seconds",
            Limit::AnswersBytes => "answers_bytes",
            Limit::UnsentBytes => "unsent_bytes",
            Limit::StoreBytes => "store_bytes",
            Limit::Documents => "documents",
            Limit::OutputBytes => "output_bytes",
            Limit::Agents => "agents",
            Limit::Foreign => "foreign",
        }
    }
}
