//! What handlers of workflows know and say beyond other work: where in which workflow they are, which files matter, and
//! what should come next.

use std::collections::BTreeMap;

use crosspoint_contracts::content::Json;
use crosspoint_contracts::job::{Canonical, Home};
use crosspoint_contracts::translate::read_request;
pub use crosspoint_contracts::workflow::{Operation, Recommendation};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Context;
use super::given::Artifact;
use crate::Failure;

/// Where in which workflow a job is, and what the workflow hands to it.
///
/// ```
/// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
/// # use doc::*;
/// async fn review(_: Value, context: Context) -> Result<Value, Failure> {
///     let workflow = context.workflow().ok_or_else(|| Failure::invalid("this is work of a workflow"))?;
///     let spec = workflow.paths.get("spec").and_then(|paths| paths.first());
///     Ok(json!({"spec": spec, "iteration": workflow.iteration, "notes": workflow.prior_context.len()}))
/// }
/// # let agent = Agent::new("reviewer").on("review", review).forgetful();
/// # let envelope = json!({
/// #     "context": {"feature_id": null, "workflow": "release", "iteration": 2},
/// #     "paths": {"spec": "docs/spec.md"}, "task": {"action": "review", "params": {}},
/// #     "prior_context": ["The build is green."],
/// # });
/// # let answer = serving(agent, |post| post("/agents/reviewer/envelope", envelope));
/// # let outputs = &answer["x_crosspoint"]["outputs"];
/// # assert_eq!(*outputs, json!({"spec": "docs/spec.md", "iteration": 2, "notes": 1}), "{answer}");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Workflow {
    /// The name of the workflow.
    pub name: String,
    /// The feature that is worked on, unless there is none yet.
    pub feature_id: Option<String>,
    /// How many times round, from 1.
    pub iteration: u64,
    /// The files that matter to the work, by name. Where the caller gives one path, the list has one.
    pub paths: BTreeMap<String, Vec<String>>,
    /// Notes of the agent before.
    pub prior_context: Vec<String>,
}

impl Context {
    /// Returns where in which workflow the job is; `None` if its caller says nothing of a workflow.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     Ok(json!({"workflow": context.workflow().map(|workflow| workflow.name)}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let answer = called(agent, "work", json!({}));
    /// # assert_eq!(answer["outputs"], json!({"workflow": null}));
    /// ```
    pub fn workflow(&self) -> Option<Workflow> {
        let asked = &self.0.asked;
        // A type that the operator added may be named there.
        let types: Vec<&str> = self.0.agent_type.iter().map(|own| &**own).collect();
        let request = read_request(asked.door.contract()?, &asked.document.0, &types);
        let job = request.job?;
        Some(Workflow {
            name: held(&job, Home::Workflow)?,
            feature_id: held(&job, Home::Feature).flatten(),
            iteration: held(&job, Home::Iteration).unwrap_or(1),
            paths: paths(&job),
            prior_context: held(&job, Home::Notes).unwrap_or_default(),
        })
    }

    /// Gives the caller a file to write, as [`Context::artifact`] does, and says whether the file is new. The name is
    /// its path from the root of the repository.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// use crosspoint_agent::Operation;
    ///
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     context.artifact_with("docs/spec.md", "text/markdown", Operation::Update, "# Spec\n")?;
    ///     Ok(json!({"files": 1}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let envelope = json!({
    /// #     "context": {"feature_id": null, "workflow": "w", "iteration": 1}, "paths": {},
    /// #     "task": {"action": "work", "params": {}},
    /// # });
    /// # let answer = serving(agent, |post| post("/agents/worker/envelope", envelope));
    /// # assert_eq!(answer["artifacts"][0]["operation"], "update", "{answer}");
    /// ```
    pub fn artifact_with(
        &self,
        name: &str,
        media_type: &str,
        operation: Operation,
        content: &(impl Serialize + ?Sized),
    ) -> Result<(), Failure> {
        let operation = Some(operation.word());
        self.given().artifact(&Artifact { name, media_type, operation, content })
    }

    /// Leaves a note for the agent after this one in the workflow.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn work(_: Value, context: Context) -> Result<Value, Failure> {
    ///     context.note("Two tests are flaky.")?;
    ///     Ok(json!({"passed": 17}))
    /// }
    /// # let agent = Agent::new("worker").on("work", work).forgetful();
    /// # let envelope = json!({
    /// #     "context": {"feature_id": null, "workflow": "w", "iteration": 1}, "paths": {},
    /// #     "task": {"action": "work", "params": {}},
    /// # });
    /// # let answer = serving(agent, |post| post("/agents/worker/envelope", envelope));
    /// # assert_eq!(answer["notes"], json!(["Two tests are flaky."]), "{answer}");
    /// ```
    pub fn note(&self, text: &str) -> Result<(), Failure> {
        self.given().note(text)
    }

    /// Says what should come next in the workflow. The last word counts. Without one a success proceeds; a failure
    /// never does.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// use crosspoint_agent::Recommendation;
    ///
    /// async fn review(_: Value, context: Context) -> Result<Value, Failure> {
    ///     context.recommend(Recommendation::Retry);
    ///     Ok(json!({"gaps": 2}))
    /// }
    /// # let agent = Agent::new("reviewer").on("review", review).forgetful();
    /// # let envelope = json!({
    /// #     "context": {"feature_id": null, "workflow": "w", "iteration": 1}, "paths": {},
    /// #     "task": {"action": "review", "params": {}},
    /// # });
    /// # let answer = serving(agent, |post| post("/agents/reviewer/envelope", envelope));
    /// # assert_eq!((&answer["success"], &answer["recommendation"]), (&json!(true), &json!("retry")), "{answer}");
    /// ```
    pub fn recommend(&self, recommendation: Recommendation) {
        self.given().recommend(recommendation.word());
    }
}

fn held<T: DeserializeOwned>(job: &Canonical<'_>, home: Home) -> Option<T> {
    serde_json::from_str(job.get(home).map(Json::get)?).ok()
}

fn paths(job: &Canonical<'_>) -> BTreeMap<String, Vec<String>> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Paths {
        One(String),
        Several(Vec<String>),
    }
    let named: BTreeMap<String, Paths> = held(job, Home::Paths).unwrap_or_default();
    let list = |paths| match paths {
        Paths::One(path) => vec![path],
        Paths::Several(paths) => paths,
    };
    named.into_iter().map(|(name, paths)| (name, list(paths))).collect()
}
