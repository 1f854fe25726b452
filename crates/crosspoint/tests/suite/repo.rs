//! The repository: boundaries between the crates, its pages, and published figures.

mod pages;
mod peers;
mod readme;
mod security;
mod tidy;
