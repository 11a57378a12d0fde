//! `GET /api/live/inputs`: `q`, `status`, `enabled`, `sort`, `order`, `offset`, `cursor`; answer from rows and published state
//! together.

use sluice_actors::live::InputStatus;
use sluice_store::{
    Direction, Listed, Page,
    input_list::{self, Counts, OnAir, Query, Sort, Status},
    live_inputs::LiveInput,
    now_ms,
};
use url::form_urlencoded;
use uuid::Uuid;

use crate::application::{
    context::LiveContext,
    error::ApiError,
    field,
    object::camel_case,
    order,
    page::{Pagination, WHOLE_LIST, read_cursor, row_count, row_offset},
};

/// Longest `q`, in characters.
const MAX_TEXT: usize = 120;

/// A page of inputs, and how many there are.
pub(crate) struct Listing {
    pub inputs: Vec<LiveInput>,
    pub counts: Counts,
    pub pagination: Pagination,
    /// For the newest-first list only; others are paged by `offset`.
    pub next_cursor: Option<String>,
}

/// Reads the query of a list; an error names the parameter and what is allowed.
pub(crate) fn parse(query: &str) -> Result<Query, ApiError> {
    let mut asked = Query {
        limit: WHOLE_LIST,
        ..Query::default()
    };
    let mut descending = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let given = Some(&*value);
        match &*camel_case(&name) {
            "q" => asked.text = text(&value)?,
            "status" => asked.status = field::choice("status", given, STATUSES, Status::parse)?,
            "enabled" => asked.enabled = field::choice("enabled", given, BOOLEANS, boolean)?,
            "sort" => asked.sort = field::choice("sort", given, SORTS, sort)?.unwrap_or_default(),
            "order" => descending = Some(order::direction(&value)? == Direction::Descending),
            "limit" => asked.limit = row_count(&value)?,
            "offset" => asked.offset = row_offset(&value)?,
            "cursor" if !value.is_empty() => asked.after = Some(read_cursor(&value)?),
            _ => {}
        }
    }
    asked.descending = descending.unwrap_or(asked.sort != Sort::Name);
    if asked.after.is_some() && (asked.sort, asked.descending) != (Sort::Created, true) {
        return Err(invalid!(
            "cursor works with sort=created and order=desc only: use offset with another order"
        ));
    }
    Ok(asked)
}

const STATUSES: &[&str] = &["idle", "live", "reconnecting"];
const BOOLEANS: &[&str] = &["true", "false"];
const SORTS: &[&str] = &["created", "name", "lastLive", "viewers"];

fn text(value: &str) -> Result<Option<String>, ApiError> {
    let given = Some(value.to_owned()).filter(|text| !text.trim().is_empty());
    field::words("q", given, MAX_TEXT)
}

fn boolean(text: &str) -> Option<bool> {
    text.parse().ok()
}

fn sort(text: &str) -> Option<Sort> {
    match &*camel_case(text) {
        "created" => Some(Sort::Created),
        "name" => Some(Sort::Name),
        "lastLive" => Some(Sort::LastLive),
        "viewers" => Some(Sort::Viewers),
        _ => None,
    }
}

/// Reads a page of the account's inputs.
pub(crate) async fn list(
    context: &LiveContext,
    account_id: Uuid,
    query: Query,
) -> Result<Listing, ApiError> {
    let on_air = on_air(context, account_id);
    let mut db = context.store.read().await?;
    let page = Page {
        limit: query.limit,
        after: query.after,
    };
    // One row more than the page, which shows whether another follows.
    let reading = Query {
        limit: query.limit + 1,
        ..query
    };
    let mut inputs = input_list::list(&mut db, account_id, &reading, &on_air).await?;
    let counts = input_list::count(&mut db, account_id, &reading, &on_air).await?;
    let total = counts.fitting.unsigned_abs();
    let (pagination, next_cursor) =
        Pagination::of(&mut inputs, page, reading.offset, total, Listed::cursor);
    let is_newest_first = (reading.sort, reading.descending) == (Sort::Created, true);
    Ok(Listing {
        inputs,
        counts,
        pagination,
        next_cursor: next_cursor.filter(|_| is_newest_first),
    })
}

/// The account's inputs that are live or within their reconnect window, as published at this moment.
fn on_air(context: &LiveContext, account_id: Uuid) -> Vec<OnAir> {
    let now_ms = now_ms();
    let playbacks = context.live.on_air().into_iter();
    playbacks
        .filter(|playback| playback.account_id == account_id)
        .map(|playback| OnAir {
            input_id: playback.input_id,
            is_live: playback.status() == InputStatus::Live,
            viewers: playback.viewers(now_ms),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_with_its_defaults() {
        let asked = parse("").unwrap();
        assert_eq!(
            (asked.limit, asked.sort, asked.descending, asked.text),
            (WHOLE_LIST, Sort::Created, true, None)
        );
        let asked = parse("q=+Main+stage+&status=live&enabled=true&sort=name&limit=7&offset=14");
        let asked = asked.unwrap();
        assert_eq!(asked.text.as_deref(), Some("Main stage"));
        assert_eq!(
            (asked.status, asked.enabled),
            (Some(Status::Live), Some(true))
        );
        assert_eq!((asked.sort, asked.descending), (Sort::Name, false));
        assert_eq!((asked.limit, asked.offset), (7, 14));
        for (query, sort, descending) in [
            ("sort=lastLive", Sort::LastLive, true),
            ("sort=last_live&order=asc", Sort::LastLive, false),
            ("sort=viewers", Sort::Viewers, true),
            ("order=desc&sort=name&q=", Sort::Name, true),
        ] {
            let asked = parse(query).unwrap();
            assert_eq!(
                (asked.sort, asked.descending),
                (sort, descending),
                "{query}"
            );
        }
    }

    #[test]
    fn wrong_parameters_are_named() {
        let cursor = "cursor=1-00000000000000000000000000000001";
        let long = format!("q={}", "x".repeat(121));
        for (query, expected) in [
            (
                "status=on",
                "status must be idle or live or reconnecting, got `on`",
            ),
            ("enabled=1", "enabled must be true or false, got `1`"),
            (
                "sort=size",
                "sort must be created or name or lastLive or viewers, got `size`",
            ),
            ("order=up", "order must be asc or desc, got `up`"),
            ("limit=0", "limit must be 1 to 100, got `0`"),
            ("offset=-1", "offset must be a whole number, got `-1`"),
            (
                "cursor=x",
                "cursor must be the nextCursor of an earlier answer, got `x`",
            ),
            (&long, "q must have 1 to 120 characters, got 121"),
            ("q=%00", "q must not hold control characters"),
            (
                &format!("sort=name&{cursor}"),
                "cursor works with sort=created and order=desc only: use offset with another order",
            ),
            (
                &format!("order=asc&{cursor}"),
                "cursor works with sort=created and order=desc only: use offset with another order",
            ),
        ] {
            assert_eq!(parse(query).unwrap_err().to_string(), expected, "{query}");
        }
    }
}
