//! Why a request did not become a job, in the words of the native API.

use crosspoint_contracts::Finding;

use super::backend::{Agent, Followed, Unaccepted};
use super::refusal::{self, Refusal, works};

impl<J: Followed> Unaccepted<J> {
    /// Returns the refusal in the words of the native API.
    pub fn refusal(self, agents: &[Agent]) -> Refusal {
        let refusal = match self {
            Unaccepted::Conflict(job) => {
                let id = J::snapshot(&job.now()).id;
                let message = format!("this request key is that of job {id}, which has other work or another input");
                let hint = "use a new request id or Idempotency-Key for other work";
                return Refusal::conflict(message, hint).clause("ALL-1");
            }
            Unaccepted::TwoJobs => {
                let message = "the Idempotency-Key of this request is that of one job, and its id that of another";
                let hint = "send the id and the Idempotency-Key of one job, or new ones for other work";
                return Refusal::conflict(message, hint).clause("ALL-1");
            }
            Unaccepted::TooManyNames => {
                let message = "the job of this request has as many ids and keys as a job may have";
                let hint = "ask for the job by an id that it has, or use a new id and Idempotency-Key for other work";
                return Refusal::conflict(message, hint).clause("ALL-1");
            }
            Unaccepted::UnknownWork => {
                Refusal::unsupported("no agent takes this work", format!("known works: {}", works(agents))).at("/work")
            }
            Unaccepted::UnknownAgent => {
                let hint = format!("known agents: {}", refusal::agents(agents));
                Refusal::unsupported("no agent has this name", hint).at("/agent")
            }
            Unaccepted::NotItsWork => {
                let hint = "leave `agent` out, or GET /api/v1/agents for who takes what";
                Refusal::unsupported("this agent does not take this work", hint).at("/agent")
            }
            Unaccepted::WrongType => {
                let hint = "GET /api/v1/agents for who takes what";
                Refusal::unsupported("no agent of the type that the request is addressed to takes this work", hint)
            }
            Unaccepted::Mismatch(report) => {
                let mistake = |finding: Finding| {
                    Refusal::invalid(finding.message, finding.hint).clause(finding.clause.id).at(finding.pointer)
                };
                return Refusal::all(report.findings.into_iter().map(mistake).collect());
            }
            Unaccepted::Refused(refusal) => return refusal,
        };
        refusal.clause("ALL-6")
    }
}
