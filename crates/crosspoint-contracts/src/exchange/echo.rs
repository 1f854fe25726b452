//! What every answer repeats of its request: ids and names, as the request's own document has them.
//!
//! They are taken from the members themselves and not from the canonical job, because a document that came through
//! another contract may carry other values for the same homes. A request that is refused is answered too, so they are
//! also taken from a document that cannot be read as a whole.

use uuid::Uuid;

use crate::content::Json;
use crate::job::Home;
use crate::json::{Levels, Tape, Value};
use crate::kind::Contract;
use crate::map::{self, Carrying, WriteContext};

impl Contract {
    /// Returns what every answer repeats of this document, each value by its home in the answer. A value that the
    /// contract does not allow is left out. `agent_types` are the types that the operator added.
    pub fn echoes_in(self, document: &[u8], agent_types: &[&str]) -> Vec<(Home, Json<'static>)> {
        if self.exchange().echoes.is_empty() {
            return Vec::new();
        }
        match Tape::scan(document) {
            Ok(tape) => self.echoes_of(&tape, agent_types, |_| true),
            // A value that was cut off in the middle is not the caller's value.
            Err(broken) => self.echoes_of(&broken.so_far, agent_types, is_whole),
        }
    }

    /// Returns the same of a document that was scanned. Only values that are whole count.
    pub(crate) fn echoes_of(
        self,
        tape: &Tape<'_>,
        agent_types: &[&str],
        is_whole: impl Fn(Value<'_, '_>) -> bool,
    ) -> Vec<(Home, Json<'static>)> {
        let exchange = self.exchange();
        let Some(root) = tape.root() else { return Vec::new() };
        let context = WriteContext {
            now: "",
            id: Uuid::nil(),
            message_id: Uuid::nil(),
            agent_types,
            agent_type: "",
            carrying: Carrying::Off,
            known_as: None,
            completing: false,
            levels: Levels::Received,
            facts: &[],
        };
        let one =
            |&(from, to): &(Home, Home)| Some((to, map::literal(exchange.request, from, root, &context, &is_whole)?));
        exchange.echoes.iter().filter_map(one).collect()
    }
}

fn is_whole(value: Value<'_, '_>) -> bool {
    Tape::scan(value.source().as_bytes()).is_ok()
}
