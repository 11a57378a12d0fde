//! `GET /api/cdn/stats`: hits, misses and bytes by day.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::{
    deliveries::{self, Day},
    now_ms,
};
use url::form_urlencoded;
use utoipa::ToSchema;

use crate::application::{
    caller::{Caller, Read},
    context::DeliveryContext,
    error::ApiError,
    field,
};

const DEFAULT_DAYS: u32 = 30;
const MOST_DAYS: u32 = 366;

/// Deliveries of one day (UTC).
#[derive(Serialize, ToSchema)]
pub struct DayRecord {
    /// `2026-11-21`
    date: String,
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
    /// Newest first.
    days: Vec<DayRecord>,
}

impl From<Day> for DayRecord {
    fn from(day: Day) -> Self {
        let date = jiff::Timestamp::from_second(day.day * 24 * 60 * 60)
            .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
            .strftime("%F")
            .to_string();
        Self {
            date,
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
    params(("days" = Option<u32>, Query, description = "1 to 366, today included; 30 without one")),
    responses((status = 200, description = "By day", body = StatsAnswer)))]
pub async fn stats(
    request: HttpRequest,
    context: web::Data<DeliveryContext>,
    caller: Caller<Read>,
) -> Result<HttpResponse, ApiError> {
    let wanted = wanted_days(request.query_string())?;
    let since = Day::of(now_ms()) - i64::from(wanted) + 1;
    let mut db = context.store.read().await?;
    let days = deliveries::days(&mut db, caller.account_id(), since).await?;
    let sum = |of: fn(&Day) -> i64| days.iter().map(of).sum();
    Ok(HttpResponse::Ok().json(StatsAnswer {
        hits: sum(|day| day.hits),
        misses: sum(|day| day.misses),
        bytes: sum(|day| day.bytes),
        days: days.into_iter().map(DayRecord::from).collect(),
    }))
}

fn wanted_days(query: &str) -> Result<u32, ApiError> {
    let given = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "days");
    let given = given.map(|(_, value)| value.parse::<i64>().unwrap_or(-1));
    Ok(field::within("days", given, 1..=MOST_DAYS)?.unwrap_or(DEFAULT_DAYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates_and_bounded() {
        let day = Day {
            day: Day::of(1_795_219_200_000),
            ..Day::default()
        };
        assert_eq!(DayRecord::from(day).date, "2026-11-21");
        for (query, expected) in [
            ("", Some(30)),
            ("days=1", Some(1)),
            ("x=2&days=366", Some(366)),
            ("days=367", None),
            ("days=0", None),
            ("days=x", None),
        ] {
            assert_eq!(wanted_days(query).ok(), expected, "{query}");
        }
    }
}
