//! Agents that join and ask for work, and `crosspoint agent`.

mod api;
mod edges;
mod forged;
mod whole;
mod worker;
mod worker_deaths;
mod worker_leaving;
mod worker_refusals;
