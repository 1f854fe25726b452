//! Programs that print long texts, and callers at every door that ask for them.

use serde_json::{Value, json};

use crate::support::bridge_caller::{self, new_id};
use crate::support::run_caller;
use crate::support::server::Server;
use crate::support::task_caller;

/// Longest text that an answer has whole, and how much of a longer one it has.
pub(crate) const WHOLE_BYTES: usize = 10 << 20;
pub(crate) const END_BYTES: usize = 1 << 20;

const UNIT: &str = "0123456789 gr\u{fc}\u{df}e\n";

/// A script of Python that prints as many bytes as its input says.
pub(crate) const PRINTS: &str = "
import sys, json
given = json.loads(sys.stdin.readline())
count = given['bytes'] if 'bytes' in given else int(given['prompt'])
unit = '0123456789 gr\u{fc}\u{df}e\\n'.encode()
sys.stdout.buffer.write(unit * (count // len(unit)) + b'x' * (count % len(unit)))
";

/// What it prints.
pub(crate) fn text(bytes: usize) -> String {
    UNIT.repeat(bytes / UNIT.len()) + &"x".repeat(bytes % UNIT.len())
}

/// Callers at every door that have asked for a text of this many bytes.
pub(crate) struct Asked {
    bytes: usize,
    work: &'static str,
    id: String,
    job: String,
}

/// What each caller got.
#[derive(PartialEq)]
pub(crate) struct Got {
    run: Value,
    task: Value,
    native: Value,
    bridge: Value,
}

impl Asked {
    pub(crate) fn of(server: &Server, work: &'static str, bytes: usize) -> Asked {
        let job = server.submit(&json!({"work": work, "input": {"bytes": bytes}}).to_string());
        Asked { bytes, work, id: new_id(), job: job["id"].as_str().expect("an id").to_owned() }
    }

    /// Asks at every door; asked again, each is given the same.
    pub(crate) fn ask(&self, server: &Server) -> Got {
        let input = json!({"bytes": self.bytes});
        let run = server.run_sync(&run_caller::request(&self.id, self.work, &input));
        let task = server.submit_task("?wait=60", &task_caller::request(&self.id, self.work, &input));
        let bridge = bridge_caller::request(&self.id, self.work, &self.bytes.to_string());
        Got {
            run: run.json()["outputs"].clone(),
            task: task.document["result"].clone(),
            native: server.ended(&self.job)["outcome"]["outputs"].clone(),
            bridge: server.response_to(&bridge),
        }
    }

    /// Checks that every caller got the whole text, or is told where it is.
    #[track_caller]
    pub(crate) fn check(&self, server: &Server, got: &Got) {
        let text = text(self.bytes);
        let is_whole = self.bytes <= WHOLE_BYTES;
        for (door, outputs) in [("run", &got.run), ("task", &got.task), ("native", &got.native)] {
            let shown = outputs["output"].as_str().unwrap_or_else(|| panic!("{door}: no text"));
            if is_whole {
                assert!(shown == text, "{door}: {} bytes of {}", shown.len(), text.len());
                assert_eq!(outputs.as_object().map(serde_json::Map::len), Some(1), "{door}: nothing beside it");
                continue;
            }
            let cut = text.len() - shown.len();
            assert!(shown == &text[cut..], "{door}: its end");
            assert!(shown.len() > END_BYTES - 4 && shown.len() <= END_BYTES, "{door}: {} bytes", shown.len());
            assert_eq!(outputs["truncated"]["bytes"], self.bytes, "{door}");
            let href = outputs["truncated"]["href"].as_str().expect("a path");
            assert!(server.get(href).body == text.as_bytes(), "{door}: {href} has all of it");
        }
        let bridge = &got.bridge;
        if is_whole {
            assert!(bridge["response"].as_str() == Some(&text), "bridge: {}", bridge["error_type"]);
        } else {
            assert_eq!((&bridge["status"], &bridge["response"]), (&json!("error"), &Value::Null));
            assert_eq!(bridge["error_type"], "ResponseTooLarge");
            let message = bridge["error_message"].as_str().expect("a sentence");
            assert!(message.contains(&self.bytes.to_string()) && message.contains("/output"), "{message}");
        }
    }
}

/// Asks for texts around the limits, also after the server was killed with all of them done.
pub(crate) fn texts_are_whole_at_every_door(server: &mut Server, work: &'static str) {
    let sizes = [(1 << 20) + 1, 9 << 20, 12 << 20];
    let asked = sizes.map(|bytes| Asked::of(server, work, bytes));
    let before = asked.each_ref().map(|asked| asked.ask(server));
    for (asked, got) in asked.iter().zip(&before) {
        asked.check(server, got);
    }
    server.kill();
    server.restart();
    for (asked, before) in asked.iter().zip(&before) {
        let after = asked.ask(server);
        asked.check(server, &after);
        assert!(after == *before, "{} bytes: the same as before", asked.bytes);
    }
}
