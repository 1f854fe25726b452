//! The rules that hold for every contract.

super::clauses! {
    ALL_1 = "ALL-1" Error Exchange, "rulings":
        "A request key, scoped to the caller, makes a repeat the same job: the Idempotency-Key header, else the contract's own id."
        => "Send the same key when repeating, and a new key for new work.";
    ALL_1_5 = "ALL-1.5" Error Exchange, "rulings":
        "The contract's own key is: message request_id, task id, bridge request_id, run request_id with task_type and stage_id."
        => "Give every request its own id; a run's trace id may cover several stages.";
    ALL_1_2 = "ALL-1.2" Error Exchange, "rulings":
        "The workflow contract has no request key of its own: without the header, every envelope is a new job."
        => "Send an Idempotency-Key header where an envelope may be repeated.";
    ALL_1_3 = "ALL-1.3" Error Exchange, "rulings":
        "A repeat of a request key gets the same job."
        => "Look the key up before starting work, and answer with the job that has it.";
    ALL_1_4 = "ALL-1.4" Error Exchange, "rulings":
        "The same key with other work or other input, compared as JSON values and numbers by their exact decimal value, is a conflict."
        => "Use a new key for different work; envelope fields such as timestamps may differ.";
    ALL_2 = "ALL-2" Error Exchange, "rulings":
        "Every dispatch of a job, on every attempt, carries the job's own id as the contract's request id and task id."
        => "Do not pass the caller's id to an agent as the request id.";
    ALL_2_2 = "ALL-2.2" Error Exchange, "rulings":
        "The caller's own id travels beside the job's id and comes back to the caller byte for byte."
        => "Keep the caller's id as it was spelled.";
    ALL_3 = "ALL-3" Error Operation, "rulings":
        "Attempts at message agents, which promise not to repeat a request id, are retried as MSG-5 says."
        => "Retry with the same request_id and a new message_id.";
    ALL_3_2 = "ALL-3.2" Error Operation, "rulings":
        "At agents of other contracts an attempt is repeated only if the work surely never started, unless the agent is marked repeatable."
        => "Set repeatable = true only for agents whose work may safely run twice.";
    ALL_3_3 = "ALL-3.3" Error Operation, "rulings":
        "Only timeout, unavailable and resource_limit are retried by the engine itself."
        => "Report every other failure at once.";
    ALL_3_4 = "ALL-3.4" Error Operation, "rulings":
        "An attempt cut short by a crash of the orchestrator is taken up at the next start, in the way its contract allows."
        => "Programs run again, task agents are polled on, message agents get the same request id; run and workflow endpoints only if repeatable.";
    ALL_3_5 = "ALL-3.5" Error Operation, "rulings":
        "After a crash a program marked repeatable = false does not run again, and what cannot be taken up fails as unavailable, repeat unknown."
        => "Look whether the work was done before sending it again.";
    ALL_4 = "ALL-4" Error Operation, "rulings":
        "Silence ends an attempt: message 30 s, run streams 60 s without a byte, task 30 s without an answered poll; configurable per agent."
        => "Send progress, comments or poll answers often enough, or configure silence_seconds.";
    ALL_4_2 = "ALL-4.2" Error Operation, "rulings":
        "The total time is what the request says, else 3,600 s."
        => "State the time the work may take in hints, budgets or timeout_seconds.";
    ALL_5 = "ALL-5" Error Exchange, "rulings":
        "Waiting for a person shows in each contract's own way: task input_required, message paused, run progress with the question."
        => "Show the question where callers of that contract look for it.";
    ALL_5_2 = "ALL-5.2" Error Exchange, "rulings":
        "The person's answer comes by POST /tasks/{id}/input or the native API."
        => "Answer there; other doors only show the question.";
    ALL_5_3 = "ALL-5.3" Error Operation, "rulings":
        "Silence clocks stand still while a job waits for a person."
        => "Stop the clock on the question and start it again on the answer.";
    ALL_5_4 = "ALL-5.4" Error Exchange, "rulings":
        "While a job waits, run sync and the workflow door hold for sync_wait_seconds, then answer 504 in the contract's shape; bridge keeps waiting."
        => "Ask again with the same key; the job goes on.";
    ALL_6 = "ALL-6" Error Exchange, "rulings":
        "Work that was never configured nor registered is refused at once as unsupported."
        => "Configure an agent for this work, or correct its name.";
    ALL_6_2 = "ALL-6.2" Error Exchange, "rulings":
        "Known work whose agents are away is accepted and shown as stuck, with the reason."
        => "Look at the job's `stuck` field; start the agent.";
    ALL_7 = "ALL-7" Error Exchange, "rulings":
        "Where a contract needs a UUID and the source has none, it is the UUIDv5 of the source's bytes, and the original is carried."
        => "Derive the id from the source, do not invent one.";
    ALL_7_2 = "ALL-7.2" Error Exchange, "rulings":
        "A message trace_id and a task traceId are the same id, with and without hyphens."
        => "Add or remove the hyphens and nothing else.";
    ALL_7_3 = "ALL-7.3" Error Operation, "rulings":
        "Writers take time and new ids as arguments."
        => "Pass the clock's reading in; do not read a clock while writing.";
    ALL_8 = "ALL-8" Error Exchange, "rulings":
        "An outcome keeps what the agent gave: an object, a text, or both."
        => "Do not turn one into the other before a contract needs it.";
    ALL_8_2 = "ALL-8.2" Error Exchange, "rulings":
        "Towards a contract whose result is an object, a mere text is {\"output\": text}."
        => "Wrap the text in an object with the one member `output`.";
    ALL_8_3 = "ALL-8.3" Error Exchange, "rulings":
        "Towards a contract whose result is a text, a mere object is its compact JSON text, key order kept, non-ASCII unescaped."
        => "Write the object compactly, without sorting its keys.";
    ALL_8_4 = "ALL-8.4" Error Exchange, "rulings":
        "A prompt is {\"prompt\": text, \"context\": {...}} towards contracts whose input is an object."
        => "Put prompt and context side by side in one object.";
    ALL_8_5 = "ALL-8.5" Error Exchange, "rulings":
        "Coming back, the original form of input and output is restored."
        => "Remember which form it had.";
    ALL_8_6 = "ALL-8.6" Error Exchange, "rulings":
        "Towards the workflow contract the summary says in one sentence what happened, and an object is carried."
        => "Read the object from x_crosspoint.";
    ALL_9 = "ALL-9" Error Operation, "rulings":
        "Events are shown only after they are committed."
        => "Commit first, then tell.";
    ALL_9_2 = "ALL-9.2" Error Operation, "rulings":
        "Progress is coalesced to ten events a second for each job."
        => "Keep the latest progress and drop what it replaces.";
    ALL_9_3 = "ALL-9.3" Error Exchange, "rulings":
        "Nothing follows the outcome of a job."
        => "Record what arrives late as a violation; do not show it as an event.";
    ALL_10 = "ALL-10" Error Exchange, "rulings":
        "An artifact's name in the task contract is its path in the workflow contract."
        => "Map name and path to each other unchanged.";
    ALL_10_2 = "ALL-10.2" Error Exchange, "rulings":
        "An artifact's type, where the source has none, comes from its file extension, else it is text/plain."
        => "Take the type from the extension.";
    ALL_10_3 = "ALL-10.3" Error Exchange, "rulings":
        "An artifact's operation, where the source has none, is create."
        => "Write create.";
    ALL_10_4 = "ALL-10.4" Error Exchange, "rulings":
        "Towards the run contract an artifact's name is its id."
        => "List the names in `artifacts`.";
    ALL_10_5 = "ALL-10.5" Error Exchange, "rulings":
        "What a contract has no artifact field for is carried."
        => "Carry it under x_crosspoint.";
    ALL_11 = "ALL-11" Warning Document, "rulings":
        "An optional member that is null reads as absent."
        => "Leave the member out instead of writing null.";
    ALL_11_2 = "ALL-11.2" Error Exchange, "rulings":
        "An optional member, or an optional part of one, that has the wrong type is kept where it is and not used: a warning, whatever the level of its own clause."
        => "Write the type that the hint names, or leave the member out.",
        shown_by ["tolerance::an_optional_member_of_any_type_is_at_most_a_warning"];
    ALL_11_3 = "ALL-11.3" Error Exchange, "rulings":
        "What a caller gives as input or as a limit is never guessed: a wrong type is refused, and so is a value outside its list."
        => "Send the type that the contract names.",
        shown_by ["tolerance::input_and_limits_of_the_wrong_type_are_refused"];
    ALL_11_4 = "ALL-11.4" Error Exchange, "rulings":
        "An agent's answer is unreadable only where it cannot be told that it is this job's, whether the work went well, or, of a success, what came of it; whatever else is wrong is a violation on record, and the outcome stands."
        => "Look at the job's violations.",
        shown_by ["tolerance::nothing_but_id_mark_and_output_costs_an_outcome", "tolerance::a_missing_mark_or_output_costs_the_outcome"];
    ALL_11_5 = "ALL-11.5" Error Exchange, "rulings":
        "Words of an agent that are no document of its contract are kept and shown to the job's caller beside our failure, and never logged."
        => "Read the failure's details.";
    ALL_11_6 = "ALL-11.6" Error Exchange, "rulings":
        "What an agent gave with a failure is kept like what it gave with a success."
        => "Read the outcome's outputs.";
    ALL_12 = "ALL-12" Error Exchange, "rulings":
        "An answer reaches its caller whole, or says that it is not."
        => "Get the rest where `truncated.href` says.";
    ALL_12_2 = "ALL-12.2" Error Operation, "rulings":
        "The text of an outcome, of up to 10 MiB, is put together from the stored blocks when a document is written."
        => "Store what is printed as it comes; do not gather it in memory.";
    ALL_12_3 = "ALL-12.3" Error Exchange, "rulings":
        "Of a text over 10 MiB a contract with an open field gets the last MiB, with truncated {bytes, href} there; the bridge gets ResponseTooLarge."
        => "GET /api/v1/jobs/{id}/output has all of it.";
    ALL_12_4 = "ALL-12.4" Error Exchange, "rulings":
        "What a program printed is its text, and the last line that is a JSON object is its object; a lone JSON line is an object alone."
        => "Print one JSON object on a line of its own, or give outputs with an @crosspoint line.";
    ALL_12_5 = "ALL-12.5" Error Exchange, "rulings":
        "Of an object with text around it object contracts get the object with the text carried, and text contracts the whole text."
        => "Look for the text in outcome.text, or under x_crosspoint.";
    ALL_12_6 = "ALL-12.6" Error Operation, "rulings":
        "Outputs that a program gives by directive are an object, and what else it printed stays step output."
        => "Print what callers are to read as text, or put it into the outputs.";
    ALL_13 = "ALL-13" Error Operation, "rulings":
        "An attempt that was cut short three times in a row by an unclean end of the orchestrator is not begun a fourth time; the job waits for an operator."
        => "crosspoint jobs retry runs the same job again; cancel ends it.";

    ALL_101 = "ALL-101" Error Document, "RFC 8259; message document, Error Codes (5003)":
        "A document is one well-formed JSON value and nothing else."
        => "Write it with a JSON library instead of by hand.";
    ALL_102 = "ALL-102" Error Document, "RFC 8259, 8.1; run document, SSE format; bridge document, Generation Algorithm":
        "Documents are UTF-8."
        => "Save the file as UTF-8 (Python: open(path, \"w\", encoding=\"utf-8\")).";
    ALL_103 = "ALL-103" Error Document, "RFC 7493, 2.3":
        "A name stands at most once in an object; readers disagree on which of two counts."
        => "Remove one of the two.";
    ALL_104 = "ALL-104" Error Document, "RFC 7493, 2.1":
        "Strings hold whole characters, no lone half of a surrogate pair."
        => "Write the character itself, or both halves of the pair (\\ud83d\\ude00); cut text between characters.";
    ALL_105 = "ALL-105" Warning Document, "RFC 7493, 2.2":
        "Numbers fit a 64-bit integer or a finite 64-bit float; readers lose what does not."
        => "Write larger numbers as strings.";
    ALL_106 = "ALL-106" Warning Document, "RFC 8259, 8.1":
        "A document does not begin with a byte order mark."
        => "Save without one (Python: encoding=\"utf-8\", not \"utf-8-sig\").";
    ALL_107 = "ALL-107" Error Document, "limits":
        "Values nest at most 127 levels deep."
        => "Flatten the payload, or carry the deep part as a JSON-encoded string.";
    ALL_108 = "ALL-108" Error Document, "the five documents, their schemas":
        "A document of every contract is a JSON object; a run stream is a sequence of events."
        => "Wrap the content in the envelope of its contract.";

    ALL_121 = "ALL-121" Error Operation, "rulings, preface":
        "What we originate passes the strictest validator."
        => "Validate with --strict what a program writes.";
    ALL_122 = "ALL-122" Error Operation, "rulings, preface":
        "Looseness that is accepted is reported as a warning, never silently."
        => "Read the warnings; the strict form is in the hint.",
        shown_by ["golden::tolerated_looseness_is_warned_of"];
    ALL_123 = "ALL-123" Error Operation, "rulings, preface":
        "Unknown fields are never an error and never dropped."
        => "Keep members you do not know beside those you do.",
        shown_by ["golden::unknown_members_are_kept_and_are_no_error"];
    ALL_124 = "ALL-124" Error Exchange, "rulings, Nothing is lost":
        "Every field of every contract has a home in the canonical job, or is kept beside it."
        => "Carry what has no home.";
    ALL_125 = "ALL-125" Error Exchange, "rulings, Nothing is lost":
        "What another contract has no field for travels in its open object, else under one extra member; the key is x_crosspoint."
        => "Carry under x_crosspoint.";
    ALL_126 = "ALL-126" Error Exchange, "rulings, Nothing is lost":
        "Reading A, writing B, reading B and writing A gives the JSON value that was read."
        => "Put back what was carried where it was, with nothing added.";
    ALL_127 = "ALL-127" Error Exchange, "rulings, Nothing is lost":
        "Nothing that the other contract has a field for is carried, and changing such a field shows in what comes back."
        => "Carry only what has no field.";
    ALL_128 = "ALL-128" Error Operation, "rulings, Nothing is lost":
        "A document that has no counterpart in the other contract says so."
        => "Translate it to a contract that knows such documents.";
    ALL_129 = "ALL-129" Error Operation, "rulings, Nothing is lost":
        "Carrying can be turned off for agents that refuse unknown fields; the losses are then listed on the job."
        => "Look at the job's losses.";
    ALL_130 = "ALL-130" Error Exchange, "rulings, One failure list":
        "A failure is one of a closed list, and each has its code in every contract."
        => "Use the code of the list.";
    ALL_131 = "ALL-131" Error Exchange, "rulings, One failure list":
        "Reading a failure, a carried one comes first, else the first row that matches; any other code is agent_failed."
        => "Carry the failure, or use a code of the list.";
    ALL_132 = "ALL-132" Error Exchange, "rulings, One failure list":
        "An agent's own code, message, details and recoverable mark are kept and shown beside ours."
        => "Do not replace what the agent said.";
    ALL_133 = "ALL-133" Error Exchange, "rulings, One failure list":
        "Every failure tells the caller whether sending the request again is safe."
        => "Look at `repeat`: safe, unknown or never.";
    ALL_134 = "ALL-134" Error Exchange, "rulings, One failure list":
        "A door that refuses answers with the HTTP status of the failure, in the contract's shape, and 429 carries Retry-After."
        => "Look the status up in the failure list.";
    ALL_135 = "ALL-135" Error Exchange, "rulings, One failure list":
        "The bridge's RequestTooLarge and ResponseTooLarge read as resource_limit."
        => "Send less, or raise the limit.";
    ALL_141 = "ALL-141" Error Exchange, "rulings, One failure list":
        "timeout: message 5001, bridge timeout, task TIMEOUT, run TIMEOUT (200), workflow retry, 504 where a wait ran out; repeat unknown."
        => "Ask for the job before sending it again.";
    ALL_142 = "ALL-142" Error Exchange, "rulings, One failure list":
        "unavailable: message 5002, bridge agent_unavailable, task and run AGENT_UNAVAILABLE (200), workflow retry, 503 at a door; repeat safe before dispatch, else unknown."
        => "Start the agent.";
    ALL_143 = "ALL-143" Error Exchange, "rulings, One failure list":
        "invalid: message 5003, bridge invalid_request, task INVALID_INPUT or the more exact code, run VALIDATION_ERROR (400), workflow escalate; 400, 404 or 413 at a door; repeat never."
        => "Mend the request.";
    ALL_144 = "ALL-144" Error Exchange, "rulings, One failure list":
        "unauthenticated: message 5004, bridge authentication_failed, task and run UNAUTHENTICATED (401), workflow escalate; 401 or 403 at a door; repeat never."
        => "Send a valid token.";
    ALL_145 = "ALL-145" Error Exchange, "rulings, One failure list":
        "resource_limit: message 5005, bridge resource_limit, task AGENT_BUSY or RATE_LIMITED, run RESOURCE_LIMIT (200), workflow retry; 429 with Retry-After at a door; repeat safe before dispatch, else unknown."
        => "Wait and send it again.";
    ALL_146 = "ALL-146" Error Exchange, "rulings, One failure list":
        "unsupported: message 5006, bridge unsupported_work, task CAPABILITY_NOT_FOUND or AGENT_NOT_FOUND, run UNSUPPORTED_TASK_TYPE (400), workflow escalate; 400 at a door; repeat never."
        => "Ask for work that an agent takes.";
    ALL_147 = "ALL-147" Error Exchange, "rulings, One failure list":
        "agent_failed: a message work_result failed; in the others the agent's own code, else agent_failed, INTERNAL_ERROR, TASK_FAILED (200), workflow as the agent said, else escalate; repeat never."
        => "Look at what the agent reported.";
    ALL_148 = "ALL-148" Error Exchange, "rulings, One failure list":
        "cancelled: message 5901, bridge cancelled, task status cancelled, run CANCELLED (200), workflow escalate; repeat never."
        => "Send a new request if the work is still wanted.";
    ALL_149 = "ALL-149" Error Exchange, "rulings, One failure list":
        "delegation: message 5902, bridge delegation, task TASK_GRAPH_CYCLE or DELEGATION_FAILED, run DELEGATION (400), workflow escalate; 400 at a door; repeat never."
        => "Break the circle.";
    ALL_150 = "ALL-150" Error Exchange, "rulings, One failure list":
        "conflict: message 5903, bridge request_conflict, task INVALID_FIELD_VALUE, run CONFLICT (409), workflow escalate; 409 at a door; repeat never."
        => "Use a new request key for other work.";
    ALL_151 = "ALL-151" Error Exchange, "rulings, One failure list":
        "broken_contract, an answer that cannot be read: message 5904, bridge agent_broke_contract, task AGENT_UNAVAILABLE, run AGENT_BROKE_CONTRACT (200), workflow retry; repeat unknown."
        => "Mend the agent; crosspoint validate says what is wrong with its answer.";
    ALL_152 = "ALL-152" Error Exchange, "rulings, One failure list":
        "internal: message 5900, bridge internal, task INTERNAL_ERROR, run INTERNAL (500), workflow retry; 500 at a door; repeat unknown."
        => "Look at the server's log.";
}
