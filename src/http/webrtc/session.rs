//! `/live/webrtc/{session}`: the session of a viewer or publisher, to be ended (DELETE).
//!
//! Its 128 random bits are the permission; pages of every origin may use it.

use actix_web::{HttpRequest, HttpResponse, http::header, web};

use super::{answer, live, offer, preflight};
use crate::{application::error::ApiError, http::site::Cors};

/// Media type of candidates that a client sends after its offer (RFC 8840).
const FRAGMENT: &str = "application/trickle-ice-sdpfrag";

/// Ask whether a WebRTC session is known
#[utoipa::path(get, path = "/live/webrtc/{session}", tag = "playback", security(()),
    params(("session" = String, Path, description = "As `Location` names it")),
    responses(
        (status = 204, description = "The session is open, or ended a moment ago"),
        (status = 404, description = "Unknown", body = crate::application::error::ErrorBody)))]
pub async fn session(request: HttpRequest, session: web::Path<String>) -> HttpResponse {
    let answered = known(&request, &session).map(|()| no_content());
    answer(answered, &Cors::Everyone)
}

/// Send candidates of a WebRTC session
///
/// They are accepted and not needed: the service finds the client by the packets that it sends. An ICE restart is not possible; post
/// a new offer in its place.
#[utoipa::path(patch, path = "/live/webrtc/{session}", tag = "playback", security(()),
    params(("session" = String, Path, description = "As `Location` names it"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the answer; `*` asks for an ICE restart")),
    request_body(content = String, content_type = "application/trickle-ice-sdpfrag", description = "Candidates, at most 64 KiB"),
    responses(
        (status = 204, description = "Taken"),
        (status = 400, description = "The body could not be read", body = crate::application::error::ErrorBody),
        (status = 404, description = "Unknown", body = crate::application::error::ErrorBody),
        (status = 413, description = "Larger than 64 KiB", body = crate::application::error::ErrorBody),
        (status = 415, description = "Not `application/trickle-ice-sdpfrag`", body = crate::application::error::ErrorBody),
        (status = 422, description = "An ICE restart (`ice_restart_unsupported`)", body = crate::application::error::ErrorBody)))]
pub async fn session_patch(
    request: HttpRequest,
    session: web::Path<String>,
    payload: web::Payload,
) -> HttpResponse {
    let answered = async {
        known(&request, &session)?;
        let fragment = offer::body(&request, payload, FRAGMENT).await?;
        let is_any = |value: &header::HeaderValue| value.as_bytes().trim_ascii() == b"*";
        let is_restart = request.headers().get(header::IF_MATCH).is_some_and(is_any)
            && String::from_utf8_lossy(&fragment).contains("a=ice-ufrag:");
        match is_restart {
            true => Err(ApiError::Unprocessable {
                code: "ice_restart_unsupported",
                message: "a session's ICE cannot be restarted: post a new offer, and end this session by DELETE".to_owned(),
            }),
            false => Ok(no_content()),
        }
    };
    answer(answered.await, &Cors::Everyone)
}

/// End a WebRTC session
///
/// A publish ends as by an encoder that stops: at once, without a reconnect window.
#[utoipa::path(delete, path = "/live/webrtc/{session}", tag = "playback", security(()),
    params(("session" = String, Path, description = "As `Location` names it")),
    responses(
        (status = 200, description = "It is over; also when it was over before"),
        (status = 404, description = "Unknown", body = crate::application::error::ErrorBody)))]
pub async fn session_delete(request: HttpRequest, session: web::Path<String>) -> HttpResponse {
    let answered = match live(&request).webrtc.end(&session) {
        true => Ok(HttpResponse::Ok()
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .finish()),
        false => Err(unknown()),
    };
    answer(answered, &Cors::Everyone)
}

/// Ask what may be sent to a WebRTC session
#[utoipa::path(options, path = "/live/webrtc/{session}", tag = "playback", security(()),
    params(("session" = String, Path, description = "As `Location` names it; not looked at")),
    responses((status = 204, description = "`Access-Control-Allow-*`")))]
pub async fn session_options() -> HttpResponse {
    preflight(&Cors::Everyone)
}

fn known(request: &HttpRequest, session: &str) -> Result<(), ApiError> {
    let is_known = live(request).webrtc.is_known(session);
    is_known.then_some(()).ok_or_else(unknown)
}

fn unknown() -> ApiError {
    ApiError::NotFound("WebRTC session")
}

fn no_content() -> HttpResponse {
    HttpResponse::NoContent()
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .finish()
}
