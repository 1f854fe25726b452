//! The bridge contract: two files, a program that exits, and a driver that resumes it.

crate::clause::clauses! {
    BRIDGE_1 = "BRIDGE-1" Error Document, "rulings; bridge document, 3. All Required Fields, Mistake 4":
        "A response has all nine fields: request_id, version, status, response, error_message, error_type, created_at, duration_seconds, metadata."
        => "Add the missing field; error_message and error_type are null on success, metadata may be {}.";
    BRIDGE_1_2 = "BRIDGE-1.2" Error Document, "rulings; bridge document, 2. Data Type, Mistakes 2 and 3":
        "`response` is a string or null, never an object."
        => "JSON-encode it: in Python \"response\": json.dumps(output); for a file as it is, jq '.response |= tojson'.";
    BRIDGE_1_3 = "BRIDGE-1.3" Warning Document, "rulings":
        "A response has no other top-level fields: existing readers refuse them."
        => "Move it into `metadata`, which is open.";
    BRIDGE_1_4 = "BRIDGE-1.4" Error Operation, "rulings":
        "Unknown top-level fields are never written into a response; `metadata` is open."
        => "Carry further facts in `metadata`.",
        implies ["BRIDGE-1.3"],
        shown_by ["bridge::door::every_failure_is_a_response_too", "law::whatever_an_agent_says_reaches_the_caller"];
    BRIDGE_2 = "BRIDGE-2" Error Document, "rulings; bridge document, 1. Field Name, Mistake 1":
        "The agent's output stands in `response`; `result` in its place is a mistake."
        => "Rename `result` to `response`.";
    BRIDGE_3 = "BRIDGE-3" Error Document, "rulings; bridge document, Field Specifications":
        "`status` is success, error or timeout."
        => "Write one of \"success\", \"error\", \"timeout\", in lower case.";
    BRIDGE_3_2 = "BRIDGE-3.2" Error Document, "rulings; bridge document, Field Specifications":
        "On success `response` is a string, and `error_message` and `error_type` are null."
        => "Give the output and null the two error fields, or set `status` to \"error\".";
    BRIDGE_3_3 = "BRIDGE-3.3" Error Document, "rulings":
        "On error and timeout `response` is null, and `error_message` and `error_type` are non-empty strings."
        => "Null the response and say what went wrong: error_message in words, error_type for programs.";
    BRIDGE_3_4 = "BRIDGE-3.4" Error Exchange, "rulings; bridge document, Error Response":
        "`status` error with error_type timeout is legal and reads as a timeout."
        => "Treat it like status timeout.",
        shown_by ["contracts::exchanges::recorded_exchanges_are_the_same_byte_for_byte"];
    BRIDGE_4 = "BRIDGE-4" Error Exchange, "rulings; bridge document, Generation Algorithm":
        "The response's `request_id` equals the request's."
        => "Read request_id from the request file and copy it into the response.",
        shown_by ["bridge::watch::a_requester_that_goes_on_as_fast_as_it_can_gets_each_answer_to_its_own"];
    BRIDGE_4_2 = "BRIDGE-4.2" Error Operation, "rulings":
        "A stale or malformed response found when a request is to be answered is renamed, kept and reported; the request is answered."
        => "Look at the file .agent-response.json.stale-N.",
        shown_by ["bridge::watch::a_response_that_answers_nothing_is_set_aside_and_a_second_one_too"];
    BRIDGE_4_3 = "BRIDGE-4.3" Error Operation, "rulings":
        "A requester that reads a foreign request_id refuses the response and says which id it expected."
        => "Compare the two ids before using an answer.",
        implies ["BRIDGE-4"],
        shown_by ["bridge::agent::an_answer_to_another_request_is_refused_with_the_id_that_was_expected"];
    BRIDGE_4_4 = "BRIDGE-4.4" Error Operation, "rulings":
        "A driver that starts and finds a response without a request resumes at once only if it is its own recorded answer."
        => "Leave any other response until a request is to be answered.",
        shown_by ["bridge::kills::a_driver_that_dies_at_any_step_goes_on_from_there", "bridge::run_files::an_answer_to_something_else_is_set_aside_when_there_is_another", "bridge::run_start::a_response_that_is_not_the_recorded_answer_is_not_resumed_with"];
    BRIDGE_4_5 = "BRIDGE-4.5" Warning Document, "rulings; bridge document, Complete Schema":
        "`request_id` is a UUID."
        => "Use a UUID for new requests; a response copies the request's id, whatever it is.";
    BRIDGE_4_6 = "BRIDGE-4.6" Error Operation, "rulings":
        "A request that `bridge run` finds at its start and has no record of is renamed, kept and reported, and the program is started fresh, unless `--resume` says to answer it; `bridge watch` answers every request."
        => "Run the command that the message shows to have it answered.",
        shown_by ["bridge::run_start::a_request_that_no_record_knows_is_set_aside_and_the_program_starts_fresh", "bridge::run_start::the_command_that_is_shown_has_the_request_answered", "bridge::run_start::a_watcher_answers_every_request_that_it_finds"];
    BRIDGE_5 = "BRIDGE-5" Error Operation, "rulings; bridge document, Why Two-Level JSON Parsing":
        "Envelope and inner text are parsed apart: their errors are different errors."
        => "Parse the file first, then the text in `response`.",
        shown_by ["bridge::inner_and_envelope_errors_are_told_apart"];
    BRIDGE_5_2 = "BRIDGE-5.2" Error Document, "rulings; bridge document, Why Two-Level JSON Parsing":
        "The inner text may be anything; where the caller asks for JSON it is one JSON value."
        => "Encode the output with json.dumps(output), not str(output).";
    BRIDGE_6 = "BRIDGE-6" Error Document, "rulings; bridge document, Field Specifications, Mistake 5":
        "`duration_seconds` is a number of at least 0, not a string."
        => "Write seconds as a number of at least 0, without quotes: 1.0.";
    BRIDGE_6_2 = "BRIDGE-6.2" Error Document, "rulings; bridge document, Field Specifications":
        "`created_at` has an offset from UTC."
        => "Add Z or +00:00 (Python: datetime.now(timezone.utc).isoformat()).";
    BRIDGE_6_3 = "BRIDGE-6.3" Error Document, "rulings; bridge document, Field Specifications":
        "`version` is the string \"1.0\", the one version spoken here."
        => "Write \"version\": \"1.0\", as a string.";
    BRIDGE_7 = "BRIDGE-7" Error Operation, "rulings":
        "Files are written whole or not at all: temporary file in the same directory, fsync, rename, fsync of the directory."
        => "Write to a temporary file beside it and rename.",
        shown_by ["bridge::watch::a_reader_in_a_loop_sees_whole_responses_or_none"];
    BRIDGE_7_2 = "BRIDGE-7.2" Error Operation, "rulings; bridge document, Generation Algorithm":
        "Files are UTF-8 with an indent of two spaces, and non-ASCII text is kept as it is."
        => "Python: json.dump(data, f, indent=2, ensure_ascii=False).",
        shown_by ["contracts::exchanges::recorded_exchanges_are_the_same_byte_for_byte"];
    BRIDGE_8 = "BRIDGE-8" Error Operation, "rulings":
        "A driver answers a request over 1 MiB with an error response of type RequestTooLarge."
        => "Pass large content by path.",
        shown_by ["bridge::watch::a_request_that_is_too_large_or_old_is_answered_and_remarked_upon"];
    BRIDGE_8_2 = "BRIDGE-8.2" Error Operation, "rulings":
        "An answer over 10 MiB becomes a complete, valid error response of type ResponseTooLarge."
        => "Have the agent write large output to a file.",
        shown_by ["bridge::run_files::what_is_too_large_is_answered_so"];
    BRIDGE_8_3 = "BRIDGE-8.3" Warning Operation, "rulings":
        "A request older than 600 s is answered, with a warning."
        => "Check that the requester still waits for it.",
        shown_by ["bridge::watch::a_request_that_is_too_large_or_old_is_answered_and_remarked_upon"];
    BRIDGE_8_4 = "BRIDGE-8.4" Error Operation, "rulings":
        "A driver resumes a program at most five times in one run, then exits 1 with the state kept."
        => "Raise the limit if the program needs more agents.",
        shown_by ["bridge::run::who_asks_once_more_than_it_may_is_stopped_and_can_go_on"];
    BRIDGE_8_5 = "BRIDGE-8.5" Error Operation, "rulings":
        "Malformed files are reported and kept, never deleted."
        => "Mend the file; crosspoint validate says where.",
        shown_by ["bridge::watch::a_malformed_request_is_said_once_kept_and_answered_when_it_is_mended", "bridge::agent::each_mistake_is_named_and_waits_to_be_mended"];
    BRIDGE_8_6 = "BRIDGE-8.6" Error Operation, "rulings":
        "The size and age limits bind drivers, not validation."
        => "A large file may be valid and still be refused by a driver.",
        shown_by ["bridge::limits_bind_drivers_not_validation"];
    BRIDGE_9 = "BRIDGE-9" Error Operation, "rulings":
        "When the agent fails, times out or cannot be reached, the requester still gets a valid response file and is resumed."
        => "Write an error or timeout response; the requester has its own fallback.",
        shown_by ["bridge::door::every_failure_is_a_response_too", "matrix::every_door_reaches_every_agent"];

    BRIDGE_101 = "BRIDGE-101" Error Document, "bridge document, Field Specifications":
        "`request_id` is a string."
        => "Write it in double quotes.";
    BRIDGE_102 = "BRIDGE-102" Error Document, "bridge document, Field Specifications":
        "`error_message` and `error_type` are strings or null."
        => "Write a string, or null on success.";
    BRIDGE_103 = "BRIDGE-103" Error Document, "bridge document, Field Specifications":
        "`created_at` is an ISO 8601 timestamp."
        => "Write it like 2025-11-24T14:22:45.123456+00:00.";
    BRIDGE_104 = "BRIDGE-104" Error Document, "bridge document, Field Specifications":
        "`metadata` is an object."
        => "Write {} if there is nothing to say.";
    BRIDGE_105 = "BRIDGE-105" Error Document, "rulings, bridge":
        "A request has request_id, version, agent_name and prompt; without them it cannot be acted on."
        => "Add the missing field.";
    BRIDGE_106 = "BRIDGE-106" Error Document, "rulings, bridge":
        "A request's `phase` is an integer from 1 to 9."
        => "Write the phase as a number from 1 to 9.";
    BRIDGE_107 = "BRIDGE-107" Error Document, "rulings, bridge":
        "A request's `phase_name` is a string."
        => "Write it in double quotes.";
    BRIDGE_108 = "BRIDGE-108" Error Document, "rulings, bridge":
        "A request's `agent_name` is a string."
        => "Name the agent or the work in double quotes.";
    BRIDGE_109 = "BRIDGE-109" Error Document, "rulings, bridge":
        "A request's `prompt` is a string."
        => "Put structured input into `context`, which is an object.";
    BRIDGE_110 = "BRIDGE-110" Error Document, "rulings, bridge":
        "A request's `timeout_seconds` is a number of at least 0, 120 where it is left out."
        => "Write seconds as a number of at least 0, without quotes.";
    BRIDGE_111 = "BRIDGE-111" Error Document, "rulings, bridge":
        "A request's `context` is an object."
        => "Write {} if there is none.";
    BRIDGE_112 = "BRIDGE-112" Error Document, "rulings, bridge":
        "A request's `model` is a string or null."
        => "Name the model in double quotes, or leave it out.";
    BRIDGE_121 = "BRIDGE-121" Error Operation, "rulings, bridge":
        "A requester that needs an agent writes .agent-request.json, saves its own checkpoint and exits with code 42."
        => "Exit 42 after the request file is complete.",
        shown_by ["bridge::ask::a_question_is_asked_once_and_answered_as_often_as_it_is_asked"];
    BRIDGE_122 = "BRIDGE-122" Error Operation, "rulings, bridge":
        "A driver runs the agent, writes .agent-response.json, deletes the request and runs the same command again with --resume."
        => "Write the response before deleting the request.",
        shown_by ["bridge::run::a_program_that_asks_is_answered_and_resumed_and_nothing_is_left"];
    BRIDGE_123 = "BRIDGE-123" Error Operation, "rulings, bridge":
        "The resumed requester reads the response and deletes it."
        => "Delete the response after reading it.",
        shown_by ["bridge::agent::a_job_becomes_a_request_and_the_response_its_outcome"];
    BRIDGE_124 = "BRIDGE-124" Error Operation, "rulings, bridge":
        "Every other exit code is an ordinary one: 0 done, 130 interrupted with the state kept, others are errors."
        => "Keep 42 for \"need agent\".",
        shown_by ["bridge::run::what_the_program_exits_with_is_passed_on"];
    BRIDGE_125 = "BRIDGE-125" Error Operation, "rulings, bridge":
        "`agent_name` is looked up as a work, else as an agent's name."
        => "Configure an agent that takes this work.",
        shown_by ["bridge::door::a_name_is_that_of_a_work_else_that_of_an_agent_and_the_query_wins"];
    BRIDGE_126 = "BRIDGE-126" Error Operation, "rulings, bridge":
        "Both file pairs are supported: .agent-request.json, and .agent-request-phaseN.json with the response of the same phase."
        => "Answer each request in the file of its own phase.",
        shown_by [
            "detection::names_of_files_that_the_contracts_give_say_the_kind",
            "bridge::watch::nine_phases_are_answered_side_by_side_and_a_slow_one_holds_no_other_up"
        ];
}
