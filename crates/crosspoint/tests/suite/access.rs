//! Tokens: who may ask for what, and who sees whose work.

mod audit;
mod commands;
mod counting;
mod endpoints;
mod operator;
mod own_jobs;
mod rates;
mod revocation;
mod shares;
mod start;
