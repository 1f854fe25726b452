//! Functions that do the work.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::outcome::Text;
use crosspoint_contracts::reply::{Failed, Success};
use serde::Serialize;
use serde::de::DeserializeOwned;

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
            let read = serde_json::from_slice::<I>(&input).map_err(|error| unread(&error));
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
fn unread(error: &serde_json::Error) -> Failure {
    let what = match error.classify() {
        serde_json::error::Category::Data => match missing(&error.to_string()) {
            Some(member) => format!("the input lacks `{member}`"),
            None => "the input does not have the members and types that this work needs".to_owned(),
        },
        serde_json::error::Category::Syntax | serde_json::error::Category::Eof | serde_json::error::Category::Io => {
            "the input is no JSON".to_owned()
        }
    };
    let place = format!("{what} (line {}, column {} of the input)", error.line(), error.column());
    Failure::invalid(place)
}

/// Returns the member that serde misses. Its name is that of the handler's own type, and no content.
fn missing(error: &str) -> Option<&str> {
    error.strip_prefix("missing field `")?.split('`').next()
}
