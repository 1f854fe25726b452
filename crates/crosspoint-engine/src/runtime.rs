//! The runtime around the core: one thread that commits, a task for every attempt, and the handle that doors use.
//!
//! ```text
//!  doors ──┐                                                          ┌── replies to doors
//!          ├─> inbox ─> core.apply ─> store.commit (fsync) ─> publish ┼── effects: attempts begin, stop, are answered
//! attempts ┘          (everything that is waiting, as one batch)      └── one line of log a transition
//! ```
//!
//! Configured agents are reached by a [`Link`], with a task for each attempt, and so are agents that joined for which
//! [`Config::member_link`] makes one. Other agents that joined ask for their work: it is put into their pull queues by
//! a [`PullQueues`], and no task waits for it.
//!
//! Only the committing thread touches the core and the store's writer, so nothing is locked while it decides. Code that
//! waits for a job, follows it or lists jobs looks at what was published after the commit, or reads the store over its
//! own connection. Only code that asks which job a caller's own id means waits for the committing thread, which alone
//! knows the keys that are about to be taken.

mod acting;
mod agent_view;
mod attempt;
mod clock;
mod committer;
mod config;
mod engine;
mod failing;
mod follow;
mod health;
mod inbox;
mod judge;
mod links;
mod log;
mod members;
mod metrics;
mod origin;
mod output;
mod owed;
mod published;
mod pull;
mod purge;
mod purge_audit;
mod release;
mod requests;
mod same_request;
mod stages;
mod stopping_again;
mod stuck;
mod text;
mod tokens;
mod violated;

pub use acting::Acting;
pub use agent_view::AgentView;
pub use attempt::{Attempt, Gone, Link, Reached, Unremembered};
pub use config::{Config, Limits};
pub use engine::{Engine, Readiness};
pub use follow::Follow;
pub use judge::{Judge, Judgement};
pub use links::MemberLink;
pub use members::{Heard, Unjoined};
pub use metrics::{AttemptResult, Commits, Distribution, Ended, Load, NAMES_MAX, Numbers, Queue, SERIES_MAX};
pub use output::{More, Output, Unread};
pub use published::{Purged, Watch};
pub use pull::{Handed, Instruction, PullQueues};
pub use requests::{Denied, Submitted, Unaccepted};
pub use stopping_again::TOLD_WITHIN;
pub use stuck::{Ahead, NO_SERVER, Stuck};
pub use text::TextRoom;
pub use tokens::{Token, Ungranted};
