//! One binary for all integration tests of the engine: they use its public interface, and real files.

#[path = "suite/attempt_time.rs"]
mod attempt_time;
#[path = "suite/attempts.rs"]
mod attempts;
#[path = "suite/audit.rs"]
mod audit;
#[path = "suite/check.rs"]
mod check;
#[path = "suite/children.rs"]
mod children;
#[path = "suite/clock_jumps.rs"]
mod clock_jumps;
#[path = "suite/drops.rs"]
mod drops;
#[path = "suite/faults.rs"]
mod faults;
#[path = "suite/finding.rs"]
mod finding;
#[path = "suite/full_store.rs"]
mod full_store;
#[path = "suite/further_names.rs"]
mod further_names;
#[path = "suite/grants.rs"]
mod grants;
#[path = "suite/ids.rs"]
mod ids;
#[path = "suite/interruptions.rs"]
mod interruptions;
#[path = "suite/joining.rs"]
mod joining;
#[path = "suite/linked.rs"]
mod linked;
#[path = "suite/long_history.rs"]
mod long_history;
#[path = "suite/made.rs"]
mod made;
#[path = "suite/matrix.rs"]
mod matrix;
#[path = "suite/memory.rs"]
mod memory;
#[path = "suite/neighbours.rs"]
mod neighbours;
#[path = "suite/older_store.rs"]
mod older_store;
#[path = "suite/output.rs"]
mod output;
#[path = "suite/overtaken.rs"]
mod overtaken;
#[path = "suite/owed.rs"]
mod owed;
#[path = "suite/parting.rs"]
mod parting;
#[path = "suite/presence.rs"]
mod presence;
#[path = "suite/purge.rs"]
mod purge;
#[path = "suite/questions.rs"]
mod questions;
#[path = "suite/request_keys.rs"]
mod request_keys;
#[path = "suite/retention.rs"]
mod retention;
#[path = "suite/retry_after.rs"]
mod retry_after;
#[path = "suite/routing.rs"]
mod routing;
#[path = "suite/rows.rs"]
mod rows;
#[path = "suite/runtime.rs"]
mod runtime;
#[path = "suite/same_agent.rs"]
mod same_agent;
#[path = "suite/schedule.rs"]
mod schedule;
#[path = "suite/scratch.rs"]
mod scratch;
#[path = "suite/simulation.rs"]
mod simulation;
#[path = "suite/stage.rs"]
mod stage;
#[path = "suite/stages_at_a_start.rs"]
mod stages_at_a_start;
#[path = "suite/store.rs"]
mod store;
#[path = "suite/store_events.rs"]
mod store_events;
#[path = "suite/store_lists.rs"]
mod store_lists;
#[path = "suite/stories.rs"]
mod stories;
#[path = "suite/taking_up.rs"]
mod taking_up;
#[path = "suite/tears.rs"]
mod tears;
#[path = "suite/town.rs"]
mod town;
#[path = "suite/types.rs"]
mod types;
#[path = "suite/unwritable.rs"]
mod unwritable;
