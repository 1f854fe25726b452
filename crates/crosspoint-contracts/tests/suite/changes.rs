//! Documents with values replaced or removed, at every place in turn or at places of a test's choice.

use serde_json::{Value, json};

/// The values that replace a value in turn; `None` removes the member.
pub(crate) fn replacements() -> Vec<Option<Value>> {
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!([{}]),
    ];
    values.into_iter().map(Some).chain([None]).collect()
}

/// Returns every place in a document, as JSON pointers.
pub(crate) fn places(document: &Value) -> Vec<String> {
    fn push(value: &Value, pointer: &str, found: &mut Vec<String>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
        };
        for (name, child) in children {
            let place = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            found.push(place.clone());
            push(child, &place, found);
        }
    }
    let mut found = Vec::new();
    push(document, "", &mut found);
    found
}

/// Returns the document with the value at this place replaced; `None` where there is no such place, or where an item
/// of an array was to be removed.
pub(crate) fn changed(document: &Value, place: &str, replacement: Option<&Value>) -> Option<Value> {
    let mut changed = document.clone();
    match replacement {
        Some(value) => *changed.pointer_mut(place)? = value.clone(),
        None => {
            let (parent, name) = place.rsplit_once('/')?;
            let name = name.replace("~1", "/").replace("~0", "~");
            changed.pointer_mut(parent)?.as_object_mut()?.remove(&name)?;
        }
    }
    Some(changed)
}

/// Returns the document with one value replaced, for every place in it and every replacement, with that place.
pub(crate) fn all(document: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for place in places(document) {
        let one = |replacement: Option<Value>| Some((place.clone(), changed(document, &place, replacement.as_ref())?));
        found.extend(replacements().into_iter().filter_map(one));
    }
    found
}
