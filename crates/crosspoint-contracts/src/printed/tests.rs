use std::ops::Range;

use super::*;
use crate::kind::Kind;
use crate::outcome::Status;
use crate::reply::{AgentDocument, Success};

const HREF: &str = "/all";

fn outcome(outputs: Option<&'static str>, bytes: usize) -> Outcome {
    let printed = Printed { attempt: 1, start: 0, end: bytes as u64 };
    let outputs = outputs.map(Body::trusted);
    Outcome::completed(Success { outputs, text: Some(Text::Printed(printed)), ..Success::default() })
}

/// Returns the outcome with its text, of which these blocks are stored.
fn assembled(outcome: &Outcome, needed: Range<u64>, blocks: &[&[u8]]) -> Result<Outcome, TooLong> {
    let printed = outcome.printed().expect("the text is printed");
    let mut assembly = Assembly::new(outcome, printed, &needed);
    blocks.iter().try_for_each(|block| assembly.push(block))?;
    Ok(assembly.finish()?.into_outcome(outcome, HREF))
}

fn whole(outputs: Option<&'static str>, blocks: &[&[u8]]) -> Outcome {
    let outcome = outcome(outputs, blocks.iter().map(|block| block.len()).sum());
    let needed = outcome.printed().expect("the text is printed").needed();
    assembled(&outcome, needed, blocks).expect("it is short")
}

fn partial(outcome: &Outcome) -> &Partial {
    match &outcome.text {
        Some(Text::Partial(partial)) => partial,
        other => panic!("the text is partial, and not {other:?}"),
    }
}

#[test]
fn a_mere_text_is_the_output_and_a_text_beside_an_object_stays_beside_it() {
    let text = whole(None, &[b"Use \"this\":\n", b"\x01\n"]);
    assert_eq!(text.outputs.as_ref().map(Body::get), Some(r#"{"output":"Use \"this\":\n\u0001\n"}"#));
    assert_eq!(text.text().as_ref().map(Body::get), Some(r#""Use \"this\":\n\u0001\n""#));
    let both = whole(Some(r#"{"a":1}"#), &[b"x\n{\"a\":1}\n"]);
    assert_eq!(both.outputs.as_ref().map(Body::get), Some(r#"{"a":1}"#));
    assert_eq!(both.text().as_ref().map(Body::get), Some(r#""x\n{\"a\":1}\n""#));
    assert_eq!(both.status, Status::Completed);
}

#[test]
fn it_does_not_matter_where_the_blocks_are_cut() {
    let printed = "aü€\u{1f600}\n".as_bytes();
    let broken = [printed, b"\xe2\x82", b"b\xff\xf0\x9f"].concat();
    for bytes in [printed, &broken] {
        let expected = quoted(&String::from_utf8_lossy(bytes));
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let cut = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                let found = whole(None, &cut).text().expect("there is one");
                assert_eq!(found.get(), expected, "cut at {first} and {second}");
            }
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_said_to_be_none() {
    let text = whole(None, &[b"a\xff\xfeb"]);
    assert_eq!(partial(&text).outputs(), "{\"output\":\"a\u{fffd}\u{fffd}b\",\"output_encoding\":\"lossy\"}");
    assert_eq!(partial(&text).truncated, None);
}

#[test]
fn ten_mebibytes_are_whole_and_one_byte_more_is_not() {
    for (bytes, start) in [(TEXT_BYTES_MAX, 0), (TEXT_BYTES_MAX + 1, TEXT_BYTES_MAX + 1 - END_BYTES)] {
        let printed = Printed { attempt: 1, start: 7, end: 7 + bytes as u64 };
        assert_eq!(printed.needed(), 7 + start as u64..printed.end);
    }
    assert_eq!(Printed { attempt: 1, start: 3, end: 9 }.last(), 3..9, "a short text is its own end");
}

#[test]
fn the_end_of_a_long_text_begins_with_a_whole_character_and_says_where_the_rest_is() {
    let outcome = outcome(None, 9);
    let end = assembled(&outcome, 4..9, &["€ü".as_bytes()[1..2].as_ref(), &"€ü".as_bytes()[2..], b"x\n"]);
    let end = end.expect("it is short");
    assert_eq!(partial(&end).outputs(), r#"{"output":"üx\n","truncated":{"bytes":9,"href":"/all"}}"#);
    assert!(!partial(&end).is_lossy);
}

#[test]
fn a_text_of_which_blocks_are_missing_says_so() {
    let missing = assembled(&outcome(None, 9), 0..9, &[b"abc"]).expect("it is short");
    assert_eq!(partial(&missing).truncated.as_ref().map(|truncated| truncated.bytes), Some(9));
}

#[test]
fn a_text_that_grows_too_long_because_its_bytes_are_no_text_is_refused() {
    let outcome = outcome(None, TEXT_BYTES_MAX / 2);
    let block = vec![0xff; TEXT_BYTES_MAX / 2];
    assert_eq!(assembled(&outcome, 0..block.len() as u64, &[&block]).err(), Some(TooLong));
}

#[test]
fn a_text_of_a_contract_is_a_string_like_one_that_came_within_its_document() {
    let document = Some(AgentDocument { kind: Kind::ALL[0], document: Body::trusted("{}") });
    let outcome = Outcome { document, ..outcome(None, 3) };
    let whole = assembled(&outcome, 0..3, &[b"a\n", b"b"]).expect("it is short");
    assert_eq!(whole.outputs.as_ref().map(Body::get), Some(r#""a\nb""#));
    assert_eq!(whole.text().as_ref().map(Body::get), Some(r#""a\nb""#));
    let end = assembled(&outcome, 2..3, &[b"b"]).expect("it is short");
    assert_eq!(partial(&end).outputs(), r#"{"output":"b","truncated":{"bytes":3,"href":"/all"}}"#);
}

#[test]
fn a_text_of_which_a_part_never_came_says_so_wherever_it_is() {
    let lost = Success { whole_bytes: Some(9), ..Success::printed("end\n") };
    let mere = with_remark(&Outcome::completed(lost.clone()), || HREF.to_owned()).expect("a part is missing");
    assert_eq!(partial(&mere).outputs(), r#"{"output":"end\n","truncated":{"bytes":9,"href":"/all"}}"#);
    assert_eq!((&mere.outputs, mere.whole_bytes), (&None, None), "the text is all there is, and says it all");
    let object = Some(Body::trusted("{\"a\":1}"));
    let beside = Success { outputs: object.clone(), text: Some(Text::Beside(Body::of(&"end"))), ..lost.clone() };
    let beside = with_remark(&Outcome::completed(beside), || HREF.to_owned()).expect("a part is missing");
    assert_eq!((&beside.outputs, partial(&beside).text.get()), (&object, "\"end\""));
    let whole = Outcome::completed(Success { whole_bytes: None, ..lost.clone() });
    assert_eq!(with_remark(&whole, || unreachable!("nothing is missing")), None);
    let textless = Outcome::completed(Success { outputs: object, text: None, ..lost });
    assert_eq!(with_remark(&textless, || unreachable!("there is no text")), None);
}

#[test]
fn printed_blocks_may_be_all_that_came_and_not_all_that_was_to_come() {
    let lost = Outcome { whole_bytes: Some(9), ..outcome(None, 3) };
    assert_eq!(with_remark(&lost, || unreachable!("it has yet to be put together")), None);
    let shown = assembled(&lost, 0..3, &[b"abc"]).expect("it is short");
    assert_eq!(partial(&shown).truncated.as_ref().map(|truncated| truncated.bytes), Some(9));
    assert_eq!(shown.whole_bytes, None);
}
