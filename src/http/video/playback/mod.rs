//! `/video/v1/{playbackId}`: playlists, segments, poster, storyboard and captions of a video stream; `Cache-Control`, `Retry-After`
//! of parts being made.
//!
//! One function admits ([`playback_access::admit`]), for every address here. Names are compared with what the stream has and never
//! become paths. Nothing sends an actor message: answers come from the published state of a stream and from ranges of its
//! files, in pieces.

mod body;
mod tracks;

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, http::Method, web};
use sluice_actors::video::{Playback, Track};
use sluice_media::hls::vod::{self, names, names::VodName};
use sluice_store::video::{MediaFile, RenditionKind, StreamStatus};

use self::body::{Content, Piece};
use crate::{
    application::{context::VideoContext, error::ApiError},
    http::{
        context,
        playback_access::{self, CacheLifetime},
        site,
        table::on,
    },
};

type Viewer = playback_access::Viewer<Arc<Playback>>;

const PLAYLIST_TYPE: &str = "application/vnd.apple.mpegurl";
const CAPTIONS_TYPE: &str = "text/vtt; charset=utf-8";
const IMAGE_TYPE: &str = "image/jpeg";
/// `Retry-After` of a part that is being made, in seconds.
const RETRY_AFTER_S: u64 = 2;

/// The routes below `/video/v1/{playbackId}`.
pub fn configure(routes: &mut web::ServiceConfig) {
    let below = |path: &str| {
        web::resource(format!("/video/v1/{{playback_id}}/{path}"))
            .route(web::method(Method::OPTIONS).to(preflight))
            .default_service(web::to(site::wrong_method))
    };
    routes
        .service(below(names::MULTIVARIANT).route(on(Method::GET).to(master)))
        .service(below("captions/{name}").route(on(Method::GET).to(captions_file)))
        .service(below("{rendition}/{name}").route(on(Method::GET).to(rendition_file)))
        .service(below("{name}").route(on(Method::GET).to(picture)));
}

/// The multivariant playlist of a stream
///
/// With the renditions that are there, the audio and the captions as groups of their own, and playlists of key frames.
/// BANDWIDTH and AVERAGE-BANDWIDTH are measured. All addresses in it are relative, so that they keep a token in the path.
#[utoipa::path(get, path = "/video/v1/{playback_id}/master.m3u8", tag = "playback", security(()),
    params(("playback_id" = String, Path, description = "`pb_…`, or a playback token")),
    responses(
        (status = 200, description = "The playlist", content_type = "application/vnd.apple.mpegurl", body = String),
        (status = 304, description = "Unchanged"),
        (status = 403, description = "A token is missing (`playback_token_required`), wrong (`playback_token_invalid`) or expired \
            (`playback_token_expired`), or the viewer's domain is not allowed", body = crate::application::error::ErrorBody),
        (status = 404, description = "Unknown, failed, or not playable yet (`not_ready`, with Retry-After)", body = crate::application::error::ErrorBody)))]
pub async fn master(request: HttpRequest, playback_id: web::Path<String>) -> HttpResponse {
    answer(&request, &playback_id, async |viewer| {
        let tracks = tracks::all(listed(viewer)?);
        let captions = tracks::captions(&viewer.watched);
        let text = vod::multivariant(&tracks, &captions);
        Ok(playlist(&request, viewer, text))
    })
    .await
}

/// A rendition's playlist, key frames, init section or segment
///
/// `media.m3u8` (EVENT until the stream is ready, then VOD), `iframes.m3u8`, `init.mp4` and `{n}.m4s`, with ranges. Segments
/// of a stream that is ready never change under their addresses.
#[utoipa::path(get, path = "/video/v1/{playback_id}/{rendition}/{name}", tag = "playback", security(()),
    params(("playback_id" = String, Path, description = "`pb_…`, or a playback token"),
        ("rendition" = String, Path, description = "The name in the multivariant playlist, such as `720p` or `audio`"),
        ("name" = String, Path, description = "`media.m3u8`, `iframes.m3u8`, `init.mp4` or `{n}.m4s`")),
    responses(
        (status = 200, description = "The bytes", content_type = "video/mp4", body = Vec<u8>),
        (status = 206, description = "The range asked for", content_type = "video/mp4", body = Vec<u8>),
        (status = 304, description = "Unchanged"),
        (status = 403, description = "The same as for the multivariant playlist", body = crate::application::error::ErrorBody),
        (status = 404, description = "Not there, or not yet (`not_ready`)", body = crate::application::error::ErrorBody),
        (status = 416, description = "No such range", body = crate::application::error::ErrorBody)))]
pub async fn rendition_file(
    request: HttpRequest,
    path: web::Path<(String, String, String)>,
) -> HttpResponse {
    let (playback_id, rendition, name) = path.into_inner();
    answer(&request, &playback_id, async |viewer| {
        let name = names::parse(&name).ok_or(ApiError::NotFound("file of the stream"))?;
        let track = viewer
            .watched
            .track(&rendition)
            .ok_or_else(|| missing(viewer, "rendition"))?;
        let target_s = viewer.watched.stream.segment_duration_s;
        let is_finished = viewer.watched.stream.status == StreamStatus::Ready;
        let listed = || {
            listed(viewer)?;
            tracks::one(track, target_s).ok_or_else(|| missing(viewer, "rendition"))
        };
        match name {
            VodName::Media => {
                let text = vod::media_playlist(&listed()?, is_finished);
                Ok(playlist(&request, viewer, text))
            }
            VodName::IFrames => {
                let text = vod::iframe_playlist(&listed()?, is_finished)
                    .ok_or(ApiError::NotFound("playlist of key frames"))?;
                Ok(playlist(&request, viewer, text))
            }
            VodName::Init => send(&request, viewer, init(viewer, track)?).await,
            VodName::Segment(number) => {
                send(&request, viewer, segment(viewer, track, number)?).await
            }
        }
    })
    .await
}

/// The poster or the storyboard of a stream
///
/// `poster.jpg`, and `storyboard.vtt`, which maps times to areas of `storyboard.jpg`.
#[utoipa::path(get, path = "/video/v1/{playback_id}/{name}", tag = "playback", security(()),
    params(("playback_id" = String, Path, description = "`pb_…`, or a playback token"),
        ("name" = String, Path, description = "`poster.jpg`, `storyboard.vtt` or `storyboard.jpg`")),
    responses(
        (status = 200, description = "The bytes", content_type = "image/jpeg", body = Vec<u8>),
        (status = 206, description = "The range asked for", content_type = "image/jpeg", body = Vec<u8>),
        (status = 304, description = "Unchanged"),
        (status = 403, description = "The same as for the multivariant playlist", body = crate::application::error::ErrorBody),
        (status = 404, description = "Not there, or not yet (`not_ready`)", body = crate::application::error::ErrorBody),
        (status = 416, description = "No such range", body = crate::application::error::ErrorBody)))]
pub async fn picture(request: HttpRequest, path: web::Path<(String, String)>) -> HttpResponse {
    let (playback_id, name) = path.into_inner();
    answer(&request, &playback_id, async |viewer| {
        let stream = &viewer.watched.stream;
        let (is_there, file, content_type) = match name.as_str() {
            "poster.jpg" => (stream.has_poster, MediaFile::Poster, IMAGE_TYPE),
            "storyboard.jpg" => (
                stream.has_storyboard,
                MediaFile::StoryboardImage,
                IMAGE_TYPE,
            ),
            "storyboard.vtt" => (
                stream.has_storyboard,
                MediaFile::StoryboardMap,
                CAPTIONS_TYPE,
            ),
            _ => return Err(ApiError::NotFound("file of the stream")),
        };
        if !is_there {
            return Err(missing(viewer, "image"));
        }
        let piece = Piece {
            tag: format!("\"{}-{name}\"", stream.id.simple()),
            content: Content::File(viewer.watched.clone(), file),
            range: None,
            content_type,
            keeping: CacheLifetime::Hour,
        };
        send(&request, viewer, piece).await
    })
    .await
}

/// Captions of a stream
///
/// `{language}.m3u8`, as the multivariant playlist names it, and the WebVTT in it, `{language}.vtt`.
#[utoipa::path(get, path = "/video/v1/{playback_id}/captions/{name}", tag = "playback", security(()),
    params(("playback_id" = String, Path, description = "`pb_…`, or a playback token"),
        ("name" = String, Path, description = "`{language}.m3u8` or `{language}.vtt`")),
    responses(
        (status = 200, description = "The text", content_type = "text/vtt", body = String),
        (status = 206, description = "The range asked for", content_type = "text/vtt", body = String),
        (status = 304, description = "Unchanged"),
        (status = 403, description = "The same as for the multivariant playlist", body = crate::application::error::ErrorBody),
        (status = 404, description = "No captions in this language", body = crate::application::error::ErrorBody)))]
pub async fn captions_file(
    request: HttpRequest,
    path: web::Path<(String, String)>,
) -> HttpResponse {
    let (playback_id, name) = path.into_inner();
    answer(&request, &playback_id, async |viewer| {
        let none =
            || ApiError::NotFound("captions by this name (master.m3u8 lists those there are)");
        let (language, kind) = name.rsplit_once('.').ok_or_else(none)?;
        let caption = viewer.watched.captions.iter();
        let caption = caption
            .rev()
            .find(|caption| caption.language == language)
            .ok_or_else(none)?;
        match kind {
            "m3u8" => {
                let duration_90k = tracks::duration_90k(&viewer.watched);
                let text = vod::captions_playlist(&format!("{language}.vtt"), duration_90k);
                Ok(playlist(&request, viewer, text))
            }
            "vtt" => {
                let piece = Piece {
                    tag: format!("\"{}\"", caption.blob),
                    content: Content::Blob(caption.blob),
                    range: None,
                    content_type: CAPTIONS_TYPE,
                    keeping: CacheLifetime::Minute,
                };
                send(&request, viewer, piece).await
            }
            _ => Err(none()),
        }
    })
    .await
}

/// Returns the stream, once players can start with it.
fn listed(viewer: &Viewer) -> Result<&Playback, ApiError> {
    let playback = &viewer.watched;
    let is_listed = playback.stream.playable && playback.stream.status != StreamStatus::Failed;
    match is_listed {
        true => Ok(playback),
        false => Err(missing(viewer, "playlist")),
    }
}

/// Answers for a missing part: it comes while the stream is being made, and never afterwards.
fn missing(viewer: &Viewer, what: &'static str) -> ApiError {
    match viewer.watched.stream.status.has_ended() {
        true => ApiError::NotFound(what),
        false => ApiError::NotReady {
            what,
            retry_after_s: RETRY_AFTER_S,
        },
    }
}

fn init(viewer: &Viewer, track: &Track) -> Result<Piece, ApiError> {
    let length = track.rendition.init_length.map(i64::unsigned_abs);
    let length = length.ok_or_else(|| missing(viewer, "init section"))?;
    Ok(media(viewer, track, "init", 0, length))
}

fn segment(viewer: &Viewer, track: &Track, number: u32) -> Result<Piece, ApiError> {
    let segment = usize::try_from(number)
        .ok()
        .and_then(|index| track.segments.get(index))
        .filter(|segment| segment.number == number)
        .ok_or_else(|| missing(viewer, "segment"))?;
    let (offset, length) = (segment.offset, segment.length);
    Ok(media(viewer, track, &number.to_string(), offset, length))
}

/// Returns a range of a rendition's file.
fn media(viewer: &Viewer, track: &Track, name: &str, offset: u64, length: u64) -> Piece {
    let (id, rendition) = (viewer.watched.stream.id, &track.rendition);
    Piece {
        tag: format!(
            "\"{}-{}-{name}-{offset:x}-{length:x}\"",
            id.simple(),
            rendition.number
        ),
        content: Content::File(
            viewer.watched.clone(),
            MediaFile::Rendition(rendition.name.clone()),
        ),
        range: Some((offset, length)),
        content_type: match rendition.kind {
            RenditionKind::Video => "video/mp4",
            RenditionKind::Audio => "audio/mp4",
        },
        keeping: match viewer.watched.stream.status {
            StreamStatus::Ready => CacheLifetime::Forever,
            // After a crash, segments that not all renditions had are made again.
            _ => CacheLifetime::Minute,
        },
    }
}

fn playlist(request: &HttpRequest, viewer: &Viewer, text: String) -> HttpResponse {
    let keeping = match viewer.watched.stream.status {
        StreamStatus::Ready => CacheLifetime::Minute,
        _ => CacheLifetime::Moment,
    };
    body::text(request, viewer.cache_control(keeping), PLAYLIST_TYPE, text)
}

async fn send(
    request: &HttpRequest,
    viewer: &Viewer,
    piece: Piece,
) -> Result<HttpResponse, ApiError> {
    let cache = viewer.cache_control(piece.keeping);
    body::send(request, context::of::<VideoContext>(request), piece, cache).await
}

/// Admits the viewer, runs the handler, and gives every answer, errors included, its CORS headers.
async fn answer<F>(request: &HttpRequest, playback_id: &str, handler: F) -> HttpResponse
where
    F: AsyncFnOnce(&Viewer) -> Result<HttpResponse, ApiError>,
{
    let (cors, admitted) = playback_access::admit(request, playback_id, find(request)).await;
    let answered = match admitted {
        Ok(viewer) => handler(&viewer).await,
        Err(rejection) => Err(rejection),
    };
    site::answer(answered, &cors)
}

fn find(request: &HttpRequest) -> impl AsyncFnOnce(&str) -> Result<Arc<Playback>, ApiError> {
    let video = context::of::<VideoContext>(request).clone();
    async move |playback_id: &str| Ok(video.streams.playback(playback_id).await?)
}

/// Answers a preflight: it names the origins that the answer itself would name.
async fn preflight(request: HttpRequest) -> HttpResponse {
    let playback_id = request.match_info().get("playback_id").unwrap_or_default();
    let (cors, _) = playback_access::admit(&request, playback_id, find(&request)).await;
    site::preflight(&cors)
}
