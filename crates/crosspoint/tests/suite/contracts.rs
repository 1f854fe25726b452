//! All contracts: every door with every agent, recorded exchanges, and a sixth contract.

mod chain;
#[cfg(feature = "demo-contract")]
mod demo;
mod drops;
mod exchanges;
mod matrix;
mod printed_examples;
mod schemas;
mod statuses;
mod tokens;
mod tolerance;
mod wild;
mod worked_examples;
