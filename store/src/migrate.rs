//! Migrations: forward only, compiled in, and after a copy of a database that holds anything.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sqlx::{SqliteConnection, migrate::Migrator, query, query_scalar};
use tracing::info;

use crate::{Error, copy, folder};

pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");

/// Copies of older schemas that are kept.
const KEPT_COPIES: usize = 3;

/// The last migration that a program knows.
pub(crate) fn known_version(migrator: &Migrator) -> i64 {
    migrator
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0)
}

/// The last migration that a database has been through, 0 for an empty one.
pub(crate) async fn applied_version(connection: &mut SqliteConnection) -> Result<i64, Error> {
    let is_migrated: bool =
        query_scalar("SELECT count(*) > 0 FROM sqlite_schema WHERE name = '_sqlx_migrations'")
            .fetch_one(&mut *connection)
            .await?;
    if !is_migrated {
        return Ok(0);
    }
    let version: Option<i64> = query_scalar("SELECT max(version) FROM _sqlx_migrations")
        .fetch_one(connection)
        .await?;
    Ok(version.unwrap_or(0))
}

/// Brings the database up to date. `Error::Newer` before anything is touched when a newer program wrote it.
///
/// One upgrade makes one copy, named for its first migration: it is what the older program can go back to.
/// `connection` must not enforce foreign keys, so that a migration can rebuild a table; they are checked at the end.
pub(crate) async fn migrate(
    connection: &mut SqliteConnection,
    migrator: &Migrator,
    data_dir: &Path,
    now_ms: i64,
) -> Result<(), Error> {
    let applied = applied_version(connection).await?;
    let known = known_version(migrator);
    if applied > known {
        return Err(Error::Newer {
            found: applied,
            known,
        });
    }
    let next = migrator
        .iter()
        .map(|migration| migration.version)
        .filter(|version| *version > applied)
        .min();
    if let (Some(next), true) = (next, applied > 0) {
        let copy = copy_before(connection, data_dir, next, now_ms).await?;
        info!(from = applied, to = known, copy = %copy.display(), "migrating the database");
    }
    migrator.run(&mut *connection).await?;
    check_foreign_keys(connection).await
}

async fn copy_before(
    connection: &mut SqliteConnection,
    data_dir: &Path,
    next: i64,
    now_ms: i64,
) -> Result<PathBuf, Error> {
    let copies = folder::copies(data_dir);
    folder::create_private(&copies)?;
    let copy = copies.join(format!(
        "before-{next:04}-{}.db",
        copy::time_in_name(now_ms)
    ));
    copy::database(connection, &copy).await?;
    remove_old_copies(&copies)?;
    Ok(copy)
}

/// Keeps the newest copies; their names sort by schema, then by time.
fn remove_old_copies(copies: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(copies).map_err(Error::file("cannot list", copies))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_copy_of_migration(name))
        .collect();
    names.sort();
    for name in names.iter().rev().skip(KEPT_COPIES) {
        let path = copies.join(name);
        fs::remove_file(&path).map_err(Error::file("cannot remove", path))?;
    }
    Ok(())
}

fn is_copy_of_migration(name: &str) -> bool {
    name.strip_prefix("before-")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        && name.ends_with(".db")
}

async fn check_foreign_keys(connection: &mut SqliteConnection) -> Result<(), Error> {
    let dangling = query("PRAGMA foreign_key_check")
        .fetch_all(connection)
        .await?;
    match dangling.len() {
        0 => Ok(()),
        rows => Err(Error::Internal(format!(
            "after migrating, {rows} rows refer to rows that do not exist"
        ))),
    }
}
