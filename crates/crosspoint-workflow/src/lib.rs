//! Workflows of stateless agents.
//!
//! A [`definition`] is what a workflow file says: stages, and where each leads. A [`run`] is where one run of it
//! stands, as a pure function of the definition and of what happened. A [`repository`] is the directory that the
//! artifacts of the stages are applied to, all of one output or none.

pub mod definition;
pub mod repository;
pub mod run;
