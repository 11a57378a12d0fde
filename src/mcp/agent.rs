//! The caller of an MCP tool: API key, scope, account, address; 401 for a dashboard session.

use std::sync::Arc;

use rmcp::{ErrorData, RoleServer, service::RequestContext};
use rmcp_actix_web::transport::on_request_extensions;
use sluice_store::audit::Target;
use uuid::Uuid;

use crate::application::{
    audit::{Author, PendingEntry},
    caller::{Caller, Credential, Identity, Read, Write},
    context::AgentContext,
    error::ApiError,
    reached::Reached,
    workflows::operations,
};

/// Action in the audit log of a tool that changes something.
const TOOL_CALLED: &str = "tool.called";

/// The program behind a request of `/mcp`.
#[derive(Clone)]
pub struct Agent {
    pub context: Arc<AgentContext>,
    pub reached: Reached,
    identity: Arc<Identity>,
    key_id: Uuid,
}

impl Agent {
    /// Makes the agent of a request; 401 unless it showed an API key: a dashboard session is for people.
    pub fn new(
        context: Arc<AgentContext>,
        reached: Reached,
        identity: Arc<Identity>,
    ) -> Result<Self, ApiError> {
        let Credential::Key(key_id) = identity.credential else {
            return Err(ApiError::Unauthenticated(
                "an API key is needed here, not a dashboard session",
            ));
        };
        Ok(Self {
            context,
            reached,
            identity,
            key_id,
        })
    }

    /// Reads the caller that the transport hands to the server.
    pub fn behind(context: &RequestContext<RoleServer>) -> Result<Self, ErrorData> {
        on_request_extensions(&context.extensions)
            .and_then(|extensions| extensions.get::<Self>())
            .cloned()
            .ok_or_else(|| ErrorData::internal_error("no caller came with the request", None))
    }

    pub fn reader(&self) -> Result<Caller<Read>, ApiError> {
        Caller::of(&self.identity)
    }

    /// Returns the caller with scope write; 403 for a key that may only read.
    pub fn writer(&self) -> Result<Caller<Write>, ApiError> {
        Caller::of(&self.identity)
    }

    /// Returns the context of the caller's workflows.
    pub(crate) fn workflows<S>(&self, caller: &Caller<S>) -> operations::RequestContext {
        let (handles, reached) = (self.context.workflows.clone(), self.reached.clone());
        operations::RequestContext {
            client: operations::Client::Mcp,
            ..operations::RequestContext::of(handles, caller, reached)
        }
    }

    /// Begins an entry of the audit log for a call of a tool that changes something; `None` when calls of this key are not noted.
    pub(super) fn begin_entry(&self, tool: &str, title: &str) -> Option<PendingEntry> {
        if !self.identity.is_audited() {
            return None;
        }
        let author = Author::behind(&self.identity, self.reached.client);
        let target = Target {
            kind: "tool",
            id: tool.to_owned(),
            name: Some(title.to_owned()),
        };
        let entry = author.entry(TOOL_CALLED, target);
        Some(PendingEntry::new(&self.context.store, entry))
    }

    pub fn may_write(&self) -> bool {
        self.writer().is_ok()
    }

    pub fn account_id(&self) -> Uuid {
        self.identity.account_id
    }

    /// Returns the identity of the client, as far as clients can be distinguished without sessions.
    pub fn client(&self) -> crate::application::agent_calls::Client {
        (self.key_id, self.reached.client)
    }
}
