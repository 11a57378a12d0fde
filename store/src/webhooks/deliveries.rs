//! Webhook deliveries as lists show them: statuses, filters (status, event type, HTTP status, time), length of the
//! response preview.

use uuid::Uuid;

use crate::{Connection, Error, Page, rows::Narrow, statement::Builder};

/// Characters that are kept of a receiver's answer.
pub const MOST_PREVIEW_CHARACTERS: usize = 1_000;

text_enum! {
    pub enum DeliveryStatus {
        /// Not tried yet.
        Pending = "pending",
        /// An attempt is in flight.
        Delivering = "delivering",
        /// Waits for another attempt.
        Retrying = "retrying",
        Delivered = "delivered",
        /// Given up.
        Failed = "failed",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Delivery {
    pub id: Uuid,
    pub account_id: Uuid,
    pub endpoint_id: Uuid,
    /// URL that the endpoint has now.
    pub endpoint_url: String,
    pub event_id: Uuid,
    pub event_type: String,
    pub status: DeliveryStatus,
    /// The receiver's last answer.
    #[sqlx(try_from = "Narrow")]
    pub http_status: Option<u16>,
    /// The beginning of its body, at most [`MOST_PREVIEW_CHARACTERS`].
    pub response_preview: Option<String>,
    /// Error of the last attempt.
    pub error: Option<String>,
    /// Attempts of any kind, interrupted ones included.
    #[sqlx(try_from = "i64")]
    pub attempts: u32,
    /// Attempts that failed and count: the position in the retry schedule.
    #[sqlx(try_from = "i64")]
    pub failures: u32,
    /// True when its next attempt is one that its owner asked for.
    pub is_replay: bool,
    pub due_at: i64,
    pub created_at: i64,
    pub last_attempt_at: Option<i64>,
    /// Time of the last successful delivery; a replay that fails does not reset it.
    pub delivered_at: Option<i64>,
    /// Null while it is open.
    pub ended_at: Option<i64>,
}

impl Delivery {
    /// Returns when it is tried next, as far as that depends on the delivery itself; `None` during an attempt, and
    /// once it has ended.
    pub fn next_attempt_at(&self) -> Option<i64> {
        let waits = matches!(
            self.status,
            DeliveryStatus::Pending | DeliveryStatus::Retrying
        );
        waits.then_some(self.due_at)
    }
}

/// Filter of deliveries; `None`: any.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    pub status: Option<DeliveryStatus>,
    pub event_type: Option<String>,
    pub endpoint_id: Option<Uuid>,
    /// Made at this time or later.
    pub since: Option<i64>,
    /// Made before this time.
    pub until: Option<i64>,
    /// Status codes of the last answer, from the first up to the second, which is not included.
    pub http_status: Option<(u16, u16)>,
    pub event_id: Option<Uuid>,
}

/// A delivery with the fields of its endpoint and its event.
const COLUMNS: &str = "SELECT d.id, d.account_id, d.endpoint_id, e.url AS endpoint_url, v.id AS event_id, d.event_type, d.status,
         d.http_status, d.response_preview, d.error, d.attempts, d.failures, d.is_replay, d.due_at, d.created_at,
         d.last_attempt_at, d.delivered_at, d.ended_at ";

/// The order of the joins is fixed: a list uses one index of the deliveries.
const JOINS: &str = " CROSS JOIN webhook_endpoints e ON e.id = d.endpoint_id CROSS JOIN events v ON v.seq = d.event_seq ";

const ORDER: &str = " ORDER BY d.created_at DESC, d.id DESC LIMIT ";

/// The account's deliveries that pass the filter, newest first; those of deleted endpoints too.
pub async fn deliveries(
    db: &mut impl Connection,
    account_id: Uuid,
    filter: &DeliveryFilter,
    page: Page,
) -> Result<Vec<Delivery>, Error> {
    Ok(listing("", account_id, filter, page)
        .build_query_as()
        .fetch_all(db)
        .await?)
}

/// Builds the statement of a list: along the deliveries of an event, else along the last answers, else along the index of the
/// other filters.
pub(super) fn listing(
    prefix: &str,
    account_id: Uuid,
    filter: &DeliveryFilter,
    page: Page,
) -> Builder {
    match (filter.event_id, filter.http_status) {
        (Some(event_id), _) => of_event(prefix, account_id, event_id, filter, page),
        (None, Some(codes)) => by_answer(prefix, account_id, codes, filter, page),
        (None, None) => plain(prefix, account_id, filter, page),
    }
}

/// Statuses are literals in it, so that SQLite finds the index of the rare ones.
fn plain(prefix: &str, account_id: Uuid, filter: &DeliveryFilter, page: Page) -> Builder {
    let mut list = Builder::new(format!(
        "{prefix}{COLUMNS} FROM webhook_deliveries d {JOINS}"
    ));
    list.push("WHERE d.account_id = ").push_bind(account_id);
    if let Some(endpoint_id) = filter.endpoint_id {
        list.push(" AND d.endpoint_id = ").push_bind(endpoint_id);
    }
    if let Some(status) = filter.status {
        list.push(format_args!(" AND d.status = '{}'", status.as_str()));
        if status != DeliveryStatus::Delivered {
            list.push(" AND d.status <> 'delivered'");
        }
    }
    if let Some(event_type) = &filter.event_type {
        // The type is the least selective: it names the index only when it is the only filter.
        let is_alone = filter.endpoint_id.is_none() && filter.status.is_none();
        list.push(if is_alone {
            " AND d.event_type = "
        } else {
            " AND +d.event_type = "
        })
        .push_bind(event_type.clone());
    }
    push_time(&mut list, filter, page);
    list.push(ORDER).push_bind(page.limit);
    list
}

/// An event has one delivery to an endpoint, so that few rows are sorted.
fn of_event(
    prefix: &str,
    account_id: Uuid,
    event_id: Uuid,
    filter: &DeliveryFilter,
    page: Page,
) -> Builder {
    let mut list = Builder::new(format!(
        "{prefix}{COLUMNS} FROM webhook_deliveries d {JOINS}"
    ));
    list.push("WHERE d.event_seq = (SELECT seq FROM events WHERE id = ")
        .push_bind(event_id)
        .push(") AND +d.account_id = ")
        .push_bind(account_id);
    push_filters(&mut list, filter);
    if let Some((from, to)) = filter.http_status {
        list.push(" AND d.http_status >= ").push_bind(from);
        list.push(" AND d.http_status < ").push_bind(to);
    }
    push_time(&mut list, filter, page);
    list.push(ORDER).push_bind(page.limit);
    list
}

/// Seeks from status code to status code, and reads one page of each along the index of answers.
fn by_answer(
    prefix: &str,
    account_id: Uuid,
    (from, to): (u16, u16),
    filter: &DeliveryFilter,
    page: Page,
) -> Builder {
    let mut list = Builder::new(format!(
        "{prefix}WITH RECURSIVE answers (code) AS (
             SELECT min(http_status) FROM webhook_deliveries WHERE http_status >= "
    ));
    list.push_bind(from);
    list.push(" AND http_status < ").push_bind(to);
    list.push(" AND account_id = ").push_bind(account_id);
    list.push(
        " UNION ALL SELECT (SELECT min(http_status) FROM webhook_deliveries WHERE http_status > answers.code
              AND http_status < ",
    );
    list.push_bind(to);
    list.push(" AND account_id = ").push_bind(account_id);
    list.push(format_args!(
        ") FROM answers WHERE code IS NOT NULL) {COLUMNS} FROM answers CROSS JOIN webhook_deliveries d ON d.seq IN (/*each*/
             SELECT d.seq FROM webhook_deliveries d INDEXED BY webhook_deliveries_by_http_status
             WHERE d.http_status = answers.code AND d.account_id = "
    ));
    list.push_bind(account_id);
    push_filters(&mut list, filter);
    push_time(&mut list, filter, page);
    list.push(ORDER).push_bind(page.limit);
    list.push(format_args!("/*each*/) {JOINS} {ORDER}"));
    list.push_bind(page.limit);
    list
}

/// The filters that name no index.
fn push_filters(list: &mut Builder, filter: &DeliveryFilter) {
    if let Some(endpoint_id) = filter.endpoint_id {
        list.push(" AND +d.endpoint_id = ").push_bind(endpoint_id);
    }
    if let Some(status) = filter.status {
        list.push(format_args!(" AND +d.status = '{}'", status.as_str()));
    }
    if let Some(event_type) = &filter.event_type {
        list.push(" AND +d.event_type = ")
            .push_bind(event_type.clone());
    }
}

fn push_time(list: &mut Builder, filter: &DeliveryFilter, page: Page) {
    let (created_at, id) = match filter.until {
        Some(until) => page.before().min((until, Uuid::nil())),
        None => page.before(),
    };
    list.push(" AND (d.created_at, d.id) < (")
        .push_bind(created_at)
        .push(", ")
        .push_bind(id)
        .push(")");
    if let Some(since) = filter.since {
        list.push(" AND d.created_at >= ").push_bind(since);
    }
}

/// Returns a delivery; `Error::NotFound` for an unknown id and for another account's.
pub async fn delivery(
    db: &mut impl Connection,
    account_id: Uuid,
    id: Uuid,
) -> Result<Delivery, Error> {
    let mut one = Builder::new(format!("{COLUMNS} FROM webhook_deliveries d {JOINS}"));
    one.push("WHERE d.id = ")
        .push_bind(id)
        .push(" AND d.account_id = ")
        .push_bind(account_id)
        .build_query_as()
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("delivery"))
}
