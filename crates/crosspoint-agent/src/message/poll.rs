//! What the next poll for messages says (MSG-14): how long the orchestrator may keep it, how many messages are wanted,
//! and which have arrived.

use std::collections::VecDeque;
use std::time::Duration;

/// How long the orchestrator may keep a poll, in seconds. One that allows less refuses the poll, and gets the next.
const WAITS: [u64; 4] = [20, 5, 1, 0];

/// Most messages that one poll asks for, and most ids that it acknowledges: an address of 2 KiB has room for them.
const MESSAGES_MAX: usize = 50;

/// The polls of one agent, of which the next is known.
pub(crate) struct Poll {
    /// The agent's name, as it is written in an address.
    name: String,
    /// How many jobs the agent does at a time.
    concurrency: usize,
    /// Index into `WAITS`.
    wait: usize,
    is_alone: bool,
    /// The messages that have arrived, as far as the orchestrator does not know it.
    acks: VecDeque<String>,
}

impl Poll {
    /// Returns the polls of an agent that has registered.
    pub(crate) fn new(name: &str, concurrency: usize) -> Poll {
        let name = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
        Poll { name, concurrency, wait: 0, is_alone: false, acks: VecDeque::new() }
    }

    /// Returns how long the orchestrator may keep the poll.
    pub(crate) fn wait(&self) -> Duration {
        let has_more = self.acks.len() > MESSAGES_MAX;
        // What the poll has no room for is told with the next one, soon.
        Duration::from_secs(if has_more { 0 } else { WAITS[self.wait] })
    }

    /// Whether messages have arrived that the orchestrator does not know of.
    pub(crate) fn has_more_to_tell(&self) -> bool {
        !self.acks.is_empty()
    }

    /// Returns the query of the poll.
    pub(crate) fn query(&self) -> String {
        let max = if self.is_alone { 1 } else { self.concurrency.clamp(1, MESSAGES_MAX) };
        let acks: Vec<&str> = self.acks.iter().take(MESSAGES_MAX).map(String::as_str).collect();
        format!("agent={}&wait={}&max={max}&ack={}", self.name, self.wait().as_secs(), acks.join(","))
    }

    /// The poll was answered, so that the orchestrator knows what it acknowledged.
    pub(crate) fn answered(&mut self) {
        self.acks.drain(..self.acks.len().min(MESSAGES_MAX));
        self.is_alone = false;
    }

    /// The answer could not be read, which may be because it is too long: the next poll asks for one message.
    pub(crate) fn unread(&mut self) {
        self.is_alone = true;
    }

    /// The poll was refused as it is. Returns whether there is another way to ask, which waits less.
    pub(crate) fn refused(&mut self) -> bool {
        let has_other = self.wait + 1 < WAITS.len();
        self.wait += usize::from(has_other);
        has_other
    }

    /// A message of this id has arrived.
    pub(crate) fn arrived(&mut self, id: String) {
        self.acks.push_back(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_of_any_size_asks_for_as_much_as_a_poll_may() {
        assert_eq!(Poll::new("a b", 3).query(), "agent=a+b&wait=20&max=3&ack=");
        assert_eq!(Poll::new("a", 100_000).query(), "agent=a&wait=20&max=50&ack=");
        let mut unread = Poll::new("a", 3);
        unread.unread();
        assert_eq!(unread.query(), "agent=a&wait=20&max=1&ack=");
        unread.answered();
        assert_eq!(unread.query(), "agent=a&wait=20&max=3&ack=");
    }

    #[test]
    fn every_message_is_acknowledged_in_addresses_that_are_short_enough() {
        let mut poll = Poll::new(&"n".repeat(200), 3);
        let ids: Vec<String> = (0..120).map(|number| format!("{number:036}")).collect();
        ids.iter().for_each(|id| poll.arrived(id.clone()));
        let (mut told, mut waits) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let query = poll.query();
            assert!(query.len() < 2_200, "{query}");
            let (_, acks) = query.split_once("&ack=").expect("it acknowledges");
            told.extend(acks.split(',').map(str::to_owned));
            waits.push(poll.wait().as_secs());
            poll.answered();
        }
        assert_eq!((told, waits), (ids, vec![0, 0, 20]));
    }

    #[test]
    fn a_poll_that_is_refused_waits_less() {
        let mut poll = Poll::new("a", 3);
        let waits: Vec<u64> = (0..4).map(|_| (poll.wait().as_secs(), poll.refused()).0).collect();
        assert_eq!((waits, poll.refused()), (vec![20, 5, 1, 0], false));
    }
}
