//! Prints JSON anew: indented for people, or on one line.
//!
//! Only the white space between the nodes changes. Numbers and strings keep their spelling and members their order, so
//! the printed text says exactly what was read. The tape is walked in its flat order; nesting costs no call stack.

use super::{Type, Value, push_quoted};

/// Returns the value over several lines, indented by two spaces per level. Empty objects and arrays stay on one line.
pub fn pretty(value: Value<'_, '_>) -> String {
    print(value, Layout::Indented)
}

/// Returns the value on one line, without any space between its parts.
pub fn compact(value: Value<'_, '_>) -> String {
    print(value, Layout::Compact)
}

/// Returns the value on one line, with all escapes undone except those that JSON demands.
pub fn plain(value: Value<'_, '_>) -> String {
    print(value, Layout::Plain)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Indented,
    Compact,
    Plain,
}

fn print(value: Value<'_, '_>, layout: Layout) -> String {
    let mut printer = Printer { layout, json: String::with_capacity(value.source().len()), open: Vec::new() };
    for at in value.index()..value.next_index() {
        printer.close_until(at);
        printer.node(Value { tape: value.tape, at });
    }
    printer.close_until(value.next_index());
    printer.json
}

struct Printer {
    layout: Layout,
    json: String,
    open: Vec<Container>,
}

/// An object or array whose end is not reached yet.
struct Container {
    kind: Type,
    /// Index of the node after the container.
    end: u32,
    /// Whether something was printed inside it.
    begun: bool,
}

impl Printer {
    fn node(&mut self, value: Value<'_, '_>) {
        match value.kind() {
            Type::Key => {
                self.begin_part();
                self.scalar(value);
                self.json.push_str(if self.layout == Layout::Indented { ": " } else { ":" });
            }
            kind @ (Type::Object | Type::Array) => {
                self.begin_item();
                self.json.push(if kind == Type::Object { '{' } else { '[' });
                self.open.push(Container { kind, end: value.next_index(), begun: false });
            }
            Type::String | Type::Number | Type::Boolean | Type::Null => {
                self.begin_item();
                self.scalar(value);
            }
        }
    }

    fn scalar(&mut self, value: Value<'_, '_>) {
        match value.text() {
            Some(text) if self.layout == Layout::Plain => push_quoted(&mut self.json, &text.decode()),
            Some(_) | None => self.json.push_str(value.source()),
        }
    }

    /// A member's value follows its key. Any other value in a container begins a part of its own.
    fn begin_item(&mut self) {
        if self.open.last().is_some_and(|container| container.kind == Type::Array) {
            self.begin_part();
        }
    }

    fn begin_part(&mut self) {
        let Some(container) = self.open.last_mut() else { return };
        if std::mem::replace(&mut container.begun, true) {
            self.json.push(',');
        }
        self.begin_line();
    }

    fn begin_line(&mut self) {
        if self.layout == Layout::Indented {
            self.json.push('\n');
            self.json.extend(std::iter::repeat_n("  ", self.open.len()));
        }
    }

    /// Closes all containers that end before the node at this index.
    fn close_until(&mut self, at: u32) {
        while let Some(container) = self.open.pop_if(|container| container.end <= at) {
            if container.begun {
                self.begin_line();
            }
            self.json.push(if container.kind == Type::Object { '}' } else { ']' });
        }
    }
}
