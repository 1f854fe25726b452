//! The run contract: an HTTP run, in one answer or as a stream of events.

crate::clause::clauses! {
    RUN_1 = "RUN-1" Error Operation, "rulings":
        "GET /health and GET /health/ready answer with JSON that has a string `status`."
        => "Serve both.";
    RUN_2 = "RUN-2" Error Document, "rulings; run document, Request schema":
        "A run request has request_id and task_type, both non-empty strings."
        => "Add the missing field, as a non-empty string.";
    RUN_2_2 = "RUN-2.2" Error Document, "rulings; run document, Request schema":
        "`inputs` and `budgets` are objects, {} where they are left out; limits on time and memory are numbers from 0 up."
        => "Write an object, or leave the field out.";
    RUN_2_3 = "RUN-2.3" Error Exchange, "rulings; run document, Request schema":
        "An absent `mode` means DEMO to an agent that reads it; it is never filled in on the way."
        => "Send the mode you mean.";
    RUN_2_4 = "RUN-2.4" Error Exchange, "rulings":
        "`budgets` are limits and are handed on."
        => "Keep within them.";
    RUN_3 = "RUN-3" Error Document, "rulings; run document, Sync response shape":
        "`status` is ok, success or error."
        => "Write \"status\": \"ok\", or \"error\".";
    RUN_3_2 = "RUN-3.2" Error Document, "rulings; run document, Sync response shape":
        "`outputs` is there and is an object; it may be {}."
        => "Write \"outputs\": {} if there are none.";
    RUN_3_3 = "RUN-3.3" Error Document, "rulings":
        "`artifacts` is an array of strings, `provenance` and `usage` are objects, `warnings` is an array."
        => "Write \"artifacts\": [\"id\"], \"provenance\": {}, \"usage\": {}, \"warnings\": [], or leave the field out.";
    RUN_3_4 = "RUN-3.4" Error Operation, "rulings":
        "`grounding` and `error` are there only where there is one: we never write null for them. Read, null is absent."
        => "Leave the field out instead of writing null.";
    RUN_3_5 = "RUN-3.5" Error Document, "rulings":
        "An `error` is an object with the strings `code` and `message`."
        => "Write {\"code\": \"TASK_FAILED\", \"message\": \"...\"}.";
    RUN_3_6 = "RUN-3.6" Error Operation, "rulings; run document, Sync response shape":
        "What we originate has status ok and ok true, or status error and ok false, and all recommended fields."
        => "Write both marks.",
        implies ["RUN-3.8", "RUN-104"];
    RUN_3_7 = "RUN-3.7" Warning Document, "rulings; run document, Sync response shape":
        "Accepted in terminal events only: `success` in place of `status`, and `data` in place of `outputs`. Status degraded reads as a success."
        => "Write \"status\": \"ok\" and \"outputs\".";
    RUN_3_8 = "RUN-3.8" Warning Document, "rulings":
        "The marks of success agree; where they do not, status error beats any other."
        => "Make status, ok and success say the same.";
    RUN_3_9 = "RUN-3.9" Warning Document, "rulings":
        "A response with status error has an `error`; without one its code is guessed from the HTTP status."
        => "Add \"error\": {\"code\": \"...\", \"message\": \"...\"}.";
    RUN_3_10 = "RUN-3.10" Error Exchange, "rulings":
        "On error `outputs` is {}, or what the agent gave, which reaches the caller."
        => "Read `outputs` of a failed run too.";
    RUN_3_11 = "RUN-3.11" Error Exchange, "rulings":
        "A failure without `error` is what its HTTP status means, on a 2xx TASK_FAILED."
        => "Add an error with a code of your own.";
    RUN_3_12 = "RUN-3.12" Warning Document, "rulings":
        "An `error` that is a text is its message."
        => "Write {\"code\": \"TASK_FAILED\", \"message\": \"...\"}.";
    RUN_4 = "RUN-4" Error Document, "rulings":
        "`grounding` is an object: chunks is an array of objects, citations an array of strings, retrieval_trace an object."
        => "Write these types; further members are free.";
    RUN_5 = "RUN-5" Error Exchange, "rulings; run document, Overview":
        "An unsupported task_type is HTTP 400 with a contract-shaped body and error.code UNSUPPORTED_TASK_TYPE."
        => "Answer with request_id, ok false, status error, outputs {}, warnings and error.",
        implies ["RUN-123"];
    RUN_5_2 = "RUN-5.2" Error Exchange, "rulings":
        "A malformed body is HTTP 400, VALIDATION_ERROR, in the same shape; request_id is echoed where it could be read."
        => "Validate the body first.";
    RUN_5_3 = "RUN-5.3" Error Exchange, "rulings":
        "A failed run is HTTP 200 with status error."
        => "Keep 4xx and 5xx for requests that were not run.";
    RUN_5_4 = "RUN-5.4" Error Exchange, "rulings":
        "Where the request_id of a malformed body could not be read, one is generated and marked so in `warnings`."
        => "Send a request_id that can be read.";
    RUN_5_5 = "RUN-5.5" Error Exchange, "rulings":
        "Without a readable document an agent's HTTP status is the failure: 429 resource_limit and 503 unavailable, both not begun; 408 and 425 unavailable; 404 and 405 unsupported; other 4xx invalid; other 5xx agent_failed."
        => "Answer with a document of the contract.";
    RUN_5_6 = "RUN-5.6" Error Exchange, "rulings":
        "401, 403 and 407 of an agent, and its own UNAUTHENTICATED, are unavailable without a repeat, and the operator is told that our token was refused."
        => "Mend the agent's token_file, and restart the server.";
    RUN_5_7 = "RUN-5.7" Error Exchange, "rulings":
        "Work that was surely not begun is repeated after the agent's Retry-After, within the time that is left."
        => "Send Retry-After with 429 and 503.";
    RUN_6 = "RUN-6" Error Document, "rulings":
        "A stream begins with a `started` event."
        => "Send started, with request_id and task_type, before anything else.";
    RUN_6_2 = "RUN-6.2" Error Document, "rulings; run document, Stream invariant":
        "A stream has exactly one terminal event (final, complete or done), and it is the last."
        => "Send one final event with all required fields, then close.";
    RUN_6_3 = "RUN-6.3" Error Exchange, "rulings":
        "After the terminal event the server closes the stream."
        => "Close the connection.";
    RUN_6_4 = "RUN-6.4" Error Operation, "rulings; run document, Stream invariant":
        "The terminal event we write is named final."
        => "Write event: final.",
        shown_by ["stream_life::the_terminal_event_we_write_is_final"];
    RUN_6_5 = "RUN-6.5" Warning Document, "rulings; run document, SSE format":
        "An event has an `event:` line; without one the `event` or `type` inside its data names it."
        => "Write the name above the data line: event: NAME.";
    RUN_6_6 = "RUN-6.6" Error Operation, "rulings":
        "Comment lines every 15 s keep proxies from closing the stream."
        => "Write a line with a colon.";
    RUN_6_7 = "RUN-6.7" Error Operation, "rulings":
        "An agent that streams badly can be asked for sync alone."
        => "Set stream = false for the agent.";
    RUN_7 = "RUN-7" Error Exchange, "rulings":
        "A run that fails, times out, is cancelled, whose agent dies or whose stream ends early still gets its one terminal event, with status error."
        => "Send final with status error, ok false, outputs {} and error.",
        implies ["RUN-6.2"],
        shown_by [
            "stream_follower::a_run_whose_upstream_dies_still_gets_its_terminal_event",
            "stream_life::nothing_is_written_after_the_terminal_event"
        ];
    RUN_7_2 = "RUN-7.2" Error Operation, "rulings":
        "Of several terminal events the first with all required fields counts, else the first that says how the run ended and, of a success, has outputs or data; the rest is a recorded violation."
        => "Send one.",
        shown_by [
            "stream_follower::the_first_terminal_event_with_all_required_fields_counts",
            "stream_follower::without_a_complete_one_the_first_that_says_how_the_run_ended_counts"
        ];
    RUN_8 = "RUN-8" Error Document, "rulings; run document, SSE format":
        "Every event's data is one JSON value, over any number of data lines."
        => "Write the JSON on one data: line.";
    RUN_8_2 = "RUN-8.2" Error Operation, "rulings":
        "Lines may end with CRLF, LF or CR."
        => "Any of the three is read.",
        shown_by ["sse::line_ends_are_equal"];
    RUN_8_3 = "RUN-8.3" Warning Document, "rulings; run document, SSE format":
        "An empty line ends the last event too; without it the event is read all the same."
        => "End the stream with an empty line.";
    RUN_9 = "RUN-9" Error Document, "rulings; run document, Sync response shape":
        "`request_id` is echoed byte for byte, so all started, progress and terminal events that carry one carry the same."
        => "Copy request_id from the request.";
    RUN_9_2 = "RUN-9.2" Error Exchange, "rulings":
        "A repeat of a request gets the same result."
        => "Keep results by request_id, task_type and stage_id.",
        implies ["ALL-1.3"];
    RUN_10 = "RUN-10" Error Exchange, "rulings":
        "A client that goes away does not stop the run; asking again it gets the stored result or joins the stream."
        => "Ask again with the same request_id.",
        implies ["RUN-9.2"];
    RUN_10_2 = "RUN-10.2" Error Exchange, "rulings":
        "Who joins a stream under way gets `started` and the latest progress first."
        => "Read it like a stream from its beginning.";
    RUN_11 = "RUN-11" Error Operation, "rulings; run document, PHI-safe logging rules":
        "Logs hold identifiers, durations, status codes and counts, never bodies, inputs, outputs or error bodies."
        => "Log request_id, task_type, duration_ms and status.";
    RUN_11_2 = "RUN-11.2" Error Exchange, "rulings; run document, PHI-safe logging rules":
        "Error texts carry ids and codes; an agent's own report goes to that job's caller alone."
        => "Keep content out of error messages.",
        shown_by ["golden::messages_never_quote_content"];

    RUN_101 = "RUN-101" Error Document, "run document, Request schema":
        "workflow_id, stage_id, user_id, mode, risk_tier and domain_id are strings."
        => "Write a string, or leave the field out.";
    RUN_102 = "RUN-102" Error Document, "run document, Sync response shape":
        "A run response has `request_id`, a non-empty string."
        => "Echo the request's request_id.";
    RUN_103 = "RUN-103" Error Document, "run document, Sync response shape":
        "A run response has a mark of success: `status`, else `ok` or `success`."
        => "Add \"status\": \"ok\", or \"error\".";
    RUN_104 = "RUN-104" Warning Document, "run document, Sync response shape":
        "A run response has artifacts, provenance, usage and warnings."
        => "Add them, empty where there is nothing to say.";
    RUN_105 = "RUN-105" Error Document, "run document, SSE format":
        "A stream has one or more events, and each has data."
        => "Write a data: line for every event.";
    RUN_106 = "RUN-106" Error Document, "run document, Stream invariant":
        "A terminal event has `request_id`, a non-empty string."
        => "Echo the request's request_id.";
    RUN_107 = "RUN-107" Error Document, "run document, Stream invariant":
        "A terminal event has `task_type`, a non-empty string."
        => "Echo the request's task_type.";
    RUN_108 = "RUN-108" Error Document, "run document, Stream invariant":
        "A terminal event has `status`, a string."
        => "Add \"status\": \"ok\", or \"error\".";
    RUN_109 = "RUN-109" Error Document, "run document, Stream invariant; Compatibility notes":
        "A terminal event has `outputs`, or `data`, an object."
        => "Add \"outputs\": {}.";
    RUN_110 = "RUN-110" Warning Document, "run document, Required fields by event type":
        "A started event has `request_id`."
        => "Add it to the event's data.";
    RUN_111 = "RUN-111" Warning Document, "run document, Required fields by event type":
        "A started event preferably has `task_type`."
        => "Add it to the event's data.";
    RUN_121 = "RUN-121" Error Operation, "run document, Overview + endpoints":
        "Agents serve POST {base}/agents/run/sync and POST {base}/agents/run/stream, with the same JSON request body."
        => "Serve both endpoints.";
    RUN_122 = "RUN-122" Error Exchange, "run document, SSE format":
        "A stream's content type is text/event-stream."
        => "Set the Content-Type header.";
    RUN_123 = "RUN-123" Warning Exchange, "run document, Overview + endpoints":
        "The body of a 4xx to an unsupported task_type is read as a run response."
        => "Read the body of a 4xx as a run response.";
    RUN_124 = "RUN-124" Error Document, "run document, Required fields by event type":
        "A terminal event's data is an object."
        => "Write an object with request_id, task_type, status and outputs.";
    RUN_125 = "RUN-125" Error Document, "run document, SSE format":
        "Every event has a name, from its `event:` line or from inside its data."
        => "Write the name above the data line: event: NAME.";
}
