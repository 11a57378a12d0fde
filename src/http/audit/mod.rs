//! `GET /api/audit`: the audit log; default `limit`.

pub(super) mod actions;

use actix_web::{HttpRequest, HttpResponse, http::header, web};
use serde::Serialize;
use sluice_store::{Listed, audit};
use utoipa::ToSchema;

use super::extract::PageQuery;
use crate::application::{
    audit::{AuditEntry, filter},
    caller::{Admin, Caller},
    context::AccountContext,
    error::ApiError,
    page::next_cursor,
};

/// Entries in one answer when the client names no `limit`.
const DEFAULT_LIMIT: u32 = 50;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditList {
    entries: Vec<AuditEntry>,
    next_cursor: Option<String>,
}

/// List the audit log
///
/// Changes that sessions and keys with scope admin made: what, when, and from where; also who showed or replaced which secret, with any
/// key. Entries are kept for `account.keep_audit`, and the newest `account.max_audit` of them.
#[utoipa::path(get, path = "/api/audit", tag = "audit", params(
    ("actor" = Option<String>, Query, description = "Id of a user or an API key"),
    ("action" = Option<String>, Query, description = "An action such as `live.input.key_rotated`, or the beginning of some such as `live.`"),
    ("since" = Option<String>, Query, description = "Entries from this time on (ISO 8601)"),
    ("until" = Option<String>, Query, description = "Entries before this time (ISO 8601)"),
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses((status = 200, description = "Newest first", body = AuditList)))]
pub async fn list(
    request: HttpRequest,
    context: web::Data<AccountContext>,
    caller: Caller<Admin>,
    PageQuery(page): PageQuery<DEFAULT_LIMIT>,
) -> Result<HttpResponse, ApiError> {
    let filter = filter(request.query_string())?;
    let mut db = context.store.read().await?;
    let rows = audit::list(&mut db, caller.account_id(), &filter, page).await?;
    let next_cursor = next_cursor(&rows, page, Listed::cursor);
    Ok(HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .json(AuditList {
            entries: rows.into_iter().map(AuditEntry::from).collect(),
            next_cursor,
        }))
}
