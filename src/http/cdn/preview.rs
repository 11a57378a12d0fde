//! Images that a folder's owner shows to anyone with its link: no delivery key admits them, and its meter counts them.

use actix_web::{HttpRequest, HttpResponse, http::header::HeaderValue};
use sluice_actors::cdn::{Fetched, Problem, VariantJob};
use sluice_store::files::File;

use super::{
    ATTEMPTS, accept_of,
    answer::{Cached, Delivery},
    missing,
    parsed::Parsed,
    spend,
};
use crate::application::{context::DeliveryContext, error::ApiError};

/// A variant of a file that the caller was let in to, charged to the file's account.
pub(in crate::http) async fn preview(
    context: &DeliveryContext,
    request: &HttpRequest,
    file: &File,
    query: &str,
    cache: HeaderValue,
) -> Result<HttpResponse, ApiError> {
    let images = &context.images;
    let account = images.meter().account(file.account_id);
    let parsed = Parsed::of(query, &context.config.cdn.variants())?;
    let accept = accept_of(request);
    for _ in 0..ATTEMPTS {
        let source = images.source(file.id).await?.ok_or_else(missing)?;
        let suited = parsed.on(&source);
        let cache_key = suited.cache_key(accept);
        let spent = spend(context, request, &account)
            .await
            .map_err(for_reader)?;
        let fetched = match images.lookup(source.id, cache_key) {
            Some(entry) => Ok(Fetched {
                entry,
                rendered: false,
            }),
            None => {
                let wanted = VariantJob {
                    request: suited.request.clone(),
                    accept,
                    cache_key: cache_key.clone(),
                    source,
                };
                let _turn = context.shares.preview_turn().await?;
                images.fetch_own(wanted).await
            }
        };
        let fetched = match fetched {
            Err(Problem::Stale) => continue,
            fetched => fetched?,
        };
        let delivery = Delivery {
            entry: &fetched.entry,
            cached: Cached::from(&fetched),
            cache,
            is_negotiated: parsed.request.is_negotiated(),
            is_public: false,
        };
        return delivery.answer(request, &account, spent);
    }
    Err(Problem::Busy.into())
}

/// Larger plans are the owner's business.
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
