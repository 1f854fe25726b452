//! The runtime around the core: one thread that commits, a task for every attempt, and the handle that doors use.
//!
//! ```text
//!  doors ──┐                                                          ┌── replies to doors
//!          ├─> inbox ─> core.apply ─> store.commit (fsync) ─> publish ┼── effects: attempts begin, stop, are answered
//! attempts ┘          (everything that is waiting, as one batch)      └── one line of log a transition
//! ```
//!
//! Configured agents are reached by a [`Link`], with a task for each attempt. Agents that joined ask for their work: it
//! is put into their pull queues by a [`Desk`], and no task waits for it.
//!
//! Only the committing thread touches the core and the store's writer, so nothing is locked while it decides. Code that
//! waits for a job, follows it or lists jobs looks at what was published after the commit, or reads the store over its
//! own connection. It never waits for the committing thread.

mod attempt;
mod board;
mod clock;
mod committer;
mod desk;
mod engine;
mod failing;
mod follow;
mod inbox;
mod log;
mod members;
mod metrics;
mod purge;
mod release;
mod stuck;
mod wish;

pub use attempt::{Attempt, Gone, Link, Unremembered};
pub use board::{Purged, Watch};
pub use desk::{Desk, Handed, Told};
pub use engine::{AgentView, Config, Engine, Limits, Readiness};
pub use follow::Follow;
pub use members::{Heard, Unjoined};
pub use metrics::{AttemptResult, Commits, Distribution, Ended, Load, NAMES_MAX, Numbers, Queue, SERIES_MAX};
pub use stuck::{Ahead, Stuck};
pub use wish::{Denied, Submitted, Unaccepted};
