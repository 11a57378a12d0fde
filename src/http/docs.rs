//! Pages and the API's description: everything here is compiled in and public.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{self, HeaderName},
    web,
};
use rust_embed::{EmbeddedFile, RustEmbed};
use sluice_store::credentials::is_playback_id;

use super::{bytes, html::Html, page_frame::Frame, usage};
use crate::{
    application::{
        context::ServiceContext, error::ApiError, playback_token::looks_like_token,
        reached::Reached,
    },
    protocols,
};

/// Files that `make` built from `web/`; `build.rs` puts placeholders where it has not.
#[derive(RustEmbed)]
#[folder = "web/dist"]
struct Front;

const CSP: HeaderName = header::CONTENT_SECURITY_POLICY;

/// Own scripts and styles only. The player's worker and buffers are blobs; media may come from wherever the playlist is.
const PLAYER_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     media-src 'self' blob:; connect-src 'self'; worker-src 'self' blob:; font-src 'self'; base-uri 'none'; form-action 'none'";

/// Content security policy: as the player's, and not inside other sites' frames.
pub(super) const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Pages are revalidated each time; their scripts and styles carry a hash of their content in the name.
const PAGE_CACHE: &str = "no-cache";
const ASSET_CACHE: &str = "public, max-age=31536000, immutable";

/// The API's description
#[utoipa::path(get, path = "/openapi.json", tag = "operations", security(()), responses(
    (status = 200, description = "OpenAPI 3.1.0", body = Object),
))]
pub async fn openapi(context: web::Data<ServiceContext>) -> HttpResponse {
    let document = context.description.get_or_init(|| {
        let mut document = super::openapi();
        usage::describe(&mut document, &context.config);
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
), responses(
    (status = 200, description = "A page", body = String, content_type = "text/html"),
    (status = 404, description = "A page: the address holds no playback id and no token", body = String, content_type = "text/html")))]
pub async fn player(
    request: HttpRequest,
    playback_id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    viewing(&request, &playback_id, "player.html")
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

/// The page `name` for an address that can belong to a stream, else a page that says that it cannot.
fn viewing(request: &HttpRequest, playback_id: &str, name: &str) -> Result<HttpResponse, ApiError> {
    if is_playback_id(playback_id) || looks_like_token(playback_id) {
        return page(request, name, PLAYER_POLICY);
    }
    let missing = frame("missing.html").ok_or(ApiError::NotFound("playback"))?;
    Ok(HttpResponse::NotFound()
        .content_type("text/html; charset=utf-8")
        .insert_header((CSP, PAGE_POLICY))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(missing))
}

/// Start
///
/// What to do first, with the addresses of this installation and without its secrets.
#[utoipa::path(get, path = "/", tag = "pages", security(()), responses(
    (status = 200, description = "A page", body = String, content_type = "text/html"),
))]
pub async fn start(
    context: web::Data<ServiceContext>,
    reached: Reached,
) -> Result<HttpResponse, ApiError> {
    let base = &reached.address.base;
    let server = protocols::RTMP.server(&context.config, &reached.address, context.rtmp_port);
    let html = Frame::named("start.html")?.fill("Start", first_steps(base, &server));
    Ok(HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CSP, PAGE_POLICY))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(html))
}

/// `base` is where this installation is reached, `server` what encoders publish to.
fn first_steps(base: &str, server: &str) -> Html {
    let mut main = Html::default();
    main.put(
        "<div><h1>Sluice is running</h1><p class=\"start-lead\">Live streams in, low-latency HLS out; files in, any image format and \
         size out. Four things to do first:</p></div><ol class=\"start-steps\">",
        &[],
    );
    main.put(
        "<li class=\"start-step\"><h2>1. Find your key</h2><p>The first start of the service printed, once, the password of \
         <code>admin</code>, an API key and a stream key. Put the API key into your shell:</p>\
         <pre tabindex=\"0\"><code>export KEY=svc_…</code></pre>\
         <p>Lost the password? <code>sluice users reset-password admin</code> makes another one.</p></li>",
        &[],
    );
    main.put(
        "<li class=\"start-step\"><h2>2. Go live</h2><p>In OBS, under Settings, Stream, with the service “Custom…”:</p>\
         <dl><dt>Server</dt><dd><code>{}</code></dd><dt>Stream Key</dt><dd>as the first start printed it</dd></dl>\
         <p>Every live input, with its id and its playback id:</p>\
         <pre tabindex=\"0\"><code>curl -s {}/api/live/inputs \\\n  -H \"Authorization: Bearer $KEY\"</code></pre>\
         <p>Lost the stream key? This makes another one:</p>\
         <pre tabindex=\"0\"><code>curl -s -X POST {}/api/live/inputs/ID/rotate-key \\\n  -H \"Authorization: Bearer $KEY\"</code></pre></li>",
        &[&server, &base, &base],
    );
    main.put(
        "<li class=\"start-step\"><h2>3. Watch</h2><p>The page plays as soon as the encoder sends:</p>\
         <p><code>{}/live/PLAYBACK_ID</code></p><p>Players of your own take the playlist:</p>\
         <p><code>{}/live/v1/PLAYBACK_ID/index.m3u8</code></p></li>",
        &[&base, &base],
    );
    main.put(
        "<li class=\"start-step\"><h2>4. Deliver an image</h2><p>Store it, and make a delivery key, which may be in public pages:</p>\
         <pre tabindex=\"0\"><code>curl -s {}/api/files \\\n  -H \"Authorization: Bearer $KEY\" \\\n  -F file=@photo.jpg\n\
         curl -s {}/api/delivery-keys \\\n  -H \"Authorization: Bearer $KEY\" \\\n  --json '{\"name\":\"site\"}'</code></pre>\
         <p>Then every size of it has an address:</p><p><code>{}/cdn/v1/DELIVERY_KEY/FILE_ID?w=960</code></p></li></ol>",
        &[&base, &base, &base],
    );
    main.put(
        "<p class=\"start-more\">Conversions, video streams, workflows, webhooks and shared folders: every operation is in the \
         <a href=\"/docs\">API reference</a>. The guides for encoders, pages and operation are in the folder <code>docs/guide</code> of the \
         source.</p>",
        &[],
    );
    main
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

/// Returns a page that the service fills before it answers with it.
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
