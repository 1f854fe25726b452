//! The engine: durable jobs that end exactly once.
//!
//! In reading order:
//! - [`id`], [`job`], [`event`]: what is known about one job;
//! - [`policy`]: what an agent's operator configured;
//! - [`machine`]: the life of one job, as one pure function; [`breaker`]: the circuit breaker of one agent;
//! - [`grant`]: who may come in with which token; [`audit`]: who did what;
//! - [`keys`], [`queue`], [`core`]: all jobs and agents of one orchestrator, still pure;
//! - [`retention`]: how long jobs are kept; [`claim`]: which opening of a store may write to it;
//! - [`store`]: the embedded database, whose one verb is to commit a batch;
//! - [`runtime`]: the one committing thread, the tasks of attempts, and the handle that doors use.
//!   [`wall_clock`] is the only other place that knows the time.

pub mod audit;
pub mod breaker;
pub mod claim;
pub mod core;
pub mod event;
pub mod grant;
pub mod id;
pub mod job;
pub mod keys;
pub mod machine;
pub mod policy;
pub mod queue;
pub mod retention;
pub mod runtime;
pub mod store;
pub mod wall_clock;
