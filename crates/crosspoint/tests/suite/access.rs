//! Tokens: who may ask for what, and who sees whose work.

mod audit;
mod commands;
mod endpoints;
mod own_jobs;
mod rates;
mod shares;
mod start;
