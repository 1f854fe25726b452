//! A long text for a caller that is sent one message after the other (MSG-9).

use crosspoint_contracts::content::Body;
use crosspoint_contracts::message::chunk::{BLOCK_BYTES_MAX, Chunk, WHOLE_BYTES_MAX};
use crosspoint_contracts::outcome::Outcome;
use crosspoint_contracts::reply::Success;
use crosspoint_contracts::{Contract, Kind};
use crosspoint_exchange::admission::Headers;
use crosspoint_exchange::answer::{self, Beside};
use crosspoint_exchange::snapshot::{Ended, Snapshot, State};
use serde_json::Value;

use crate::made::{NOW, REQUEST, TASK, came, faultless, snapshot, work_request};

fn pieces(outcome: &Outcome) -> Option<Vec<Value>> {
    let new = came(Contract::Message, &work_request(), Headers::default());
    let job = snapshot(&new, State::Ended(Ended { at: NOW, outcome, is_unjudged: false, is_kept: true }));
    let beside = Beside::default();
    let texts: Vec<String> = answer::pieces(&job, Contract::Message, &beside, |_| 0)?.collect();
    let again: Vec<String> = answer::pieces(&job, Contract::Message, &beside, |_| 0)?.collect();
    assert_eq!(texts, again, "they are the same when they are sent again");
    let (last, blocks) = texts.split_last().expect("there is a result");
    let mut all: Vec<Value> = blocks.iter().map(|text| faultless(text, Kind::WorkStatus)).collect();
    all.push(faultless(last, Kind::WorkResult));
    Some(all)
}

fn printed(text: &str) -> Outcome {
    Outcome::completed(Success::printed(text))
}

#[test]
fn a_long_text_goes_out_in_blocks_and_its_end_in_the_result() {
    // Characters of two bytes, one of which would be cut.
    let text = format!("x{}", "ä".repeat(WHOLE_BYTES_MAX));
    let all = pieces(&printed(&text)).expect("it is long");
    let (result, blocks) = all.split_last().expect("there is a result");
    let mut whole = String::new();
    let mut ids: Vec<String> = Vec::new();
    for message in &all {
        assert_eq!(
            (message["request_id"].as_str(), message["payload"]["task_id"].as_str()),
            (Some(REQUEST), Some(TASK))
        );
        ids.push(message["message_id"].to_string());
    }
    for block in blocks {
        let step = &block["payload"]["step"];
        let output = step["output"].as_str().expect("a text");
        let place = Chunk {
            start: whole.len() as u64,
            end: (whole.len() + output.len()) as u64,
            total: Some(text.len() as u64),
        };
        assert_eq!(step["output_chunk"], place.to_string());
        assert!(
            output.len() <= BLOCK_BYTES_MAX
                && (step["number"].as_i64(), step["name"].as_str()) == (Some(1), Some("output"))
        );
        whole += output;
    }
    assert_eq!(whole, text);
    let tail = result["payload"]["output"].as_str().expect("a text");
    assert!(text.ends_with(tail) && tail.len() <= WHOLE_BYTES_MAX && tail.len() > WHOLE_BYTES_MAX - 4);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "each is a message of its own");
}

#[test]
fn a_short_text_is_told_in_one_document() {
    assert!(pieces(&printed(&"x".repeat(WHOLE_BYTES_MAX))).is_none());
    assert!(pieces(&printed("")).is_none());
    let object = format!("{{\"a\":\"{}\"}}", "x".repeat(WHOLE_BYTES_MAX));
    let all = pieces(&Outcome::completed(Success::of(Body::trusted(object.clone())))).expect("an object is a text");
    let text: String = all.iter().filter_map(|message| message["payload"]["step"]["output"].as_str()).collect();
    assert_eq!(text, object);
}

#[test]
fn only_what_has_ended_in_a_contract_with_blocks_has_pieces() {
    let new = came(Contract::Message, &work_request(), Headers::default());
    let beside = Beside::default();
    assert!(answer::pieces(&snapshot(&new, State::Running), Contract::Message, &beside, |_| 0).is_none());
    let outcome = printed(&"x".repeat(2 * WHOLE_BYTES_MAX));
    let job = snapshot(&new, State::Ended(Ended { at: NOW, outcome: &outcome, is_unjudged: false, is_kept: true }));
    for contract in Contract::ALL.into_iter().filter(|contract| *contract != Contract::Message) {
        assert!(answer::pieces(&Snapshot { ..job }, contract, &beside, |_| 0).is_none(), "{}", contract.name());
    }
    // A caller that waits has it whole.
    let whole: Value = serde_json::from_str(&answer::document(&job, Contract::Message, &beside)).expect("JSON");
    assert_eq!(whole["payload"]["output"].as_str().map(str::len), Some(2 * WHOLE_BYTES_MAX));
}

#[test]
fn what_was_sent_while_it_was_printed_is_not_sent_again() {
    let new = came(Contract::Message, &work_request(), Headers::default());
    let (running, beside) = (snapshot(&new, State::Running), Beside::default());
    let text = "ä".repeat(WHOLE_BYTES_MAX);
    let first = answer::block(&running, Contract::Message, &beside, 0, &text[..600_000]).expect("it has blocks");
    let first = faultless(&first, Kind::WorkStatus);
    assert_eq!(first["payload"]["step"]["output_chunk"], "bytes 0-600000");
    assert_eq!(answer::block(&running, Contract::Run, &beside, 0, "x"), None);
    let outcome = printed(&text);
    let ended = snapshot(&new, State::Ended(Ended { at: NOW, outcome: &outcome, is_unjudged: false, is_kept: true }));
    let rest: Vec<String> =
        answer::pieces(&ended, Contract::Message, &beside, |_| 600_000).expect("it is long").collect();
    let (result, blocks) = rest.split_last().expect("there is a result");
    let blocks: Vec<Value> = blocks.iter().map(|block| faultless(block, Kind::WorkStatus)).collect();
    assert_eq!(blocks[0]["payload"]["step"]["output_chunk"], format!("bytes 600000-862144 of {}", text.len()));
    let sent: String = blocks.iter().filter_map(|block| block["payload"]["step"]["output"].as_str()).collect();
    assert_eq!(sent, text[600_000..]);
    assert!(result.contains("work_result"));
    let all = answer::pieces(&ended, Contract::Message, &beside, str::len).expect("the result has the end alone");
    assert_eq!(all.count(), 1);
}
