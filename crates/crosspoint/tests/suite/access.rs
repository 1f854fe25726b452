//! Tokens: who may ask for what, and who sees whose work.

mod audit;
mod commands;
mod counting;
mod endpoints;
mod own_jobs;
mod rates;
mod start;
