//! `/live/whip`: publishing by WebRTC (WHIP, RFC 9725), with the stream key in the path or in `Authorization: Bearer`.
//!
//! The stream key is the permission, as for every encoder: no session of the dashboard is looked at, and any page may publish.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{self, HeaderMap},
    web,
};
use sluice_ingest::publish::Rejection;

use super::{answer, created, live, offer, preflight};
use crate::{
    application::{
        error::ApiError,
        webrtc::{self, rejected},
    },
    http::site::Cors,
};

/// Longest stream name, in bytes; longer ones are no key of any input.
const LONGEST_STREAM: usize = 256;
/// Longest name of an encoder that is kept, in characters.
const LONGEST_ENCODER: usize = 100;

/// Publish by WebRTC (WHIP), with the key in the address
///
/// `ingest.whipUrl` of the live input. The client posts an offer that sends one video and one audio track (H.264, HEVC or AV1, and
/// Opus), and sets the answer as its remote description. `Location` is the session's address: DELETE ends the publish as an encoder that stops;
/// a session that ends in another way leaves the reconnect window open.
#[utoipa::path(post, path = "/live/whip/{stream}", tag = "live", security(()),
    params(("stream" = String, Path, description = "`{inputSlug}.{streamKey}`")),
    request_body(content = String, content_type = "application/sdp", description = "The offer, at most 64 KiB"),
    responses(
        (status = 201, description = "The answer; `Location` (absolute), `ETag`, and `Link` with `rel=\"ice-server\"` where `webrtc.ice_servers` are set", content_type = "application/sdp", body = String),
        (status = 400, description = "The offer breaks a rule, which the text names (`sdp_invalid`)", body = crate::application::error::ErrorBody),
        (status = 401, description = "Unknown stream key", body = crate::application::error::ErrorBody),
        (status = 403, description = "The live input is disabled", body = crate::application::error::ErrorBody),
        (status = 404, description = "WebRTC is turned off (`webrtc_off`)", body = crate::application::error::ErrorBody),
        (status = 408, description = "The body did not arrive in time", body = crate::application::error::ErrorBody),
        (status = 409, description = "Another encoder publishes with this key (`another_encoder`)", body = crate::application::error::ErrorBody),
        (status = 413, description = "Larger than 64 KiB", body = crate::application::error::ErrorBody),
        (status = 415, description = "Not `application/sdp`", body = crate::application::error::ErrorBody),
        (status = 422, description = "No codec of the offer can be received (`no_common_codec`)", body = crate::application::error::ErrorBody),
        (status = 429, description = "Too many offers of the client's network wait for their connection; `Retry-After`", body = crate::application::error::ErrorBody),
        (status = 503, description = "As many sessions are open as the settings allow (`webrtc_full`), the service takes no stream now (`ingest_busy`), or the gateway starts; `Retry-After`", body = crate::application::error::ErrorBody)))]
pub async fn whip(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let stream = request.match_info().get("stream").map(str::to_owned);
    publish(&request, stream.as_deref(), payload).await
}

/// Publish by WebRTC (WHIP), with the key as bearer token
///
/// For encoders with a field for a token, such as OBS. Otherwise as `POST /live/whip/{stream}`.
#[utoipa::path(post, path = "/live/whip", tag = "live", security(()),
    params(("Authorization" = String, Header, description = "`Bearer {inputSlug}.{streamKey}`")),
    request_body(content = String, content_type = "application/sdp", description = "The offer, at most 64 KiB"),
    responses(
        (status = 201, description = "The answer; `Location` (absolute), `ETag`, `Link`", content_type = "application/sdp", body = String),
        (status = 400, description = "The offer breaks a rule, which the text names (`sdp_invalid`)", body = crate::application::error::ErrorBody),
        (status = 401, description = "No token, or an unknown stream key", body = crate::application::error::ErrorBody),
        (status = 403, description = "The live input is disabled", body = crate::application::error::ErrorBody),
        (status = 404, description = "WebRTC is turned off (`webrtc_off`)", body = crate::application::error::ErrorBody),
        (status = 408, description = "The body did not arrive in time", body = crate::application::error::ErrorBody),
        (status = 409, description = "Another encoder publishes with this key (`another_encoder`)", body = crate::application::error::ErrorBody),
        (status = 413, description = "Larger than 64 KiB", body = crate::application::error::ErrorBody),
        (status = 415, description = "Not `application/sdp`", body = crate::application::error::ErrorBody),
        (status = 422, description = "No codec of the offer can be received (`no_common_codec`)", body = crate::application::error::ErrorBody),
        (status = 429, description = "Too many offers of the client's network wait for their connection; `Retry-After`", body = crate::application::error::ErrorBody),
        (status = 503, description = "The same as at `/live/whip/{stream}`; `Retry-After`", body = crate::application::error::ErrorBody)))]
pub async fn whip_by_token(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let stream = bearer(request.headers()).map(str::to_owned);
    publish(&request, stream.as_deref(), payload).await
}

/// Ask what may be posted to publish by WebRTC
#[utoipa::path(options, path = "/live/whip/{stream}", tag = "live", security(()),
    params(("stream" = String, Path, description = "`{inputSlug}.{streamKey}`; not looked at")),
    responses((status = 204, description = "`Accept-Post: application/sdp`, `Access-Control-Allow-*`")))]
pub async fn whip_options() -> HttpResponse {
    preflight(&Cors::Everyone)
}

/// Ask what may be posted to publish by WebRTC with a bearer token
#[utoipa::path(options, path = "/live/whip", tag = "live", security(()),
    responses((status = 204, description = "`Accept-Post: application/sdp`, `Access-Control-Allow-*`")))]
pub async fn whip_by_token_options() -> HttpResponse {
    preflight(&Cors::Everyone)
}

async fn publish(
    request: &HttpRequest,
    stream: Option<&str>,
    payload: web::Payload,
) -> HttpResponse {
    let answered = async {
        let stream = stream
            .filter(|stream| !stream.is_empty() && stream.len() <= LONGEST_STREAM)
            .ok_or_else(|| rejected(Rejection::Unauthorized))?;
        let offer = offer::read(request, payload).await?;
        let encoder = encoder(request.headers());
        let opened = webrtc::publish(live(request), stream, encoder, offer).await?;
        Ok::<_, ApiError>(created(request, opened))
    };
    answer(answered.await, &Cors::Everyone)
}

/// The token of `Authorization: Bearer`, whose scheme is read without case.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim_matches(' '))
}

/// The printable beginning of `User-Agent`.
fn encoder(headers: &HeaderMap) -> Option<String> {
    let name = headers.get(header::USER_AGENT)?.to_str().ok()?.trim();
    let name: String = name.chars().take(LONGEST_ENCODER).collect();
    (!name.is_empty()).then_some(name)
}
