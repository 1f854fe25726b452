//! How sets end, what is refused of them, and what the text of the outcome is.

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::message::chunk::{split, tail};
use crosspoint_contracts::outcome::Text;
use crosspoint_contracts::printed::Printed;
use crosspoint_contracts::reply::{Failed, Success};

use super::*;
use crate::link::message::chunks::spool::TextIs;

/// A text that is longer than a result may hold, with characters of several bytes.
fn long() -> String {
    "0123456789 gr\u{fc}\u{df}e\n".repeat(80_000)
}

/// Sends a text as our agents do.
async fn send(attempted: &mut Attempted, text: &str) {
    for (chunk, block) in split(text).expect("it is long") {
        assert_eq!(attempted.chunk((chunk.start, chunk.end), chunk.total, block).await, []);
    }
}

#[tokio::test]
async fn the_text_of_a_result_that_has_only_the_end_is_the_whole_set() {
    let text = long();
    let mut attempted = Attempted::new().await;
    attempted.plain(4, "before\n").await;
    send(&mut attempted, &text).await;
    attempted.plain(6, "after\n").await;
    attempted.restart().await;
    let finished = attempted.finish(Some(tail(&text))).await;
    let printed = TextIs::Printed { start: 7, end: 7 + text.len() as u64 };
    assert_eq!((finished.text, finished.refused), (printed, None));
    assert!(attempted.text() == format!("before\n{text}after\n"));
    assert_eq!(attempted.finish(Some(&text)).await.text, printed, "the result may have all of it too");
    let shorter = &text[text.len() - 300_000..];
    assert_eq!(attempted.finish(Some(shorter)).await.text, printed, "or a shorter end");
}

#[tokio::test]
async fn a_set_goes_on_after_a_status_of_another_step_that_printed_nothing() {
    let text = long();
    let (first, rest) = text.split_at(600_000);
    let end = first.len() as u64;
    let mut attempted = Attempted::new().await;
    assert_eq!(attempted.chunk((0, end), None, first).await, []);
    assert_eq!(attempted.plain(6, "").await.refused, []);
    attempted.restart().await;
    assert_eq!(attempted.chunk((end, text.len() as u64), Some(text.len() as u64), rest).await, []);
    assert!(attempted.text() == text);
    let finished = attempted.finish(Some(tail(&text))).await;
    let printed = TextIs::Printed { start: 0, end: text.len() as u64 };
    assert_eq!((finished.text, finished.refused), (printed, None));
    // Where something else was printed in between, the stretch would not be one.
    let mut attempted = Attempted::new().await;
    attempted.chunk((0, 3), None, "uno").await;
    attempted.plain(6, "between\n").await;
    attempted.chunk((3, 6), None, "due").await;
    assert_eq!(attempted.finish(Some("due")).await.refused, Some(Refusal::Gap { start: 0, end: 3 }));
}

#[tokio::test]
async fn a_result_with_an_output_of_its_own_keeps_it() {
    let text = long();
    let mut attempted = Attempted::new().await;
    send(&mut attempted, &text).await;
    for own in ["", "done", "gr\u{fc}\u{df}e\n", &tail(&text).replace('0', "O")] {
        assert_eq!(attempted.finish(Some(own)).await.text, TextIs::Own, "{} bytes", own.len());
    }
    assert_eq!(attempted.finish(None).await.text, TextIs::Own);
    let mut attempted = Attempted::new().await;
    attempted.chunk((0, 6), Some(6), "onetwo").await;
    assert_eq!(attempted.finish(Some("onetwo")).await.text, TextIs::Own, "a short text is in the result itself");
}

#[tokio::test]
async fn bytes_that_never_came_are_refused_at_the_end_and_what_came_is_stored() {
    let gap = Refusal::Gap { start: 3, end: 6 };
    let cut = TextIs::Cut { whole_bytes: 12 };
    // With the next step.
    let mut attempted = Attempted::new().await;
    attempted.chunk((9, 12), Some(12), "tre").await;
    attempted.chunk((6, 9), Some(12), "due").await;
    attempted.chunk((0, 3), Some(12), "uno").await;
    assert_eq!(attempted.text(), "uno");
    assert_eq!(attempted.plain(6, "next\n").await.refused, [gap]);
    assert_eq!(attempted.text(), "unoduetrenext\n");
    attempted.restart().await;
    let finished = attempted.finish(Some("tre")).await;
    assert_eq!((finished.text, finished.refused), (cut, None), "the agent was told once");
    // With the result.
    let mut attempted = Attempted::new().await;
    attempted.chunk((0, 3), Some(12), "uno").await;
    attempted.chunk((6, 12), Some(12), "duetre").await;
    attempted.restart().await;
    let finished = attempted.finish(Some("tre")).await;
    assert_eq!((finished.text, finished.refused), (cut, Some(gap)));
    assert_eq!(attempted.text(), "unoduetre");
    // With a chunk of the next step, which is a set of its own.
    let mut attempted = Attempted::new().await;
    attempted.chunk((3, 6), Some(6), "due").await;
    assert_eq!(attempted.chunk_of(6, (0, 3), Some(3), "tre").await, [Refusal::Gap { start: 0, end: 3 }]);
    assert_eq!(attempted.text(), "duetre");
}

#[tokio::test]
async fn without_a_total_the_farthest_end_is_the_end() {
    let mut attempted = Attempted::new().await;
    attempted.chunk((3, 6), None, "two").await;
    attempted.chunk((0, 3), None, "one").await;
    assert!(attempted.plain(6, "next\n").await.refused.is_empty());
    assert_eq!(attempted.finish(Some("two")).await.text, TextIs::Own);
    assert_eq!(attempted.text(), "onetwonext\n");
}

#[tokio::test]
async fn a_set_of_which_a_chunk_is_refused_goes_on_and_its_text_is_not_whole() {
    let wrong = Chunk { start: 6, end: 9, total: Some(9) };
    let refusals = [
        (wrong, "four", Refusal::WrongLength { chunk: wrong, bytes: 4 }, 5003, 9),
        (Chunk { total: Some(10), ..wrong }, "tre", Refusal::TotalChanged { known: 9, said: 10 }, 5003, 10),
        (Chunk { start: 9, end: 12, total: None }, "tre", Refusal::BeyondTotal { end: 12, total: 9 }, 5003, 12),
        (Chunk { start: 0, end: 3, total: None }, "unO", Refusal::Differs { offset: 2 }, 5003, 9),
    ];
    for (chunk, output, refusal, code, whole_bytes) in refusals {
        let mut attempted = Attempted::new().await;
        attempted.chunk((0, 3), Some(9), "uno").await;
        assert_eq!(attempted.chunk((chunk.start, chunk.end), chunk.total, output).await, [refusal]);
        assert_eq!(refusal.error_code(), code);
        attempted.restart().await;
        attempted.chunk((3, 6), Some(9), "due").await;
        assert_eq!(attempted.chunk((6, 9), Some(9), "tre").await, [], "{refusal}");
        assert_eq!(attempted.text(), "unoduetre", "{refusal}");
        let finished = attempted.finish(Some("tre")).await;
        assert_eq!((finished.text, finished.refused), (TextIs::Cut { whole_bytes }, None), "{refusal}");
    }
}

#[tokio::test]
async fn more_than_the_limit_is_refused_and_the_job_stays_within_it() {
    let mut attempted = Attempted::within(10).await;
    attempted.plain(4, "four").await;
    let refusal = Refusal::OverLimit { bytes: 7, bytes_max: 6 };
    assert_eq!(attempted.chunk((0, 3), None, "one").await, []);
    assert_eq!(attempted.chunk((3, 7), None, "four").await, [refusal], "what was printed before counts");
    assert_eq!(refusal.error_code(), 5005);
    assert_eq!(attempted.chunk((3, 6), None, "two").await, []);
    let finished = attempted.finish(Some("four")).await;
    assert_eq!((finished.text, finished.refused), (TextIs::Cut { whole_bytes: 7 }, None));
    assert_eq!(attempted.text(), "fouronetwo");
}

#[tokio::test]
async fn a_refused_output_of_an_earlier_step_leaves_a_later_one_whole() {
    let text = long();
    let mut attempted = Attempted::new().await;
    attempted.chunk_of(2, (3, 6), Some(6), "two").await;
    assert!(!attempted.plain(3, "next\n").await.refused.is_empty());
    send(&mut attempted, &text).await;
    let printed = TextIs::Printed { start: 8, end: 8 + text.len() as u64 };
    assert_eq!(attempted.finish(Some(tail(&text))).await.text, printed);
    assert_eq!(
        attempted.finish(Some("done")).await.text,
        TextIs::Cut { whole_bytes: 6 },
        "an output of its own is not"
    );
}

fn finished(text: TextIs) -> Finished {
    Finished { attempt: 2, text, refused: None }
}

const PRINTED: TextIs = TextIs::Printed { start: 5, end: 9 };
const CUT: TextIs = TextIs::Cut { whole_bytes: 9 };

#[test]
fn a_result_is_given_its_text() {
    let own = Success::of(Body::of(&"end"));
    assert_eq!(finished(TextIs::Own).result(Ok(own.clone())), Ok(own.clone()));
    let text = Some(Text::Printed(Printed { attempt: 2, start: 5, end: 9 }));
    let printed = Success { outputs: None, text: text.clone(), ..own.clone() };
    assert_eq!(finished(PRINTED).result(Ok(own.clone())), Ok(printed));
    let cut = Success { whole_bytes: Some(9), ..own.clone() };
    assert_eq!(finished(CUT).result(Ok(own)), Ok(cut));
    // An object that was carried beside the text stays.
    let both = Success { text: Some(Text::Beside(Body::of(&"end"))), ..Success::of(Body::trusted("{\"a\":1}")) };
    assert_eq!(finished(PRINTED).result(Ok(both.clone())), Ok(Success { text, ..both }));
}

#[test]
fn a_failed_result_is_given_its_text_too() {
    let failed = Failed::said(Failure::AgentFailed, Dispatched::Yes, "the end of it");
    assert_eq!(finished(TextIs::Own).result(Err(failed.clone())), Err(failed.clone()));
    let given = |text| finished(text).result(Err(failed.clone())).err().and_then(|failed| failed.given);
    let cut = given(CUT).expect("it is given");
    assert_eq!((cut.outputs, cut.whole_bytes), (failed.message.clone(), Some(9)));
    assert!(matches!(cut.text, Some(Text::Within(_))));
    let printed = given(PRINTED).expect("it is given");
    assert_eq!((printed.outputs, printed.text), (None, Some(Text::Printed(Printed { attempt: 2, start: 5, end: 9 }))));
}
