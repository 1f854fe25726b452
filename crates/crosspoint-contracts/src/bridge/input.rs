//! The input of a request, as agents get it that know nothing of bridges.

use crate::document::Options;
use crate::job::Input;
use crate::kind::Kind;
use crate::map::prompt_object;
use crate::translate::read_jobs;

/// What a request gives its agent, as one JSON object: prompt and context, or the object that the work had elsewhere and that travelled
/// in them. `None` where this is no valid request.
///
/// It cannot be a slice of the document, as the inputs of other contracts are: it stands in two members, and what was carried stands
/// between what is the requester's own.
pub fn input(document: &[u8]) -> Option<String> {
    let options = Options { kind: Some(Kind::BridgeRequest), ..Options::default() };
    let (_, jobs) = read_jobs(document, &options);
    let job = jobs.into_iter().next()?;
    Some(match job.input() {
        Input::Object(object) => object.get().to_owned(),
        Input::Prompt(prompt, context) => prompt_object(prompt, context),
        Input::None => "{}".to_owned(),
    })
}
