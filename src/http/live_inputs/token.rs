//! `POST /api/live/inputs/{id}/playback-token`: a token to watch a live input for a time.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    application::{
        answer::Timestamp,
        caller::{Caller, Write},
        context::PlaybackTokens,
        error::ApiError,
        live_inputs::{find, record::playback_url},
        playback_token::issue,
        reached::Reached,
        video::request::{DEFAULT_TOKEN_TTL_S, PlaybackTokenRequest},
    },
    http::extract::Body,
};

/// A token and addresses with it. Anyone with them may watch until they expire.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LivePlaybackToken {
    /// A JWT (HS256) that is used in addresses in place of the playback id.
    token: String,
    expires_at: Timestamp,
    hls_url: String,
    /// For WebRTC players (WHEP); the session ends when the token expires.
    web_rtc_url: String,
    poster_url: String,
}

/// Make a playback token
///
/// Needed where `requireSignedPlayback` is true, and good for open inputs too. It cannot be taken back: make it short. A
/// program that makes many mints them itself, with a playback key.
#[utoipa::path(post, path = "/api/live/inputs/{id}/playback-token", tag = "live", request_body = PlaybackTokenRequest,
    params(("id" = Uuid, Path, description = "The input's id")),
    responses((status = 200, description = "The token, and addresses with it", body = LivePlaybackToken)))]
pub async fn playback_token(
    tokens: web::Data<PlaybackTokens>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
    Body(request): Body<PlaybackTokenRequest>,
) -> Result<HttpResponse, ApiError> {
    let wanted = request.checked()?;
    let input = find(&tokens, caller.account_id(), *id).await?;
    let lifetime_s = wanted.expires_in.unwrap_or(DEFAULT_TOKEN_TTL_S);
    let issued = issue(&tokens, input.playback_id, lifetime_s, wanted.domains).await?;
    Ok(HttpResponse::Ok().json(LivePlaybackToken {
        expires_at: issued.expires_at,
        hls_url: playback_url(&reached, &issued.token, "index.m3u8"),
        web_rtc_url: playback_url(&reached, &issued.token, "whep"),
        poster_url: playback_url(&reached, &issued.token, "poster.jpg"),
        token: issued.token,
    }))
}
