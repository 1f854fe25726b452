//! The shapes as a table.
