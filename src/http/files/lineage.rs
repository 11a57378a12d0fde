//! `GET /api/files/{id}/lineage`: sources of a file and what was made from it; default `limit`, most sources.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use serde_json::Value;
use sluice_store::{
    files,
    lineage::{self, FileSummary, Product, Source},
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    application::{
        answer::Timestamp,
        caller::{Caller, Read},
        context::FileContext,
        error::{ApiError, ErrorBody},
        page::{Pagination, row_count, row_offset},
    },
    http::extract::query_value,
};

/// Derived objects in one answer when the client names no `limit`.
const DEFAULT_LIMIT: u32 = 50;
/// Most sources in one answer: no operation takes as many.
const MAX_SOURCES: u32 = 1_000;

/// The sources of a file, and the results that were made from it.
#[derive(Serialize, ToSchema)]
pub struct LineageAnswer {
    id: Uuid,
    /// Empty: it was uploaded, fetched or recorded.
    sources: Vec<LineageSource>,
    /// Oldest first, a page of them.
    derived: Vec<LineageDerived>,
    /// Position in `derived`.
    pagination: Pagination,
}

/// A source of a file.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineageSource {
    /// Null: deleted since, or never stored.
    id: Option<Uuid>,
    filename: Option<String>,
    mime_type: Option<String>,
    size_bytes: Option<i64>,
    /// True while it is stored.
    exists: bool,
    /// The operation that made the file, with its fields, or `tool: "workflow"` with the run and its operations.
    #[schema(value_type = Object)]
    operation: Value,
    created_at: Timestamp,
}

/// A result that was made from a file, while it exists.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineageDerived {
    /// `file`, `conversion` (a result of a job), `rendition` (a video stream) or `run_output` (of a workflow run).
    kind: &'static str,
    /// Id of the file, the job's result, the video stream or the run.
    id: String,
    /// Null for what is no file.
    filename: Option<String>,
    mime_type: Option<String>,
    size_bytes: Option<i64>,
    /// The operation that made it, with its fields, or `tool: "workflow"` with the run and its operations.
    #[schema(value_type = Object)]
    operation: Value,
    created_at: Timestamp,
}

impl From<Source> for LineageSource {
    fn from(source: Source) -> Self {
        let (id, filename, mime_type, size_bytes) = fields(source.file);
        Self {
            id,
            filename,
            mime_type,
            size_bytes,
            exists: id.is_some(),
            operation: source.operation,
            created_at: Timestamp(source.created_at),
        }
    }
}

impl From<Product> for LineageDerived {
    fn from(product: Product) -> Self {
        let (_, filename, mime_type, size_bytes) = fields(product.file);
        Self {
            kind: product.kind.as_str(),
            id: product.id,
            filename,
            mime_type,
            size_bytes,
            operation: product.operation,
            created_at: Timestamp(product.created_at),
        }
    }
}

type Fields = (Option<Uuid>, Option<String>, Option<String>, Option<i64>);

fn fields(file: Option<FileSummary>) -> Fields {
    let Some(file) = file else {
        return Fields::default();
    };
    (
        Some(file.id),
        Some(file.filename),
        Some(file.mime_type),
        Some(file.size_bytes),
    )
}

/// Show what a file was made from, and what was made from it
///
/// A source that was deleted stays in the list without its id. What was made and is deleted or expired is not listed.
#[utoipa::path(get, path = "/api/files/{id}/lineage", tag = "files", params(
    ("id" = Uuid, Path, description = "The file's id"),
    ("limit" = Option<u32>, Query, description = "Entries of `derived`: 1 to 100, 50 without one"),
    ("offset" = Option<u32>, Query, description = "Entries of `derived` to skip"),
), responses(
    (status = 200, description = "Its sources and derived objects", body = LineageAnswer),
    (status = 404, description = "There is no such file", body = ErrorBody)))]
pub async fn lineage(
    request: HttpRequest,
    context: web::Data<FileContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let limit =
        query_value(&request, "limit").map_or(Ok(DEFAULT_LIMIT), |text| row_count(&text))?;
    let offset = query_value(&request, "offset").map_or(Ok(0), |text| row_offset(&text))?;
    let mut db = context.store.read().await?;
    let file = files::get(&mut db, caller.account_id(), *id).await?;
    let sources = lineage::sources(&mut db, file.id, MAX_SOURCES).await?;
    let derived = lineage::products(&mut db, file.id, limit, offset).await?;
    let total = lineage::count_products(&mut db, file.id).await?;
    Ok(HttpResponse::Ok().json(LineageAnswer {
        id: file.id,
        pagination: Pagination::at(limit, offset, derived.len(), total),
        sources: sources.into_iter().map(Into::into).collect(),
        derived: derived.into_iter().map(Into::into).collect(),
    }))
}
