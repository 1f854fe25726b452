//! The workflow contract: a stateless function from an input envelope to an output envelope.

crate::clause::clauses! {
    WF_1 = "WF-1" Error Document, "rulings; workflow document, Input Fields":
        "`context.feature_id` is there, as a string, or null for scaffolding."
        => "Write the feature id, or null where there is none yet.";
    WF_1_2 = "WF-1.2" Error Document, "rulings; workflow document, Input Fields":
        "`context.iteration` is an integer of at least 1."
        => "Count from 1.";
    WF_1_3 = "WF-1.3" Error Document, "rulings; workflow document, Input Fields":
        "`task.params` is there and is an object, {} where there are none."
        => "Write \"params\": {}.";
    WF_1_4 = "WF-1.4" Error Document, "rulings":
        "The values of `paths` are strings or arrays of strings."
        => "Write a path, or an array of paths.";
    WF_1_5 = "WF-1.5" Error Document, "rulings; workflow document, Input Fields":
        "`prior_context`, where given, is an array of strings."
        => "Write the notes as an array of strings, or leave it out.";
    WF_2 = "WF-2" Error Document, "rulings; workflow document, Output Fields":
        "`summary` is a non-empty string that says what happened, in success and failure alike."
        => "Say in one sentence what happened.";
    WF_2_2 = "WF-2.2" Warning Document, "rulings; workflow document, Summary for everything":
        "An output has no error object."
        => "Say what went wrong in `summary`.";
    WF_3 = "WF-3" Error Document, "rulings; workflow document, Recommendation Values":
        "`recommendation` is proceed, retry or escalate."
        => "Write one of \"proceed\", \"retry\", \"escalate\".";
    WF_3_2 = "WF-3.2" Error Document, "rulings; workflow document, Recommendation Values":
        "`success` false does not go with `recommendation` proceed."
        => "Recommend retry or escalate, or report success.";
    WF_3_3 = "WF-3.3" Error Operation, "rulings":
        "`success` true with retry or escalate is legal: the agent did its work and what it found was not good."
        => "Accept it and follow the recommendation.",
        shown_by ["golden::success_with_retry_or_escalate_is_legal"];
    WF_4 = "WF-4" Error Document, "rulings; workflow document, Artifact Structure":
        "An artifact's path is relative to the repository root."
        => "Write it without a leading slash: specs/005/spec.md.";
    WF_4_2 = "WF-4.2" Error Document, "rulings":
        "An artifact's path stays inside the repository: no `..`."
        => "Write the path from the repository root.";
    WF_4_3 = "WF-4.3" Error Document, "rulings":
        "An artifact's path names no drive."
        => "Write the path from the repository root, without C:.";
    WF_4_4 = "WF-4.4" Error Document, "rulings":
        "An artifact's path has no NUL character."
        => "Remove it.";
    WF_4_5 = "WF-4.5" Error Document, "rulings":
        "An artifact's path uses `/` between its parts."
        => "Replace \\ by /.";
    WF_4_6 = "WF-4.6" Error Document, "rulings":
        "An artifact's path is a file's name, not a directory's."
        => "Name the file; directories are made as needed.";
    WF_4_7 = "WF-4.7" Error Document, "rulings":
        "No path stands twice in one output."
        => "Merge the two artifacts into one.";
    WF_4_8 = "WF-4.8" Error Document, "rulings":
        "No part of an artifact's path is .git, or a name that some system takes for it, unless the workflow allows it."
        => "Write elsewhere, or allow it in the workflow's definition.";
    WF_4_9 = "WF-4.9" Error Operation, "rulings":
        "No symbolic link stands on the way to an artifact's path."
        => "Write to the place the link points to.",
        shown_by ["workflow_runs::bad_agents::a_path_through_a_link_fails_the_stage"];
    WF_4_10 = "WF-4.10" Error Operation, "rulings":
        "One bad path refuses the whole output, and nothing is written."
        => "Mend the path; the agent is asked again.",
        shown_by ["workflow_runs::bad_agents::a_path_that_leaves_the_repository_fails_the_stage"];
    WF_4_11 = "WF-4.11" Error Operation, "rulings":
        "Paths are taken literally: nothing in them is expanded."
        => "Write the path as it should be on disk.";
    WF_5 = "WF-5" Error Operation, "rulings; workflow document, Artifact Structure":
        "`create` of an existing file and `update` of a missing one are conflicts."
        => "Use create for new files and update for existing ones.",
        shown_by ["workflow_runs::files::a_conflict_is_a_retry_that_names_the_path"];
    WF_5_2 = "WF-5.2" Error Operation, "rulings":
        "Identical content is no change and no conflict."
        => "Compare before writing.",
        shown_by ["workflow_runs::files::identical_content_is_no_conflict"];
    WF_5_3 = "WF-5.3" Error Operation, "rulings":
        "The artifacts of one output are applied all or none, also across a crash, whatever `success` says."
        => "Stage them, then move them into place.",
        shown_by ["workflow_runs::files::ten_thousand_files_are_written_all_or_none", "workflow_runs::kills::server::no_kill_of_a_server_or_its_agents_repeats_or_halves_a_stage"];
    WF_5_4 = "WF-5.4" Error Operation, "rulings":
        "A conflict writes nothing and counts as retry, with the path in `prior_context`."
        => "The agent sees the path and can choose the other operation.",
        shown_by ["workflow_runs::files::a_conflict_is_a_retry_that_names_the_path"];
    WF_6 = "WF-6" Error Exchange, "rulings; workflow document, Output Fields":
        "Notes of one agent become the next one's `prior_context`."
        => "Copy them unchanged.",
        shown_by ["workflow_runs::routes::stages_run_in_their_order_and_hand_on_their_notes_without_names"];
    WF_6_2 = "WF-6.2" Error Exchange, "rulings; workflow document, Key Design Decisions":
        "Agents never learn the graph: no agent names are added to `prior_context`."
        => "Pass the notes without saying whose they are.",
        shown_by ["workflow_runs::routes::stages_run_in_their_order_and_hand_on_their_notes_without_names"];
    WF_6_3 = "WF-6.3" Error Operation, "rulings; workflow document, Recommendation Values":
        "Routing, termination and skipping belong to the workflow's definition."
        => "Let agents recommend and the definition decide.",
        implies ["WF-123"],
        shown_by ["workflow_runs::routes::proceed_may_skip_stages_and_end_the_run"];
    WF_7 = "WF-7" Error Exchange, "rulings":
        "`iteration` counts the loops of the workflow: 1 at first, one more for each retry, seen by all stages from there on."
        => "Add 1 for each retry.",
        shown_by ["workflow_runs::routes::a_retry_goes_where_its_route_says_and_counts_for_all_stages"];
    WF_7_2 = "WF-7.2" Error Operation, "rulings":
        "After the stage's limit, three retries by default, retry counts as escalate."
        => "Set the stage's limit in the definition.",
        shown_by ["workflow_runs::people::when_the_retries_are_used_up_a_person_is_asked"];
    WF_7_3 = "WF-7.3" Error Operation, "rulings; workflow document, Recommendation Values":
        "`escalate` parks the workflow as waiting for a person, with summary and notes shown."
        => "Answer the question to go on.",
        shown_by ["workflow_runs::people::an_escalation_waits_and_the_answer_reaches_the_stage"];
    WF_7_4 = "WF-7.4" Error Exchange, "rulings":
        "The person's answer enters `task.params.answers` as {question, answer} and `prior_context`, and the stage runs again unless its route says otherwise."
        => "Read answers from task.params.answers.",
        shown_by ["workflow_runs::people::an_escalation_waits_and_the_answer_reaches_the_stage"];
    WF_8 = "WF-8" Error Operation, "rulings":
        "An agent is a program (started in the repository root; input envelope on stdin, then its end; output on stdout, exit 0) or an HTTP endpoint."
        => "Write logs to stderr and only the envelope to stdout.";
    WF_8_2 = "WF-8.2" Error Exchange, "rulings":
        "Outside the runner the recommendation is only carried, and `success` false reads as agent_failed."
        => "Use a workflow to have the recommendation followed.";
    WF_9 = "WF-9" Error Operation, "rulings; workflow document, Field Mapping Patterns":
        "The migration patterns are a translation: flat input to `task.params`, members that name files to `paths`, `mode` to `task.action`, outputs to `notes`, `next_recommendation` to `recommendation`, state updates to an artifact at `paths.index` or `--index`."
        => "Rewrite the old document by these patterns: crosspoint migrate.",
        shown_by ["migrate::the_patterns_of_the_contract_are_a_translation", "migrate::members_that_name_files_are_paths", "migrate::the_older_name_of_the_recommendation_is_read", "migrate_law::old_inputs_lose_nothing", "migrate_law::old_outputs_lose_nothing"];
    WF_10 = "WF-10" Error Operation, "rulings":
        "The feature id of a workflow that starts with null is taken from the first artifact path that matches the {feature} of its paths."
        => "Create a file under the feature's root.",
        shown_by ["workflow_runs::routes::a_feature_is_taken_from_the_files_that_a_stage_writes"];

    WF_101 = "WF-101" Error Document, "workflow document, Input Fields":
        "An input has context (with feature_id, workflow, iteration), paths and task (with action, params)."
        => "Add the missing field.";
    WF_102 = "WF-102" Error Document, "workflow document, Input Envelope Schema":
        "`context` and `task` are objects."
        => "Write an object.";
    WF_103 = "WF-103" Error Document, "workflow document, Input Fields":
        "`context.workflow` is the workflow's name, a string."
        => "Write the name in double quotes.";
    WF_104 = "WF-104" Error Document, "workflow document, Input Fields":
        "`paths` is an object of all file paths the agent may need."
        => "Write {} if there are none.";
    WF_105 = "WF-105" Error Document, "workflow document, Input Fields":
        "`task.action` is the action verb, a string."
        => "Write the verb in double quotes.";
    WF_106 = "WF-106" Error Document, "workflow document, Output Fields":
        "An output has success, summary, artifacts and recommendation."
        => "Add the missing field; artifacts may be [].";
    WF_107 = "WF-107" Error Document, "workflow document, Output Fields":
        "`success` is a boolean."
        => "Write true or false, without quotes.";
    WF_108 = "WF-108" Error Document, "workflow document, Output Fields":
        "`artifacts` is an array of objects."
        => "Write an array of {\"path\", \"operation\", \"content\"}; [] if there are none.";
    WF_109 = "WF-109" Error Document, "workflow document, Artifact Structure":
        "An artifact has path, operation and content."
        => "Add the missing field.";
    WF_110 = "WF-110" Error Document, "workflow document, Artifact Structure":
        "An artifact's `path` is a string."
        => "Write the path in double quotes.";
    WF_111 = "WF-111" Error Document, "workflow document, Artifact Structure":
        "An artifact's `operation` is create or update."
        => "Write \"create\" for new files, \"update\" for existing ones.";
    WF_112 = "WF-112" Error Document, "workflow document, Artifact Structure":
        "An artifact's `content` is a string, the complete content of the file."
        => "JSON-encode structured content into the string.";
    WF_113 = "WF-113" Error Document, "workflow document, Output Fields":
        "`notes`, where given, is an array of strings."
        => "Write the notes as an array of strings, or leave it out.";
    WF_114 = "WF-114" Warning Document, "workflow document, Artifacts only; State Updates":
        "An output has no `state_updates`: artifacts are the source of truth."
        => "Return the updated file as an artifact.";
    WF_121 = "WF-121" Error Exchange, "workflow document, Paths, not content":
        "Agents receive file paths and read the files themselves."
        => "Pass paths, not file contents.";
    WF_122 = "WF-122" Error Exchange, "workflow document, Config in paths":
        "`paths` is the single source of all file references."
        => "Put every path there, configuration files included.";
    WF_123 = "WF-123" Error Exchange, "workflow document, Notes without routing":
        "Agents pass context forward without naming the next agent."
        => "Leave routing to the workflow.";
    WF_124 = "WF-124" Error Exchange, "workflow document, Domain-Specific Output Fields":
        "What used to be domain-specific output is summarised in `notes`."
        => "Say it in a note.",
        shown_by ["migrate::notes_say_what_the_members_held"];
}
