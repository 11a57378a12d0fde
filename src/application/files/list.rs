//! `GET /api/files`: a page of stored files with `pagination` and `nextCursor`.

use serde::Serialize;
use sluice_store::file_list;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    list_query::ListQuery,
    record::{FileRecord, Record},
};
use crate::application::{context::Platform, error::ApiError, reached::Reached};

#[derive(Serialize, ToSchema)]
pub struct FileList {
    files: Vec<FileRecord>,
    pagination: FilePagination,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

/// Position of a page in its list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilePagination {
    limit: u32,
    offset: u32,
    /// Files that match the query; null with `total=false`.
    total: Option<u64>,
    has_more: bool,
}

/// Lists the files of the account that match a query.
pub(crate) async fn listed(
    platform: &Platform,
    account_id: Uuid,
    reached: &Reached,
    query: &str,
) -> Result<FileList, ApiError> {
    page_of(platform, account_id, reached, ListQuery::parse(query)?).await
}

pub(crate) async fn page_of(
    platform: &Platform,
    account_id: Uuid,
    reached: &Reached,
    query: ListQuery,
) -> Result<FileList, ApiError> {
    let (limit, offset) = (query.slice.limit, query.slice.skip);
    // One row more than the page: it shows that another page follows.
    let mut reading = query.slice.clone();
    reading.limit += 1;
    let mut db = platform.store.read().await?;
    let mut rows = file_list::list(&mut db, account_id, &query.filter, &reading).await?;
    let total = match query.with_total {
        true => Some(file_list::count(&mut db, account_id, &query.filter).await?),
        false => None,
    };
    let has_more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next_cursor = rows
        .last()
        .filter(|_| has_more)
        .map(|last| query.cursor_after(last));
    let record = Record::of_all(&mut db, platform, reached, &rows).await?;
    Ok(FileList {
        files: rows.into_iter().map(|file| record.of(file)).collect(),
        pagination: FilePagination {
            limit,
            offset,
            total,
            has_more,
        },
        next_cursor,
    })
}
