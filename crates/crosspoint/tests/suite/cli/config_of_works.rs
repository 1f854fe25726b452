//! `crosspoint config` about `[[work]]`.

use std::fs;

use crate::cli::config::Place;
use crate::support::program::transcript;

#[test]
fn every_mistake_about_a_work_is_named_in_one_go() {
    let place = Place::new(
        "works",
        r#"
[[work]]
name = "typo"
input_schema = "typo.json"

[[work]]
name = "far"
output_schema = "far.json"

[[work]]
name = "gone"
input_schema = "gone.json"

[[work]]
name = "no-json"
input_schema = "no-json.json"
outptu_schema = "x"

[[work]]
name = "empty"

[[work]]
name = "typo"
input_schema = "good.json"

[[work]]
input_schema = 7
"#,
    );
    let write = |name: &str, text: &str| fs::write(place.path().join(name), text).expect("it can be written");
    write("typo.json", r#"{"properties": {"query": {"type": "strnig"}}}"#);
    write("far.json", r#"{"properties": {"a": {"$ref": "https://example.com/a.json"}}}"#);
    write("no-json.json", "{");
    write("good.json", "{}");
    let told = place.check();
    for part in [
        "[[work]] typo: input_schema: typo.json: this is no JSON Schema at /properties/query/type",
        "crosspoint.toml:4:16",
        "[[work]] far: output_schema: far.json: it refers to something that is not in this file, and nothing is fetched",
        "[[work]] gone: input_schema: gone.json: it cannot be read",
        "[[work]] no-json: input_schema: no-json.json: this is not JSON",
        "did you mean output_schema?",
        "[[work]] empty: it has no schema, so that it says nothing",
        "[[work]] typo: name: this work has its schemas already (line 3)",
        "[[work]]: it has no name",
        "[[work]]: input_schema: it must be a text",
        "the configuration cannot be used: 9 errors",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
}

#[test]
fn a_work_is_shown_with_its_files_and_lines() {
    let place = Place::new("works-shown", "[[work]]\nname = \"w\"\ninput_schema = \"in.json\"\n");
    fs::write(place.path().join("in.json"), "{}").expect("it can be written");
    let shown = transcript(&mut place.crosspoint(&["config", "show"]));
    let (_, work) = shown.split_once("[[work]]").expect("it is shown");
    assert!(work.contains("name = \"w\"") && work.contains("input_schema = \"in.json\""), "{work}");
    assert!(work.contains("crosspoint.toml:3") && work.contains("# output_schema is not set"), "{work}");
}
