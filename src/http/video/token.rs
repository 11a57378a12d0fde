//! `POST /api/video/streams/{id}/playback-token`: a token to play a stream for a time.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use sluice_store::video;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    application::{
        answer::Timestamp,
        caller::{Caller, Write},
        context::PlaybackTokens,
        error::ApiError,
        playback_token::issue,
        reached::Reached,
        video::{
            record::playback_url,
            request::{DEFAULT_TOKEN_TTL_S, PlaybackTokenRequest},
        },
    },
    http::extract::Body,
};

/// A token and addresses with it. Anyone with them may play until they expire.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaybackToken {
    /// A JWT (HS256) that is used in addresses in place of the playback id.
    token: String,
    expires_at: Timestamp,
    manifest_url: String,
    poster_url: String,
}

/// Make a playback token
///
/// Needed where `access` is `signed`, and good for public streams too. It cannot be taken back: make it short.
#[utoipa::path(post, path = "/api/video/streams/{id}/playback-token", tag = "video", request_body = PlaybackTokenRequest,
    params(("id" = Uuid, Path, description = "The stream's id")),
    responses((status = 200, description = "The token, and addresses with it", body = PlaybackToken)))]
pub async fn playback_token(
    tokens: web::Data<PlaybackTokens>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
    Body(request): Body<PlaybackTokenRequest>,
) -> Result<HttpResponse, ApiError> {
    let wanted = request.checked()?;
    let stream = video::get(&mut tokens.store.read().await?, caller.account_id(), *id).await?;
    let lifetime_s = wanted
        .expires_in
        .or(stream.token_ttl_s)
        .unwrap_or(DEFAULT_TOKEN_TTL_S);
    let issued = issue(&tokens, stream.playback_id, lifetime_s, wanted.domains).await?;
    Ok(HttpResponse::Ok().json(PlaybackToken {
        expires_at: issued.expires_at,
        manifest_url: playback_url(&reached, &issued.token, "master.m3u8"),
        poster_url: playback_url(&reached, &issued.token, "poster.jpg"),
        token: issued.token,
    }))
}
