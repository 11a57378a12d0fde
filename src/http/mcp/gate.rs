//! Checks of a request of `/mcp`: `mcp.enabled`, credential, `Host`, `Origin`, method, `Accept`, `Content-Type`, protocol version,
//! size. Before the transport sees it, in this order: enabled (404), with a credential (401), under a name of the service (403),
//! from a page that may (403), a POST (405), of the right types (406, 415), bounded (408, 413), and one message (400).

use actix_web::{
    Error, HttpMessage as _, HttpResponse, ResponseError as _,
    body::{BoxBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{self, HeaderMap, HeaderName, HeaderValue},
    },
    middleware::Next,
    web::Bytes,
};
use rmcp::model::ProtocolVersion;

use crate::{
    application::{context::AgentContext, error::ApiError, reached::Reached},
    http::{context, extract},
    mcp::{
        message::{self, Message},
        place::Names,
    },
};

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// `Accept` with both types, in the words that the transport looks for.
const BOTH_TYPES: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Request headers that a page may send.
const HEADERS_OF_PAGES: &str = "authorization, x-api-key, content-type, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id";

/// Passes messages to the transport; answers everything else itself.
pub async fn gate(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let page = page_that_may(&request);
    let mut response = match check(&mut request).await {
        Ok(None) => next.call(request).await?.map_into_boxed_body(),
        Ok(Some(answer)) => request.into_response(answer),
        Err(error) => request.into_response(error.error_response()),
    };
    if let Some(origin) = page {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    Ok(response)
}

/// The origin of a page elsewhere that `mcp.allowed_origins` lists.
fn page_that_may(request: &ServiceRequest) -> Option<HeaderValue> {
    let origin = request.headers().get(header::ORIGIN)?;
    let agents = context::of::<AgentContext>(request.request());
    let is_listed = origin
        .to_str()
        .is_ok_and(|origin| names(agents).lists(origin));
    (agents.config.mcp.enabled && is_listed).then(|| origin.clone())
}

fn names(context: &AgentContext) -> Names<'_> {
    Names {
        base_url: &context.config.http.base_url,
        allowed_hosts: &context.config.mcp.allowed_hosts,
        allowed_origins: &context.config.mcp.allowed_origins,
    }
}

/// Checks a request; `None`: it is for the transport, and its body is read.
async fn check(request: &mut ServiceRequest) -> Result<Option<HttpResponse>, ApiError> {
    let agents = context::of::<AgentContext>(request.request()).clone();
    if !agents.config.mcp.enabled {
        return Err(ApiError::NotFound("path"));
    }
    // A browser sends the preflight without the credential.
    if request.method() == Method::OPTIONS && request.headers().contains_key(header::ORIGIN) {
        check_place(request, &agents)?;
        return Ok(Some(preflight()));
    }
    let agent = super::agent_of(request.request())?;
    check_place(request, &agents)?;
    if request.method() != Method::POST {
        return Err(ApiError::MethodNotAllowed {
            method: request.method().to_string(),
            allow: "POST".to_owned(),
        });
    }
    check_types(request)?;
    let payload = request.take_payload();
    let body = extract::bytes(request.request(), payload).await?.freeze();
    let message = match message::read(&body) {
        Ok(message) => message,
        Err(rejection) => return Ok(Some(HttpResponse::BadRequest().json(rejection))),
    };
    match message {
        Message::Cancelled(id) => agents.calls.give_up(agent.client(), &id),
        Message::Versioned => {}
        Message::Other => check_version(request.headers())?,
    }
    request.set_payload(at_once(body));
    request.headers_mut().insert(header::ACCEPT, BOTH_TYPES);
    Ok(None)
}

/// Checks every host name of the request, and the page that sent it.
fn check_place(request: &ServiceRequest, context: &AgentContext) -> Result<(), ApiError> {
    let names = names(context);
    let headers = request.headers();
    let host = match headers.get(header::HOST) {
        Some(host) => Some(text(host, "Host")?),
        None => None,
    };
    let authority = request.uri().authority().map(|it| it.as_str());
    let asked = authority.or(host);
    names.check_host(asked)?;
    if authority.is_some() && host.is_some() {
        names.check_host(host)?;
    }
    match headers.get(header::ORIGIN) {
        Some(origin) => {
            let own = Reached::of(request.request()).address.origin();
            names.check_origin(text(origin, "Origin")?, &own, asked)
        }
        None => Ok(()),
    }
}

fn text<'a>(value: &'a HeaderValue, name: &str) -> Result<&'a str, ApiError> {
    value
        .to_str()
        .map_err(|_| invalid!("{name} must be plain ASCII"))
}

fn check_types(request: &ServiceRequest) -> Result<(), ApiError> {
    if !extract::is_json(request.request()) {
        return Err(ApiError::UnsupportedType(
            "send JSON with `Content-Type: application/json`".to_owned(),
        ));
    }
    let accepted = request.headers().get_all(header::ACCEPT);
    let accepted: Vec<&str> = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|range| range.split(';').next())
        .map(str::trim)
        .collect();
    let takes = |media_type: &str| {
        let (kind, _) = media_type.split_once('/').unwrap_or_default();
        accepted.iter().any(|range| {
            range.eq_ignore_ascii_case(media_type)
                || *range == "*/*"
                || range.strip_suffix("/*") == Some(kind)
        })
    };
    match takes("application/json") && takes("text/event-stream") {
        true => Ok(()),
        false => Err(ApiError::NotAcceptable(
            "send `Accept: application/json, text/event-stream`",
        )),
    }
}

/// Answers 400 to an unknown revision (MCP, "Protocol Version Header").
fn check_version(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(version) = headers.get(PROTOCOL_VERSION) else {
        return Ok(());
    };
    let known = || ProtocolVersion::KNOWN_VERSIONS.iter().map(|it| it.as_str());
    if known().any(|known| known.as_bytes() == version.as_bytes()) {
        return Ok(());
    }
    let known: Vec<&str> = known().collect();
    Err(invalid!(
        "MCP-Protocol-Version must be one of {}",
        known.join(", ")
    ))
}

/// Answers the preflight of a page that may send its message; others were rejected before.
fn preflight() -> HttpResponse {
    HttpResponse::NoContent()
        .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, "POST"))
        .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS_OF_PAGES))
        .insert_header((header::ACCESS_CONTROL_MAX_AGE, "600"))
        .finish()
}

/// A body that has been read.
fn at_once(body: Bytes) -> Payload {
    Payload::Stream {
        payload: Box::pin(futures_util::stream::once(std::future::ready(Ok(body)))),
    }
}
