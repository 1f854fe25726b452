//! The message contract: one envelope between orchestrator and agents, over REST or a queue.

crate::clause::clauses! {
    MSG_1 = "MSG-1" Error Document, "rulings; message document, Message Envelope":
        "A message has protocol_version, message_id, from_agent, to_agent, timestamp, trace_id, request_id, type and payload."
        => "Add the missing field; every message wears the whole envelope.";
    MSG_1_2 = "MSG-1.2" Error Document, "rulings; message document, Message Envelope":
        "`x_custom_fields`, where given, is an object."
        => "Write an object, or leave it out.";
    MSG_1_3 = "MSG-1.3" Error Document, "rulings; message document, Message Envelope":
        "message_id, trace_id, request_id and task_id are UUIDs."
        => "Write 8-4-4-4-12 hexadecimal digits: 550e8400-e29b-41d4-a716-446655440001.";
    MSG_1_4 = "MSG-1.4" Error Document, "rulings; message document, Message Envelope":
        "from_agent and to_agent are orchestrator, infra, desktop, code, research or a type the operator added."
        => "Use one of the five types, or add yours: [server] agent_types (validate: --agent-type NAME).";
    MSG_2 = "MSG-2" Error Document, "rulings; message document, Message Envelope":
        "`timestamp` is ISO 8601."
        => "Write it like 2026-01-19T04:21:04Z.";
    MSG_2_2 = "MSG-2.2" Warning Document, "rulings":
        "`timestamp` has an offset; without one it is read as UTC."
        => "Add Z.";
    MSG_2_3 = "MSG-2.3" Error Operation, "rulings":
        "Timestamps we write are RFC 3339 with Z."
        => "Write them in UTC.";
    MSG_3 = "MSG-3" Error Document, "rulings; message document, work_request":
        "`parameters` and `hints` are objects, {} where they are left out."
        => "Write an object, or leave it out.";
    MSG_3_2 = "MSG-3.2" Error Document, "rulings; message document, work_status":
        "`progress_percent` is an integer from 0 to 100."
        => "Write a whole number from 0 to 100, without quotes.";
    MSG_3_3 = "MSG-3.3" Error Document, "rulings; message document, work_result":
        "`status` success goes with exit_code 0."
        => "Make the two agree.";
    MSG_3_4 = "MSG-3.4" Error Document, "rulings; message document, work_status":
        "`step.output` is a string, \"\" where it is left out."
        => "Write a string, or leave it out.";
    MSG_3_5 = "MSG-3.5" Error Document, "rulings; message document, work_result":
        "`resources_used` is there with duration_seconds; gpu_vram_mb and cpu_time_ms are 0 where they are left out."
        => "Write \"resources_used\": {\"duration_seconds\": 87}.";
    MSG_3_6 = "MSG-3.6" Warning Document, "rulings; message document, work_result":
        "`status` failed goes with an exit_code over 0; where they differ, the status counts."
        => "Make the two agree.";
    MSG_4 = "MSG-4" Error Document, "rulings; message document, Error Codes":
        "`error_code` is an integer from 5001 to 5999."
        => "Use a code of the table: 5001 timeout, 5002 unavailable, 5003 invalid, 5004 authentication, 5005 limit, 5006 unsupported.";
    MSG_4_2 = "MSG-4.2" Warning Document, "rulings; message document, Error Codes":
        "An error has its context, and the codes 5001 to 5006 carry the context fields of their row, with those names and types."
        => "Add the field to error_context; nullable ones may be null.";
    MSG_4_3 = "MSG-4.3" Error Operation, "rulings":
        "Codes added to the table start at 5900 and are documented the same way."
        => "Keep own codes at 5900 and above.";
    MSG_5 = "MSG-5" Error Operation, "rulings; message document, Retries":
        "Three retries means four attempts in all, 0, 1, 2 and 4 s apart."
        => "Give up after the fourth attempt.",
        shown_by ["retry::four_attempts_in_all"];
    MSG_5_2 = "MSG-5.2" Error Exchange, "rulings; message document, Retries":
        "Every attempt has the same request_id and a new message_id."
        => "Renew only message_id and timestamp.";
    MSG_5_3 = "MSG-5.3" Error Operation, "rulings; message document, Retry Conditions":
        "Only 5001, 5002 and 5005 are retried; others are reported at once."
        => "Report 5003, 5004 and 5006 to the caller immediately.",
        shown_by ["retry::only_timeout_unavailable_and_resource_limit_are_retried"];
    MSG_5_4 = "MSG-5.4" Error Operation, "rulings":
        "The delays are minimums: jitter may lengthen them, never shorten them."
        => "Add jitter on top.",
        shown_by ["retry::jitter_never_shortens"];
    MSG_6 = "MSG-6" Error Exchange, "rulings; message document, Timeouts":
        "30 s without acknowledgement, work_status or result is a timeout."
        => "Send a work_status while working.";
    MSG_6_2 = "MSG-6.2" Error Exchange, "rulings; message document, Per-Task Override":
        "`hints.max_duration_seconds` allows silence that long; the attempt is given up 30 s after it."
        => "State the longest silence in hints.";
    MSG_6_3 = "MSG-6.3" Error Exchange, "rulings":
        "A paused status stops the clock."
        => "Send running when work goes on.";
    MSG_6_4 = "MSG-6.4" Error Exchange, "rulings; message document, work_status (Timing)":
        "An agent repeats its last work_status at least every 10 s while it works."
        => "Repeat the last status on a timer.";
    MSG_6_5 = "MSG-6.5" Error Operation, "rulings":
        "`hints.max_memory_mb` is handed on, and enforced for programs."
        => "State the memory the work needs.";
    MSG_7 = "MSG-7" Error Operation, "rulings; message document, Circuit Breaker":
        "Five consecutive 5001 or 5002 open an agent's breaker for 60 s for new work; work under way goes on."
        => "Wait for the breaker, or mend the agent.";
    MSG_7_2 = "MSG-7.2" Error Operation, "rulings; message document, Circuit Breaker":
        "After the 60 s one health check decides, and one failure opens it again."
        => "Answer the health check.";
    MSG_7_3 = "MSG-7.3" Error Operation, "rulings":
        "The breaker holds for agents of all contracts."
        => "Look at the agent's breaker.";
    MSG_7_4 = "MSG-7.4" Error Operation, "rulings":
        "The health check is GET /health of HTTP agents, a fresh heartbeat or poll of message agents, spawning for programs."
        => "Serve /health, or keep polling.";
    MSG_7_5 = "MSG-7.5" Error Operation, "rulings":
        "A connection that the agent dropped after it had taken the request counts only if its health check fails too."
        => "Serve /health, so that one bad input does not look like an agent that is down.";
    MSG_8 = "MSG-8" Error Exchange, "rulings; message document, Idempotency":
        "An agent that has seen a request_id answers with the stored result or joins the run under way; it never runs finished work again."
        => "Keep results by request_id.",
        implies ["MSG-121", "ALL-1.3"];
    MSG_8_2 = "MSG-8.2" Error Operation, "rulings":
        "The store of answers survives a restart, is bounded by age and size, and keeps no retryable failure."
        => "Keep it on disk.";
    MSG_8_3 = "MSG-8.3" Error Operation, "rulings":
        "Work that was started and cut short by a crash runs again, or fails as interrupted where it is marked at-most-once."
        => "Mark work that must not run twice.";
    MSG_8_4 = "MSG-8.4" Error Exchange, "rulings":
        "The same request_id with another work or other parameters is a conflict, 5903."
        => "Use a new request_id.",
        implies ["ALL-1.4"];
    MSG_9 = "MSG-9" Warning Document, "rulings; message document, Large Payloads":
        "Step output over 1 MiB goes out in blocks of 262,144 bytes, cut at a character boundary at or below that."
        => "Split it, one work_status a block, each with output_chunk.";
    MSG_9_2 = "MSG-9.2" Error Document, "rulings; message document, Large Payloads":
        "`output_chunk` reads `bytes START-END of TOTAL`, END exclusive, or the short form `bytes 0-256k`; START <= END <= TOTAL."
        => "Write it like bytes 0-262144 of 524288.";
    MSG_9_3 = "MSG-9.3" Error Document, "rulings":
        "A chunk's output is END minus START bytes long."
        => "Count UTF-8 bytes, not characters; END is exclusive.";
    MSG_9_4 = "MSG-9.4" Error Exchange, "rulings":
        "Chunks may come in any order and repeatedly; gaps, differing overlaps and a changing TOTAL are refused as 5003."
        => "Send every byte at least once, and the same each time.",
        implies ["MSG-125"],
        shown_by ["chunk_properties::reassembling_agrees_with_the_plain_way"];
    MSG_9_5 = "MSG-9.5" Error Operation, "rulings":
        "More chunked output than the limit is refused as 5005."
        => "Write large output to a file and name it.",
        shown_by ["chunks::output_over_the_limit_is_refused"];
    MSG_9_6 = "MSG-9.6" Warning Document, "rulings":
        "A result's output over 1 MiB goes out as step output before it, and keeps its last 1 MiB."
        => "Send the chunks as step output first, and keep the last 1 MiB here.";
    MSG_9_7 = "MSG-9.7" Error Exchange, "rulings":
        "Chunks of any total are read; without TOTAL the set ends with the next step or result."
        => "Give the total where it is known.",
        shown_by ["chunks::without_a_total_the_farthest_end_is_the_end"];
    MSG_10 = "MSG-10" Error Exchange, "rulings; message document, Version Negotiation":
        "The lowest version both sides know is picked, compared as numbers, and all messages use it."
        => "List all versions you speak when registering.",
        shown_by ["versions::the_lowest_common_version_is_picked", "versions::versions_are_compared_as_numbers"];
    MSG_10_2 = "MSG-10.2" Error Document, "rulings; message document, Protocol Versioning":
        "`protocol_version` is a version we speak: \"1.0\"."
        => "Write \"protocol_version\": \"1.0\", as a string.";
    MSG_10_3 = "MSG-10.3" Error Exchange, "rulings":
        "No common version is answered with 5006, naming the versions of both sides."
        => "Speak a version of the other side's list.",
        implies ["MSG-127"],
        shown_by ["versions::no_common_version_names_both_lists"];
    MSG_11 = "MSG-11" Error Exchange, "rulings; message document, Version Negotiation":
        "Agents register with agent_id, agent_type, supported_versions, work_types and optionally base_url."
        => "Write {\"agent_id\": \"infra-1\", \"agent_type\": \"infra\", \"supported_versions\": [\"1.0\"], \"work_types\": [\"run_playbook\"]}.";
    MSG_11_2 = "MSG-11.2" Error Exchange, "rulings":
        "Over a queue the registration's fields stand in x_custom_fields of the first heartbeat."
        => "Add them there.";
    MSG_11_3 = "MSG-11.3" Error Operation, "rulings":
        "Agents of the configuration need not register; version 1.0 is assumed."
        => "Register to speak another version.";
    MSG_11_4 = "MSG-11.4" Error Exchange, "rulings":
        "A registration is answered with the picked protocol_version and heartbeat_seconds."
        => "Use that version, and send heartbeats at that interval.";
    MSG_11_5 = "MSG-11.5" Error Exchange, "rulings":
        "With a base_url work is pushed there; without one the agent pulls."
        => "Write it like http://127.0.0.1:8000, or leave base_url out where the agent pulls.";
    MSG_12 = "MSG-12" Error Document, "rulings":
        "A heartbeat is a work_status with agent_id, agent_type, status (online, offline, busy), current_task_id, resources and timestamp."
        => "Give all six; current_task_id is null when idle, resources may be {}.";
    MSG_12_2 = "MSG-12.2" Error Exchange, "rulings":
        "Heartbeats go out every 30 s, from our agents only where the registration asked for it."
        => "Send them on the interval the registration answered with.";
    MSG_12_3 = "MSG-12.3" Error Operation, "rulings":
        "An agent that has sent a heartbeat and is then silent for 90 s is unavailable; polls, registrations and replies count as life."
        => "Keep the heartbeat going.";
    MSG_13 = "MSG-13" Error Operation, "rulings; message document, Authentication":
        "Every agent has a token of its own: 32 characters from a cryptographic generator, shown once, stored only as a hash."
        => "Make a new token for each agent.";
    MSG_13_2 = "MSG-13.2" Error Operation, "rulings; message document, Token Storage":
        "Tokens come from the environment or a file, never from argv, and are in no log, error, trace or database."
        => "Use token_file.";
    MSG_13_3 = "MSG-13.3" Error Exchange, "rulings; message document, Token Validation":
        "Over REST the token stands in Authorization: Bearer; over a queue in x_custom_fields.auth_token, removed before the message is stored."
        => "Put the token there and nowhere else.";
    MSG_13_4 = "MSG-13.4" Error Exchange, "rulings; message document, Token Validation":
        "Every incoming message is authenticated before anything in it is looked up; an invalid token is 5004, HTTP 401, not retried."
        => "Check the token; do not retry.";
    MSG_13_5 = "MSG-13.5" Error Exchange, "rulings":
        "An agent's token is bound to that agent: another agent_id or type is 5004."
        => "Use each agent's own token.";
    MSG_13_6 = "MSG-13.6" Error Operation, "rulings":
        "Callers need a token only once one exists; health, schemas and the API description need none."
        => "Create a caller token to close the doors.";
    MSG_13_7 = "MSG-13.7" Error Operation, "rulings":
        "Tokens are compared in constant time."
        => "Compare hashes with a constant-time function.";
    MSG_13_8 = "MSG-13.8" Error Operation, "rulings":
        "The token_file of a configured agent holds the token it must present and that is presented to it."
        => "Give both sides the same file.";
    MSG_13_9 = "MSG-13.9" Error Exchange, "rulings":
        "Over AMQP the token may stand in the header `authorization` too."
        => "Use the header or x_custom_fields.auth_token.";
    MSG_14 = "MSG-14" Error Exchange, "rulings":
        "Over REST work is pushed to {base}/api/agent/message or pulled from /api/agent/messages."
        => "Serve the one or poll the other.";
    MSG_14_2 = "MSG-14.2" Error Exchange, "rulings":
        "A pulled message that is not acknowledged, by ack or by a reply, comes again after 30 s."
        => "Acknowledge what you took.";
    MSG_15 = "MSG-15" Error Operation, "rulings":
        "The queue topology of existing agents can be joined without a precondition error."
        => "Declare queues with the arguments they already have.";
    MSG_15_2 = "MSG-15.2" Error Operation, "rulings":
        "The dead-letter queue is bound with the queues' names, so that no dead letter is lost."
        => "Bind dlx_queue once for each queue.";
    MSG_15_3 = "MSG-15.3" Error Operation, "rulings":
        "New agents have a queue each; messages are persistent, publishes confirmed, and acknowledged after the result is stored."
        => "Acknowledge last.";
    MSG_15_4 = "MSG-15.4" Error Operation, "rulings":
        "Those queues are work_queue (x-max-priority 5), reply_queue and dlx_queue (x-max-length 10000), durable, with dlx_exchange (direct, durable) and broadcast_exchange (fanout, not durable)."
        => "Declare them with exactly these arguments.";
    MSG_16 = "MSG-16" Warning Document, "rulings":
        "A later dialect is read: work_result status completed or cancelled with duration_ms, agent_id, error_message and any resources_used; error `context`, with any code; envelope `priority` 1 to 5."
        => "Write v1.0: status success or failed with exit_code, error_context, no priority.";
    MSG_16_2 = "MSG-16.2" Error Operation, "rulings":
        "What we write is v1.0, whatever dialect was read."
        => "Expect v1.0 from us.";
    MSG_17 = "MSG-17" Error Exchange, "rulings":
        "The HTTP answer to a work_request is an empty 2xx or a work_status, or already the work_result or error."
        => "Answer at once; send the result later or on the same connection.";
    MSG_17_2 = "MSG-17.2" Error Exchange, "rulings":
        "Replies carry the request's request_id and trace_id; they are matched by task_id first, then request_id."
        => "Copy both ids.";
    MSG_17_3 = "MSG-17.3" Error Exchange, "rulings":
        "A caller may wait with ?wait=SECONDS; when that runs out it gets 202 with a work_status."
        => "Configure a callback, or pull.";
    MSG_17_4 = "MSG-17.4" Error Exchange, "rulings":
        "A caller that does not wait gets later messages at its configured callback, or pulls them."
        => "Configure a callback, or pull as agent=NAME.";
    MSG_18 = "MSG-18" Error Operation, "rulings":
        "An agent with a type takes, of work that carries a to_agent, only what is addressed to its type."
        => "Address the type, or leave the agent's type out.";
    MSG_18_2 = "MSG-18.2" Error Exchange, "rulings":
        "`from_agent` of our replies is the agent's type, else the type that was addressed."
        => "Expect the type, not the name.";
    MSG_18_3 = "MSG-18.3" Error Operation, "rulings":
        "An agent without a type takes work addressed to any type, and work that names no type may go to any agent."
        => "Give the agent a type to narrow this.";
    MSG_19 = "MSG-19" Error Exchange, "rulings":
        "An error 5901 with the request's request_id, and its task_id in the context, cancels that work, from a caller or to an agent."
        => "Send it with both ids of the work_request.",
        shown_by ["message_talk::a_cancel_names_its_work"];
    MSG_19_2 = "MSG-19.2" Error Exchange, "rulings":
        "An agent whose attempt is given up is sent that error where no further attempt goes to it; if it goes on anyway, its result is late."
        => "Stop the work.";
    MSG_19_3 = "MSG-19.3" Error Operation, "rulings":
        "`resources` of heartbeats are shown, and not used for routing."
        => "Say busy where an agent takes no more work.";
    MSG_19_4 = "MSG-19.4" Error Exchange, "rulings":
        "`token_status` of 5004 is missing, malformed, unknown, expired, revoked, wrong_agent or wrong_scope."
        => "Write one of the seven.";

    MSG_101 = "MSG-101" Error Document, "message document, Message Envelope":
        "`type` is work_request, work_status, work_result or error."
        => "Write one of the four, in lower case.";
    MSG_102 = "MSG-102" Error Document, "message document, Message Envelope":
        "`payload` is an object."
        => "Write the type's content as an object.";
    MSG_103 = "MSG-103" Error Document, "message document, work_request":
        "A work_request has task_id and work_type."
        => "Add the missing field to `payload`.";
    MSG_104 = "MSG-104" Error Document, "message document, work_request":
        "`work_type` is a string that names the work."
        => "Write the work's name in double quotes.";
    MSG_105 = "MSG-105" Error Document, "message document, work_request":
        "`hints.max_duration_seconds` and `hints.max_memory_mb` are numbers of at least 0."
        => "Write a number of at least 0, without quotes.";
    MSG_106 = "MSG-106" Error Document, "message document, work_status":
        "A work_status has task_id, status, progress_percent and step."
        => "Add the missing field to `payload`.";
    MSG_107 = "MSG-107" Error Document, "message document, work_status":
        "A work_status's `status` is running, step_completed or paused; a heartbeat's is online, offline or busy."
        => "Write one of these, in lower case.";
    MSG_108 = "MSG-108" Error Document, "message document, work_status":
        "`step` is an object with an integer `number` and a string `name`."
        => "Write \"step\": {\"number\": 2, \"name\": \"Configure\"}.";
    MSG_109 = "MSG-109" Error Document, "message document, work_result":
        "A work_result has task_id, status, exit_code and output."
        => "Add the missing field to `payload`.";
    MSG_110 = "MSG-110" Error Document, "message document, work_result":
        "A work_result's `status` is success or failed."
        => "Write \"success\" or \"failed\".";
    MSG_111 = "MSG-111" Error Document, "message document, work_result":
        "`exit_code` is an integer of at least 0."
        => "Write 0 for success and a positive number for failure.";
    MSG_112 = "MSG-112" Error Document, "message document, work_result":
        "`output` is a string."
        => "JSON-encode structured output into the string.";
    MSG_113 = "MSG-113" Error Document, "message document, work_result":
        "duration_seconds, gpu_vram_mb and cpu_time_ms are integers."
        => "Write a whole number, without quotes.";
    MSG_114 = "MSG-114" Error Document, "message document, error":
        "An error has error_code, error_message and error_context."
        => "Add the missing field to `payload`; error_context may be {} for codes without a row.";
    MSG_115 = "MSG-115" Error Document, "message document, error":
        "`error_message` is a string."
        => "Say what went wrong in words.";
    MSG_116 = "MSG-116" Error Document, "message document, error":
        "`error_context` is an object."
        => "Write an object.";
    MSG_121 = "MSG-121" Error Exchange, "message document, work_request (Timing)":
        "A work_request is sent once a task and answered by work_status messages, then one result."
        => "Repeat it only as a retry, with the same request_id.";
    MSG_122 = "MSG-122" Error Exchange, "message document, work_result (Timing)":
        "A work_result is sent exactly once and ends the task."
        => "Send nothing for the task after it.",
        implies ["ALL-9.3"];
    MSG_123 = "MSG-123" Error Exchange, "message document, Key Principles":
        "The trace_id is the same from end to end."
        => "Copy it into every message about the same work.";
    MSG_124 = "MSG-124" Error Operation, "message document, Error Codes":
        "Error codes are permanent and versioned with the protocol."
        => "Never give a code another meaning.";
    MSG_125 = "MSG-125" Error Exchange, "message document, Large Payloads":
        "The orchestrator collects and reassembles all chunks."
        => "Order them by START.";
    MSG_126 = "MSG-126" Error Exchange, "message document, Backwards Compatibility":
        "A v2 agent speaks v1.0 messages with a v1 orchestrator."
        => "Downgrade to the version that was picked.";
    MSG_127 = "MSG-127" Warning Exchange, "message document, Backwards Compatibility":
        "A v1 agent that receives a v2 message answers with error_code 5006."
        => "Name the versions you speak in the answer.";
    MSG_128 = "MSG-128" Error Exchange, "message document, Key Principles":
        "The model is request and response without state between requests."
        => "Put all an agent needs into the request.";
    MSG_129 = "MSG-129" Error Exchange, "message document, Message Types (Direction)":
        "A work_request goes from orchestrator to agent, work_status and work_result go back, and an error goes either way."
        => "Send the type that fits the direction.";
    MSG_130 = "MSG-130" Error Operation, "message document, Token Storage":
        "Tokens are not committed to version control."
        => "Keep token files outside the repository.";
}
