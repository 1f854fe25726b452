//! The message contract: its door.

mod examples;
