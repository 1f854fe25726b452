//! Who asks: whose job it will be, and who is on record.

use std::sync::Arc;

/// The owner of a job: request keys of two callers never clash.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Caller {
    name: Arc<str>,
    /// Who is named in the record of what is done, where that is not the owner.
    recorded: Option<Arc<str>>,
}

impl Caller {
    /// Without tokens all requests come from the same caller.
    pub fn everyone() -> Caller {
        Caller::default()
    }

    /// The caller of this name, which its token shows.
    pub fn named(name: Arc<str>) -> Caller {
        Caller { name, recorded: None }
    }

    /// The same owner of jobs, whose acts are on record as done by this one.
    pub fn recorded_as(self, who: Arc<str>) -> Caller {
        Caller { recorded: Some(who), ..self }
    }

    /// Returns who is named in the record of what this caller does: the one that acts, to whichever job.
    pub fn on_record(&self) -> Option<&Arc<str>> {
        self.recorded.as_ref().or_else(|| Some(&self.name).filter(|name| !name.is_empty()))
    }

    /// Returns the caller's name; empty where there are no tokens.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl From<Caller> for Arc<str> {
    fn from(caller: Caller) -> Arc<str> {
        caller.name
    }
}
