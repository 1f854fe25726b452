//! All contracts: every door with every agent, recorded exchanges, and a sixth contract.

mod chain;
#[cfg(feature = "demo-contract")]
mod demo;
mod exchanges;
mod matrix;
mod schemas;
