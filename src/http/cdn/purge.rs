//! `POST /api/cdn-purge`: purges images by `urls` and `tags`, so that they are rendered again; most entries of one call.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    application::{
        caller::{Caller, Write},
        context::DeliveryContext,
        error::ApiError,
    },
    http::extract::Body,
};

/// Addresses and tags of one call, together.
const MAX_ENTRIES: usize = 1000;

#[derive(Deserialize, ToSchema)]
pub struct PurgeRequest {
    /// Delivery addresses, with or without scheme and host. All variants of the file go.
    #[serde(default)]
    urls: Vec<String>,
    /// `asset:{fileId}`, as in `Cache-Tag`.
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Purged {
    ok: bool,
    /// Addresses whose file is the account's.
    purged: usize,
    /// Tags whose file is the account's.
    purged_tags: usize,
}

/// Purge delivered images
///
/// Up to 1 000 addresses and tags. Those of other accounts and of files that are gone are left out of the counts.
#[utoipa::path(post, path = "/api/cdn-purge", tag = "delivery", request_body = PurgeRequest,
    responses((status = 200, description = "What was purged", body = Purged)))]
pub async fn purge(
    context: web::Data<DeliveryContext>,
    caller: Caller<Write>,
    Body(request): Body<PurgeRequest>,
) -> Result<HttpResponse, ApiError> {
    let count = request.urls.len() + request.tags.len();
    if !(1..=MAX_ENTRIES).contains(&count) {
        return Err(invalid!(
            "urls and tags must have 1 to {MAX_ENTRIES} entries together, got {count}"
        ));
    }
    let account_id = caller.account_id();
    let mut answer = Purged {
        ok: true,
        purged: 0,
        purged_tags: 0,
    };
    let mut own = Vec::new();
    for (index, url) in request.urls.iter().enumerate() {
        let file_id = file_of_url(url).ok_or_else(|| {
            invalid!(
                "urls[{index}] must be an address of the form …/cdn/v1/{{deliveryKey}}/{{fileId}}"
            )
        })?;
        if is_own(&context, account_id, file_id).await? {
            answer.purged += 1;
            own.push(file_id);
        }
    }
    for (index, tag) in request.tags.iter().enumerate() {
        let file_id = tag
            .strip_prefix("asset:")
            .and_then(|id| Uuid::try_parse(id).ok())
            .ok_or_else(|| invalid!("tags[{index}] must be `asset:` and a file's id"))?;
        if is_own(&context, account_id, file_id).await? {
            answer.purged_tags += 1;
            own.push(file_id);
        }
    }
    context.images.purge_files(&own).await;
    Ok(HttpResponse::Ok().json(answer))
}

async fn is_own(
    context: &DeliveryContext,
    account_id: Uuid,
    file_id: Uuid,
) -> Result<bool, ApiError> {
    let source = context.images.source(file_id).await?;
    Ok(source.is_some_and(|source| source.account_id == account_id))
}

fn file_of_url(url: &str) -> Option<Uuid> {
    let (_, path) = url.split_once("/cdn/v1/")?;
    let path = path.split(['?', '#']).next()?;
    let file_id = path.split('/').nth(1)?;
    Uuid::try_parse(file_id).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_found_in_any_form_of_the_address() {
        let id = "0193a7e4-0000-7000-8000-000000000001";
        let cases = [
            (format!("https://example.org/cdn/v1/key/{id}?w=5"), true),
            (format!("/cdn/v1/key/{id}/p/hero"), true),
            (format!("http://localhost:8080/base/cdn/v1/a/{id}#x"), true),
            (format!("/cdn/v1/{id}"), false),
            (format!("/cdn/v2/key/{id}"), false),
            (String::new(), false),
        ];
        for (url, expected) in cases {
            assert_eq!(file_of_url(&url).is_some(), expected, "{url}");
        }
    }
}
