//! `/live/v1/{playbackId}/whep`: playback by WebRTC (WHEP, draft-ietf-wish-whep).

use actix_web::{HttpRequest, HttpResponse, http::header, web};

use super::{SDP, answer, created, live, offer, preflight};
use crate::{
    application::webrtc::{self, Viewer},
    http::{
        playback,
        playback_access::{self, Permission},
    },
};

/// Play by WebRTC (WHEP)
///
/// The client posts an offer that receives one video and one audio track, and sets the answer as its remote description; it
/// needs to send no candidates. What the viewer's player cannot decode is re-encoded for it. `Location` is the session's address:
/// DELETE ends it. A player without WHEP plays `hlsUrl`.
#[utoipa::path(post, path = "/live/v1/{playback_id}/whep", tag = "playback", security(()),
    params(("playback_id" = String, Path, description = "`pb_…`, or a playback token")),
    request_body(content = String, content_type = "application/sdp", description = "The offer, at most 64 KiB"),
    responses(
        (status = 201, description = "The answer; `Location` (absolute), `ETag`, and `Link` with `rel=\"ice-server\"` where `webrtc.ice_servers` are set", content_type = "application/sdp", body = String),
        (status = 400, description = "The offer breaks a rule, which the text names (`sdp_invalid`)", body = crate::application::error::ErrorBody),
        (status = 403, description = "The same as for the multivariant playlist", body = crate::application::error::ErrorBody),
        (status = 404, description = "Unknown, not on air, or WebRTC is turned off (`webrtc_off`)", body = crate::application::error::ErrorBody),
        (status = 408, description = "The body did not arrive in time", body = crate::application::error::ErrorBody),
        (status = 413, description = "Larger than 64 KiB", body = crate::application::error::ErrorBody),
        (status = 415, description = "Not `application/sdp`", body = crate::application::error::ErrorBody),
        (status = 422, description = "No codec of the offer can be sent; the text names what was offered (`no_common_codec`)", body = crate::application::error::ErrorBody),
        (status = 429, description = "Too many offers of the client's network wait for their connection; `Retry-After`", body = crate::application::error::ErrorBody),
        (status = 503, description = "As many streams are re-encoded (`webrtc_busy`) or sessions open (`webrtc_full`) as the settings allow, or the gateway starts; `Retry-After`", body = crate::application::error::ErrorBody)))]
pub async fn whep(
    request: HttpRequest,
    playback_id: web::Path<String>,
    payload: web::Payload,
) -> HttpResponse {
    let find = playback::find(&request);
    let (cors, admitted) = playback_access::admit(&request, &playback_id, find).await;
    let answered = async {
        let viewer = admitted?;
        let offer = offer::read(&request, payload).await?;
        let until_ms = match viewer.permission {
            Permission::Token { expires_s, .. } => Some(expires_s.saturating_mul(1_000)),
            Permission::NotNeeded | Permission::Owner => None,
        };
        let viewer = Viewer {
            playback: viewer.watched.playback,
            until_ms,
            has_permission: viewer.permission != Permission::NotNeeded,
        };
        let opened = webrtc::play(live(&request), viewer, offer).await?;
        Ok(created(&request, opened))
    };
    answer(answered.await, &cors)
}

/// Ask whether WebRTC (WHEP) may be played here
///
/// Empty: a session begins with an offer that is posted. HEAD is answered alike.
#[utoipa::path(get, path = "/live/v1/{playback_id}/whep", tag = "playback", security(()),
    params(("playback_id" = String, Path, description = "`pb_…`, or a playback token")),
    responses(
        (status = 200, description = "The viewer is admitted; the body is empty", content_type = "application/sdp", body = String),
        (status = 403, description = "The same as for the multivariant playlist", body = crate::application::error::ErrorBody),
        (status = 404, description = "Unknown playback id", body = crate::application::error::ErrorBody)))]
pub async fn whep_get(request: HttpRequest, playback_id: web::Path<String>) -> HttpResponse {
    let find = playback::find(&request);
    let (cors, admitted) = playback_access::admit(&request, &playback_id, find).await;
    let answered = admitted.map(|_| {
        HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, SDP))
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .finish()
    });
    answer(answered, &cors)
}

/// Ask what may be posted to play by WebRTC
///
/// A browser's preflight: it names the origins that the answer itself would name.
#[utoipa::path(options, path = "/live/v1/{playback_id}/whep", tag = "playback", security(()),
    params(("playback_id" = String, Path, description = "`pb_…`, or a playback token")),
    responses((status = 204, description = "`Accept-Post: application/sdp`, `Access-Control-Allow-*`")))]
pub async fn whep_options(request: HttpRequest, playback_id: web::Path<String>) -> HttpResponse {
    let find = playback::find(&request);
    let (cors, _) = playback_access::admit(&request, &playback_id, find).await;
    preflight(&cors)
}
