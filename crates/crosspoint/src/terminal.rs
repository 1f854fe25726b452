//! What people see at a terminal: errors, findings, tables, long sentences, and JSON that cannot control the terminal.

pub(crate) mod fold;
pub(crate) mod json;
pub(crate) mod render;
pub(crate) mod shell;
pub(crate) mod table;
pub(crate) mod undetected;
