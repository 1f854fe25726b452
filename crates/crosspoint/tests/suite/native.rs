//! The native API and the server itself.

mod api;
mod callers;
mod documents;
mod each_address;
mod life;
mod limits;
mod log;
pub(crate) mod metrics;
pub(crate) mod openapi;
mod output;
mod overload;
pub(crate) mod refusals;
mod same_numbers;
mod shares;
mod shutdown;
mod stuck;
mod ten_times;
mod unix_server;
mod unreadable;
mod web_pages;
