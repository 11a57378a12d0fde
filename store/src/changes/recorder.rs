//! Records changed rows by temporary triggers on the writer's connection ([`super::tables`]); notices commits of other
//! processes.
//!
//! The triggers are there while changes are followed and for a while after that, so that a reload of a page does not
//! remove and make them. Commits of another process, such as a short command beside the service, fire none: they are
//! noticed by the database's version, and then everything may have changed.

use std::{
    collections::{HashMap, hash_map::Entry},
    time::Duration,
};

use sqlx::{AssertSqlSafe, SqliteConnection, query, query_as, query_scalar, raw_sql};
use uuid::Uuid;

use super::{Action, Change, ChangeLog, Kind, tables};

/// Time without followers after which the triggers are removed.
const REMOVE_AFTER: Duration = Duration::from_secs(60);
/// Changes of one commit that are noted one by one.
const MOST_CHANGES: i64 = 1_024;

/// Recorder of one writer.
pub(crate) struct Recorder {
    log: ChangeLog,
    /// The database's version when it was last looked at, while the present connection has the triggers. Commits of this
    /// connection do not change it.
    version: Option<i64>,
}

/// Changes of a commit.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    changes: Vec<(Uuid, Change)>,
    /// Kinds of which too much has changed.
    lost: Vec<(Uuid, Kind)>,
}

impl Recorder {
    pub(crate) fn new(log: ChangeLog) -> Self {
        Self { log, version: None }
    }

    /// Notes that the connection with the triggers is closed; what it did last may be committed, and was not taken.
    pub(crate) fn disconnected(&mut self) {
        if self.version.take().is_some() {
            self.log.set_recorded(false);
            self.log.lose_everything();
        }
    }

    /// Makes the triggers when changes are followed, outside of a transaction, and looks for commits of others.
    pub(crate) async fn prepare(
        &mut self,
        connection: &mut SqliteConnection,
    ) -> Result<(), sqlx::Error> {
        let Some(known) = self.version else {
            if self.log.is_followed() {
                let version = version(connection).await?;
                install(connection).await?;
                self.version = Some(version);
                self.log.set_recorded(true);
            }
            return Ok(());
        };
        if self.log.is_idle_for(REMOVE_AFTER) {
            return self.remove(connection).await;
        }
        let version = version(connection).await?;
        if version != known {
            self.version = Some(version);
            self.log.lose_everything();
        }
        Ok(())
    }

    async fn remove(&mut self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        // In this order: a follower that comes meanwhile either keeps the triggers or has them made.
        self.log.set_recorded(false);
        if self.log.is_followed() {
            self.log.set_recorded(true);
            return Ok(());
        }
        self.version = None;
        let script = AssertSqlSafe(tables::remove());
        raw_sql(script).execute(connection).await?;
        Ok(())
    }

    /// Takes what the open transaction has changed.
    pub(crate) async fn take(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<Recorded, sqlx::Error> {
        let mut recorded = Recorded::default();
        if self.version.is_none() {
            return Ok(recorded);
        }
        let rows: Vec<Row> =
            query_as("SELECT account_id, kind, id, action FROM temp.change_log LIMIT $1")
                .bind(MOST_CHANGES + 1)
                .fetch_all(&mut *connection)
                .await?;
        if rows.is_empty() {
            return Ok(recorded);
        }
        if i64::try_from(rows.len()).is_ok_and(|count| count > MOST_CHANGES) {
            let kinds: Vec<(Vec<u8>, i64)> = query_as(
                "SELECT DISTINCT account_id, kind FROM temp.change_log WHERE account_id IS NOT NULL",
            )
            .fetch_all(&mut *connection)
            .await?;
            let known = |(account_id, kind): (Vec<u8>, i64)| {
                Some((Uuid::from_slice(&account_id).ok()?, Kind::from_index(kind)?))
            };
            recorded.lost = kinds.into_iter().filter_map(known).collect();
        } else {
            recorded.changes = merged(rows);
        }
        query("DELETE FROM temp.change_log")
            .execute(connection)
            .await?;
        Ok(recorded)
    }

    /// Publishes what was committed.
    pub(crate) fn publish(&self, recorded: Recorded) {
        recorded.publish(&self.log);
    }
}

impl Recorded {
    pub(crate) fn lost(kinds: impl Iterator<Item = (Uuid, Kind)>) -> Self {
        Self {
            changes: Vec::new(),
            lost: kinds.collect(),
        }
    }

    pub(crate) fn publish(self, log: &ChangeLog) {
        log.committed(self.changes, self.lost);
    }
}

/// Account, kind, id and action of a row of the log. Parts of a resource that is deleted with them have no account. As bytes:
/// a value of another form must not fail the commit.
type Row = (Option<Vec<u8>>, i64, Option<Vec<u8>>, i64);

/// The changes of a commit, each resource once.
fn merged(rows: Vec<Row>) -> Vec<(Uuid, Change)> {
    let uuid = |bytes: Option<Vec<u8>>| Uuid::from_slice(&bytes?).ok();
    merge(
        rows.into_iter()
            .filter_map(|(account_id, kind, id, action)| {
                let (kind, action) = (Kind::from_index(kind)?, Action::from_index(action)?);
                Some((uuid(account_id)?, kind, uuid(id), action))
            }),
    )
}

/// The changes that rows of PostgreSQL's log say: account, kind, id, action.
pub(crate) fn merged_texts(
    rows: impl Iterator<Item = (Option<Uuid>, Option<String>, Option<Uuid>, Option<String>)>,
) -> Recorded {
    let known = rows.filter_map(|(account_id, kind, id, action)| {
        let (kind, action) = (Kind::parse(&kind?)?, Action::parse(&action?)?);
        Some((account_id?, kind, id, action))
    });
    Recorded {
        changes: merge(known),
        lost: Vec::new(),
    }
}

fn merge(rows: impl Iterator<Item = (Uuid, Kind, Option<Uuid>, Action)>) -> Vec<(Uuid, Change)> {
    let mut changes: Vec<(Uuid, Change)> = Vec::new();
    let mut places = HashMap::new();
    for (account_id, kind, id, action) in rows {
        match places.entry((account_id, kind, id)) {
            Entry::Vacant(place) => {
                place.insert(changes.len());
                changes.push((account_id, Change { kind, id, action }));
            }
            Entry::Occupied(place) => {
                let known = &mut changes[*place.get()].1.action;
                *known = known.then(action);
            }
        }
    }
    changes
}

async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    query_scalar("PRAGMA data_version")
        .fetch_one(connection)
        .await
}

async fn install(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let columns: Vec<(String, String)> = query_as(
        "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'",
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut by_table: HashMap<&str, Vec<&str>> = HashMap::new();
    for (table, column) in &columns {
        by_table.entry(table).or_default().push(column);
    }
    // What an attempt left that failed in between.
    let script = tables::remove()
        + &tables::install(|table| by_table.get(table).cloned().unwrap_or_default());
    raw_sql(AssertSqlSafe(script)).execute(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_changes_each_resource_once() {
        let (account, file) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let bytes = |id: Uuid| Some(id.as_bytes().to_vec());
        let row = |kind: Kind, id: Option<Uuid>, action: Action| {
            let id = id.and_then(bytes);
            (
                bytes(account),
                i64::from(kind as u8),
                id,
                i64::from(action as u8),
            )
        };
        let changes = merged(vec![
            row(Kind::File, Some(file), Action::Created),
            row(Kind::Usage, None, Action::Changed),
            row(Kind::File, Some(file), Action::Changed),
            (None, 0, None, 0),
            (bytes(account), 99, None, 0),
            row(Kind::Usage, None, Action::Changed),
            row(Kind::Folder, Some(file), Action::Deleted),
            row(Kind::Folder, Some(file), Action::Changed),
        ]);
        let merged: Vec<_> = changes.iter().map(|(_, it)| (it.kind, it.action)).collect();
        assert_eq!(
            merged,
            [
                (Kind::File, Action::Created),
                (Kind::Usage, Action::Changed),
                (Kind::Folder, Action::Deleted)
            ]
        );
    }
}
