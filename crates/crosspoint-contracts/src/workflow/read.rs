//! Reads the two envelopes, clause by clause.

use std::borrow::Cow;

use super::clause::*;
use super::path;
use super::wire::{Artifact, Context, FeatureId, Input, Output, Paths, Task};
use crate::content::{RawObject, Text};
use crate::fields::{Fields, array, boolean, complain, integer, name, nullable, object, opaque, string, word};
use crate::json::{Type, Value};
use crate::report::{Findings, Place};

pub(crate) fn input<'s>(fields: &mut Fields<'_, 's, '_>) -> Input<'s> {
    Input {
        context: fields.required("context", &WF_101, object(&WF_102, context)),
        paths: fields.required("paths", &WF_101, paths),
        task: fields.required("task", &WF_101, object(&WF_102, task)),
        prior_context: fields.optional("prior_context", array(&WF_1_5, string(&WF_1_5))),
        extra: fields.rest(),
    }
}

fn context<'s>(fields: &mut Fields<'_, 's, '_>) -> Context<'s> {
    Context {
        feature_id: fields.required(
            "feature_id",
            &WF_1,
            nullable(|value, findings| string(&WF_1)(value, findings).map(FeatureId)),
        ),
        workflow: fields.required("workflow", &WF_101, string(&WF_103)),
        iteration: fields.required("iteration", &WF_101, integer(&WF_1_2, 1..=i64::MAX)),
        extra: fields.rest(),
    }
}

fn task<'s>(fields: &mut Fields<'_, 's, '_>) -> Task<'s> {
    Task {
        action: fields.required("action", &WF_101, string(&WF_105)),
        params: fields.required("params", &WF_1_3, opaque(&WF_1_3)),
        extra: fields.rest(),
    }
}

fn paths<'s>(value: Value<'_, 's>, findings: &mut Findings) -> Option<Paths<'s>> {
    opaque(&WF_104)(value, findings)?;
    let mut wrong = |value: Value<'_, '_>| {
        findings.note(
            &WF_1_4,
            Place::Value(value.index()),
            format!("a path is {}, not a string", value.kind().described()),
        );
    };
    for (_, path) in value.members() {
        match path.kind() {
            Type::String => {}
            Type::Array => path.items().filter(|item| item.kind() != Type::String).for_each(&mut wrong),
            Type::Object | Type::Key | Type::Number | Type::Boolean | Type::Null => wrong(path),
        }
    }
    Some(Paths(RawObject::new(value.source())))
}

pub(crate) fn output<'s>(fields: &mut Fields<'_, 's, '_>) -> Output<'s> {
    let output = Output {
        success: fields.required("success", &WF_106, boolean(&WF_107)),
        summary: fields.required("summary", &WF_106, name(&WF_2)),
        artifacts: fields.required("artifacts", &WF_106, artifacts),
        notes: fields.optional("notes", array(&WF_113, string(&WF_113))),
        recommendation: fields.required("recommendation", &WF_106, word(&WF_3)),
        extra: fields.rest(),
    };
    let failed = fields.peek("success").and_then(Value::boolean) == Some(false);
    let proceeds = fields.peek("recommendation").and_then(Value::text).is_some_and(|text| text == *"proceed");
    if failed && proceeds {
        fields.note_member("recommendation", &WF_3_2, "`recommendation` is proceed although `success` is false");
    }
    if fields.has("error") {
        fields.note_member("error", &WF_2_2, "the contract has no `error`: readers do not look there");
    }
    if fields.has("state_updates") {
        fields.note_member("state_updates", &WF_114, "the contract has no `state_updates`: readers do not look there");
    }
    output
}

fn artifacts<'s>(value: Value<'_, 's>, findings: &mut Findings) -> Option<Vec<Artifact<'s>>> {
    let artifacts = array(&WF_108, |item, findings| object(&WF_108, artifact)(item, findings))(value, findings)?;
    distinct_paths(value, findings);
    Some(artifacts)
}

fn artifact<'s>(fields: &mut Fields<'_, 's, '_>) -> Artifact<'s> {
    Artifact {
        path: fields.required("path", &WF_109, artifact_path),
        operation: fields.required("operation", &WF_109, word(&WF_111)),
        content: fields.required("content", &WF_109, string(&WF_112)),
        extra: fields.rest(),
    }
}

fn artifact_path<'s>(value: Value<'_, 's>, findings: &mut Findings) -> Option<Text<'s>> {
    let text = string(&WF_110)(value, findings)?;
    for wrong in path::misplaced(&text.decode()) {
        complain(value, wrong.clause, wrong.complaint, findings);
    }
    Some(text)
}

/// Checks that no file is written twice, and that no file stands where another artifact needs a directory.
fn distinct_paths(artifacts: Value<'_, '_>, findings: &mut Findings) {
    if artifacts.items().nth(1).is_none() {
        return;
    }
    let spelled: Vec<(Cow<'_, str>, Value<'_, '_>)> = artifacts
        .items()
        .filter_map(|item| item.get("path"))
        .filter_map(|value| Some((value.text()?.decode(), value)))
        .collect();
    // In the order of their parts the same file stands twice in a row, and everything inside a directory follows it.
    let mut ordered: Vec<&(Cow<'_, str>, Value<'_, '_>)> =
        spelled.iter().filter(|(path, _)| path::parts(path).next().is_some()).collect();
    ordered.sort_by(|a, b| path::parts(&a.0).cmp(path::parts(&b.0)));
    for pair in ordered.windows(2) {
        let (first, second) = (pair[0], pair[1]);
        if path::parts(&first.0).eq(path::parts(&second.0)) {
            complain(second.1, &WF_4_7, "stands twice in this output", findings);
        } else if path::is_inside(&second.0, &first.0) {
            complain(first.1, &WF_4_6, "names a directory that another artifact is in", findings);
        }
    }
}
