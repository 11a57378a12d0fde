//! `/live/v1/{playbackId}`: playlists, segments, parts, poster, state (long-poll `wait`) of a live input; their
//! `Cache-Control`.
//!
//! One function admits ([`playback_access::admit`]), for every address here.
//! Nothing here sends an actor message: every answer is read from the published state of a [`Playback`], and a
//! blocking reload (RFC 8216bis §6.2.5.2) waits on that state under a bounded number of permits.

mod access;
mod body;
mod dvr;
mod wait;

use std::{str::FromStr, sync::Arc};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header},
    web,
};
use serde::Serialize;
use sluice_actors::live::{Phase, PlayId, Published, View};
use sluice_media::hls::names::{self, MediaName};
use sluice_store::now_ms;
use url::form_urlencoded;
use utoipa::{IntoParams, ToSchema};

use self::{access::Access, wait::Reload};
use super::{
    cdn,
    playback_access::{self, CacheLifetime, LiveStream},
    site,
    table::on,
};
use crate::{
    application::{
        context::{DeliveryContext, LiveContext},
        error::ApiError,
    },
    http::context,
};

/// Query parameter with the play id that a multivariant playlist gives out.
const PLAY: &str = "play";
const PLAYLIST_TYPE: &str = "application/vnd.apple.mpegurl";
/// Characters of a wrong value that an error shows.
const MAX_SHOWN: usize = 30;
/// The longest wait of one state request, in seconds.
const LONGEST_STATE_WAIT_S: u64 = 25;

/// The routes below `/live/v1/{playbackId}`.
pub fn configure(routes: &mut web::ServiceConfig) {
    routes
        .service(
            resource("/live/v1/{playback_id}/index.m3u8").route(on(Method::GET).to(multivariant)),
        )
        .service(
            resource("/live/v1/{playback_id}/media.m3u8").route(on(Method::GET).to(media_playlist)),
        )
        .service(resource("/live/v1/{playback_id}/state").route(on(Method::GET).to(state)))
        .service(
            resource("/live/v1/{playback_id}/poster.jpg").route(on(Method::GET).to(live_poster)),
        )
        .service(
            resource("/live/v1/{playback_id}/{broadcast}/{name}").route(on(Method::GET).to(media)),
        );
}

/// A resource that answers preflights from any site.
fn resource(path: &str) -> actix_web::Resource {
    web::resource(path)
        .route(web::method(Method::OPTIONS).to(preflight))
        .default_service(web::to(site::wrong_method))
}

/// Answers a preflight: it names the origins that the answer itself would name.
async fn preflight(request: HttpRequest) -> HttpResponse {
    let playback_id = request.match_info().get("playback_id").unwrap_or_default();
    let (cors, _) = playback_access::admit(&request, playback_id, find(&request)).await;
    site::preflight(&cors)
}

/// The multivariant playlist of a live input.
///
/// 404 while nothing is on air. The media playlist it names carries low-latency parts when the input's latency is low.
#[utoipa::path(get, path = "/live/v1/{playback_id}/index.m3u8", tag = "playback", security(()),
    params(("playback_id" = String, Path, description = "`pb_…`, or a playback token")),
    responses(
        (status = 200, description = "The playlist", content_type = "application/vnd.apple.mpegurl", body = String),
        (status = 403, description = "The account is suspended (`account_suspended`), or a token is missing (`playback_token_required`), wrong (`playback_token_invalid`) or expired \
            (`playback_token_expired`), or the viewer's domain is not allowed", body = crate::application::error::ErrorBody),
        (status = 404, description = "Unknown, or not on air", body = crate::application::error::ErrorBody)))]
pub async fn multivariant(request: HttpRequest, playback_id: web::Path<String>) -> HttpResponse {
    answer(&request, &playback_id, async |access| {
        let view = listed(&access.playback().now())?;
        // An id of its own makes it this viewer's playlist.
        let (query, keeping) = match context::of::<LiveContext>(&request)
            .config
            .live
            .count_viewers
        {
            true => (
                format!("?{PLAY}={}", PlayId::random()),
                CacheLifetime::Never,
            ),
            false => (String::new(), CacheLifetime::Moment),
        };
        let query = match dvr::is_asked(&request) {
            true => dvr::passed_on(&view, &query)?,
            false => query,
        };
        Ok(playlist(
            &access,
            keeping,
            view.multivariant_playlist(&query),
        ))
    })
    .await
}

/// Delivery directives of a media playlist (RFC 8216bis §6.2.5).
#[derive(Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Directives {
    /// Answer once the playlist has this media sequence number.
    #[param(rename = "_HLS_msn")]
    msn: Option<u64>,
    /// … and this part of it.
    #[param(rename = "_HLS_part")]
    part: Option<u32>,
    /// `YES` or `v2`: a delta update.
    #[param(rename = "_HLS_skip")]
    skip: Option<String>,
    /// Play id that the multivariant playlist handed out: players are counted by it.
    #[param(value_type = Option<String>)]
    play: Option<PlayId>,
    /// `1`: the broadcast since its beginning, as an event playlist; 404 when it is not recorded. Without blocking reload.
    #[param(value_type = Option<String>)]
    dvr: bool,
}

impl Directives {
    fn parse(query: &str) -> Result<Self, ApiError> {
        let mut directives = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "_HLS_msn" => directives.msn = Some(number(&name, &value)?),
                "_HLS_part" => directives.part = Some(number(&name, &value)?),
                "_HLS_skip" => directives.skip = Some(value.into_owned()),
                dvr::NAME => directives.dvr = value == "1",
                PLAY => directives.play = PlayId::parse(&value),
                _ => {}
            }
        }
        Ok(directives)
    }
}

/// Reads a number. Queries are read inside [`answer`], so that a rejection can be read by pages of other sites, too.
fn number<T: FromStr>(name: &str, text: &str) -> Result<T, ApiError> {
    let shown: String = text.chars().take(MAX_SHOWN).collect();
    let rejection = || invalid!("{name} must be a whole number from 0, got `{shown}`");
    text.parse().map_err(|_| rejection())
}

/// The media playlist, with blocking reload and delta updates.
#[utoipa::path(get, path = "/live/v1/{playback_id}/media.m3u8", tag = "playback", security(()),
    params(("playback_id" = String, Path, description = "`pb_…`, or a playback token"), Directives),
    responses(
        (status = 200, description = "The playlist", content_type = "application/vnd.apple.mpegurl", body = String),
        (status = 400, description = "A part without a sequence number, or one too far ahead", body = crate::application::error::ErrorBody),
        (status = 403, description = "The same as for the multivariant playlist", body = crate::application::error::ErrorBody),
        (status = 404, description = "Unknown, or not on air", body = crate::application::error::ErrorBody)))]
pub async fn media_playlist(request: HttpRequest, playback_id: web::Path<String>) -> HttpResponse {
    answer(&request, &playback_id, async |access| {
        let directives = Directives::parse(request.query_string())?;
        let skip = matches!(directives.skip.as_deref(), Some("YES" | "v2"));
        count(&access, directives.play);
        if directives.dvr {
            let whole = dvr::playlist(&*listed(&access.playback().now())?)?;
            return Ok(playlist(&access, CacheLifetime::Moment, whole));
        }
        let view = match Reload::parse(directives.msn, directives.part)? {
            None => listed(&access.playback().now())?,
            Some(reload) => wait::for_playlist(&access, reload).await?,
        };
        // It may have waited for long.
        count(&access, directives.play);
        Ok(playlist(
            &access,
            CacheLifetime::Moment,
            view.media_playlist(skip),
        ))
    })
    .await
}

/// A segment, part or init section; byte-exact, with ranges, for ever the same under its name.
///
/// A part that the playlist hints at is answered once it is there.
#[utoipa::path(get, path = "/live/v1/{playback_id}/{broadcast}/{name}", tag = "playback", security(()),
    params(("playback_id" = String, Path, description = "`pb_…`, or a playback token"),
        ("broadcast" = String, Path, description = "As the playlist names it"),
        ("name" = String, Path, description = "`{msn}.m4s`, `{msn}.{part}.m4s` or `init{n}.mp4`")),
    responses(
        (status = 200, description = "The bytes", content_type = "video/mp4", body = Vec<u8>),
        (status = 206, description = "The range asked for", content_type = "video/mp4", body = Vec<u8>),
        (status = 403, description = "The same as for the multivariant playlist", body = crate::application::error::ErrorBody),
        (status = 404, description = "Not there, or no longer", body = crate::application::error::ErrorBody),
        (status = 416, description = "No such range", body = crate::application::error::ErrorBody)))]
pub async fn media(
    request: HttpRequest,
    path: web::Path<(String, String, String)>,
) -> HttpResponse {
    let (playback_id, broadcast, name) = path.into_inner();
    answer(&request, &playback_id, async |access| {
        let name = names::parse(&name).ok_or(ApiError::NotFound("segment"))?;
        let now = access.playback().now();
        let view = now.view.clone().ok_or(ApiError::NotFound("broadcast"))?;
        if view.window.header().broadcast != broadcast {
            return Err(ApiError::NotFound("broadcast"));
        }
        let (content_type, found) = match name {
            MediaName::Init(number) => (
                "video/mp4",
                view.segment_store.init(number).map(body::memory),
            ),
            MediaName::Segment(msn) => ("video/iso.segment", view.segment_store.segment(msn)),
            MediaName::Part(msn, part) => (
                "video/iso.segment",
                wait::for_part(&access, &view, (msn, part)).await?,
            ),
        };
        // What has left the list is still there where the broadcast is recorded.
        let recorded = || view.segment_store.recording_writer()?.body(name);
        let found = found
            .or_else(recorded)
            .ok_or(ApiError::NotFound("segment"))?;
        // It never changes under its name.
        let cache = access.cache_control(CacheLifetime::Settled);
        body::respond(&request, found, content_type, cache).await
    })
    .await
}

/// The newest frame of a live input.
///
/// A key frame that is a few seconds old at most, 1280 pixels wide at most.
#[utoipa::path(get, path = "/live/v1/{playback_id}/poster.jpg", tag = "playback", security(()),
    params(("playback_id" = String, Path, description = "`pb_…`, or a playback token")),
    responses(
        (status = 200, description = "The frame", content_type = "image/jpeg", body = Vec<u8>),
        (status = 304, description = "The client has it"),
        (status = 403, description = "The same as for the multivariant playlist", body = crate::application::error::ErrorBody),
        (status = 404, description = "Unknown, not on air, or without a frame", body = crate::application::error::ErrorBody)))]
pub async fn live_poster(request: HttpRequest, playback_id: web::Path<String>) -> HttpResponse {
    answer(&request, &playback_id, async |access| {
        let entry =
            cdn::poster(context::of::<DeliveryContext>(&request), access.playback()).await?;
        let cache = access.cache_control(CacheLifetime::Seconds(cdn::MAX_AGE_S));
        Ok(body::image(&request, &entry, cache))
    })
    .await
}

/// Query of a page for the state.
#[derive(Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StateQuery {
    /// Seconds to wait for a state other than `since`, at most 25.
    wait: Option<u64>,
    /// The `version` of an earlier answer.
    since: Option<String>,
}

impl StateQuery {
    fn parse(query: &str) -> Result<Self, ApiError> {
        let mut asked = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "wait" => asked.wait = Some(number(&name, &value)?),
                "since" => asked.since = Some(value.into_owned()),
                _ => {}
            }
        }
        Ok(asked)
    }
}

/// State that a player page waits for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaybackState {
    /// `live` as soon as the playlist can be fetched.
    #[schema(value_type = String, example = "live")]
    state: Phase,
    /// Changes with the state; pass it as `since`.
    version: String,
    /// The broadcast that the playlist belongs to; a new one is a new playlist.
    broadcast: Option<String>,
    /// The end of the reconnect window while the encoder is gone.
    #[schema(value_type = Option<String>, format = DateTime)]
    reconnect_until: Option<String>,
    #[schema(value_type = String, example = "low")]
    latency: &'static str,
}

/// The state of a live input's playback, for pages: long-poll with `wait` and `since`.
#[utoipa::path(get, path = "/live/v1/{playback_id}/state", tag = "playback", security(()),
    params(("playback_id" = String, Path, description = "`pb_…`, or a playback token"), StateQuery),
    responses(
        (status = 200, description = "The state", body = PlaybackState),
        (status = 403, description = "The same as for the multivariant playlist", body = crate::application::error::ErrorBody),
        (status = 404, description = "Unknown playback id", body = crate::application::error::ErrorBody)))]
pub async fn state(request: HttpRequest, playback_id: web::Path<String>) -> HttpResponse {
    answer(&request, &playback_id, async |access| {
        let query = StateQuery::parse(request.query_string())?;
        let wait_s = query.wait.unwrap_or(0).min(LONGEST_STATE_WAIT_S);
        let same = |now: &Published| query.since.as_deref() == Some(version(now).as_str());
        let now = wait::for_change(&access, wait_s, same).await?;
        let until = now
            .reconnect_until_ms
            .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        Ok(HttpResponse::Ok()
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .json(PlaybackState {
                state: phase(&now),
                version: version(&now),
                broadcast: now
                    .view
                    .as_ref()
                    .map(|view| view.window.header().broadcast.clone()),
                reconnect_until: until.map(|until| until.to_string()),
                latency: if access.playback().policy().low_latency {
                    "low"
                } else {
                    "standard"
                },
            }))
    })
    .await
}

/// Names a state so that pages can distinguish it, stable over a restart of the service.
fn version(now: &Published) -> String {
    let broadcast = now
        .view
        .as_ref()
        .map_or("-", |view| view.window.header().broadcast.as_str());
    format!("{:?}.{broadcast}", phase(now)).to_lowercase()
}

/// The phase as viewers see it: an encoder that is back before anything is listed does not make a stream live.
fn phase(now: &Published) -> Phase {
    match (now.phase, listed(now)) {
        (Phase::Live | Phase::Reconnecting, Err(_)) => Phase::Starting,
        (phase, _) => phase,
    }
}

/// The view that may be shown, once a player can start with it.
fn listed(now: &Published) -> Result<Arc<View>, ApiError> {
    now.listed().ok_or(ApiError::NotFound("live stream"))
}

/// Answers with a playlist. It changes with every part; a second in an upstream cache folds many viewers into one request.
fn playlist(access: &Access, keeping: CacheLifetime, text: web::Bytes) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, PLAYLIST_TYPE))
        .insert_header((header::CACHE_CONTROL, access.cache_control(keeping)))
        .body(text)
}

fn count(access: &Access, play: Option<PlayId>) {
    if let Some(play) = play {
        access.playback().note_viewer(play, now_ms());
    }
}

/// Authorises the viewer, runs the handler, and gives every answer, errors included, its CORS headers.
async fn answer<F>(request: &HttpRequest, playback_id: &str, handler: F) -> HttpResponse
where
    F: AsyncFnOnce(Access) -> Result<HttpResponse, ApiError>,
{
    let (cors, admitted) = playback_access::admit(request, playback_id, find(request)).await;
    let answered = match admitted {
        Ok(viewer) => handler(Access::new(viewer, request)).await,
        Err(rejection) => Err(rejection),
    };
    site::answer(answered, &cors)
}

/// Finds a live input by its playback id.
pub(super) fn find(
    request: &HttpRequest,
) -> impl AsyncFnOnce(&str) -> Result<LiveStream, ApiError> {
    let live = context::of::<LiveContext>(request).clone();
    async move |playback_id: &str| {
        let playback = live.live.playback(playback_id);
        playback
            .map(LiveStream::now)
            .ok_or(ApiError::NotFound("playback"))
    }
}
