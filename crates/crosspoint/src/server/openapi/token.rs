//! Tokens: their operations, and what is shown of them.
#![allow(dead_code, reason = "schemas are made from these types; no value of them is")]

use crosspoint_contracts::content::Nullable;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;

use super::operation::Operation;
use super::table::{TOKENS, name};
use super::word::{Given, When};

/// A new token.
#[derive(JsonSchema)]
struct NewToken {
    /// What it is called. The jobs of a caller are found by this name, so it is given once and for all.
    name: Given,
    /// What it is for.
    #[schemars(rename = "for", extend("enum" = ["caller", "agent", "admin"]))]
    role: String,
    /// The agent whose token it is; only for agents. Without it the name is the agent's.
    agent: Option<Nullable<Given>>,
    /// How long it is good. Without it, until it is revoked.
    #[schemars(default, schema_with = "lifetime")]
    expires_seconds: Option<Nullable<u64>>,
}

/// How a token is replaced.
#[derive(JsonSchema)]
struct Rotation {
    /// How long the old token is good beside the new one; not at all where this is missing.
    #[schemars(default, schema_with = "overlap")]
    overlap_seconds: Option<Nullable<u64>>,
    /// How long the new token is good. Without it, as long as the old one was made for, counted from now.
    #[schemars(default, schema_with = "lifetime")]
    expires_seconds: Option<Nullable<u64>>,
}

/// How long a token may be good: a hundred years at most.
fn lifetime(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": "integer", "minimum": 1, "maximum": 3_153_600_000_u64 }, { "type": "null" }] })
}

/// How long it may be good beside the next one: a year at most.
fn overlap(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 31_536_000 }, { "type": "null" }] })
}

/// What is known of a token.
#[derive(JsonSchema)]
struct Token {
    name: String,
    /// What it is for.
    #[schemars(rename = "for", extend("enum" = ["caller", "agent", "admin"]))]
    role: String,
    /// The agent whose token it is.
    agent: Nullable<String>,
    /// Whether it is good at the time of asking.
    #[schemars(extend("enum" = ["good", "expired", "revoked"]))]
    state: String,
    /// When it was made, or replaced last; not known of one of the configuration.
    created_at: Nullable<When>,
    expires_at: Nullable<When>,
    revoked_at: Nullable<When>,
    /// Until when the token before it is good, too; `null` once that is over.
    former_until: Nullable<When>,
    /// Whether it is in a file that the configuration names, and so is neither replaced nor revoked here.
    configured: bool,
}

/// A token that was just made.
#[derive(JsonSchema)]
struct MadeToken {
    #[schemars(flatten)]
    about: Token,
    /// The token itself, which is shown only here.
    #[schemars(length(equal = 32))]
    token: String,
}

/// All tokens.
#[derive(JsonSchema)]
struct TokenPage {
    tokens: Vec<Token>,
}

/// The operations, in the order of the router.
pub(super) fn operations() -> Vec<Operation> {
    let of_token = |operation: Operation| operation.path("name", "The token's name.", &name()).refuses(&[404]);
    let example = json!({ "name": "upstream", "for": "caller", "expires_seconds": 7_776_000 });
    vec![
        Operation::post("/api/v1/tokens", "create_token", TOKENS, "Make a token")
            .describe("The answer alone has the token; only a digest of it is kept. A name is given once and for all.")
            .body::<NewToken>("Whose it is, and what it is for.", example)
            .answers::<MadeToken>(200, "The token.")
            .refuses(&[409]),
        Operation::get("/api/v1/tokens", "list_tokens", TOKENS, "List tokens")
            .answers::<TokenPage>(200, "All of them, by name, and nothing of what they are."),
        of_token(Operation::post("/api/v1/tokens/{name}/revoke", "revoke_token", TOKENS, "Make a token useless"))
            .answers::<Token>(200, "The token as it is now."),
        of_token(Operation::post("/api/v1/tokens/{name}/rotate", "rotate_token", TOKENS, "Replace a token"))
            .describe(
                "The answer alone has the new token. A token that has expired is renewed; one that was revoked is not. \
                 Only the token that is replaced stays good for the overlap: one from before it is useless at once.",
            )
            .body_if_any::<Rotation>(
                "How long the old token is good beside the new one, and how long the new one is.",
                json!({ "overlap_seconds": 3_600, "expires_seconds": 7_776_000 }),
            )
            .answers::<MadeToken>(200, "The new token.")
            .refuses(&[409]),
    ]
}
