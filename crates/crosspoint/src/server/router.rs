//! The router: every endpoint with its handler.

use axum::Router;
use axum::http::Method;
use axum::routing::{get, post};
use crosspoint_contracts::Contract;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::Refused;
use crosspoint_http::door::{message as message_door, run, task, workflow};

#[cfg(feature = "demo-contract")]
use super::demo_door;
use super::{
    App, access, agents, bridge_door, callers, documents, events, health, jobs, message, metrics, openapi, output,
    pull, tokens, workflows,
};

/// The doors of contracts, by their paths.
pub(super) const DOORS: &[(&str, Contract)] = &[
    (workflow::PLACE, workflow::CONTRACT),
    (run::PLACE, run::CONTRACT),
    (task::PLACE, task::CONTRACT),
    (message_door::PLACE, message_door::CONTRACT),
    (bridge_door::PLACE, bridge_door::CONTRACT),
    #[cfg(feature = "demo-contract")]
    (demo_door::PLACE, demo_door::CONTRACT),
];

pub(super) fn router(app: App) -> Router {
    let router = Router::new();
    #[cfg(feature = "demo-contract")]
    let router = router.merge(demo_door::routes().with_state(app.doors()));
    router
        .merge(run::routes().with_state(app.doors()))
        .merge(task::routes().with_state(app.doors()))
        .merge(workflow::routes().with_state(app.doors()))
        .route("/api/agent/message", post(message::take_message))
        .route("/api/agent/register", post(message::register_agent))
        .route("/api/agent/messages", get(message::pull_messages))
        .route("/api/v1/jobs", post(jobs::submit_job).get(jobs::list_jobs))
        .route("/api/v1/jobs/{id}", get(jobs::show_job))
        .route("/api/v1/jobs/{id}/events", get(events::follow_job))
        .route("/api/v1/jobs/{id}/output", get(output::show_output))
        .route("/api/v1/jobs/{id}/document", get(jobs::show_document))
        .route("/api/v1/jobs/{id}/cancel", post(jobs::cancel_job))
        .route("/api/v1/jobs/{id}/answer", post(jobs::answer_job))
        .route("/api/v1/jobs/{id}/retry", post(jobs::retry_job))
        .route("/api/v1/workflows", post(workflows::start_workflow))
        .route("/api/v1/workflows/{id}/diff", get(workflows::show_diff))
        .route("/api/v1/bridge", get(bridge_door::show_bridge).post(bridge_door::ask_agent))
        .route("/api/v1/callers", get(callers::list_callers))
        .route("/api/v1/agents", get(agents::list_agents))
        .route("/api/v1/agents/{name}", get(agents::show_agent).delete(pull::forget_agent))
        .route("/api/v1/agents/{name}/drain", post(agents::drain_agent))
        .route("/api/v1/agents/{name}/breaker", post(agents::set_breaker))
        .route("/api/v1/agents/{name}/join", post(pull::join_agent))
        .route("/api/v1/agents/{name}/take", post(pull::take_jobs))
        .route("/api/v1/agents/{name}/report", post(pull::report_jobs))
        .route("/api/v1/agents/{name}/output", post(pull::store_output))
        .route("/api/v1/agents/{name}/leave", post(pull::leave_agent))
        .route("/api/v1/tokens", post(tokens::create_token).get(tokens::list_tokens))
        .route("/api/v1/tokens/{name}/revoke", post(tokens::revoke_token))
        .route("/api/v1/tokens/{name}/rotate", post(tokens::rotate_token))
        .route("/api/v1/validate", post(documents::validate_document))
        .route("/api/v1/translate", post(documents::translate_document))
        .route("/schemas/{file}", get(documents::show_schema))
        .route("/openapi.json", get(openapi::describe))
        .route("/metrics", get(metrics::measure))
        .route("/health", get(health::alive))
        .route("/health/ready", get(health::ready))
        .route_layer(axum::middleware::from_fn_with_state(app.clone(), access::check))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn unknown_path() -> Refused {
    Refusal::not_found("nothing is at this path", "GET /openapi.json describes what there is").into()
}

async fn wrong_method(method: Method) -> Refused {
    Refusal::wrong_method(method.as_str()).into()
}
