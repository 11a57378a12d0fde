//! MCP server: list and call of tools, instructions for models, errors of calls (`mcp.max_calls`).

use std::{borrow::Cow, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
        CustomResult, ErrorCode, Implementation, ListToolsResult, PaginatedRequestParams,
        ProtocolVersion, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use super::{
    Agent,
    arguments::Arguments,
    tools::{self, CallError, Tool},
};
use crate::application::{
    agent_calls::CallPermit,
    error::{ApiError, ErrorBody},
};

/// Instructions that a model reads before it sees the tools.
const INSTRUCTIONS: &str = "\
Media workflows: convert, resize, compress and inspect files, branch on their facts, store results, call webhooks. \
To process a file of yours: create_upload_url, PUT the bytes to its uploadUrl (never send file bytes through a tool), then \
run_workflow with an inline `workflow` and that uploadUrl; the answer has the outputs with addresses to download. \
For a file that is stored already (list_files) pass its fileId instead. list_operations lists kinds and fields of steps; \
lint_workflow checks a definition without saving it. A run that takes long comes back with status `processing`: ask \
get_workflow_run for it.";

/// A call and its caller.
pub struct Call {
    pub agent: Agent,
    pub context: RequestContext<RoleServer>,
    permit: CallPermit,
}

impl Call {
    /// Completes when no client waits for the answer any more: the client cancelled the request or hung up, or the service stops.
    pub async fn abandoned(&self) {
        tokio::select! {
            () = self.permit.given_up() => {}
            () = self.context.ct.cancelled() => {}
            () = self.agent.context.closing.cancelled() => {}
        }
    }
}

/// Stateless server: the caller comes with each message.
#[derive(Clone, Copy, Debug)]
pub struct Server;

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let ours = Implementation::new("sluice", env!("CARGO_PKG_VERSION")).with_title("Sluice");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(ours)
            .with_instructions(INSTRUCTIONS)
    }

    /// Lists all tools on one page; a key that may only read gets those that only read.
    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if page.is_some_and(|page| page.cursor.is_some()) {
            let text = "all tools are on the first page: there is no cursor";
            return Err(ErrorData::invalid_params(text, None));
        }
        let agent = Agent::behind(&context)?;
        let seen = tools::ALL
            .iter()
            .filter(|tool| tool.only_reads() || agent.may_write());
        Ok(ListToolsResult::with_all_items(
            seen.map(described).collect(),
        ))
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        tools::named(name).map(described)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = tools::named(&request.name).ok_or_else(|| no_such_tool(&request.name))?;
        let agent = Agent::behind(&context)?;
        let version = context.protocol_version();
        let calls = &agent.context.calls;
        let Some(permit) = calls.begin(agent.account_id(), agent.client(), context.id.clone())
        else {
            return Ok(failed("busy: as many calls as mcp.max_calls allows one account are in progress; try again in a few seconds").into());
        };
        let call = Call {
            context,
            permit,
            agent,
        };
        let noted = match tool.only_reads() {
            true => None,
            false => call.agent.begin_entry(tool.name, tool.title),
        };
        let performed = perform(tool, &call, request.arguments.unwrap_or_default()).await;
        match (noted, &performed) {
            (Some(noted), Ok(_)) => noted.write().await,
            (Some(noted), Err(CallError::Api(ApiError::OutcomeUnknown(_)))) => {
                noted.write_unknown();
            }
            (Some(noted), Err(_)) => noted.forget(),
            (None, _) => {}
        }
        match performed {
            Ok(answer) => Ok(CallToolResult::structured(answer).into()),
            Err(CallError::Arguments(text)) => wrong_arguments(text, version),
            Err(CallError::Api(error)) => Ok(failed_with(&error.to_body()).into()),
        }
    }

    /// Answers a request whose method the transport does not know.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(match request.method.as_str() {
            "tools/call" => ErrorData::invalid_params(
                "params of tools/call must be {name: text, arguments?: object}",
                None,
            ),
            "initialize" => ErrorData::invalid_params(
                "params of initialize must be {protocolVersion, capabilities, clientInfo: {name, version}}",
                None,
            ),
            other => ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("there is no method `{:.100}` with such params", other),
                None,
            ),
        })
    }
}

async fn perform(
    tool: &Tool,
    call: &Call,
    given: serde_json::Map<String, Value>,
) -> Result<Value, CallError> {
    if !tool.only_reads() {
        call.agent.writer()?;
    }
    (tool.call)(call, Arguments::of(tool, given)?).await
}

/// The entry of a tool in `tools/list`.
fn described(tool: &Tool) -> rmcp::model::Tool {
    let object = |schema: Value| Arc::new(super::schema::as_object(schema));
    let described = rmcp::model::Tool::new(
        Cow::Borrowed(tool.name),
        Cow::Borrowed(tool.description),
        object(tool.input()),
    )
    .with_title(tool.title)
    .with_annotations(tool.annotations());
    match tool.output {
        Some(output) => described.with_raw_output_schema(object(output())),
        None => described,
    }
}

fn no_such_tool(name: &str) -> ErrorData {
    let names: Vec<&str> = tools::ALL.iter().map(|tool| tool.name).collect();
    let text = format!(
        "there is no tool `{name:.60}`: use one of {}",
        names.join(", ")
    );
    ErrorData::invalid_params(text, None)
}

/// Makes the answer to wrong arguments: up to 2025-06-18 an error of the protocol; since 2025-11-25 (SEP-1303) a result
/// that the model reads and corrects.
fn wrong_arguments(
    text: String,
    version: Option<ProtocolVersion>,
) -> Result<CallToolResponse, ErrorData> {
    match version {
        Some(version) if version.as_str() >= ProtocolVersion::V_2025_11_25.as_str() => {
            Ok(failed(text).into())
        }
        _ => Err(ErrorData::invalid_params(text, None)),
    }
}

fn failed(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// An error of the API: its sentence, then what else its body says. No structured content: that would have to fit the
/// tool's schema, and clients check it.
fn failed_with(body: &ErrorBody) -> CallToolResult {
    let mut content = vec![ContentBlock::text(body.error.as_str())];
    let body = json!(body);
    if body.as_object().is_some_and(|body| body.len() > 1) {
        content.push(ContentBlock::text(body.to_string()));
    }
    CallToolResult::error(content)
}
