//! Routes that lead nowhere, or round and round.

use super::mistakes;

/// A workflow of stages `a`, `b`, `c`, ... with these lines.
fn stages(lines: &[&str]) -> String {
    let stage =
        |(line, id): (&&str, char)| format!("[[stage]]\nid = \"{id}\"\nagent = \"x\"\naction = \"do\"\n{line}\n");
    std::iter::once("name = \"w\"\n".to_owned()).chain(lines.iter().zip('a'..).map(stage)).collect()
}

#[test]
fn a_loop_of_proceed_is_named() {
    let found = mistakes(&stages(&["", "proceed = \"c\"", "proceed = \"b\""]));
    assert!(found.contains("go round without end: b -> c -> b"), "{found}");
    assert!(mistakes(&stages(&["proceed = \"a\""])).contains("a -> a"));
}

#[test]
fn two_loops_are_two_mistakes_and_each_is_named_once() {
    let found = mistakes(&stages(&["proceed = \"b\"", "proceed = \"a\"", "proceed = \"d\"", "proceed = \"c\""]));
    assert!(found.contains("a -> b -> a") && found.contains("c -> d -> c"), "{found}");
    assert_eq!(found.matches("without end").count(), 2);
}

#[test]
fn a_way_into_a_loop_is_no_loop_of_its_own() {
    let found = mistakes(&stages(&["proceed = \"c\"", "proceed = \"c\"", "proceed = \"d\"", "proceed = \"c\""]));
    assert_eq!(found.matches("without end").count(), 1);
}

#[test]
fn a_loop_of_retry_has_a_limit_and_is_fine() {
    assert_eq!(mistakes(&stages(&["", "retry = { goto = \"a\" }"])), "");
}

#[test]
fn a_stage_that_no_route_leads_to_is_a_warning() {
    let found = mistakes(&stages(&["proceed = \"done\"", ""]));
    assert!(found.starts_with("warning") && found.contains("no route leads to the stage \"b\""), "{found}");
    assert_eq!(mistakes(&stages(&["proceed = \"done\"\nretry = { goto = \"b\" }", "proceed = \"done\""])), "");
    assert_eq!(mistakes(&stages(&["proceed = \"done\"\nescalate = { then = \"b\" }", "proceed = \"done\""])), "");
}

#[test]
fn a_retry_that_is_never_taken_leads_to_no_stage() {
    let retry = |limit| format!("proceed = \"done\"\nretry = {{ goto = \"b\", limit = {limit} }}");
    let found = mistakes(&stages(&[&retry(0), "proceed = \"done\""]));
    assert!(found.starts_with("warning") && found.contains("no route leads to the stage \"b\""), "{found}");
    assert_eq!(mistakes(&stages(&[&retry(1), "proceed = \"done\""])), "");
    // Nor is it a loop.
    assert_eq!(mistakes(&stages(&["", "retry = { goto = \"a\", limit = 0 }"])), "");
}

#[test]
fn a_route_to_a_stage_that_could_not_be_read_is_one_mistake_and_not_two() {
    let text = "name = \"w\"\n[[stage]]\nid = \"a\"\nagent = \"x\"\naction = \"do\"\nproceed = \"b\"\n\
                [[stage]]\nid = 2\nagent = \"x\"\naction = \"do\"\n";
    assert_eq!(mistakes(text).matches("error").count(), 1, "{}", mistakes(text));
}

#[test]
fn a_misspelled_route_is_understood() {
    assert!(mistakes(&stages(&["proceed = \"doen\""])).contains("did you mean \"done\"?"));
    let found = mistakes(&stages(&["retry = { goto = \"done\" }"]));
    assert!(found.contains("only proceed can end the workflow"), "{found}");
}
