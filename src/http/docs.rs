//! `/openapi.json`, `/docs`, the player pages `/live/{playbackId}` and `/video/{playbackId}`, `/live/publish/{inputSlug}`, and their content
//! security policies.

use actix_web::{HttpRequest, HttpResponse, http::header, web};
use sluice_store::credentials::is_playback_id;
use utoipa::openapi::OpenApi;

use super::{
    embedded::{self, frame},
    usage,
};
use crate::{
    application::{context::ServiceContext, error::ApiError, playback_token::looks_like_token},
    config::Config,
};

/// Content security policy of the players: own scripts and styles only; their worker and buffers are blobs, their lists of
/// captions begin as empty `data:` documents.
const PLAYER_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     media-src 'self' data: blob:; connect-src 'self'; worker-src 'self' blob:; font-src 'self'; base-uri 'none'; form-action 'none'";

/// Content security policy of other pages: own scripts and styles only, and not inside other sites' frames.
pub(super) const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The API's description
#[utoipa::path(get, path = "/openapi.json", tag = "operations", security(()), responses(
    (status = 200, description = "OpenAPI 3.1.0", body = Object),
))]
pub async fn openapi(context: web::Data<ServiceContext>) -> HttpResponse {
    let document = context.description.get_or_init(|| {
        document(&context.config)
            .to_json()
            .expect("the description is plain values")
            .into()
    });
    HttpResponse::Ok()
        .content_type("application/json")
        .insert_header(("cache-control", "no-cache"))
        .insert_header(("access-control-allow-origin", "*"))
        .body(document.clone())
}

/// The API's description with the plans of a configuration.
pub(super) fn document(config: &Config) -> OpenApi {
    let mut document = super::openapi();
    usage::describe(&mut document, config);
    document
}

/// The API, readable
#[utoipa::path(get, path = "/docs", tag = "pages", security(()), responses(
    (status = 200, description = "A page", body = String, content_type = "text/html"),
))]
pub async fn docs(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    Ok(embedded::page(&request, "docs.html", PAGE_POLICY)?.finish())
}

/// Watch a live input
///
/// The player page; it waits for the stream when there is none yet.
#[utoipa::path(get, path = "/live/{playbackId}", tag = "pages", security(()), params(
    ("playbackId" = String, Path, description = "The input's playback id, or a playback token"),
), responses(
    (status = 200, description = "A page", body = String, content_type = "text/html"),
    (status = 404, description = "A page: the address holds no playback id and no token", body = String, content_type = "text/html")))]
pub async fn player(
    request: HttpRequest,
    playback_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    viewing(&request, &playback_id, "player.html")
}

/// Publish to a live input from the browser
///
/// The page asks for the stream key, which the fragment `#key=` fills in. It is the same page for every input, known or not.
#[utoipa::path(get, path = "/live/publish/{inputSlug}", tag = "pages", security(()), params(
    ("inputSlug" = String, Path, description = "`inputSlug` of the live input"),
), responses(
    (status = 200, description = "A page", body = String, content_type = "text/html")))]
pub async fn publish(
    request: HttpRequest,
    _input_slug: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    Ok(embedded::page(&request, "publish.html", PAGE_POLICY)?.finish())
}

/// Watch a video stream
///
/// A page with a player; it waits for the video while it is being prepared.
#[utoipa::path(get, path = "/video/{playbackId}", tag = "pages", security(()), params(
    ("playbackId" = String, Path, description = "The stream's playback id, or a playback token"),
), responses(
    (status = 200, description = "A page", body = String, content_type = "text/html"),
    (status = 404, description = "A page: the address holds no playback id and no token", body = String, content_type = "text/html")))]
pub async fn watch(
    request: HttpRequest,
    playback_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    viewing(&request, &playback_id, "watch.html")
}

/// Answers with the page `name` for an address that can belong to a stream, else with a page that says that it cannot.
fn viewing(request: &HttpRequest, playback_id: &str, name: &str) -> Result<HttpResponse, ApiError> {
    if is_playback_id(playback_id) || looks_like_token(playback_id) {
        return Ok(embedded::page(request, name, PLAYER_POLICY)?.finish());
    }
    let missing = frame("missing.html").ok_or(ApiError::NotFound("playback"))?;
    Ok(HttpResponse::NotFound()
        .content_type("text/html; charset=utf-8")
        .insert_header((header::CONTENT_SECURITY_POLICY, PAGE_POLICY))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(missing))
}
