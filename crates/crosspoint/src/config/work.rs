//! `[[work]]`: the schemas of a work (TASK-10).

use std::collections::BTreeMap;
use std::fs::File as Handle;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::agent::{header, work_name};
use super::file::File;
use super::kind::described;
use crate::schemas::{SCHEMA_BYTES_MAX, Schema, WorkSchemas};

pub(super) const WORK_TABLE: &str = "work";

/// The keys, with what they are.
pub(super) const KEYS: [(&str, &str); 3] = [
    ("name", "The work."),
    ("input_schema", "A file with the JSON Schema of its input. Input that does not match is refused."),
    ("output_schema", "A file with the JSON Schema of its output. Output that does not match is recorded."),
];

/// The lines of the keys of each work.
pub(super) type Lines = BTreeMap<String, BTreeMap<String, usize>>;

/// Reads all works. Schemas are compiled here, once.
pub(super) fn read_works(
    file: &mut File,
    works: &DeValue<'_>,
    span: Range<usize>,
) -> (BTreeMap<String, WorkSchemas>, Lines) {
    let (mut read, mut lines) = (BTreeMap::new(), Lines::new());
    let DeValue::Array(works) = works else {
        let what = format!("it is a list of tables, and this is {}", described(works));
        file.wrong(span, WORK_TABLE, &what, "write [[work]] with two brackets");
        return (read, lines);
    };
    for work in works {
        let DeValue::Table(keys) = work.get_ref() else {
            let what = format!("it is a list of tables, and this is {}", described(work.get_ref()));
            file.wrong(work.span(), WORK_TABLE, &what, "write [[work]] with its keys below");
            continue;
        };
        let reading = Reading { keys, span: header(file, work.span()) };
        let Some((name, schemas)) = reading.work(file) else { continue };
        if let Some(first) = lines.get(&name).and_then(|lines| lines.get("name")) {
            let what = format!("this work has its schemas already (line {first})");
            file.wrong(reading.span_of("name"), &reading.key("name"), &what, "give each work one [[work]]");
            continue;
        }
        let own = keys.iter().map(|(key, _)| (key.get_ref().to_string(), file.line(&key.span()))).collect();
        lines.insert(name.clone(), own);
        read.insert(name, schemas);
    }
    (read, lines)
}

struct Reading<'t> {
    keys: &'t DeTable<'t>,
    span: Range<usize>,
}

impl Reading<'_> {
    fn work(&self, file: &mut File) -> Option<(String, WorkSchemas)> {
        for (name, _) in self.keys {
            if !KEYS.iter().any(|(known, _)| known == name.get_ref()) {
                file.unknown_key(name, &self.key(name.get_ref()), &KEYS.map(|(known, _)| known));
            }
        }
        let name = self.name(file);
        let schemas =
            WorkSchemas { input: self.schema(file, "input_schema"), output: self.schema(file, "output_schema") };
        if !self.keys.contains_key("input_schema") && !self.keys.contains_key("output_schema") {
            let hint = "add input_schema = \"schemas/input.json\", or remove the table";
            file.wrong(self.span.clone(), &self.shown(), "it has no schema, so that it says nothing", hint);
        }
        Some((name?, schemas))
    }

    fn name(&self, file: &mut File) -> Option<String> {
        let hint = "add the name of the work, as name = \"review\"";
        let Some(value) = self.keys.get("name") else {
            file.wrong(self.span.clone(), &self.shown(), "it has no name", hint);
            return None;
        };
        match work_name(value.get_ref(), &[]) {
            Ok(name) => Some(name),
            Err(what) => {
                file.wrong(value.span(), &self.key("name"), &what, hint);
                None
            }
        }
    }

    /// Reads and compiles the schema that a key names. Its path is relative to the configuration file.
    fn schema(&self, file: &mut File, key: &str) -> Option<Schema> {
        let value = self.keys.get(key)?;
        let hint = format!("write the path of a file of JSON Schema, as {key} = \"schemas/{}.json\"", &key[..5]);
        let DeValue::String(written) = value.get_ref() else {
            let what = format!("it must be a text, and this is {}", described(value.get_ref()));
            file.wrong(value.span(), &self.key(key), &what, &hint);
            return None;
        };
        let beside = file.source.path.parent().unwrap_or(Path::new(""));
        let compiled = bytes(&beside.join(&**written)).and_then(|text| Schema::compile(written, &text));
        match compiled {
            Ok(schema) => Some(schema),
            Err(what) => {
                let hint = "mend the schema; it is one file, and refers to nothing outside it";
                file.wrong(value.span(), &self.key(key), &format!("{written}: {what}"), hint);
                None
            }
        }
    }

    fn span_of(&self, name: &str) -> Range<usize> {
        self.keys.get(name).map_or(self.span.clone(), Spanned::span)
    }

    fn key(&self, name: &str) -> String {
        format!("{}: {name}", self.shown())
    }

    fn shown(&self) -> String {
        match self.keys.get("name").map(Spanned::get_ref) {
            Some(DeValue::String(name)) => format!("[[work]] {name}"),
            Some(_) | None => "[[work]]".to_owned(),
        }
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let read = || -> io::Result<Vec<u8>> {
        // A pipe would be waited for without end.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let mut bytes = Vec::new();
        Handle::open(path)?.take(SCHEMA_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > SCHEMA_BYTES_MAX {
        return Err(format!("it is larger than {} MiB", SCHEMA_BYTES_MAX >> 20));
    }
    Ok(bytes)
}
