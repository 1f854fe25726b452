//! Generated values: what members hold, and objects with unknown members at every level.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

pub(crate) type Json = BoxedStrategy<Value>;

/// Texts of all sorts: empty, spelled like other types, non-ASCII, with characters that must be escaped.
pub(super) fn text() -> Json {
    let odd = select(vec![
        "",
        " ",
        "null",
        "{}",
        "[]",
        "{\"output\":\"x\"}",
        "{\"prompt\":\"x\"}",
        "TIMEOUT",
        "timeout",
        "5001",
        "proceed",
        "ok",
        "a/b~c",
        "caf\u{e9} \u{2705} \u{1f600}",
        "line\nbreak\ttab \"quotes\" \\ \u{7f} \u{1}",
        "x_crosspoint",
        "550E8400-E29B-41D4-A716-446655440000",
        "2026-01-19T04:21:04Z",
    ]);
    prop_oneof![odd.prop_map(Value::from), "[a-zA-Z0-9 _.-]{1,12}".prop_map(Value::from)].boxed()
}

/// A text that is not empty.
pub(super) fn name() -> Json {
    text().prop_map(|text| if text == "" { json!("unnamed thing") } else { text }).boxed()
}

pub(super) fn uuid() -> Json {
    any::<u128>().prop_map(|bits| json!(uuid::Uuid::from_u128(bits).to_string())).boxed()
}

pub(super) fn uuid_or_text() -> Json {
    prop_oneof![uuid(), name()].boxed()
}

/// A time with an offset, in several spellings.
pub(super) fn time() -> Json {
    select(vec![
        "2026-01-19T04:21:04Z",
        "2025-11-24T14:22:45.123456+00:00",
        "2025-11-24T14:22:45-03:30",
        "20251124T142245Z",
        "2025-11-24 14:22z",
    ])
    .prop_map(Value::from)
    .boxed()
}

pub(super) fn time_without_offset() -> Json {
    prop_oneof![time(), select(vec!["2025-01-05T10:30:00", "20250105T1030"]).prop_map(Value::from)].boxed()
}

pub(super) fn integer(range: std::ops::RangeInclusive<i64>) -> Json {
    // A whole number may be spelled with a decimal point.
    (range, any::<bool>())
        .prop_map(|(whole, float)| if float && whole.abs() < 1 << 50 { json!(whole as f64) } else { json!(whole) })
        .boxed()
}

pub(super) fn amount() -> Json {
    prop_oneof![
        select(vec![0.0, -0.0, 1.0, 0.5, 120.5, 0.0001, 1e300, 7.25]).prop_map(|amount: f64| json!(amount)),
        (0..100_000i64).prop_map(|amount| json!(amount)),
    ]
    .boxed()
}

pub(super) fn words(words: &'static [&'static str]) -> Json {
    select(words).prop_map(Value::from).boxed()
}

pub(super) fn always(value: Value) -> Json {
    Just(value).boxed()
}

/// Any value, not deep.
pub(crate) fn anything() -> Json {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5..5i64).prop_map(Value::from),
        amount(),
        text(),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((member(), inner), 0..3).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
    .boxed()
}

/// Names of members, some of which have a meaning elsewhere.
pub(super) fn member() -> BoxedStrategy<String> {
    let known = select(vec![
        "",
        "a/b",
        "~1",
        "id",
        "output",
        "prompt",
        "context",
        "x_crosspoint",
        "from",
        "request_id",
        "usage",
        "success",
        "data",
        "caf\u{e9}",
        "priority",
        "event",
        "mode",
        "agent_id",
        "error",
        "max_seconds",
        "duration_seconds",
        "result",
    ]);
    prop_oneof![known.prop_map(str::to_owned), "[a-z]{1,6}".prop_map(|name| format!("x_{name}"))].boxed()
}

pub(super) fn open() -> Json {
    vec((member(), anything()), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())).boxed()
}

/// A required member.
pub(super) fn must(name: &'static str, value: Json) -> (&'static str, BoxedStrategy<Option<Value>>) {
    (name, value.prop_map(Some).boxed())
}

/// An optional member.
pub(super) fn may(name: &'static str, value: Json) -> (&'static str, BoxedStrategy<Option<Value>>) {
    (name, proptest::option::weighted(0.6, value).boxed())
}

/// An object of these members, and of some unknown ones.
pub(super) fn object(members: Vec<(&'static str, BoxedStrategy<Option<Value>>)>) -> Json {
    let (names, values): (Vec<&'static str>, Vec<_>) = members.into_iter().unzip();
    (values, vec((member(), anything()), 0..3))
        .prop_map(move |(values, unknown)| {
            let mut object: Map<String, Value> =
                unknown.into_iter().filter(|(name, _)| !names.contains(&name.as_str())).collect();
            // A name that differs from a member only in case and hyphens would be taken for a mistake.
            for (name, value) in names.iter().zip(values) {
                object.extend(value.map(|value| ((*name).to_owned(), value)));
            }
            Value::Object(object)
        })
        .boxed()
}
