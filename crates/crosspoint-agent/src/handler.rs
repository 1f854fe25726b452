//! Functions that do the work.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::outcome::Text;
use crosspoint_contracts::reply::{Failed, Success};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_path_to_error::Segment;

use crate::{Context, Failure, written};

/// Longest outputs, in bytes.
const OUTPUTS_BYTES_MAX: usize = 16 << 20;

/// What outputs are called in a failure.
const OUTPUTS: &str = "what the handler returned";

/// What a handler gives back, in the parts that all contracts know.
pub(crate) type Done = Result<Success, Failed>;

/// A handler whose types are no longer known.
pub(crate) type Boxed = Box<dyn Fn(Bytes, Context) -> Pin<Box<dyn Future<Output = Done> + Send>> + Send + Sync>;

/// A function that does one kind of work. Async functions with an input and a [`Context`] are handlers.
///
/// The input is any type that serde reads, and the output any that it writes. `Box<serde_json::value::RawValue>` is the
/// JSON as it came.
///
/// ```
/// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
/// # use doc::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Deserialize)]
/// struct Order { unit_price: u32, count: u32 }
///
/// #[derive(Serialize)]
/// struct Bill { total: u32 }
///
/// async fn bill(order: Order, _: Context) -> Result<Bill, Failure> {
///     let total = order.unit_price.checked_mul(order.count).ok_or_else(|| Failure::new("this is too much"))?;
///     Ok(Bill { total })
/// }
///
/// let agent = Agent::new("biller").on("bill", bill);
/// # let answer = called(agent.forgetful(), "bill", json!({"unit_price": 6, "count": 7}));
/// # assert_eq!(answer["outputs"], json!({"total": 42}));
/// ```
pub trait Handler<Types>: Send + Sync + 'static {
    #[doc(hidden)]
    fn boxed(self) -> Boxed;
}

impl<F, I, O, E, Doing> Handler<(I, O, E)> for F
where
    F: Fn(I, Context) -> Doing + Send + Sync + 'static,
    I: DeserializeOwned + Send + 'static,
    O: Serialize + 'static,
    E: Into<Failure> + 'static,
    Doing: Future<Output = Result<O, E>> + Send + 'static,
{
    fn boxed(self) -> Boxed {
        Box::new(move |input, context| {
            // What is wrong with an input is told without the input.
            let read = serde_json::from_slice::<I>(&input).map_err(|error| unread::<I>(&input, &error));
            let doing = read.map(|input| self(input, context.clone()));
            Box::pin(async move {
                let outputs = match doing {
                    Ok(doing) => doing.await.map_err(Into::into),
                    Err(unread) => Err(unread),
                };
                let outputs = outputs.and_then(|outputs| written::json(&outputs, OUTPUTS, OUTPUTS_BYTES_MAX));
                outputs.map(|outputs| success(outputs, &context)).map_err(Failure::failed)
            })
        })
    }
}

/// Returns what a function gave and printed.
fn success(outputs: String, context: &Context) -> Success {
    let success = match (&*outputs, context.take_text()) {
        // A function that gives nothing and prints has printed its output (ALL-8).
        ("null", Some(text)) => Success::printed(&text),
        ("null", None) => Success::of(Body::trusted("{}")),
        (_, None) => Success::of(Body::trusted(outputs)),
        (_, Some(text)) => Success { text: Some(Text::Beside(Body::of(&text))), ..Success::of(Body::trusted(outputs)) },
    };
    Success { artifacts: context.take_artifacts(), ..success }
}

/// Makes a failure of an input that the handler cannot take. Its place is named and its values are not.
fn unread<I: DeserializeOwned>(input: &[u8], error: &serde_json::Error) -> Failure {
    let place = || format!("(line {}, column {} of the input)", error.line(), error.column());
    let said = error.to_string();
    if error.classify() != serde_json::error::Category::Data {
        // Numbers that no type can hold are JSON all the same.
        let is_number = said.starts_with("number out of range");
        let what = if is_number { "the input has a number that is out of range" } else { "the input is no JSON" };
        return Failure::invalid(format!("{what} {}", place()));
    }
    let at = at::<I>(input);
    match (missing(&said), wanted(&said)) {
        (Some(member), _) => {
            let message = format!("the input lacks `{member}` {}", place());
            Failure::invalid(message).details(json!({ "at": format!("{at}{}", token(member)) }))
        }
        (None, Some(wanted)) if !at.is_empty() => {
            Failure::invalid(format!("{at}: {wanted} is wanted")).details(json!({ "at": at }))
        }
        (None, Some(wanted)) => Failure::invalid(format!("the input does not fit: {wanted} is wanted")),
        (None, None) => {
            let what = "the input does not have the members and types that this work needs";
            Failure::invalid(format!("{what} {}", place())).details(json!({ "at": at }))
        }
    }
}

/// Returns the member that serde misses. Its name is that of the handler's own type, and no content.
fn missing(error: &str) -> Option<&str> {
    error.strip_prefix("missing field `")?.split('`').next()
}

/// Returns what serde wants in place of what it found. The handler's own type says it; what was found is content.
fn wanted(error: &str) -> Option<String> {
    const KNOWN: [&str; 4] = ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant "];
    let is_known = KNOWN.iter().any(|begin| error.starts_with(begin));
    // The value may have the same words in it, so the last ones count.
    let (_, wanted) = error.rsplit_once(", expected ").filter(|_| is_known)?;
    let wanted = wanted.rsplit_once(" at line ").map_or(wanted, |(wanted, _)| wanted);
    Some(match wanted {
        "f32" | "f64" => "a number".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => {
            format!("a whole number ({wanted})")
        }
        "a boolean" => "true or false".to_owned(),
        "a string" | "a borrowed string" => "a text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        object if object.starts_with("struct ") => "an object".to_owned(),
        other => other.to_owned(),
    })
}

/// Returns the place in the input that does not fit, as a JSON pointer. The input is read once more for it.
fn at<I: DeserializeOwned>(input: &[u8]) -> String {
    let mut reader = serde_json::Deserializer::from_slice(input);
    let Err(error) = serde_path_to_error::deserialize::<_, I>(&mut reader) else { return String::new() };
    let names = error.path().iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    names.map(|name| token(&name)).collect()
}

/// Returns a name as a step of a JSON pointer.
fn token(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}
