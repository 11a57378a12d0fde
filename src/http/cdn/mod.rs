//! Image delivery, `/cdn/v1/{deliveryKey}/{fileId}`: `Cache-Control` lifetimes, count and quota of deliveries, attempts while a
//! file changes.
//!
//! A variant that is published is answered from memory, without any actor message. Every delivery is counted before it
//! is made, and taken back when nothing was delivered; every answer under a valid key carries the month's quota.

mod address;
mod answer;
mod description;
mod live;
mod parsed;
mod preview;
mod purge;
mod stats;

use std::sync::Arc;

use actix_web::{
    HttpRequest, HttpResponse, ResponseError as _,
    http::{
        Method,
        header::{self, HeaderValue},
    },
    web,
};
use sluice_actors::{
    cdn::{Fetched, Key, Problem, VariantJob},
    meter::{Account, Rejection, Spent},
};
use sluice_media::variant::AcceptClass;
use uuid::Uuid;

pub(super) use description::describe;
pub(super) use live::{MAX_AGE_S, poster};
pub(super) use preview::{own_preview, preview};
pub use purge::{__path_purge, purge};
pub use stats::{__path_stats, stats};

use self::{
    address::Address,
    answer::{Delivery, show_quota},
    parsed::Parsed,
};
use crate::{
    application::{context::DeliveryContext, error::ApiError, reached::Reached},
    http::context,
};

/// Number of attempts of a delivery whose file is changed meanwhile.
const ATTEMPTS: usize = 3;
/// `Cache-Control` of an address that never changes its image.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// `Cache-Control` of a preset, which may be edited.
const FOR_MINUTES: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// Deliver an image
///
/// In any size and format. `format=auto`, the default, gives WebP to clients whose Accept header lists it. The order
/// of the parameters does not matter, and unknown ones are ignored. The address never changes its meaning and may be
/// cached for ever.
#[utoipa::path(get, path = "/cdn/v1/{deliveryKey}/{fileId}", tag = "delivery", security(()),
    params(
        ("deliveryKey" = String, Path, description = "A delivery key, or its alias"),
        ("fileId" = Uuid, Path, description = "A stored file"),
        ("token" = Option<String>, Query, description = "With `frame=live`: a playback token, needed where the input requires signed playback"),
        ("v" = Option<String>, Query, description = "Anything: a fresh address for browsers"),
    ),
    responses(
        (status = 200, description = "The image; `X-Service-CDN-*-Month` show the quota", content_type = "image/*", body = Vec<u8>),
        (status = 206, description = "The range asked for", content_type = "image/*", body = Vec<u8>),
        (status = 304, description = "The client has it"),
        (status = 400, description = "A parameter out of range", body = crate::application::error::ErrorBody),
        (status = 403, description = "The account is suspended, the key delivers presets only, or a live input needs a token or another site", body = crate::application::error::ErrorBody),
        (status = 404, description = "No such key, or no such file under it", body = crate::application::error::ErrorBody)))]
pub async fn deliver(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let address = Address::parse(request.path()).ok_or(ApiError::NotFound("path"))?;
    Ok(answer(&request, address).await)
}

/// Deliver an image by a preset
///
/// The parameters are those of the preset; a query is ignored.
#[utoipa::path(get, path = "/cdn/v1/{deliveryKey}/{fileId}/p/{preset}", tag = "delivery", security(()),
    params(
        ("deliveryKey" = String, Path, description = "A delivery key, or its alias"),
        ("fileId" = Uuid, Path, description = "A stored file"),
        ("preset" = String, Path, description = "The preset's name"),
    ),
    responses(
        (status = 200, description = "The image; `X-Service-CDN-*-Month` show the quota", content_type = "image/*", body = Vec<u8>),
        (status = 206, description = "The range asked for", content_type = "image/*", body = Vec<u8>),
        (status = 304, description = "The client has it"),
        (status = 404, description = "No such key, preset or file", body = crate::application::error::ErrorBody)))]
pub async fn deliver_preset(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    deliver(request).await
}

/// The routes below `/cdn/v1`. A scope is found by its text, without a regular expression.
pub(super) fn configure(routes: &mut web::ServiceConfig) {
    routes.service(web::scope("/cdn/v1").default_service(web::to(route)));
}

async fn route(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(ApiError::MethodNotAllowed {
            method: request.method().to_string(),
            allow: "GET, HEAD".to_owned(),
        });
    }
    let by_preset = Address::parse(request.path()).is_some_and(|it| it.preset.is_some());
    match by_preset {
        true => deliver_preset(request).await,
        false => deliver(request).await,
    }
}

async fn answer(request: &HttpRequest, address: Address<'_>) -> HttpResponse {
    let delivery = context::of::<DeliveryContext>(request);
    let Some(key) = delivery.images.key(address.key) else {
        return in_the_open(missing().error_response());
    };
    if delivery.suspensions.contains(key.account.id()) {
        return in_the_open(ApiError::AccountSuspended.error_response());
    }
    let rejection = match deliver_for(delivery, request, &key, address).await {
        Ok(response) => return response,
        Err(rejection) => rejection,
    };
    let mut response = in_the_open(rejection.error_response());
    let meter = delivery.images.meter();
    // A request that timed out at the meter does not wait for it again.
    let quota = match rejection {
        ApiError::Unavailable { .. } => meter.published(key.account.id()),
        _ => meter.quota(&key.account).await,
    };
    if let Some(quota) = quota {
        show_quota(&quota, response.headers_mut());
    }
    response
}

/// The one answer to a bad key, a foreign file and a missing one.
fn missing() -> ApiError {
    ApiError::NotFound("image")
}

/// Lets scripts of any site read the reason of a missing image.
fn in_the_open(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().insert(
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    );
    response
}

async fn deliver_for(
    context: &DeliveryContext,
    request: &HttpRequest,
    key: &Arc<Key>,
    address: Address<'_>,
) -> Result<HttpResponse, ApiError> {
    let images = &context.images;
    let file_id = Uuid::try_parse(address.file).map_err(|_| missing())?;
    let parsed = parse(context, request, key, address.preset)?;
    if parsed.request.is_live() {
        return live::deliver(context, request, key, file_id, &parsed).await;
    }
    let accept = accept_of(request);
    let cache_key = parsed.cache_key(accept);
    let cache = match address.preset {
        None => FOR_EVER,
        Some(_) => FOR_MINUTES,
    };
    for _ in 0..ATTEMPTS {
        let published = images
            .lookup(file_id, cache_key)
            .filter(|entry| entry.account_id == key.account.id());
        if let Some(entry) = published {
            let spent = spend(context, request, &key.account).await?;
            let hit = Fetched {
                entry,
                rendered: false,
            };
            return Delivery::of(&hit, &parsed, cache, true).answer(request, key, spent);
        }
        let source = images
            .source(file_id)
            .await?
            .filter(|source| source.account_id == key.account.id())
            .ok_or_else(missing)?;
        let spent = spend(context, request, &key.account).await?;
        let suited = parsed.on(&source);
        let wanted = VariantJob {
            request: suited.request.clone(),
            accept,
            cache_key: suited.cache_key(accept).clone(),
            source,
        };
        match images.fetch(wanted, key.clone()).await {
            Ok(fetched) => {
                let delivery = Delivery::of(&fetched, &parsed, cache, true);
                return delivery.answer(request, key, spent);
            }
            Err(Problem::Stale) => {}
            Err(problem) => return Err(problem.into()),
        }
    }
    Err(Problem::Busy.into())
}

fn parse(
    context: &DeliveryContext,
    request: &HttpRequest,
    key: &Key,
    preset: Option<&str>,
) -> Result<Parsed, ApiError> {
    let settings = context.config.cdn.variants();
    match preset {
        None if key.presets_only => Err(ApiError::Forbidden(
            "this delivery key delivers presets only: use /p/{preset}",
        )),
        None => Parsed::of(request.query_string(), &settings),
        Some(name) => {
            let preset = context.images.preset(key.account.id(), name);
            Parsed::of(&preset.ok_or_else(missing)?, &settings)
        }
    }
}

/// Returns the class of the `Accept` headers; several count as one (RFC 9110 §5.3).
fn accept_of(request: &HttpRequest) -> AcceptClass {
    let fold = |value: &HeaderValue| AcceptClass::fold(value.to_str().ok());
    request.headers().get_all(header::ACCEPT).map(fold).fold(
        AcceptClass::default(),
        |one, other| AcceptClass {
            webp: one.webp || other.webp,
            avif: one.avif || other.avif,
        },
    )
}

async fn spend(
    context: &DeliveryContext,
    request: &HttpRequest,
    account: &Arc<Account>,
) -> Result<Spent, ApiError> {
    let rejection = match context.images.meter().spend(account).await {
        Ok(spent) => return Ok(spent),
        Err(rejection) => rejection,
    };
    Err(match rejection {
        Rejection::UsedUp(quota) => ApiError::DeliveriesUsedUp {
            limit: quota.limit.unwrap_or_default(),
            retry_after_s: until(quota.resets_at_s),
            upgrade_url: Some(Reached::of(request).upgrade_url(context)),
        },
        Rejection::Busy => ApiError::Unavailable {
            what: "the delivery meter",
            retry_after_s: 1,
        },
    })
}

/// Seconds until then, at least 1.
fn until(at_s: i64) -> u64 {
    let now_s = sluice_store::now_ms() / 1000;
    u64::try_from(at_s - now_s).unwrap_or(0).max(1)
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        let later = |retry_after_s| Self::Unavailable {
            what: "image delivery",
            retry_after_s,
        };
        match problem {
            Problem::Failed(failure) => failure.into(),
            Problem::Busy | Problem::Stale => later(1),
            Problem::Unavailable(reason) => {
                tracing::warn!(reason, "images are not rendered");
                later(5)
            }
            Problem::TooManyNew { retry_after_s } => Self::TooMany {
                message: "this delivery key asks for too many new variants",
                retry_after_s,
            },
        }
    }
}
