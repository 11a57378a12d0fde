//! Schema of PostgreSQL: its migrations, and the triggers that write the log of changes.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, migrate::Migrator, raw_sql};
use tracing::info;

use crate::{Error, changes::postgres_triggers, credentials::hexadecimal, migrate};

/// The first has what all migrations of SQLite up to its number make; from there on both engines have equal numbers.
pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!("migrations/postgres");

pub(super) async fn create_schema(
    connection: &mut PgConnection,
    schema: &str,
) -> Result<(), Error> {
    let exists: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)")
            .bind(schema)
            .fetch_one(&mut *connection)
            .await?;
    if !exists {
        let create = format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"");
        raw_sql(AssertSqlSafe(create)).execute(connection).await?;
    }
    Ok(())
}

/// Migrates the database and makes the triggers. `Error::Newer` before anything is changed when a newer program wrote it.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), Error> {
    let applied = applied_version(connection).await?;
    let known = migrate::known_version(&MIGRATIONS);
    if applied > known {
        return Err(Error::Newer {
            found: applied,
            known,
        });
    }
    if applied < known {
        info!(from = applied, to = known, "migrating the database");
    }
    raw_sql("SET statement_timeout = 0; SET lock_timeout = 0")
        .execute(&mut *connection)
        .await?;
    MIGRATIONS.run(&mut *connection).await?;
    make_triggers(connection).await
}

/// Checks that the schema is the one of this program.
pub(super) async fn check_current(connection: &mut PgConnection) -> Result<(), Error> {
    let found = applied_version(connection).await?;
    let known = migrate::known_version(&MIGRATIONS);
    match found.cmp(&known) {
        std::cmp::Ordering::Greater => Err(Error::Newer { found, known }),
        std::cmp::Ordering::Less => Err(Error::Conflict(
            "the database is of an older version than this program: start the service first".into(),
        )),
        std::cmp::Ordering::Equal => Ok(()),
    }
}

/// Returns the last migration that the schema has been through, 0 when it is empty or missing.
pub(super) async fn applied_version(connection: &mut PgConnection) -> Result<i64, Error> {
    let is_migrated: bool =
        sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL")
            .fetch_one(&mut *connection)
            .await?;
    if !is_migrated {
        return Ok(0);
    }
    let version: Option<i64> = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations")
        .fetch_one(connection)
        .await?;
    Ok(version.unwrap_or(0))
}

/// Makes the triggers when the program's differ from those that are there, by a digest in the table's comment.
async fn make_triggers(connection: &mut PgConnection) -> Result<(), Error> {
    let columns: Vec<(String, String)> = sqlx::query_as(
        "SELECT table_name::text, column_name::text FROM information_schema.columns
         WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position",
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut by_table: HashMap<&str, Vec<&str>> = HashMap::new();
    for (table, column) in &columns {
        by_table.entry(table).or_default().push(column);
    }
    let script = postgres_triggers(|table| by_table.get(table).cloned().unwrap_or_default());
    let digest = hexadecimal(&Sha256::digest(&script));
    let known: Option<String> = sqlx::query_scalar("SELECT obj_description('changes'::regclass)")
        .fetch_one(&mut *connection)
        .await?;
    if known.is_some_and(|known| known.ends_with(&digest)) {
        return Ok(());
    }
    let script =
        format!("{script}COMMENT ON TABLE changes IS 'Log of changes; triggers {digest}';");
    let mut transaction = connection.begin().await?;
    raw_sql(AssertSqlSafe(script))
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(migrator: &Migrator, from: i64) -> Vec<i64> {
        let numbers = migrator.iter().map(|migration| migration.version);
        numbers.filter(|number| *number >= from).collect()
    }

    #[test]
    fn both_engines_have_the_same_numbers_from_the_baseline_on() {
        let of_postgres = numbers(&MIGRATIONS, 0);
        assert_eq!(
            of_postgres,
            numbers(&migrate::MIGRATIONS, of_postgres[0]),
            "a migration comes in two files of one number"
        );
    }
}
