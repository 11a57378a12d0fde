//! `GET /api/catalogue`: what the service can do, for forms; its entity tag.

use actix_web::{HttpRequest, HttpResponse, http::header, web};

use super::bytes::{is_known, unchanged};
use crate::application::{
    caller::{Caller, Read},
    capabilities::{Capabilities, CapabilitiesDocument},
    context::ServiceContext,
    error::ApiError,
};

/// `Cache-Control` of the answer.
const CACHE: &str = "private, no-cache";

/// Show what the service can do
///
/// Operations with their fields, kinds of nodes, formats, named sizes, conditions, event types, parameters of delivery URLs and
/// plans, from the tables that the service works by: what forms are drawn from. Changes with the version and the settings; ask
/// again with `If-None-Match`.
#[utoipa::path(get, path = "/api/catalogue", tag = "operations", params(
    ("If-None-Match" = Option<String>, Header, description = "`ETag` of the answer before"),
), responses(
    (status = 200, description = "The tables", body = Capabilities),
    (status = 304, description = "As before")))]
pub async fn show(
    request: HttpRequest,
    context: web::Data<ServiceContext>,
    _caller: Caller<Read>,
) -> Result<HttpResponse, ApiError> {
    let document = context
        .capabilities
        .get_or_init(|| CapabilitiesDocument::of(&context.config));
    if is_known(&request, &document.etag) == Some(true) {
        return Ok(unchanged(&document.etag, CACHE));
    }
    Ok(HttpResponse::Ok()
        .content_type("application/json")
        .insert_header((header::ETAG, document.etag.as_str()))
        .insert_header((header::CACHE_CONTROL, CACHE))
        .body(document.json.clone()))
}
