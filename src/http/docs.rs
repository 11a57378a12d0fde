//! Pages and the API's description: everything here is compiled in and public.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{self, HeaderName},
    web,
};
use rust_embed::{EmbeddedFile, RustEmbed};
use sluice_store::credentials::is_playback_id;

use super::{bytes, context::AppState, error::ApiError, playback_token::looks_like_token, usage};

/// What `make` built from `web/`; `build.rs` puts placeholders where it has not.
#[derive(RustEmbed)]
#[folder = "web/dist"]
struct Front;

const CSP: HeaderName = header::CONTENT_SECURITY_POLICY;

/// Own scripts and styles only. The player's worker and buffers are blobs; media may come from wherever the playlist is.
const PLAYER_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     media-src 'self' blob:; connect-src 'self'; worker-src 'self' blob:; font-src 'self'; base-uri 'none'; form-action 'none'";

/// As the player's, and not inside other sites' frames.
pub(super) const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Pages are asked for again each time; their scripts and styles carry a hash of their content in the name.
const PAGE_CACHE: &str = "no-cache";
const ASSET_CACHE: &str = "public, max-age=31536000, immutable";

/// The API's description
#[utoipa::path(get, path = "/openapi.json", tag = "operations", security(()), responses(
    (status = 200, description = "OpenAPI 3.1.0", body = Object),
))]
pub async fn openapi(state: web::Data<AppState>) -> HttpResponse {
    let document = state.description.get_or_init(|| {
        let mut document = super::openapi();
        usage::describe(&mut document, &state.config);
        document
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

/// The API, readable
#[utoipa::path(get, path = "/docs", tag = "pages", security(()), responses(
    (status = 200, description = "A page", body = String, content_type = "text/html"),
))]
pub async fn docs(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    page(&request, "docs.html", PAGE_POLICY)
}

/// Watch a live input
///
/// The player page; it waits for the stream when there is none yet.
#[utoipa::path(get, path = "/live/{playbackId}", tag = "pages", security(()), params(
    ("playbackId" = String, Path, description = "The input's playback id, or a playback token"),
), responses((status = 200, description = "A page", body = String, content_type = "text/html")))]
pub async fn player(
    request: HttpRequest,
    playback_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    if !is_playback_id(&playback_id) && !looks_like_token(&playback_id) {
        return Err(ApiError::NotFound("playback"));
    }
    page(&request, "player.html", PLAYER_POLICY)
}

/// Watch a video stream
///
/// A page with a player; it waits for the video while it is being prepared.
#[utoipa::path(get, path = "/video/{playbackId}", tag = "pages", security(()), params(
    ("playbackId" = String, Path, description = "The stream's playback id, or a playback token"),
), responses((status = 200, description = "A page", body = String, content_type = "text/html")))]
pub async fn watch(
    request: HttpRequest,
    playback_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    if !is_playback_id(&playback_id) && !looks_like_token(&playback_id) {
        return Err(ApiError::NotFound("playback"));
    }
    page(&request, "watch.html", PLAYER_POLICY)
}

/// Start
#[utoipa::path(get, path = "/", tag = "pages", security(()), responses(
    (status = 302, description = "To the documentation"),
))]
pub async fn start() -> HttpResponse {
    HttpResponse::Found()
        .insert_header((header::LOCATION, "docs"))
        .finish()
}

/// Scripts and styles of the pages
#[utoipa::path(get, path = "/assets/{file}", tag = "pages", security(()), params(
    ("file" = String, Path, description = "As the pages name it"),
), responses((status = 200, description = "A file", body = String, content_type = "*/*")))]
pub async fn asset(
    request: HttpRequest,
    file: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let embedded = Front::get(&format!("assets/{file}"))
        .filter(|_| !file.contains(['/', '\\']))
        .ok_or(ApiError::NotFound("asset"))?;
    Ok(answer(&request, embedded, None))
}

/// A page that the service fills before it answers with it.
pub(super) fn frame(name: &str) -> Option<String> {
    let embedded = Front::get(name)?;
    String::from_utf8(embedded.data.into_owned()).ok()
}

fn page(request: &HttpRequest, name: &str, policy: &'static str) -> Result<HttpResponse, ApiError> {
    let embedded = Front::get(name).ok_or(ApiError::NotFound("page"))?;
    Ok(answer(request, embedded, Some(policy)))
}

/// A file with its tag; 304 to a browser that has it.
fn answer(request: &HttpRequest, file: EmbeddedFile, policy: Option<&'static str>) -> HttpResponse {
    let hash = file.metadata.sha256_hash();
    let tag = format!(
        "\"{:032x}\"",
        u128::from_be_bytes(hash[..16].try_into().expect("a SHA-256 has 32 bytes"))
    );
    let is_known = bytes::is_known(request, &tag).unwrap_or(false);
    let mut response = if is_known {
        HttpResponse::NotModified()
    } else {
        HttpResponse::Ok()
    };
    let cache = if policy.is_some() {
        PAGE_CACHE
    } else {
        ASSET_CACHE
    };
    response
        .insert_header((header::ETAG, tag))
        .insert_header((header::CACHE_CONTROL, cache));
    if let Some(policy) = policy {
        response.insert_header((CSP, policy));
    }
    if is_known {
        return response.finish();
    }
    let kind = match file.metadata.mimetype() {
        text if text.starts_with("text/") => format!("{text}; charset=utf-8"),
        other => other.to_owned(),
    };
    response
        .insert_header((header::CONTENT_TYPE, kind))
        .body(file.data.into_owned())
}
