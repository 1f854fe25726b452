//! Generated documents: any valid request or terminal result of any contract, with unknown members at every level.

use crosspoint_contracts::Kind;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

#[path = "documents/values.rs"]
mod values;

pub(crate) use values::anything;
use values::*;

fn bridge_request() -> Json {
    object(vec![
        must("request_id", uuid_or_text()),
        must("version", always(json!("1.0"))),
        must("agent_name", text()),
        must("prompt", text()),
        may("phase", integer(1..=9)),
        may("phase_name", text()),
        may("timeout_seconds", amount()),
        may("created_at", time()),
        may("context", open()),
        may("model", prop_oneof![text(), Just(Value::Null)].boxed()),
    ])
}

fn bridge_response() -> Json {
    let ending = prop_oneof![
        text()
            .prop_map(|text| json!({"status": "success", "response": text, "error_message": null, "error_type": null})),
        (words(&["error", "timeout"]), name(), code()).prop_map(|(status, message, code)| {
            json!({"status": status, "response": null, "error_message": message, "error_type": code})
        }),
    ];
    let rest = object(vec![
        must("request_id", uuid_or_text()),
        must("version", always(json!("1.0"))),
        must("created_at", time()),
        must("duration_seconds", amount()),
        must("metadata", open()),
    ]);
    (rest, ending)
        .prop_map(|(rest, ending)| {
            let mut rest = joined(rest, ending);
            // Unknown members at the top level of a response are loose; in `metadata` they are expected.
            let known = ["request_id", "version", "status", "response", "error_message", "error_type", "created_at"];
            let kept = |name: &str| known.contains(&name) || name == "duration_seconds" || name == "metadata";
            rest.as_object_mut().expect("an object").retain(|name, _| kept(name));
            rest
        })
        .boxed()
}

/// The contracts' own codes and those of agents.
fn code() -> Json {
    let known = select(vec![
        "timeout",
        "agent_unavailable",
        "cancelled",
        "ResponseTooLarge",
        "internal",
        "TIMEOUT",
        "AGENT_UNAVAILABLE",
        "INVALID_FIELD_VALUE",
        "MISSING_REQUIRED_FIELD",
        "INTERNAL_ERROR",
        "AGENT_BUSY",
        "RATE_LIMITED",
        "CANCELLED",
        "VALIDATION_ERROR",
        "TASK_FAILED",
        "MCP_NOT_CONNECTED",
        "5042",
        "5001",
        "DELEGATION_FAILED",
        "AGENT_BROKE_CONTRACT",
    ]);
    prop_oneof![known.prop_map(Value::from), name()].boxed()
}

fn joined(one: Value, other: Value) -> Value {
    let (Value::Object(mut one), Value::Object(other)) = (one, other) else { panic!("both are objects") };
    one.extend(other);
    Value::Object(one)
}

fn workflow_input() -> Json {
    object(vec![
        must(
            "context",
            object(vec![
                must("feature_id", prop_oneof![text(), Just(Value::Null)].boxed()),
                must("workflow", text()),
                must("iteration", integer(1..=9)),
            ]),
        ),
        must(
            "paths",
            vec((member(), prop_oneof![text(), vec(text(), 0..3).prop_map(Value::from)]), 0..3)
                .prop_map(|paths| Value::Object(paths.into_iter().collect()))
                .boxed(),
        ),
        must("task", object(vec![must("action", text()), must("params", open())])),
        may("prior_context", vec(text(), 0..3).prop_map(Value::from).boxed()),
    ])
}

/// Files whose paths may or may not exist side by side.
fn workflow_artifacts() -> Json {
    let artifact = object(vec![must("operation", words(&["create", "update"])), must("content", text())]);
    vec((artifact, select(vec!["spec.md", "data.json", "a", "src/main.rs", "caf\u{e9}.txt"])), 0..4)
        .prop_map(|artifacts| {
            let pathed = artifacts
                .into_iter()
                .enumerate()
                .map(|(at, (artifact, path))| joined(artifact, json!({"path": format!("{at}/{path}")})));
            Value::Array(pathed.collect())
        })
        .boxed()
}

fn workflow_output() -> Json {
    let ending = prop_oneof![
        words(&["proceed", "retry", "escalate"]).prop_map(|next| json!({"success": true, "recommendation": next})),
        words(&["retry", "escalate"]).prop_map(|next| json!({"success": false, "recommendation": next})),
    ];
    let rest = object(vec![
        must("summary", name()),
        must("artifacts", workflow_artifacts()),
        may("notes", vec(text(), 0..3).prop_map(Value::from).boxed()),
    ]);
    (rest, ending).prop_map(|(rest, ending)| joined(without(rest, &["error", "state_updates"]), ending)).boxed()
}

fn without(mut object: Value, names: &[&str]) -> Value {
    object.as_object_mut().expect("an object").retain(|name, _| !names.contains(&name.as_str()));
    object
}

fn message(kind: &'static str, payload: Json) -> Json {
    object(vec![
        must("protocol_version", always(json!("1.0"))),
        must("message_id", uuid()),
        must("from_agent", words(&["orchestrator", "infra", "research"])),
        must("to_agent", words(&["orchestrator", "desktop", "code"])),
        must("timestamp", time()),
        must("trace_id", uuid()),
        must("request_id", uuid()),
        must("type", always(json!(kind))),
        must("payload", payload),
        may("x_custom_fields", open()),
    ])
    // In the later dialect.
    .prop_map(|message| without(message, &["priority"]))
    .boxed()
}

fn work_request() -> Json {
    message(
        "work_request",
        object(vec![
            must("task_id", uuid()),
            must("work_type", name()),
            may("parameters", open()),
            may("hints", object(vec![may("max_duration_seconds", amount()), may("max_memory_mb", amount())])),
        ]),
    )
}

fn work_result() -> Json {
    let ending = prop_oneof![
        Just(json!({"status": "success", "exit_code": 0})),
        (1..300i64).prop_map(|exit| json!({"status": "failed", "exit_code": exit})),
    ];
    let rest = object(vec![
        must("task_id", uuid()),
        must("output", text()),
        must(
            "resources_used",
            object(vec![
                must("duration_seconds", integer(-3..=4000)),
                may("gpu_vram_mb", integer(0..=9)),
                may("cpu_time_ms", integer(0..=9)),
            ]),
        ),
    ]);
    let payload = (rest, ending).prop_map(|(rest, ending)| joined(rest, ending));
    message("work_result", payload.boxed())
}

fn message_error() -> Json {
    let context = prop_oneof![
        (integer(0..=3), time())
            .prop_map(|(retries, at)| (5001, json!({"attempted_retries": retries, "last_attempt": at}))),
        text().prop_map(|agent| (5002, json!({"agent_id": agent, "last_heartbeat": null}))),
        text().prop_map(|what| (5003, json!({"validation_error": what, "field_name": null}))),
        text().prop_map(|agent| (5004, json!({"agent_id": agent, "token_status": "expired"}))),
        integer(0..=9).prop_map(|left| (5005, json!({"limit_name": "gpu", "available": left, "required": 3}))),
        text().prop_map(|work| (5006, json!({"work_type_requested": work, "supported_types": ["a", "b"]}))),
        select(vec![5900, 5901, 5902, 5903, 5904, 5042, 5999]).prop_map(|code| (code, json!({}))),
    ];
    // The task of an error stands here, and anything else may.
    let more = object(vec![may("task_id", prop_oneof![3 => uuid(), 1 => text(), 1 => anything()].boxed())]);
    let payload = (context, more, text(), object(vec![])).prop_map(|((code, context), more, message, unknown)| {
        let context = joined(more, context);
        joined(unknown, json!({"error_code": code, "error_message": message, "error_context": context}))
    });
    message("error", payload.boxed())
}

fn task_request() -> Json {
    object(vec![
        must("id", uuid_or_text()),
        must("type", name()),
        must("payload", open()),
        may(
            "context",
            object(vec![
                may("conversationId", text()),
                may("parentTaskId", text()),
                may("user", text()),
                may("timestamp", time_without_offset()),
                may("priority", words(&["low", "normal", "high", "urgent"])),
            ]),
        ),
        may(
            "routing",
            object(vec![
                may("source", prop_oneof![words(&["orchestrator", "infra"]), text()].boxed()),
                may("target", prop_oneof![words(&["code", "research"]), text()].boxed()),
                may("delegationChain", always(json!(["someone else", "caf\u{e9} owner"]))),
            ]),
        ),
        may(
            "observability",
            object(vec![
                may(
                    "traceId",
                    prop_oneof![
                        Just(json!("0af7651916cd43dd8448eb211c80319c")),
                        Just(json!("0AF7651916CD43DD8448EB211C80319C"))
                    ]
                    .boxed(),
                ),
                may("spanId", always(json!("b7ad6b7169203331"))),
                may("baggage", open()),
            ]),
        ),
        may(
            "retryPolicy",
            object(vec![
                may("maxAttempts", integer(1..=5)),
                may("backoffType", words(&["exponential", "linear", "fixed"])),
                may("initialDelay", integer(0..=5000)),
            ]),
        ),
    ])
}

fn task_response() -> Json {
    let failed = object(vec![
        must("code", code()),
        must("message", text()),
        may("details", anything()),
        must("recoverable", any::<bool>().prop_map(Value::from).boxed()),
    ]);
    let ending = prop_oneof![
        open().prop_map(|result| json!({"status": "completed", "result": result})),
        text().prop_map(|output| json!({"status": "completed", "result": {"output": output}})),
        failed.prop_map(|error| json!({"status": "failed", "error": error})),
        Just(json!({"status": "cancelled"})),
    ];
    // Names that are not paths, and the same name twice.
    let artifact = object(vec![
        must("name", prop_oneof![words(&["a.md", "a.md/b", "../up", "/abs", "a.md", "b.json"]), text()].boxed()),
        must("type", words(&["text/markdown", "text/plain", "application/json"])),
        must("content", text()),
    ]);
    let rest = object(vec![
        must("id", uuid_or_text()),
        may("artifacts", vec(artifact, 0..4).prop_map(Value::from).boxed()),
        may(
            "metadata",
            object(vec![
                may("startedAt", time_without_offset()),
                may("completedAt", time_without_offset()),
                may("duration_ms", integer(-5..=5000)),
                may("agent", text()),
                may("retryCount", integer(0..=3)),
            ]),
        ),
    ]);
    (rest, ending)
        .prop_map(|(rest, ending)| joined(without(rest, &["result", "error", "inputRequest", "status"]), ending))
        .boxed()
}

fn run_request() -> Json {
    object(vec![
        must("request_id", name()),
        must("task_type", name()),
        may("workflow_id", text()),
        may("stage_id", text()),
        may("user_id", text()),
        may("mode", words(&["DEMO", "LIVE", ""])),
        may("risk_tier", text()),
        may("domain_id", text()),
        may(
            "inputs",
            prop_oneof![
                open(),
                (text(), proptest::option::of(open())).prop_map(|(prompt, context)| {
                    match context {
                        Some(context) => json!({"prompt": prompt, "context": context}),
                        None => json!({"prompt": prompt}),
                    }
                })
            ]
            .boxed(),
        ),
        may(
            "budgets",
            prop_oneof![
                open().prop_map(without_limits),
                amount().prop_map(|most| json!({"max_seconds": most, "max_tokens": 5}))
            ]
            .boxed(),
        ),
    ])
}

/// Limits that we keep must be amounts; any other member of budgets is free.
fn without_limits(budgets: Value) -> Value {
    without(budgets, &["max_seconds", "timeout_seconds", "timeout_ms", "max_time_ms", "max_memory_mb"])
}

fn run_response() -> Json {
    let error = object(vec![must("code", code()), must("message", text()), may("details", anything())]);
    let ending = prop_oneof![
        (words(&["ok", "success"]), open(), any::<Option<bool>>()).prop_map(|(status, outputs, ok)| {
            let mut ending = json!({"status": status, "outputs": outputs});
            if ok.is_some() {
                ending["ok"] = json!(true);
            }
            ending
        }),
        (error, any::<Option<bool>>()).prop_map(|(error, ok)| {
            let mut ending = json!({"status": "error", "outputs": {}, "error": error});
            if ok.is_some() {
                ending["ok"] = json!(false);
            }
            ending
        }),
    ];
    let rest = object(vec![
        must("request_id", name()),
        may("artifacts", vec(text(), 0..3).prop_map(Value::from).boxed()),
        may("provenance", open()),
        may(
            "usage",
            prop_oneof![open(), amount().prop_map(|time| json!({"duration_seconds": time, "cpu_time_ms": 3}))].boxed(),
        ),
        may("warnings", vec(anything(), 0..3).prop_map(Value::from).boxed()),
        may(
            "grounding",
            object(vec![may("citations", vec(text(), 0..2).prop_map(Value::from).boxed()), may("sources", anything())]),
        ),
    ]);
    (rest, ending)
        .prop_map(|(rest, ending)| joined(without(rest, &["success", "error", "ok", "status"]), ending))
        .boxed()
}

/// Every sort of request and terminal result, with its kind, because unknown members can make the kind hard to detect.
pub(crate) fn document() -> BoxedStrategy<(Kind, Value)> {
    let of = |kind: Kind, documents: Json| documents.prop_map(move |document| (kind, document)).boxed();
    prop_oneof![
        of(Kind::BridgeRequest, bridge_request()),
        of(Kind::BridgeResponse, bridge_response()),
        of(Kind::WorkflowInput, workflow_input()),
        of(Kind::WorkflowOutput, workflow_output()),
        of(Kind::WorkRequest, work_request()),
        of(Kind::WorkResult, work_result()),
        of(Kind::MessageError, message_error()),
        of(Kind::TaskRequest, task_request()),
        of(Kind::TaskResponse, task_response()),
        of(Kind::RunRequest, run_request()),
        of(Kind::RunResponse, run_response()),
    ]
    .boxed()
}
