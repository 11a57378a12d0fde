//! `limit`, `offset` and `cursor` of lists: largest and default `limit`, `nextCursor`, `pagination`.

use serde::Serialize;
use sluice_store::{Cursor, Page};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::error::ApiError;

/// Largest `limit` that a client may request.
pub(crate) const MAX_LIMIT: u32 = 100;

/// Rows in one answer when the client gives no limit: the API's lists have none, but every answer has a bound.
pub(crate) const WHOLE_LIST: u32 = 1000;

/// Reads the page that a query requests, `limit` rows long when the query has no limit.
pub(crate) fn page(query: &str, limit: u32) -> Result<Page, ApiError> {
    let mut page = Page::first(limit);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "limit" => page.limit = row_count(&value)?,
            "cursor" if !value.is_empty() => page.after = Some(read_cursor(&value)?),
            _ => {}
        }
    }
    Ok(page)
}

/// Reads a `limit`: 1 to 100.
pub(crate) fn row_count(text: &str) -> Result<u32, ApiError> {
    text.parse()
        .ok()
        .filter(|limit| (1..=MAX_LIMIT).contains(limit))
        .ok_or_else(|| invalid!("limit must be 1 to {MAX_LIMIT}, got `{text}`"))
}

/// Reads an `offset`: a whole number from 0.
pub(crate) fn row_offset(text: &str) -> Result<u32, ApiError> {
    text.parse()
        .map_err(|_| invalid!("offset must be a whole number, got `{text}`"))
}

/// Reads a cursor: `{created_at in hexadecimal}-{id}`.
pub(crate) fn read_cursor(text: &str) -> Result<Cursor, ApiError> {
    text.split_once('-')
        .and_then(|(created_at, id)| {
            Some(Cursor {
                created_at: i64::from_str_radix(created_at, 16).ok()?,
                id: Uuid::try_parse(id).ok()?,
            })
        })
        .ok_or_else(|| invalid!("cursor must be the nextCursor of an earlier answer, got `{text}`"))
}

/// The cursor of the next page, when `rows` filled this one.
pub fn next_cursor<T>(rows: &[T], page: Page, position: impl Fn(&T) -> Cursor) -> Option<String> {
    let last = rows.last().filter(|_| rows.len() == page.limit as usize)?;
    Some(cursor_text(position(last)))
}

/// Writes a cursor for [`read_cursor`].
pub(crate) fn cursor_text(Cursor { created_at, id }: Cursor) -> String {
    format!("{created_at:x}-{}", id.simple())
}

/// Position of a page in its list, for lists that can be counted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    limit: u32,
    offset: u32,
    /// Rows that fit the query.
    total: u64,
    has_more: bool,
}

impl Pagination {
    /// Position of `shown` rows after the first `offset` of `total`, for lists without cursors.
    pub(crate) fn at(limit: u32, offset: u32, shown: usize, total: u64) -> Self {
        Self {
            limit,
            offset,
            total,
            has_more: u64::from(offset) + (shown as u64) < total,
        }
    }

    /// Returns the page to read from the store for a wanted page: one row more, which shows whether another follows.
    pub(crate) fn reading(wanted: Page) -> Page {
        Page {
            limit: wanted.limit + 1,
            ..wanted
        }
    }

    /// Cuts the rows that were read to the page, with the cursor of the next one, if there is one.
    pub(crate) fn of<T>(
        rows: &mut Vec<T>,
        page: Page,
        offset: u32,
        total: u64,
        position: impl Fn(&T) -> Cursor,
    ) -> (Self, Option<String>) {
        let has_more = rows.len() > page.limit as usize;
        rows.truncate(page.limit as usize);
        let pagination = Self {
            limit: page.limit,
            offset,
            total,
            has_more,
        };
        let cursor = next_cursor(rows, page, position).filter(|_| has_more);
        (pagination, cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was_given() {
        let row = Cursor {
            created_at: 1_795_000_000_123,
            id: Uuid::now_v7(),
        };
        let text = next_cursor(&[row], Page::first(1), |row| *row).unwrap();
        let page = page(&format!("limit=7&cursor={text}"), WHOLE_LIST).unwrap();
        assert_eq!((page.limit, page.after), (7, Some(row)));
        assert_eq!(next_cursor(&[row], Page::first(2), |row| *row), None);
    }

    #[test]
    fn one_row_more_means_another_page_and_is_not_shown() {
        let position = |id: &u128| Cursor {
            created_at: 1,
            id: Uuid::from_u128(*id),
        };
        let page = Page::first(2);
        for (read, has_more) in [(1, false), (2, false), (3, true)] {
            let mut rows: Vec<u128> = (0..read).collect();
            let (pagination, cursor) = Pagination::of(&mut rows, page, 0, 9, position);
            assert_eq!(
                (pagination.has_more, cursor.is_some(), rows.len()),
                (has_more, has_more, read.min(2) as usize)
            );
        }
        assert_eq!(Pagination::reading(page).limit, 3);
    }

    #[test]
    fn wrong_values_are_named() {
        for query in [
            "limit=0",
            "limit=101",
            "limit=x",
            "limit=",
            "cursor=x",
            "cursor=zz-zz",
        ] {
            let error = page(query, WHOLE_LIST).unwrap_err().to_string();
            let (name, value) = query.split_once('=').unwrap();
            assert!(
                error.starts_with(name) && error.contains(&format!("`{value}`")),
                "{error}"
            );
        }
        assert_eq!(page("", WHOLE_LIST).unwrap().limit, WHOLE_LIST);
        assert_eq!(page("cursor=&unknown=1", 50).unwrap().after, None);
    }
}
