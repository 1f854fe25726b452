//! `docs/translation.md` says where every field travels. Its tables are made from the code.

use std::collections::BTreeMap;
use std::fs;

use crosspoint_contracts::job::Home;
use crosspoint_contracts::map::{Row, Says, table};
use crosspoint_contracts::{Contract, Kind};

use crate::corpus;

const BEGIN: &str = "<!-- tables: made from the code, UPDATE_DOCS=1 writes them -->\n";
const END: &str = "<!-- end of tables -->\n";

fn dotted(pointer: &str) -> String {
    format!("`{}`", pointer.trim_start_matches('/').replace('/', "."))
}

const LOOSE: &str = " (read, not written)";

/// What a member means, in one word.
fn said(says: &Says) -> String {
    match says {
        Says::Always(value) => format!("always `{value}`"),
        Says::Homes(homes) => homes[0].name().to_owned(),
        Says::LooseHomes(homes) => format!("{}{LOOSE}", homes[0].name()),
        Says::Artifacts => "artifacts".to_owned(),
        Says::ArtifactPart(part) => format!("an artifact's {part}"),
        Says::Own => "none".to_owned(),
    }
}

/// Where the same value stands in another contract, in the document about the same part of a job's life.
fn elsewhere(row: &Row, contract: Contract) -> String {
    let rows: Vec<Row> = table(contract).into_iter().filter(|other| other.part == row.part).collect();
    if rows.is_empty() {
        return "no counterpart".to_owned();
    }
    let found = |other: &&Row| match (&row.says, &other.says) {
        (Says::Homes(ours) | Says::LooseHomes(ours), Says::Homes(theirs)) => theirs.contains(&ours[0]),
        (ours @ (Says::Artifacts | Says::ArtifactPart(_)), theirs) => ours == theirs,
        _ => false,
    };
    let mut places: Vec<String> = Vec::new();
    for place in rows.iter().filter(found).map(|other| dotted(&other.pointer)) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    match &row.says {
        Says::Always(_) => "-".to_owned(),
        Says::Own => "carried".to_owned(),
        _ if !places.is_empty() => places.join(" or "),
        // The kind of the document says it.
        Says::Homes(homes) if homes[0] == Home::State => "-".to_owned(),
        Says::Homes(homes) | Says::LooseHomes(homes) => format!("carried as `{}`", homes[0].name()),
        Says::Artifacts | Says::ArtifactPart(_) => "carried under `artifacts`".to_owned(),
    }
}

/// One line for each member of a kind, in the order of its shapes.
fn lines(kind: Kind) -> Vec<String> {
    let rows: Vec<Row> = table(kind.contract()).into_iter().filter(|row| row.kind == kind).collect();
    let mut order: Vec<&str> = Vec::new();
    let mut by_pointer: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in &rows {
        if !order.contains(&row.pointer.as_str()) {
            order.push(&row.pointer);
        }
        let same = by_pointer.entry(&row.pointer).or_default();
        // A loose shape adds nothing if a strict one says the same of the member.
        if !same.iter().any(|other| said(&other.says) == said(&row.says).replace(LOOSE, "")) {
            same.push(row);
        }
    }
    let line = |row: &Row, shared: bool| {
        let when = if shared || row.when.is_empty() { String::new() } else { format!(" ({})", row.when) };
        let others = Contract::ALL.into_iter().filter(|contract| *contract != kind.contract());
        let cells: Vec<String> = others.map(|contract| elsewhere(row, contract)).collect();
        format!("| {} | {}{when} | {} |", dotted(&row.pointer), said(&row.says), cells.join(" | "))
    };
    order
        .iter()
        .flat_map(|pointer| &by_pointer[pointer])
        .map(|row| line(row, by_pointer[row.pointer.as_str()].len() == 1))
        .collect()
}

fn tables() -> String {
    let mut out = String::new();
    for kind in Kind::ALL {
        let others: Vec<&str> =
            Contract::ALL.into_iter().filter(|contract| *contract != kind.contract()).map(Contract::name).collect();
        out += &format!(
            "\n### {kind}\n\n| member | home | {} |\n|---|---|{}\n",
            others.join(" | "),
            "---|".repeat(others.len())
        );
        for line in lines(kind) {
            out += &format!("{line}\n");
        }
    }
    out + "\n"
}

#[test]
fn the_tables_of_the_docs_are_those_of_the_code() {
    let path = corpus::testdata().join("../docs/translation.md");
    let page = fs::read_to_string(&path).expect("docs/translation.md is there");
    let (before, rest) = page.split_once(BEGIN).expect("the page says where its tables begin");
    let (tables_there, after) = rest.split_once(END).expect("and where they end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", tables())).expect("the page can be written");
        return;
    }
    assert_eq!(tables_there, tables(), "UPDATE_DOCS=1 writes them anew");
}

/// Every member that a contract's schema names has a row, so that none is forgotten.
#[test]
fn every_field_of_every_contract_has_a_row() {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::RunStream) {
        let schema = crosspoint_contracts::schema::of(kind);
        let rows: Vec<String> =
            table(kind.contract()).into_iter().filter(|row| row.kind == kind).map(|row| row.pointer).collect();
        let mut missing = Vec::new();
        fields(&schema, "", &mut |pointer| {
            // A member has a row, or is inside a member that is passed on unchanged.
            let known = |row: &String| {
                *row == pointer || pointer.starts_with(&format!("{row}/")) || row.starts_with(&format!("{pointer}/"))
            };
            if !rows.iter().any(known) {
                missing.push(pointer.to_owned());
            }
        });
        // Exceptions: the carrying object, where nothing else is known in it, and a message that is not about a job.
        missing.retain(|pointer| !NO_ROW.contains(&pointer.as_str()));
        assert_eq!(missing, Vec::<String>::new(), "{kind}");
    }
}

const NO_ROW: &[&str] = &[
    "/metadata",
    "/x_custom_fields",
    // Members of a heartbeat.
    "/payload/agent_id",
    "/payload/agent_type",
    "/payload/current_task_id",
    "/payload/resources",
    "/payload/timestamp",
];

/// Calls `found` for every member of a schema, and of the schemas inside it.
fn fields(schema: &serde_json::Value, above: &str, found: &mut impl FnMut(&str)) {
    for alternative in schema["anyOf"].as_array().into_iter().flatten() {
        fields(alternative, above, found);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let pointer = format!("{above}/{name}");
        found(&pointer);
        fields(inner, &pointer, found);
    }
}
