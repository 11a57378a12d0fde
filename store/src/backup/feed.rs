//! Sequence numbers of events after a restore: a gap, so that cursors of `GET /api/events` are never given twice.
//!
//! A client that followed the feed after the backup holds a cursor that the restored database has never given. If its
//! numbers were given again, that client would take the first events for ones it had, and skip them silently. So they
//! continue at the number of milliseconds since 1970: also after an earlier restore, fewer events than that have been
//! numbered.

use std::path::Path;

use sqlx::{
    ConnectOptions, Connection as _, query, query_scalar,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use crate::Error;

/// Numbers the next event of a restored database, which no process has opened yet, after all earlier ones.
pub(super) async fn leave_a_gap(database: &Path, now_ms: i64) -> Result<(), Error> {
    let mut connection = SqliteConnectOptions::new()
        .filename(database)
        .journal_mode(SqliteJournalMode::Delete)
        .synchronous(SqliteSynchronous::Full)
        .connect()
        .await?;
    let events: i64 =
        query_scalar("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'events'")
            .fetch_one(&mut connection)
            .await?;
    // A backup of an older version has none.
    if events > 0 {
        let moved = query("UPDATE sqlite_sequence SET seq = max(seq, $1) WHERE name = 'events'")
            .bind(now_ms)
            .execute(&mut connection)
            .await?;
        if moved.rows_affected() == 0 {
            query("INSERT INTO sqlite_sequence (name, seq) VALUES ('events', $1)")
                .bind(now_ms)
                .execute(&mut connection)
                .await?;
        }
    }
    Ok(connection.close().await?)
}
