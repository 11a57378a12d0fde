//! Marks of what was moved away, and of what has not arrived: no service starts on either.
//!
//! - A data folder that was moved away has the file `moved`; one whose rows have not arrived has them in `moving.db`.
//! - A schema of PostgreSQL has the table `move_mark` in both cases.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sqlx::{Connection as _, PgConnection, query, query_as, query_scalar, raw_sql};

use crate::{Error, copy, folder};

const MOVED: &str = "moved";
/// Name of a database until all its rows and files have arrived.
const ARRIVING: &str = "moving.db";

/// Where a folder's rows are now.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Note {
    to: String,
    at_ms: i64,
}

/// Mark of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SchemaMark {
    None,
    /// Its rows have not all arrived.
    Arriving {
        from: String,
    },
    /// Its rows were moved away; the text says where they are and how to undo it.
    Moved(String),
}

/// Returns the database of a folder to which rows are moved.
pub(super) fn arriving(data_dir: &Path) -> PathBuf {
    data_dir.join(ARRIVING)
}

/// Checks that a service may start on the SQLite database of a data folder. `Error::Conflict` when it was moved away, or has not
/// arrived.
pub(crate) fn check_folder(data_dir: &Path) -> Result<(), Error> {
    let arriving = arriving(data_dir);
    if arriving.exists() {
        return Err(Error::Conflict(format!(
            "a move to {} has not ended: run the same `sluice move --back` again to continue it, or remove {} to give it up",
            data_dir.display(),
            arriving.display()
        )));
    }
    match folder_mark(data_dir)? {
        None => Ok(()),
        Some(moved) => Err(Error::Conflict(moved)),
    }
}

/// Returns where the rows of a folder were moved to and how to undo it, for people; `None` when they were not.
pub(super) fn folder_mark(data_dir: &Path) -> Result<Option<String>, Error> {
    let path = data_dir.join(MOVED);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(Error::file("cannot read", &path))?,
    };
    // Whatever it says, the folder was moved.
    let place = match serde_json::from_slice::<Note>(&text) {
        Ok(note) => format!("{} at {}", note.to, time(note.at_ms)),
        Err(_) => "another place".to_owned(),
    };
    Ok(Some(format!(
        "the rows of {} were moved to {place}: set store.database_url to that database; \
         to start with the rows of this folder instead, without what has changed since, remove the file {}",
        data_dir.display(),
        path.display()
    )))
}

/// Marks a folder as moved away, durably.
pub(super) fn mark_folder(data_dir: &Path, to: &str, now_ms: i64) -> Result<(), Error> {
    let path = data_dir.join(MOVED);
    let partial = path.with_extension("partial");
    let note = Note {
        to: to.to_owned(),
        at_ms: now_ms,
    };
    let text = serde_json::to_vec(&note).expect("a note is plain data");
    fs::write(&partial, text).map_err(Error::write("cannot write", &partial))?;
    copy::rename_durably(&partial, &path)
}

/// Checks that a service may start on a schema. `Error::Conflict` when it was moved away, or has not arrived.
pub(crate) async fn check_schema(connection: &mut PgConnection) -> Result<(), Error> {
    match schema_mark(connection).await? {
        SchemaMark::None => Ok(()),
        SchemaMark::Moved(moved) => Err(Error::Conflict(moved)),
        SchemaMark::Arriving { from } => {
            let schema = current_schema(connection).await?;
            Err(Error::Conflict(format!(
                "a move from {from} to the schema {schema} has not ended: run the same `sluice move` again to continue it, \
                 or give it up by DROP SCHEMA {schema} CASCADE"
            )))
        }
    }
}

/// Reads the mark of the connection's schema, which may be missing.
pub(super) async fn schema_mark(connection: &mut PgConnection) -> Result<SchemaMark, Error> {
    let has_table: bool = query_scalar("SELECT to_regclass('move_mark') IS NOT NULL")
        .fetch_one(&mut *connection)
        .await?;
    if !has_table {
        return Ok(SchemaMark::None);
    }
    let mark: Option<(String, String, i64)> = query_as("SELECT state, other, at FROM move_mark")
        .fetch_optional(&mut *connection)
        .await?;
    let Some((state, other, at)) = mark else {
        return Ok(SchemaMark::None);
    };
    if state == "arriving" {
        return Ok(SchemaMark::Arriving { from: other });
    }
    let schema = current_schema(connection).await?;
    Ok(SchemaMark::Moved(format!(
        "the rows of the schema {schema} were moved to {other} at {}: start with that folder and without store.database_url; \
         to start with the rows of the schema instead, without what has changed since, DROP TABLE {schema}.move_mark",
        time(at)
    )))
}

async fn current_schema(connection: &mut PgConnection) -> Result<String, Error> {
    let schema: Option<String> = query_scalar("SELECT current_schema()::text")
        .fetch_one(connection)
        .await?;
    Ok(schema.unwrap_or_default())
}

/// Marks the connection's schema as one whose rows have not all arrived.
pub(super) async fn mark_arriving(
    connection: &mut PgConnection,
    from: &str,
    now_ms: i64,
) -> Result<(), Error> {
    mark_schema(connection, "arriving", from, now_ms).await
}

/// Marks the connection's schema as moved away.
pub(super) async fn mark_moved(
    connection: &mut PgConnection,
    to: &str,
    now_ms: i64,
) -> Result<(), Error> {
    mark_schema(connection, "moved", to, now_ms).await
}

async fn mark_schema(
    connection: &mut PgConnection,
    state: &str,
    other: &str,
    now_ms: i64,
) -> Result<(), Error> {
    let mut transaction = connection.begin().await?;
    raw_sql(
        "CREATE TABLE IF NOT EXISTS move_mark (
             id BIGINT PRIMARY KEY CHECK (id = 1),
             state TEXT NOT NULL CHECK (state IN ('arriving', 'moved')),
             other TEXT NOT NULL,
             at BIGINT NOT NULL
         )",
    )
    .execute(&mut *transaction)
    .await?;
    query(
        "INSERT INTO move_mark (id, state, other, at) VALUES (1, $1, $2, $3)
         ON CONFLICT (id) DO UPDATE SET state = excluded.state, other = excluded.other, at = excluded.at",
    )
    .bind(state)
    .bind(other)
    .bind(now_ms)
    .execute(&mut *transaction)
    .await?;
    Ok(transaction.commit().await?)
}

/// Removes the mark of the connection's schema: a service may start on it.
pub(super) async fn unmark_schema(connection: &mut PgConnection) -> Result<(), Error> {
    raw_sql("DROP TABLE IF EXISTS move_mark")
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns whether rows are being moved to a folder.
pub(super) fn is_arriving(data_dir: &Path) -> bool {
    arriving(data_dir).exists() && !folder::database(data_dir).exists()
}

fn time(at_ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(at_ms) {
        Ok(time) => time.to_string(),
        Err(_) => "an unknown time".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_moved_says_where_its_rows_are() {
        let folder = tempfile::tempdir().unwrap();
        check_folder(folder.path()).unwrap();
        mark_folder(folder.path(), "PostgreSQL at db", 1_795_219_200_000).unwrap();
        let error = check_folder(folder.path()).unwrap_err();
        let text = error.to_string();
        for part in [
            "PostgreSQL at db",
            "2026-11-21T",
            "store.database_url",
            "/moved",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        fs::write(folder.path().join(MOVED), "?").unwrap();
        assert!(check_folder(folder.path()).is_err());
        fs::remove_file(folder.path().join(MOVED)).unwrap();
        fs::write(arriving(folder.path()), "").unwrap();
        let error = check_folder(folder.path()).unwrap_err().to_string();
        assert!(error.contains("has not ended"), "{error}");
    }
}
