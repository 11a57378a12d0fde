//! `GET /api/cdn/stats`: deliveries of images by day and key (hits, misses, bytes); most keys.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    deliveries::{self, Day},
    now_ms,
    usage_history::{self, KeyDay},
};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    application::{
        answer::Date,
        caller::{Caller, Read},
        context::DeliveryContext,
        error::ApiError,
        field,
        usage_history::{KeyTotalRecord, first_day},
    },
    http::usage::wanted_days,
};

/// Most keys in one answer.
const MOST_KEYS: u32 = 100;

/// Deliveries of one day (UTC).
#[derive(Serialize, ToSchema)]
pub struct DayRecord {
    /// `2026-11-21`
    date: Date,
    hits: i64,
    /// Deliveries that were rendered first.
    misses: i64,
    /// Bytes of bodies; headers are not counted.
    bytes: i64,
}

/// The sums, and the days that had deliveries.
#[derive(Serialize, ToSchema)]
pub struct StatsAnswer {
    hits: i64,
    misses: i64,
    bytes: i64,
    /// Newest first; only days with deliveries.
    days: Vec<DayRecord>,
    /// The keys with the most deliveries in these days, most first, at most 100. Deliveries without a key, such as previews of shared
    /// folders, and those from before keys were counted count in the sums alone.
    keys: Vec<KeyTotalRecord>,
}

impl From<Day> for DayRecord {
    fn from(day: Day) -> Self {
        Self {
            date: Date(day.day),
            hits: day.hits,
            misses: day.misses,
            bytes: day.bytes,
        }
    }
}

/// Delivery statistics
///
/// Exact to a second or two.
#[utoipa::path(get, path = "/api/cdn/stats", tag = "delivery",
    params(
        ("days" = Option<u32>, Query, description = "1 to 400, today included; 30 without one"),
        ("key" = Option<Uuid>, Query, description = "Only deliveries under the delivery key of this id"),
    ),
    responses((status = 200, description = "By day and by key", body = StatsAnswer)))]
pub async fn stats(
    request: HttpRequest,
    context: web::Data<DeliveryContext>,
    caller: Caller<Read>,
) -> Result<HttpResponse, ApiError> {
    let (account_id, query) = (caller.account_id(), request.query_string());
    let since = first_day(wanted_days(query)?, now_ms());
    let key = wanted_key(query)?;
    let mut db = context.store.read().await?;
    let keys = usage_history::key_totals(&mut db, account_id, since, key, MOST_KEYS).await?;
    let days: Vec<Day> = match key {
        None => deliveries::days(&mut db, account_id, since).await?,
        Some(key) => {
            let days = usage_history::key_days(&mut db, account_id, since, &[key]).await?;
            days.into_iter()
                .rev()
                .map(|KeyDay { day, .. }| day)
                .collect()
        }
    };
    let sum = |of: fn(&Day) -> i64| days.iter().map(of).sum();
    Ok(HttpResponse::Ok().json(StatsAnswer {
        hits: sum(|day| day.hits),
        misses: sum(|day| day.misses),
        bytes: sum(|day| day.bytes),
        days: days.into_iter().map(DayRecord::from).collect(),
        keys: keys.into_iter().map(KeyTotalRecord::from).collect(),
    }))
}

fn wanted_key(query: &str) -> Result<Option<Uuid>, ApiError> {
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, value)| name == "key" && !value.is_empty())
        .map(|(_, text)| field::id("key", "the id of a delivery key", &text))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_by_its_id() {
        let id = "0193a1b2-0000-7000-8000-000000000001";
        assert_eq!(wanted_key("days=3").unwrap(), None);
        assert_eq!(wanted_key("key=").unwrap(), None);
        let key = wanted_key(&format!("days=3&key={id}")).unwrap();
        assert_eq!(key.map(|key| key.to_string()).as_deref(), Some(id));
        for odd in ["key=svc_pub_x", "key=1", "key=%00"] {
            let rejection = wanted_key(odd).unwrap_err().to_string();
            assert!(rejection.starts_with("key must be the id"), "{rejection}");
        }
    }
}
