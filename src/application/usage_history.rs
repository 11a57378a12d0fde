//! `GET /api/usage/history`: operations by kind and deliveries by key for each day; most days and keys.

use std::collections::BTreeMap;

use serde::Serialize;
use sluice_store::{
    Reader,
    deliveries::{self, Day},
    now_ms,
    usage_history::{self, KeyDay, KeyTotal, OperationDay},
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{answer::Date, error::ApiError};

/// Longest history: as long as days are kept.
pub(crate) const MOST_DAYS: u32 = usage_history::KEPT_DAYS as u32;
/// Most keys that are shown by day.
const MOST_KEYS: u32 = 20;

/// Operations and deliveries of the last days.
#[derive(Debug, Serialize, ToSchema)]
pub struct UsageHistory {
    /// First day, as `2026-11-21`.
    since: Date,
    /// Last day: today (UTC).
    until: Date,
    operations: OperationHistory,
    deliveries: DeliveryHistory,
}

/// Media operations.
#[derive(Debug, Serialize, ToSchema)]
pub struct OperationHistory {
    total: i64,
    /// Most first.
    kinds: Vec<KindTotal>,
    /// Every day, the oldest first.
    days: Vec<OperationsOfDay>,
}

/// Operations of one kind.
#[derive(Debug, Serialize, ToSchema)]
pub struct KindTotal {
    /// Name of a tool, `workflow` or `stream`.
    kind: String,
    total: i64,
}

/// Operations of one day.
#[derive(Debug, Serialize, ToSchema)]
pub struct OperationsOfDay {
    date: Date,
    total: i64,
    /// By kind; kinds without operations are left out.
    kinds: BTreeMap<String, i64>,
}

/// Images delivered.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveryHistory {
    total: i64,
    bytes: i64,
    /// The keys with the most deliveries, at most 20, most first. The sums include the others, and deliveries without a key.
    keys: Vec<KeyTotalRecord>,
    /// Every day, the oldest first.
    days: Vec<DeliveriesOfDay>,
}

/// Deliveries under a key in the days asked for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyTotalRecord {
    id: Uuid,
    name: String,
    is_revoked: bool,
    hits: i64,
    /// Deliveries that were rendered first.
    misses: i64,
    /// Bytes of bodies; headers are not counted.
    bytes: i64,
}

/// Deliveries of one day.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveriesOfDay {
    date: Date,
    total: i64,
    hits: i64,
    misses: i64,
    bytes: i64,
    /// By the id of a key of `keys`; keys without deliveries are left out.
    keys: BTreeMap<Uuid, DeliveriesOfKey>,
}

/// Deliveries of one day under one key.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub struct DeliveriesOfKey {
    total: i64,
    bytes: i64,
}

impl From<KeyTotal> for KeyTotalRecord {
    fn from(total: KeyTotal) -> Self {
        Self {
            id: total.key_id,
            name: total.name,
            is_revoked: total.is_revoked,
            hits: total.hits,
            misses: total.misses,
            bytes: total.bytes,
        }
    }
}

/// The first of `days` days that end with today.
pub(crate) fn first_day(days: u32, now_ms: i64) -> i64 {
    Day::of(now_ms) - i64::from(days) + 1
}

/// Reads the last `days` days.
pub(crate) async fn history(
    db: &mut Reader,
    account_id: Uuid,
    days: u32,
) -> Result<UsageHistory, ApiError> {
    let now = now_ms();
    let (since, until) = (first_day(days, now), Day::of(now));
    let operations = usage_history::operation_days(db, account_id, since).await?;
    let delivered = deliveries::days(db, account_id, since).await?;
    let totals = usage_history::key_totals(db, account_id, since, None, MOST_KEYS).await?;
    let keys: Vec<Uuid> = totals.iter().map(|total| total.key_id).collect();
    let by_key = usage_history::key_days(db, account_id, since, &keys).await?;
    Ok(UsageHistory {
        since: Date(since),
        until: Date(until),
        operations: OperationHistory::of(operations, since, until),
        deliveries: DeliveryHistory::of(&delivered, totals, &by_key, since, until),
    })
}

impl OperationHistory {
    fn of(rows: Vec<OperationDay>, since: i64, until: i64) -> Self {
        let mut kinds: BTreeMap<String, i64> = BTreeMap::new();
        let mut by_day: BTreeMap<i64, BTreeMap<String, i64>> = BTreeMap::new();
        for row in rows {
            *kinds.entry(row.kind.clone()).or_default() += row.operations;
            *by_day
                .entry(row.day)
                .or_default()
                .entry(row.kind)
                .or_default() += row.operations;
        }
        let mut kinds: Vec<KindTotal> = kinds
            .into_iter()
            .map(|(kind, total)| KindTotal { kind, total })
            .collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.total));
        Self {
            total: kinds.iter().map(|kind| kind.total).sum(),
            kinds,
            days: (since..=until)
                .map(|day| {
                    let kinds = by_day.remove(&day).unwrap_or_default();
                    OperationsOfDay {
                        date: Date(day),
                        total: kinds.values().sum(),
                        kinds,
                    }
                })
                .collect(),
        }
    }
}

impl DeliveryHistory {
    fn of(rows: &[Day], totals: Vec<KeyTotal>, by_key: &[KeyDay], since: i64, until: i64) -> Self {
        let whole: BTreeMap<i64, &Day> = rows.iter().map(|row| (row.day, row)).collect();
        let mut keys: BTreeMap<i64, BTreeMap<Uuid, DeliveriesOfKey>> = BTreeMap::new();
        for KeyDay { key_id, day, .. } in by_key {
            let of_key = DeliveriesOfKey {
                total: day.hits + day.misses,
                bytes: day.bytes,
            };
            keys.entry(day.day).or_default().insert(*key_id, of_key);
        }
        let days: Vec<DeliveriesOfDay> = (since..=until)
            .map(|day| {
                let counted = whole.get(&day).copied().copied().unwrap_or_default();
                DeliveriesOfDay {
                    date: Date(day),
                    total: counted.hits + counted.misses,
                    hits: counted.hits,
                    misses: counted.misses,
                    bytes: counted.bytes,
                    keys: keys.remove(&day).unwrap_or_default(),
                }
            })
            .collect();
        Self {
            total: days.iter().map(|day| day.total).sum(),
            bytes: days.iter().map(|day| day.bytes).sum(),
            keys: totals.into_iter().map(KeyTotalRecord::from).collect(),
            days,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(day: i64, kind: &str, operations: i64) -> OperationDay {
        OperationDay {
            day,
            kind: kind.to_owned(),
            operations,
        }
    }

    #[test]
    fn days_without_operations_are_there_with_zero() {
        let rows = vec![
            operation(10, "convert", 3),
            operation(10, "workflow", 1),
            operation(12, "workflow", 4),
        ];
        let history = OperationHistory::of(rows, 9, 12);
        let totals: Vec<i64> = history.days.iter().map(|day| day.total).collect();
        assert_eq!((history.total, totals), (8, vec![0, 4, 0, 4]));
        let kinds: Vec<(&str, i64)> = history
            .kinds
            .iter()
            .map(|kind| (kind.kind.as_str(), kind.total))
            .collect();
        assert_eq!(kinds, [("workflow", 5), ("convert", 3)]);
        assert_eq!(history.days[1].kinds["convert"], 3);
    }

    #[test]
    fn deliveries_are_divided_among_keys() {
        let key_id = Uuid::from_u128(1);
        let day = |day, hits, bytes| Day {
            day,
            hits,
            misses: 1,
            bytes,
        };
        let under_key = KeyDay {
            account_id: Uuid::nil(),
            key_id,
            day: day(5, 2, 30),
        };
        let history = DeliveryHistory::of(&[day(5, 9, 100)], Vec::new(), &[under_key], 4, 5);
        assert_eq!((history.total, history.bytes), (10, 100));
        assert_eq!((history.days[0].total, history.days[1].total), (0, 10));
        let of_key = DeliveriesOfKey {
            total: 3,
            bytes: 30,
        };
        assert_eq!(history.days[1].keys[&key_id], of_key);
    }

    #[test]
    fn today_is_the_last_day() {
        assert_eq!(first_day(1, 1_795_219_200_000), 20_778);
        assert_eq!(first_day(30, 1_795_219_200_000), 20_749);
    }
}
