//! The list of an account's live inputs: search text, `status`, `enabled`, sort by name, last live or viewers, counts.
//!
//! What is on air is known to the process alone, so a caller passes it in ([`OnAir`]): the database narrows and sorts by status
//! and viewers too, and a page is read with one statement however many inputs there are.

use uuid::Uuid;

use super::live_inputs::LiveInput;
use crate::{Connection, Cursor, Error, like, rows::Json, statement::query_as};

/// An input that is live or within its reconnect window.
#[derive(Clone, Debug)]
pub struct OnAir {
    pub input_id: Uuid,
    pub is_live: bool,
    pub viewers: u64,
}

/// Status to which a list is narrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Idle,
    Live,
    Reconnecting,
}

impl Status {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "idle" => Some(Self::Idle),
            "live" => Some(Self::Live),
            "reconnecting" => Some(Self::Reconnecting),
            _ => None,
        }
    }
}

/// Order of a list; inputs that are equal in it follow by id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Created,
    /// Without case of ASCII letters.
    Name,
    /// Inputs on air first, then by the end of the last broadcast. Inputs that never were on air come last in either direction.
    LastLive,
    Viewers,
}

/// Inputs to be listed.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Part of the name, without case of ASCII letters, or the whole slug or playback id.
    pub text: Option<String>,
    pub status: Option<Status>,
    pub enabled: Option<bool>,
    pub sort: Sort,
    pub descending: bool,
    pub limit: u32,
    pub offset: u32,
    /// Last row of the page before, for [`Sort::Created`] descending only.
    pub after: Option<Cursor>,
}

/// Numbers of inputs, in all and by status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Counts {
    /// Those with the text of the query; so are the next three.
    pub total: i64,
    pub live: i64,
    pub reconnecting: i64,
    pub disabled: i64,
    /// Those that fit the whole query.
    pub fitting: i64,
}

impl Counts {
    pub fn idle(&self) -> i64 {
        self.total - self.live - self.reconnecting
    }
}

// A sorted list is another statement for each order: SQLite walks the index of the newest-first list only when it knows the order.
// Ids are compared as text: JSON has no bytes. `IN` makes an index of its list, whatever SQLite expects of the number of rows.
macro_rules! select {
    ($order:literal) => {
        concat!(
            "WITH air (id, viewers) AS MATERIALIZED (SELECT value ->> 0, CAST(value ->> 1 AS INTEGER) FROM json_each($2))
             SELECT * FROM live_inputs WHERE account_id = $1
                 AND ($3 IS NULL OR name LIKE $3 ESCAPE '\\' OR $11 IN (input_slug, playback_id))
                 AND ($4 IS NULL OR (hex(id) IN (SELECT value FROM json_each($5))) = $4)
                 AND ($6 IS NULL OR enabled = $6)
                 AND (created_at, id) < ($7, $8)
             ORDER BY ",
            $order,
            " LIMIT $9 OFFSET $10"
        )
    };
}

fn statement(sort: Sort, descending: bool) -> &'static str {
    match (sort, descending) {
        (Sort::Created, true) => select!("created_at DESC, id DESC"),
        (Sort::Created, false) => select!("created_at, id"),
        (Sort::Name, true) => select!("lower(name) DESC, id DESC"),
        (Sort::Name, false) => select!("lower(name), id"),
        (Sort::LastLive, true) => select!(
            "hex(id) NOT IN (SELECT id FROM air), last_started_at IS NULL,
                 coalesce(last_ended_at, last_started_at, 0) DESC, id DESC"
        ),
        (Sort::LastLive, false) => select!(
            "last_started_at IS NULL AND hex(id) NOT IN (SELECT id FROM air), hex(id) IN (SELECT id FROM air),
                 coalesce(last_ended_at, last_started_at, 0), id"
        ),
        (Sort::Viewers, true) => select!(
            "CASE WHEN hex(id) IN (SELECT id FROM air)
                 THEN (SELECT viewers FROM air WHERE air.id = hex(live_inputs.id)) ELSE 0 END DESC, id DESC"
        ),
        (Sort::Viewers, false) => select!(
            "CASE WHEN hex(id) IN (SELECT id FROM air)
                 THEN (SELECT viewers FROM air WHERE air.id = hex(live_inputs.id)) ELSE 0 END, id"
        ),
    }
}

/// The inputs of a page.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    query: &Query,
    on_air: &[OnAir],
) -> Result<Vec<LiveInput>, Error> {
    let (created_at, id) = match query.after {
        Some(cursor) => (cursor.created_at, cursor.id),
        None => (i64::MAX, Uuid::max()),
    };
    let viewers: Vec<(String, u64)> = on_air
        .iter()
        .map(|input| (hex(input.input_id), input.viewers))
        .collect();
    let inputs = query_as(statement(query.sort, query.descending))
        .bind(account_id)
        .bind(Json(viewers))
        .bind(query.text.as_deref().map(like::anywhere))
        .bind(query.status.map(|status| status != Status::Idle))
        .bind(Json(with_status(query.status, on_air)))
        .bind(query.enabled)
        .bind(created_at)
        .bind(id)
        .bind(query.limit)
        .bind(query.offset)
        .bind(&query.text)
        .fetch_all(db)
        .await?;
    Ok(inputs)
}

/// The counts beside a page.
pub async fn count(
    db: &mut impl Connection,
    account_id: Uuid,
    query: &Query,
    on_air: &[OnAir],
) -> Result<Counts, Error> {
    let counts = query_as(
        "SELECT count(*) AS total,
             count(*) FILTER (WHERE hex(id) IN (SELECT value FROM json_each($2))) AS live,
             count(*) FILTER (WHERE hex(id) IN (SELECT value FROM json_each($3))) AS reconnecting,
             count(*) FILTER (WHERE NOT enabled) AS disabled,
             count(*) FILTER (WHERE ($5 IS NULL OR (hex(id) IN (SELECT value FROM json_each($6))) = $5)
                 AND ($7 IS NULL OR enabled = $7)) AS fitting
         FROM live_inputs WHERE account_id = $1
             AND ($4 IS NULL OR name LIKE $4 ESCAPE '\\' OR $8 IN (input_slug, playback_id))",
    )
    .bind(account_id)
    .bind(Json(with_status(Some(Status::Live), on_air)))
    .bind(Json(with_status(Some(Status::Reconnecting), on_air)))
    .bind(query.text.as_deref().map(like::anywhere))
    .bind(query.status.map(|status| status != Status::Idle))
    .bind(Json(with_status(query.status, on_air)))
    .bind(query.enabled)
    .bind(&query.text)
    .fetch_one(db)
    .await?;
    Ok(counts)
}

/// The ids of inputs with this status; those without it for [`Status::Idle`], and none without a status.
fn with_status(status: Option<Status>, on_air: &[OnAir]) -> Vec<String> {
    let fits = |input: &&OnAir| match status {
        None => false,
        Some(Status::Idle) => true,
        Some(Status::Live) => input.is_live,
        Some(Status::Reconnecting) => !input.is_live,
    };
    let inputs = on_air.iter().filter(fits);
    inputs.map(|input| hex(input.input_id)).collect()
}

/// Writes an id as `hex` of SQLite does.
fn hex(id: Uuid) -> String {
    format!("{:X}", id.simple())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreSettings};

    /// An account may have thousands of inputs.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_newest_inputs_come_from_an_index_without_a_sort() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::on_sqlite(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let mut db = store.read().await.unwrap();
        let explained = format!("EXPLAIN QUERY PLAN {}", statement(Sort::Created, true));
        let plan: Vec<(i64, i64, i64, String)> = query_as(explained)
            .bind(Uuid::nil())
            .fetch_all(&mut db)
            .await
            .unwrap();
        let plan: Vec<_> = plan.into_iter().map(|(_, _, _, step)| step).collect();
        assert!(
            plan.iter()
                .any(|step| step.contains("live_inputs_by_account"))
        );
        let is_sort = |step: &String| step.contains("TEMP B-TREE FOR ORDER BY");
        assert!(!plan.iter().any(is_sort), "{plan:?}");
    }
}
