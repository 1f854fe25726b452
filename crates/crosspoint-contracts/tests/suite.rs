//! One binary for all integration tests of the crate.

#[path = "suite/bad_input.rs"]
mod bad_input;
#[path = "suite/bridge.rs"]
mod bridge;
#[path = "suite/broken.rs"]
mod broken;
#[path = "suite/changes.rs"]
mod changes;
#[path = "suite/chunk_properties.rs"]
mod chunk_properties;
#[path = "suite/chunks.rs"]
mod chunks;
#[path = "suite/corpus.rs"]
mod corpus;
#[path = "suite/detection.rs"]
mod detection;
#[path = "suite/dispatch.rs"]
mod dispatch;
#[path = "suite/documents.rs"]
mod documents;
#[path = "suite/failure_pages.rs"]
mod failure_pages;
#[path = "suite/failures.rs"]
mod failures;
#[path = "suite/golden.rs"]
mod golden;
#[path = "suite/honesty.rs"]
mod honesty;
#[path = "suite/job.rs"]
mod job;
#[path = "suite/message_talk.rs"]
mod message_talk;
#[path = "suite/migrate.rs"]
mod migrate;
#[path = "suite/migrate_law.rs"]
mod migrate_law;
#[path = "suite/retry.rs"]
mod retry;
#[path = "suite/schemas.rs"]
mod schemas;
#[path = "suite/sse.rs"]
mod sse;
#[path = "suite/stream_follower.rs"]
mod stream_follower;
#[path = "suite/stream_life.rs"]
mod stream_life;
#[path = "suite/tidy.rs"]
mod tidy;
#[path = "suite/tolerance.rs"]
mod tolerance;
#[path = "suite/translation.rs"]
mod translation;
#[path = "suite/translation_edges.rs"]
mod translation_edges;
#[path = "suite/translation_golden.rs"]
mod translation_golden;
#[path = "suite/translation_table.rs"]
mod translation_table;
#[path = "suite/translation_trust.rs"]
mod translation_trust;
#[path = "suite/versions.rs"]
mod versions;
