//! `/api/v1/agents`: listing, showing and changing agents.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use crosspoint_engine::runtime::{AgentView, Denied};
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::Refused;
use crosspoint_http::body::Received;
use crosspoint_http::json::{Object, push_array, response};

use super::access::Who;
use super::query::Name;
use super::view::{Heartbeat, OfItself};
use super::{App, submit, view};
use crate::backend::denied;

pub(super) async fn list_agents(State(app): State<App>) -> Response {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    push_array(object.name("agents"), &app.engine().agents(), |out, agent| app.push_agent(out, agent));
    object.close();
    response(StatusCode::OK, out)
}

pub(super) async fn show_agent(State(app): State<App>, Name(name): Name) -> Result<Response, Refused> {
    app.shown_agent(app.engine().agent(&name).ok_or(Denied::NotFound))
}

pub(super) async fn drain_agent(
    State(app): State<App>,
    who: Who,
    Name(name): Name,
    received: Received,
) -> Result<Response, Refused> {
    let drained = submit::drained(&received.bytes)?;
    app.shown_agent(app.engine().acting(who.on_record()).drain(&name, drained).await)
}

pub(super) async fn set_breaker(
    State(app): State<App>,
    who: Who,
    Name(name): Name,
    received: Received,
) -> Result<Response, Refused> {
    let open = submit::breaker_open(&received.bytes)?;
    app.shown_agent(app.engine().acting(who.on_record()).set_breaker(&name, open).await)
}

impl App {
    pub(super) fn shown_agent(&self, agent: Result<AgentView, Denied>) -> Result<Response, Refused> {
        let agent = agent.map_err(|why| denied(&why, Refusal::no_such_agent))?;
        let mut out = Vec::new();
        self.push_agent(&mut out, &agent);
        Ok(response(StatusCode::OK, out))
    }

    fn push_agent(&self, out: &mut Vec<u8>, agent: &AgentView) {
        let known = self.hub().agent(&agent.spec.name);
        let of_itself = known.map(|known| OfItself {
            protocol_version: Some(known.protocol_version.clone()),
            heartbeat: known.last_beat().map(|beat| Heartbeat {
                at: beat.at,
                status: beat.status.word(),
                resources: beat.resources,
            }),
        });
        view::push_agent(out, agent, &of_itself.unwrap_or_default());
    }
}
