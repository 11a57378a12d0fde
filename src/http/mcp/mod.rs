//! `/mcp`: the transport of MCP tools (streamable HTTP, without sessions), its keep-alive.
//!
//! ```text
//! request ─ admission (rate) ─ gate (credential, Host, Origin, method, body) ─ transport (rmcp) ─ crate::mcp::Server ─ a tool
//! ```

mod gate;

use std::{sync::Arc, time::Duration};

use actix_web::{HttpRequest, middleware::from_fn, web};
use rmcp_actix_web::transport::{LocalSessionManager, StreamableHttpService};

use super::extract;
use crate::{
    application::{context::AgentContext, error::ApiError, reached::Reached},
    http::context,
    mcp::{Agent, Server},
};

/// Address of the tools.
const PATH: &str = "/mcp";

/// Pause between two keep-alives on a stream of events; the second one that no one takes ends a call whose client has gone. A
/// call by revision 2026-07-28 that asks for no progress has a stream only with its answer, since the status comes first:
/// when its client goes, its wait ends by `mcp.wait`.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Returns whether a path belongs to agents.
pub(super) fn is_below(path: &str) -> bool {
    path.strip_prefix(PATH)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Adds `/mcp` to an application.
pub fn configure(app: &mut web::ServiceConfig) {
    let transport = StreamableHttpService::builder()
        .service_factory(Arc::new(|| Ok(Server)))
        .session_manager(Arc::new(LocalSessionManager::default()))
        .stateful_mode(false)
        .sse_keep_alive(KEEP_ALIVE)
        // The gate has judged both, and has read the body.
        .allowed_hosts(Vec::new())
        .max_request_body_bytes(usize::MAX)
        .on_request_fn(|request, extensions| {
            if let Ok(agent) = agent_of(request) {
                extensions.insert(agent);
            }
        })
        .build();
    app.service(
        web::scope(PATH)
            .wrap(from_fn(gate::gate))
            .service(transport.scope()),
    );
}

/// The program behind a request; 401 unless it showed an API key.
fn agent_of(request: &HttpRequest) -> Result<Agent, ApiError> {
    let identity = extract::identity(request)?;
    let agents = context::of::<AgentContext>(request).clone().into_inner();
    Agent::new(agents, Reached::of(request), identity)
}

/// Send a message to the tools for agents
///
/// One message of the Model Context Protocol (JSON-RPC 2.0), revisions 2024-11-05 to 2026-07-28, without sessions. Requests
/// are answered as a stream of events, which progress may precede; notifications are answered 202. The tools themselves are
/// listed by `tools/list`.
#[utoipa::path(post, path = "/mcp", tag = "agents", security(("bearerAuth" = []), ("apiKeyAuth" = [])),
    params(
        ("MCP-Protocol-Version" = Option<String>, Header, description = "The revision that was agreed on"),
        ("Accept" = String, Header, description = "Both `application/json` and `text/event-stream`"),
    ),
    request_body(content = Object, content_type = "application/json", example = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})),
    responses(
        (status = 200, description = "Events, each a message; the last is the answer", content_type = "text/event-stream", body = String),
        (status = 202, description = "The notification was taken"),
        (status = 404, description = "mcp.enabled is false", body = crate::application::error::ErrorBody),
        (status = 406, description = "Accept lacks one of the two", body = crate::application::error::ErrorBody)))]
#[expect(dead_code, reason = "describes what the transport answers")]
pub fn message() {}

#[cfg(test)]
mod tests {
    use super::is_below;

    #[test]
    fn only_the_path_and_what_lies_below_it() {
        assert!(is_below("/mcp") && is_below("/mcp/") && is_below("/mcp/x"));
        assert!(!is_below("/mcpx") && !is_below("/api/mcp") && !is_below(""));
    }
}
