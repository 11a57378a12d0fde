//! Previews without a delivery key: of share links, counted for the folder's owner, and of owners' own files, not counted.

use actix_web::{HttpRequest, HttpResponse, http::header::HeaderValue};
use sluice_actors::cdn::{Fetched, Problem, VariantJob};
use sluice_store::files::File;

use super::{ATTEMPTS, accept_of, answer::Delivery, missing, parsed::Parsed, spend};
use crate::application::{context::DeliveryContext, error::ApiError, files::previews::Previews};

/// Answers a variant of a file that the caller may see, charged to the file's account.
pub(in crate::http) async fn preview(
    context: &DeliveryContext,
    request: &HttpRequest,
    file: &File,
    query: &str,
    cache: HeaderValue,
) -> Result<HttpResponse, ApiError> {
    let account = context.images.meter().account(file.account_id);
    let parsed = Parsed::of(query, &context.config.cdn.variants())?;
    for _ in 0..ATTEMPTS {
        let spent = spend(context, request, &account)
            .await
            .map_err(for_reader)?;
        let turn = async || context.shares.preview_turn().await;
        let fetched = match variant(context, request, file, &parsed, turn).await? {
            Ok(fetched) => fetched,
            Err(Stale) => continue,
        };
        return Delivery::of(&fetched, &parsed, cache, false).answer(request, &account, spent);
    }
    Err(Problem::Busy.into())
}

/// Answers a variant of a file for its owner; nothing is charged.
pub(in crate::http) async fn own_preview(
    context: &DeliveryContext,
    previews: &Previews,
    request: &HttpRequest,
    file: &File,
    query: &str,
    cache: HeaderValue,
) -> Result<HttpResponse, ApiError> {
    let parsed = Parsed::of(query, &context.config.cdn.variants())?;
    for _ in 0..ATTEMPTS {
        let turn = async || previews.turn(file.account_id).await;
        let fetched = match variant(context, request, file, &parsed, turn).await? {
            Ok(fetched) => fetched,
            Err(Stale) => continue,
        };
        return Delivery::of(&fetched, &parsed, cache, false).answer_uncounted(request);
    }
    Err(Problem::Busy.into())
}

/// The file was changed while its variant was rendered.
struct Stale;

/// Returns the variant, published or rendered once it is its turn.
async fn variant<P>(
    context: &DeliveryContext,
    request: &HttpRequest,
    file: &File,
    parsed: &Parsed,
    turn: impl AsyncFnOnce() -> Result<P, ApiError>,
) -> Result<Result<Fetched, Stale>, ApiError> {
    let images = &context.images;
    let accept = accept_of(request);
    let source = images.source(file.id).await?.ok_or_else(missing)?;
    let suited = parsed.on(&source);
    let cache_key = suited.cache_key(accept);
    if let Some(entry) = images.lookup(source.id, cache_key) {
        return Ok(Ok(Fetched {
            entry,
            rendered: false,
        }));
    }
    let wanted = VariantJob {
        request: suited.request.clone(),
        accept,
        cache_key: cache_key.clone(),
        source,
    };
    let _turn = turn().await?;
    match images.fetch_own(wanted).await {
        Ok(fetched) => Ok(Ok(fetched)),
        Err(Problem::Stale) => Ok(Err(Stale)),
        Err(problem) => Err(problem.into()),
    }
}

/// Removes `upgradeUrl` from an error: readers cannot change the plan of the owner.
fn for_reader(rejection: ApiError) -> ApiError {
    match rejection {
        ApiError::DeliveriesUsedUp {
            limit,
            retry_after_s,
            ..
        } => ApiError::DeliveriesUsedUp {
            limit,
            retry_after_s,
            upgrade_url: None,
        },
        other => other,
    }
}
