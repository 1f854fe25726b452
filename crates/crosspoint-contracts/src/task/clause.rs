//! The task contract: request, response, polling, questions and delegation.

crate::clause::clauses! {
    TASK_1 = "TASK-1" Error Document, "rulings; task document, Task Request (Required Fields)":
        "A task request has id, type and payload."
        => "Add the missing field.";
    TASK_1_2 = "TASK-1.2" Error Document, "rulings; task document, Task Request (Required Fields)":
        "`payload` is an object."
        => "Wrap the input in an object.";
    TASK_1_3 = "TASK-1.3" Error Document, "rulings; task document, Context Block":
        "`context.priority` is low, normal, high or urgent; normal where it is left out."
        => "Write one of the four, in lower case.";
    TASK_1_4 = "TASK-1.4" Error Document, "rulings; task document, Context Block, Metadata Block":
        "Timestamps are ISO 8601."
        => "Write it like 2025-01-05T10:30:00Z.";
    TASK_1_5 = "TASK-1.5" Error Exchange, "rulings; task document, Routing Block":
        "`routing.target` names an agent; an unknown one is AGENT_NOT_FOUND."
        => "Name an agent that exists, or leave the target out.";
    TASK_1_6 = "TASK-1.6" Error Operation, "rulings":
        "Priority orders the queue."
        => "Use urgent sparingly.";
    TASK_2 = "TASK-2" Error Document, "rulings; task document, Result Block; Best Practices":
        "`result` is there exactly when `status` is completed."
        => "Add \"result\": {...} to a completed task, and leave it out of any other.";
    TASK_2_2 = "TASK-2.2" Error Document, "rulings; task document, Error Block":
        "`error` is there exactly when `status` is failed."
        => "Add \"error\": {...} to a failed task, and leave it out of any other.";
    TASK_2_3 = "TASK-2.3" Error Document, "rulings; task document, Error Block":
        "An error is an object with the strings `code` and `message` and the boolean `recoverable`."
        => "Write {\"code\": \"TIMEOUT\", \"message\": \"...\", \"details\": {}, \"recoverable\": true}.";
    TASK_2_4 = "TASK-2.4" Warning Document, "rulings; task document, Best Practices":
        "An error has `details`."
        => "Add an object with what helps to debug.";
    TASK_2_5 = "TASK-2.5" Error Document, "rulings":
        "`inputRequest` is an object with a string `prompt` and, where given, an object `schema`."
        => "Write {\"prompt\": \"...\"}.";
    TASK_2_6 = "TASK-2.6" Warning Document, "rulings":
        "A response with status input_required carries the question under `inputRequest`."
        => "Add \"inputRequest\": {\"prompt\": \"...\"}.";
    TASK_3 = "TASK-3" Error Exchange, "rulings; task document, Status Values, Usage Patterns":
        "A task goes from pending through in_progress to completed, failed or cancelled, with input_required in between any number of times; pending may fail or be cancelled at once."
        => "Do not go back to an earlier state.";
    TASK_3_2 = "TASK-3.2" Error Exchange, "rulings":
        "A finished task never changes."
        => "Answer every later poll with the same response.",
        implies ["ALL-9.3"];
    TASK_4 = "TASK-4" Error Operation, "rulings":
        "POST /tasks answers 200 when the task ended within the wait, else 202 with the task as it stands."
        => "Send ?wait=SECONDS or Prefer: wait=SECONDS to wait.";
    TASK_4_2 = "TASK-4.2" Error Operation, "rulings; task document, Async/Polling Pattern":
        "GET /tasks/{id} answers with the task as it stands, 404 where it is unknown."
        => "Poll with the id that was sent.";
    TASK_4_3 = "TASK-4.3" Error Operation, "rulings; task document, Input Required Pattern":
        "POST /tasks/{id}/input takes {\"input\": any}, and POST /tasks/{id}/cancel cancels."
        => "Send the answer as `input`.";
    TASK_4_4 = "TASK-4.4" Error Operation, "rulings":
        "GET /tasks/{id}/events streams task responses; the last one is the ended one."
        => "Read until the stream ends.";
    TASK_4_5 = "TASK-4.5" Error Exchange, "rulings":
        "Agents of this contract are called at the same paths under their base URL."
        => "Serve /tasks.";
    TASK_5 = "TASK-5" Error Exchange, "rulings; task document, Best Practices":
        "The same id with the same work and input is the same task, not a second run; with other work or input it is 409, INVALID_FIELD_VALUE."
        => "Never reuse a task id for another request.",
        implies ["ALL-1.3", "ALL-1.4"];
    TASK_6 = "TASK-6" Warning Document, "rulings; task document, Best Practices":
        "`error.code` is a standard code of the task family."
        => "Use a standard code such as INVALID_INPUT, TIMEOUT or INTERNAL_ERROR; other codes are kept but mean nothing to readers.";
    TASK_6_2 = "TASK-6.2" Error Operation, "rulings":
        "`recoverable` means that the caller can do something about it, not that the task is retried."
        => "Mend the input and send a new task.";
    TASK_6_3 = "TASK-6.3" Error Operation, "rulings":
        "Input errors are recoverable and never retried."
        => "Mend the input first.";
    TASK_7 = "TASK-7" Error Document, "rulings":
        "`retryPolicy` is an object; maxAttempts is an integer of at least 1, backoffType exponential, linear or fixed, initialDelay milliseconds."
        => "Write {\"maxAttempts\": 3, \"backoffType\": \"exponential\", \"initialDelay\": 1000}.";
    TASK_7_2 = "TASK-7.2" Error Operation, "rulings":
        "A retryPolicy says that repeating is wanted and overrides the default within the server's limits."
        => "Leave it out where work must not run twice.";
    TASK_8 = "TASK-8" Warning Document, "rulings; task document, Observability Block":
        "`traceId` is 32 and `spanId` 16 hexadecimal digits; other strings are carried."
        => "Use the ids of OpenTelemetry, in lower case, without hyphens.";
    TASK_8_2 = "TASK-8.2" Warning Exchange, "rulings":
        "The traceparent header is equal in rank to the observability block and wins where the two differ."
        => "Send the same ids in both.";
    TASK_8_3 = "TASK-8.3" Error Exchange, "rulings; task document, Best Practices":
        "Every hop makes a child span, and observability context, baggage included, travels along."
        => "Pass the block on with a new spanId.";
    TASK_9 = "TASK-9" Error Exchange, "rulings; task document, Routing Block":
        "`delegationChain` lists the agents before the target; we add ourselves when passing a task on."
        => "Append your own name.";
    TASK_9_2 = "TASK-9.2" Error Document, "rulings":
        "A target that is already in the delegation chain is a cycle: TASK_GRAPH_CYCLE."
        => "Choose another target.";
    TASK_9_3 = "TASK-9.3" Error Document, "rulings":
        "A delegation chain has at most 16 agents: DELEGATION_FAILED."
        => "Delegate less deeply.";
    TASK_10 = "TASK-10" Error Exchange, "rulings":
        "A work may have schemas: input that does not match is refused as invalid, with the place; output that does not match is a violation, and the outcome stands."
        => "Send what the schema of the work asks for.";

    TASK_101 = "TASK-101" Error Document, "task document, Required Fields":
        "`id` and `type` are non-empty strings."
        => "Write a non-empty string.";
    TASK_102 = "TASK-102" Warning Document, "task document, Task Request (Required Fields)":
        "`id` is preferably a UUID."
        => "Use a UUID: it cannot meet another task's id.";
    TASK_103 = "TASK-103" Error Document, "task document, Context Block":
        "`context` is an object, and its conversationId, parentTaskId and user are strings."
        => "Write an object; conversationId, parentTaskId and user are strings in it, or left out.";
    TASK_104 = "TASK-104" Error Document, "task document, Routing Block":
        "`routing` is an object, and its source and target are strings."
        => "Write an object; source and target are strings in it, or left out.";
    TASK_105 = "TASK-105" Error Document, "task document, Routing Block":
        "`routing.delegationChain` is an array of strings."
        => "List the agents' names.";
    TASK_106 = "TASK-106" Error Document, "task document, Observability Block":
        "`observability` is an object, its traceId and spanId are strings, and its baggage is an object."
        => "Write an object; traceId and spanId are strings and baggage an object in it, or left out.";
    TASK_107 = "TASK-107" Error Document, "task document, Task Response (Required Fields)":
        "A task response has id and status."
        => "Add the missing field.";
    TASK_108 = "TASK-108" Error Document, "task document, Status Values":
        "`status` is pending, in_progress, completed, failed, cancelled or input_required."
        => "Write one of the six, in lower case.";
    TASK_109 = "TASK-109" Error Document, "task document, Result Block; rulings, ALL-8":
        "`result` is an object."
        => "Wrap the output: {\"output\": ...}.",
        implies ["TASK-2"];
    TASK_110 = "TASK-110" Error Document, "task document, Metadata Block":
        "`metadata` is an object, its duration_ms and retryCount are integers and its agent is a string."
        => "Write an object; duration_ms and retryCount are whole numbers and agent a string in it, or left out.";
    TASK_111 = "TASK-111" Error Document, "task document, Artifacts Block":
        "`artifacts` is an array of objects with the strings name, type and content."
        => "Write {\"name\": \"draft.md\", \"type\": \"text/markdown\", \"content\": \"...\"}.";
    TASK_112 = "TASK-112" Warning Document, "task document, Best Practices":
        "A completed or failed response has meaningful `metadata`."
        => "Add startedAt, completedAt, duration_ms and agent.";
    TASK_121 = "TASK-121" Error Exchange, "task document, Task Response (Required Fields)":
        "A response's `id` is the request's."
        => "Copy the id.";
    TASK_122 = "TASK-122" Error Exchange, "task document, Task Request (Required Fields)":
        "`type` is the name of a capability of the agent."
        => "Ask the agent what it can do, and use that name.";
    TASK_123 = "TASK-123" Error Exchange, "task document, Result Block":
        "`result` matches the output schema of the capability."
        => "Return what the capability promises.";
}
