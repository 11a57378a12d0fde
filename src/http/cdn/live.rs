//! Frames of live inputs: `frame=live` in image addresses, and the poster of a playback address; lifetime in caches.
//!
//! A delivery key is public. So access to a live input's image is decided as for its playlist, with the token in the
//! query.

use std::sync::Arc;

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{self, HeaderMap, HeaderValue},
};
use sluice_actors::{
    cdn::{Entry, Fetched, Key, NoFrame, Problem, VariantJob},
    live::Playback,
};
use sluice_media::variant::AcceptClass;
use url::form_urlencoded;
use uuid::Uuid;

use super::{ATTEMPTS, accept_of, answer::Delivery, missing, parsed::Parsed, spend};
use crate::{
    application::{context::DeliveryContext, error::ApiError},
    http::{
        playback_access::{self, CacheLifetime, LiveStream, Watched as _},
        site::Cors,
    },
};

/// Lifetime of a live frame, in seconds.
pub(crate) const MAX_AGE_S: u32 = 5;
/// Query of the poster: size, format, quality.
const POSTER: &str = "w=1280&format=jpg&q=86";
/// The query's parameter with a playback token.
const TOKEN: &str = "token";

/// Delivers the newest image of the input with that id.
pub(super) async fn deliver(
    context: &DeliveryContext,
    request: &HttpRequest,
    key: &Arc<Key>,
    input_id: Uuid,
    parsed: &Parsed,
) -> Result<HttpResponse, ApiError> {
    let playback = context
        .live
        .playback_of(input_id)
        .filter(|playback| playback.account_id == key.account.id())
        .ok_or_else(missing)?;
    let token = form_urlencoded::parse(request.query_string().as_bytes())
        .find_map(|(name, value)| (name == TOKEN).then_some(value));
    let stream = LiveStream::now(playback);
    let (cors, admitted) = playback_access::admit_beside(request, stream, token.as_deref()).await;
    let viewer = admitted?;
    let cache = match viewer.watched.terms().is_signed {
        true => CacheLifetime::Never,
        false => CacheLifetime::Seconds(MAX_AGE_S),
    };
    let cache = HeaderValue::try_from(viewer.cache_control(cache)).map_err(ApiError::internal)?;
    let spent = spend(context, request, &key.account).await?;
    let playback = &viewer.watched.playback;
    let fetched = live_frame(context, playback, parsed, accept_of(request), Some(key)).await?;
    let delivery = Delivery::of(&fetched, parsed, cache, true);
    let mut response = delivery.answer(request, key, spent)?;
    narrow(response.headers_mut(), &cors);
    Ok(response)
}

/// A delivery is open to every site, unless the input's owner names some.
fn narrow(headers: &mut HeaderMap, cors: &Cors) {
    if *cors == Cors::Everyone {
        return;
    }
    headers.remove(header::ACCESS_CONTROL_ALLOW_ORIGIN);
    let vary = headers.get(header::VARY).cloned();
    cors.apply(headers);
    if let Some(vary) = vary {
        headers.append(header::VARY, vary);
    }
}

/// Delivers the newest image of a stream, shown by its players before playback.
pub(in crate::http) async fn poster(
    context: &DeliveryContext,
    playback: &Playback,
) -> Result<Arc<Entry>, ApiError> {
    let parsed = Parsed::of(POSTER, &context.config.cdn.variants())?;
    let fetched = live_frame(context, playback, &parsed, AcceptClass::default(), None).await?;
    Ok(fetched.entry)
}

/// Renders a variant of the newest image; without a delivery key no key's limit applies.
async fn live_frame(
    context: &DeliveryContext,
    playback: &Playback,
    parsed: &Parsed,
    accept: AcceptClass,
    key: Option<&Arc<Key>>,
) -> Result<Fetched, ApiError> {
    let images = &context.images;
    for _ in 0..ATTEMPTS {
        let source = images.live_frame(playback).await?;
        let suited = parsed.on(&source);
        let cache_key = suited.cache_key(accept);
        if let Some(entry) = images.lookup(source.id, cache_key) {
            return Ok(Fetched {
                entry,
                rendered: false,
            });
        }
        let wanted = VariantJob {
            request: suited.request.clone(),
            accept,
            cache_key: cache_key.clone(),
            source,
        };
        let fetched = match key {
            Some(key) => images.fetch(wanted, key.clone()).await,
            None => images.fetch_own(wanted).await,
        };
        match fetched {
            Err(Problem::Stale) => {}
            outcome => return Ok(outcome?),
        }
    }
    Err(Problem::Busy.into())
}

impl From<NoFrame> for ApiError {
    fn from(reason: NoFrame) -> Self {
        match reason {
            NoFrame::NotOnAir => Self::NotFound("live stream"),
            NoFrame::NoKeyFrame => Self::NotFound("frame of the live stream"),
            NoFrame::Problem(problem) => problem.into(),
        }
    }
}
