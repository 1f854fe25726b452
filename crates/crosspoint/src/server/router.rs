//! Every endpoint.

use axum::Router;
use axum::http::Method;
use axum::routing::{get, post};

use super::refusal::Refusal;
use super::{App, agents, events, health, jobs};

pub(super) fn router(app: App) -> Router {
    Router::new()
        .route("/api/v1/jobs", post(jobs::submit_job).get(jobs::list_jobs))
        .route("/api/v1/jobs/{id}", get(jobs::show_job))
        .route("/api/v1/jobs/{id}/events", get(events::follow_job))
        .route("/api/v1/jobs/{id}/document", get(jobs::show_document))
        .route("/api/v1/jobs/{id}/cancel", post(jobs::cancel_job))
        .route("/api/v1/jobs/{id}/answer", post(jobs::answer_job))
        .route("/api/v1/jobs/{id}/retry", post(jobs::retry_job))
        .route("/api/v1/agents", get(agents::list_agents))
        .route("/api/v1/agents/{name}", get(agents::show_agent))
        .route("/api/v1/agents/{name}/drain", post(agents::drain_agent))
        .route("/api/v1/agents/{name}/breaker", post(agents::set_breaker))
        .route("/health", get(health::alive))
        .route("/health/ready", get(health::ready))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn unknown_path() -> Refusal {
    Refusal::not_found("nothing is at this path", "the API is under /api/v1/jobs and /api/v1/agents")
}

async fn wrong_method(method: Method) -> Refusal {
    Refusal::wrong_method(&method)
}
