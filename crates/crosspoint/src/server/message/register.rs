//! Registrations and heartbeats (MSG-10 to MSG-12).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use crosspoint_contracts::Report;
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::message::version::NoCommonVersion;
use crosspoint_contracts::message::{Registration, Sign};
use crosspoint_engine::core::{Member, Spec};
use crosspoint_engine::policy::{Policy, Recovery, Repeats};
use crosspoint_engine::wall_clock;
use crosspoint_exchange::incoming::one_of_all;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_http::Refused;
use crosspoint_http::body::Received;
use crosspoint_http::json::response;

use super::taken;
use crate::config::{ANSWER_BYTES, CONCURRENCY, ENDPOINT, address};
use crate::link::message::{Beat, CONTRACT_NAME, MessageAgent, Registered, SILENCE, SILENT_AFTER};
use crate::server::App;
use crate::server::access::Who;
use crate::server::pull::unjoined;

/// How often agents are asked to send a heartbeat, in seconds (MSG-12).
const HEARTBEAT_SECONDS: u32 = 30;

/// Most bytes of a heartbeat's resources that are kept.
const RESOURCES_BYTES_MAX: usize = 4 << 10;

pub(in crate::server) async fn register_agent(
    State(app): State<App>,
    who: Who,
    received: Received,
) -> Result<Response, Refused> {
    Ok(app.registered(&who, &received).await.map_err(Refusal::of_no_id)?)
}

impl App {
    /// Takes a registration.
    async fn registered(&self, who: &Who, received: &Received) -> Result<Response, Refusal> {
        if self.stopping().is_cancelled() {
            return Err(Refusal::stopping());
        }
        let (report, registration) = Registration::read(&received.bytes, &self.types());
        let registration = registration.ok_or_else(|| malformed(report))?;
        self.speaks_for(who, &registration.agent_id)?;
        self.speaks_as(who, &registration.agent_id)?;
        let picked = registration.version().map_err(|none| no_common_version(&none))?;
        let agent = match self.hub().agent(&registration.agent_id) {
            Some(agent) if self.is_configured(&agent.name) => self.registered_configured(agent, &registration, who)?,
            Some(_) | None => self.register(&registration, picked.get()).await?,
        };
        agent.heard();
        self.hub().tell_capacity(self.engine(), &agent);
        Ok(response(StatusCode::OK, registration.answer(picked, HEARTBEAT_SECONDS)))
    }

    /// Whether an agent of this name is configured.
    fn is_configured(&self, name: &str) -> bool {
        self.engine().agent(name).is_some_and(|agent| agent.joined.is_none())
    }

    /// Takes the registration of an agent that is configured. How it is reached and what it takes stays as configured.
    fn registered_configured(
        &self,
        agent: Arc<MessageAgent>,
        registration: &Registration,
        who: &Who,
    ) -> Result<Arc<MessageAgent>, Refusal> {
        self.authenticated(&agent, who)?;
        match &agent.agent_type {
            Some(of) if **of != *registration.agent_type && agent.has_token() => {
                Err(Refusal::wrong_type(&agent.name, of))
            }
            Some(of) if **of != *registration.agent_type => {
                let hint = format!("register as the type that is configured for it: {of}");
                Err(Refusal::conflict("the agent is configured with another type", hint).at("/agent_type"))
            }
            Some(_) | None => Ok(agent),
        }
    }

    /// Makes an agent known that is not configured, or changes it.
    async fn register(&self, registration: &Registration, version: &str) -> Result<Arc<MessageAgent>, Refusal> {
        let name: Arc<str> = (*registration.agent_id).into();
        if self.callers().iter().any(|caller| *caller.name == *name) {
            let hint = "register under another agent_id";
            return Err(Refusal::conflict("a caller of this name is configured", hint).at("/agent_id"));
        }
        let base_url = registration.base_url.as_deref();
        let base_url = base_url.map(|url| address::base(url, [ENDPOINT].into_iter())).transpose();
        let base_url = base_url.map_err(|problem| {
            Refusal::invalid(problem, "write it like http://127.0.0.1:8000")
                .clause("MSG-11.5")
                .at("/base_url")
                .naming_field()
        })?;
        let registered = Registered { protocol_version: version.to_owned(), base_url };
        let policy = Policy {
            silence: Some(SILENCE),
            repeats: Repeats::SameAgent,
            recovery: Recovery::Resume,
            output_bytes_max: ANSWER_BYTES,
            ..Policy::DEFAULT
        };
        let spec = Spec {
            name: name.clone(),
            contract: CONTRACT_NAME.into(),
            works: registration.work_types.iter().map(|work| (&**work).into()).collect(),
            concurrency: registration.concurrency.unwrap_or(CONCURRENCY),
            waiting_max: u32::MAX,
            policy,
            agent_type: Some((*registration.agent_type).into()),
            awaited: false,
        };
        let member = Member { spec, lease: SILENT_AFTER, left_at: None, registration: Some(registered.block()) };
        self.engine().join(member).await.map_err(|why| unjoined(&why))?;
        self.hub().agent(&name).ok_or_else(Refusal::internal)
    }

    /// Takes a heartbeat (MSG-12). What is wrong with it does no harm, as long as it says whose it is.
    pub(super) fn take_heartbeat(
        &self,
        who: &Who,
        from_agent: Option<&str>,
        document: &Bytes,
    ) -> Result<Response, Refusal> {
        let (report, sign) = Sign::read(document, &self.types());
        let sign = sign.ok_or_else(|| malformed(report))?;
        self.speaks_for(who, &sign.agent_id)?;
        let agent = self.hub().agent(&sign.agent_id).ok_or_else(|| {
            let hint = "POST /api/agent/register first";
            Refusal::not_found("no agent of this id has registered", hint)
                .clause("MSG-11")
                .at("/payload/agent_id")
                .naming_field()
        })?;
        self.authenticated(&agent, who)?;
        if agent.has_token() {
            App::is_of_type(&agent, [sign.agent_type.as_deref(), from_agent])?;
        }
        // What is shown and not used must not fill the memory.
        let resources = sign.resources.filter(|resources| resources.bytes().len() <= RESOURCES_BYTES_MAX);
        agent.beats(Beat { at: wall_clock::now(), status: sign.presence, resources });
        self.hub().tell_capacity(self.engine(), &agent);
        Ok(taken())
    }

    /// Returns the agent types that the operator added.
    fn types(&self) -> Vec<&str> {
        self.hub().agent_types().iter().map(|name| &**name).collect()
    }
}

/// Refuses what cannot be read, with the first of its mistakes; the others are listed with it.
pub(super) fn malformed(report: Report) -> Refusal {
    let errors = report.findings.iter().filter(|finding| finding.level == Level::Error);
    let refusal = match errors.chain(&report.findings).next() {
        Some(finding) => {
            let (clause, at) = (finding.clause.id, finding.pointer.clone());
            let message = format!("{}{}", finding.message, one_of_all(&report));
            Refusal::invalid(message, finding.hint.clone()).clause(clause).at(at).naming_field()
        }
        None => Refusal::invalid("the body cannot be read", "send one JSON object"),
    };
    refusal.because(report)
}

/// MSG-10.3: names the versions of both sides.
fn no_common_version(none: &NoCommonVersion) -> Refusal {
    let hint = "register with a version that this server speaks in supported_versions";
    Refusal::unsupported(none.to_string(), hint).clause("MSG-10.3").at("/supported_versions")
}
