//! The demo contract: a question and its answer.

crate::clause::clauses! {
    DEMO_101 = "DEMO-101" Error Document, "demo document":
        "`id` is a string that is not empty, and is there."
        => "Add \"id\": \"...\"; an answer repeats that of its question.";
    DEMO_102 = "DEMO-102" Error Document, "demo document":
        "A question has `work`, a string that is not empty."
        => "Add \"work\": \"...\", the name of what is to be done.";
    DEMO_103 = "DEMO-103" Error Document, "demo document":
        "`input` is an object; so is `output`, which every answer has."
        => "Write an object: {}.";
    DEMO_104 = "DEMO-104" Error Document, "demo document":
        "An answer has `ok`, true or false."
        => "Add \"ok\": true, or false where it failed.";
}
