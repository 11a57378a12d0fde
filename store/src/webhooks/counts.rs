//! Counts of events, open webhook deliveries and suspended or paused endpoints, for metrics, health and retention.

use std::collections::HashMap;

use uuid::Uuid;

use crate::{
    Connection, Error, rows,
    statement::{query_as, query_scalar},
};

/// Waiting deliveries of an endpoint that are counted; more of them read like as many.
pub const MOST_COUNTED: u32 = 10_000;

/// Open deliveries, over all accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Counts {
    pub pending: i64,
    pub delivering: i64,
    pub retrying: i64,
    pub suspended_endpoints: i64,
    pub paused_endpoints: i64,
    /// Pending or retrying deliveries for endpoints that are suspended or paused.
    pub held: i64,
    /// Oldest due time of deliveries for active endpoints.
    pub oldest_due_at: Option<i64>,
}

/// Counts along indexes of open rows; some milliseconds with a backlog of 100 000.
pub async fn counts(db: &mut impl Connection) -> Result<Counts, Error> {
    let deliveries = |status| {
        format!(
            "(SELECT count(*) FROM webhook_deliveries WHERE status = '{status}' AND status <> 'delivered') AS {status}"
        )
    };
    let endpoints = |status| {
        format!(
            "(SELECT count(*) FROM webhook_endpoints WHERE status = '{status}' AND deleted_at IS NULL) AS {status}_endpoints"
        )
    };
    let statement = format!(
        "SELECT {}, {}, {}, {}, {}, (SELECT min((SELECT d.due_at FROM webhook_deliveries d
             WHERE d.endpoint_id = e.id AND d.is_replay = 0 AND d.status IN ('pending', 'retrying')
             ORDER BY d.due_at LIMIT 1)) FROM webhook_endpoints e WHERE e.status = 'active' AND e.deleted_at IS NULL)
             AS oldest_due_at,
             (SELECT CAST(coalesce(sum((SELECT count(*) FROM webhook_deliveries d
             WHERE d.endpoint_id = e.id AND d.is_replay = 0 AND d.status IN ('pending', 'retrying'))), 0) AS INTEGER)
             FROM webhook_endpoints e WHERE e.status IN ('suspended', 'paused') AND e.deleted_at IS NULL) AS held",
        deliveries("pending"),
        deliveries("delivering"),
        deliveries("retrying"),
        endpoints("suspended"),
        endpoints("paused"),
    );
    Ok(query_as(statement).fetch_one(db).await?)
}

/// `$1` the endpoints, `$2` the most that is counted of one.
pub(super) const WAITING: &str = "SELECT e.id, (SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries d
         WHERE d.endpoint_id = e.id AND d.is_replay = 0 AND d.status IN ('pending', 'retrying') LIMIT $2) some_rows)
     FROM json_each($1) w CROSS JOIN webhook_endpoints e ON e.id = unhex(w.value)";

/// Counts the deliveries that wait for each endpoint, at most [`MOST_COUNTED`] of one.
pub async fn waiting(
    db: &mut impl Connection,
    endpoints: &[Uuid],
) -> Result<HashMap<Uuid, u32>, Error> {
    let counts: Vec<(Uuid, i64)> = query_as(WAITING)
        .bind(rows::ids(endpoints)?)
        .bind(MOST_COUNTED)
        .fetch_all(db)
        .await?;
    let bounded = |count: i64| u32::try_from(count).unwrap_or(MOST_COUNTED);
    Ok(counts
        .into_iter()
        .map(|(id, count)| (id, bounded(count)))
        .collect())
}

/// Bytes that events, deliveries and attempts take, about; a total that is kept, not counted.
pub(crate) async fn kept_bytes(db: &mut impl Connection) -> Result<u64, Error> {
    let bytes: i64 = query_scalar("SELECT bytes FROM event_storage")
        .fetch_one(db)
        .await?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}
