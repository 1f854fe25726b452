//! Examples of what a missing member could look like, so that the author of a document need not look it up.

use std::borrow::Cow;

/// Returns how to add a member, where its name alone tells what it looks like.
pub(crate) fn hint(name: &str) -> Option<Cow<'static, str>> {
    let (name, example) = EXAMPLES.iter().find(|(known, _)| *known == name)?;
    Some(Cow::Owned(format!("Add \"{name}\": {example}.")))
}

/// Members that mean the same in every object. `status`, `type` and the like do not, and have the hint of their clause.
const EXAMPLES: &[(&str, &str)] = &[
    // message
    ("protocol_version", "\"1.0\""),
    ("message_id", "a new UUID, \"550e8400-e29b-41d4-a716-446655440001\""),
    ("from_agent", "the sender's type, \"orchestrator\", \"infra\", \"desktop\", \"code\" or \"research\""),
    ("to_agent", "the recipient's type, \"orchestrator\", \"infra\", \"desktop\", \"code\" or \"research\""),
    ("timestamp", "the time of sending, \"2026-01-19T04:21:04Z\""),
    ("trace_id", "a UUID that is the same for all messages about this work"),
    ("task_id", "the task's UUID, \"550e8400-e29b-41d4-a716-446655440004\""),
    ("work_type", "the name of the work, \"run_playbook\""),
    ("progress_percent", "a whole number from 0 to 100"),
    ("step", "{\"number\": 1, \"name\": \"...\"}"),
    ("number", "the step's number, 1"),
    ("exit_code", "0 on success, a positive number on failure"),
    ("resources_used", "{\"duration_seconds\": 87}"),
    ("error_code", "a number from 5001 to 5999"),
    ("error_context", "{}, with the fields of its error code"),
    ("agent_type", "the agent's type, \"infra\""),
    ("current_task_id", "the task's UUID, or null when idle"),
    ("resources", "{}"),
    // workflow
    ("context", "{\"feature_id\": null, \"workflow\": \"...\", \"iteration\": 1}"),
    ("feature_id", "the feature's id, or null where there is none yet"),
    ("workflow", "the workflow's name, \"specify\""),
    ("iteration", "1"),
    ("paths", "{}, with the paths the agent may need"),
    ("task", "{\"action\": \"...\", \"params\": {}}"),
    ("action", "the verb, \"validate\""),
    ("params", "{}"),
    ("success", "true or false"),
    ("summary", "one sentence that says what happened"),
    ("artifacts", "[]"),
    ("recommendation", "\"proceed\", \"retry\" or \"escalate\""),
    ("path", "the file's path from the repository root, \"specs/005/spec.md\""),
    ("operation", "\"create\" or \"update\""),
    ("content", "the complete content as a string"),
    // task
    ("payload", "{}, with what the work needs"),
    ("recoverable", "true or false"),
    ("inputRequest", "{\"prompt\": \"...\"}"),
    ("metadata", "{\"startedAt\", \"completedAt\", \"duration_ms\", \"agent\"}"),
    // run
    ("task_type", "the kind of task, \"LIT_RETRIEVAL\""),
    ("outputs", "{}"),
    // bridge
    ("agent_name", "the agent or work that is wanted, \"review\""),
    ("version", "\"1.0\""),
];
