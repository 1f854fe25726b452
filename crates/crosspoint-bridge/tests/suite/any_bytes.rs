//! Files with any bytes can be looked at, and nothing panics.

use crosspoint_bridge::ask::Run;
use crosspoint_bridge::{Pair, Question, request, response};
use proptest::prelude::*;

use crate::scratch::Scratch;

/// Random bytes, or a document in which some bytes are changed, cut off or repeated.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let broken = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), 0..3u8);
    let documents = prop::sample::select(vec![
        response::success("32ecfadc-2b66-4daa-a7c0-a03c449fcea5", "{\"a\": [1]}", "2026-01-01T00:00:00Z", 1.0),
        r#"{"request_id": "r", "version": "1.0", "agent_name": "a", "prompt": "p", "phase": 3, "context": {}}"#
            .to_owned(),
    ]);
    let mutated = (documents, broken).prop_map(|(document, (one, other, byte, how))| {
        let mut bytes = document.into_bytes();
        let (one, other) = (one.index(bytes.len()), other.index(bytes.len()));
        match how {
            0 => bytes[one] = byte,
            1 => bytes.truncate(one),
            _ => bytes.extend_from_within(one.min(other)..one.max(other)),
        }
        bytes
    });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..200), mutated]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_looked_at(request in bytes(), response in bytes(), memory in bytes()) {
        let scratch = Scratch::new();
        let run = Run::resume(scratch.path()).expect("it is there");
        let question = Question::new("agent", "Do it.");
        run.try_ask(&question).expect("it can be asked");
        let id = scratch.request(Pair::PLAIN).expect("it waits").request_id;
        let put = |name: &str, bytes: &[u8]| std::fs::write(scratch.path().join(name), bytes).expect("it is written");
        put(".agent-request.json", &request);
        put(".agent-response.json", &response);
        let directory = scratch.open();
        request::look(&directory, Pair::PLAIN).expect("it is a file");
        response::look(&directory, Pair::PLAIN, &id).expect("it is a file");
        // Whether the question is refused depends on the bytes. None of them is an answer.
        let _ = run.try_ask(&question);
        put(&format!(".agent-answers/{id}.json"), &memory);
        let _ = run.try_ask(&question);
        put(".agent-answers/run", &memory);
        let _ = run.try_ask(&question);
        prop_assert_eq!(std::fs::read(scratch.path().join(".agent-response.json")).expect("it is kept"), response);
        run.finish().expect("it can be forgotten");
    }
}
