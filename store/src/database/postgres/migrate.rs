//! Schema of PostgreSQL: its migrations, and the triggers that write the log of changes. One process at a time makes it; others
//! that start meanwhile wait.
//!
//! A schema of a newer program is used when that one allows it: the row of `schema_floor` is the oldest program that may.

use std::{collections::HashMap, time::Duration};

use sha2::{Digest as _, Sha256};
use sqlx::{
    AssertSqlSafe, Connection as _, PgConnection,
    migrate::{Migrate as _, MigrateError, Migrator},
    raw_sql,
};
use tokio::time::{Instant, sleep};
use tracing::info;

use crate::{
    Error, changes::postgres_triggers, cluster::MOST_AHEAD, credentials::hexadecimal, duration_ms,
    migrate,
};

/// The oldest program, by the last migration that it knows, that may run beside or after this one on the same schema. Raised with
/// each migration that takes away or changes what such a program uses.
const FLOOR: i64 = 40;

/// Interval in which a start tries to be the one that migrates.
const TRY_EVERY: Duration = Duration::from_millis(250);
/// Pause before a migration is tried again that gave way.
const GIVE_WAY: Duration = Duration::from_secs(1);
/// Longest wait for another process that migrates, and for tables that are in use.
const WAIT: Duration = Duration::from_secs(600);

/// The first has what all migrations of SQLite up to its number make; from there on both engines have equal numbers.
pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!("migrations/postgres");

/// Makes the schema and migrates it, while no other process does. `lock` is the key of an advisory lock.
pub(super) async fn prepare(
    connection: &mut PgConnection,
    schema: &str,
    lock: i64,
) -> Result<(), Error> {
    lift_time_limits(connection).await?;
    take_turn(connection, lock).await?;
    let prepared = async {
        create_schema(connection, schema).await?;
        migrate(connection).await
    };
    let prepared = prepared.await;
    sqlx::query("SELECT pg_advisory_unlock($1)")
        .bind(lock)
        .execute(connection)
        .await?;
    prepared
}

async fn take_turn(connection: &mut PgConnection, lock: i64) -> Result<(), Error> {
    let since = Instant::now();
    loop {
        let is_taken: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
            .bind(lock)
            .fetch_one(&mut *connection)
            .await?;
        if is_taken {
            return Ok(());
        }
        if since.elapsed() >= WAIT {
            return Err(Error::Busy(
                "another process migrates the database: start again when it is done".into(),
            ));
        }
        sleep(TRY_EVERY).await;
    }
}

async fn create_schema(connection: &mut PgConnection, schema: &str) -> Result<(), Error> {
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

/// Migrates the database and makes the triggers. `Error::Newer` before anything is changed when a newer program wrote it that
/// does not allow this one.
async fn migrate(connection: &mut PgConnection) -> Result<(), Error> {
    let applied = applied_version(connection).await?;
    let known = migrate::known_version(&MIGRATIONS);
    if applied > known {
        check_allowed(connection, applied, known).await?;
        info!(
            found = applied,
            known, "the database is of a newer version that this program may use"
        );
        // The triggers are the newer program's, too.
        return Ok(());
    }
    if applied < known {
        check_nodes(connection, applied).await?;
        info!(from = applied, to = known, "migrating the database");
    }
    run(connection).await?;
    raise_floor(connection).await?;
    make_triggers(connection).await
}

/// Runs the migrations. All that use a table wait behind a migration that waits for it, while a dump holds it for minutes, say: it
/// gives way after three seconds, or to a deadlock, and is tried again.
async fn run(connection: &mut PgConnection) -> Result<(), Error> {
    raw_sql("SET lock_timeout = '3s'")
        .execute(&mut *connection)
        .await?;
    let since = Instant::now();
    while let Err(error) = MIGRATIONS.run(&mut *connection).await {
        if !is_in_use(&error) || since.elapsed() >= WAIT {
            return Err(error.into());
        }
        info!(%error, "a table is in use: the migration is tried again");
        // After an error it is still taken.
        connection.unlock().await?;
        sleep(GIVE_WAY).await;
    }
    lift_time_limits(connection).await
}

/// `lock_not_available` or `deadlock_detected`.
fn is_in_use(error: &MigrateError) -> bool {
    let (MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _)) = error else {
        return false;
    };
    let code = cause.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("55P03" | "40P01"))
}

/// Lets the statements of a session take as long as they need.
pub(super) async fn lift_time_limits(connection: &mut PgConnection) -> Result<(), Error> {
    raw_sql("SET statement_timeout = 0; SET lock_timeout = 0")
        .execute(connection)
        .await?;
    Ok(())
}

/// `Error::Newer` unless the newer schema is for programs as old as this one, too.
async fn check_allowed(connection: &mut PgConnection, found: i64, known: i64) -> Result<(), Error> {
    match floor(connection).await? {
        Some(floor) if floor <= known => Ok(()),
        _ => Err(Error::Newer { found, known }),
    }
}

/// Returns the schema version of the oldest program that may use the schema.
pub(super) async fn floor(connection: &mut PgConnection) -> Result<Option<i64>, Error> {
    if !has_table(connection, "schema_floor").await? {
        return Ok(None);
    }
    let floor = sqlx::query_scalar("SELECT floor FROM schema_floor WHERE id = 1")
        .fetch_optional(connection)
        .await?;
    Ok(floor)
}

/// `Error::OlderNode` when a node runs that cannot use what this program makes of the schema.
async fn check_nodes(connection: &mut PgConnection, applied: i64) -> Result<(), Error> {
    if applied == 0 || !has_table(connection, "nodes").await? {
        return Ok(());
    }
    let older: Option<(String, i64)> = sqlx::query_as(
        "SELECT n.name, n.schema FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) clock
         CROSS JOIN nodes n WHERE n.state <> 'dead' AND n.schema < $1
             AND n.lease_until > clock.now AND n.lease_until <= clock.now + $2 LIMIT 1",
    )
    .bind(FLOOR)
    .bind(duration_ms(MOST_AHEAD))
    .fetch_optional(connection)
    .await?;
    match older {
        Some((node, schema)) => Err(Error::OlderNode {
            node,
            schema,
            floor: FLOOR,
        }),
        None => Ok(()),
    }
}

async fn raise_floor(connection: &mut PgConnection) -> Result<(), Error> {
    sqlx::query(
        "INSERT INTO schema_floor (id, floor) VALUES (1, $1)
         ON CONFLICT (id) DO UPDATE SET floor = excluded.floor WHERE schema_floor.floor < excluded.floor",
    )
    .bind(FLOOR)
    .execute(connection)
    .await?;
    Ok(())
}

/// Checks that the schema is one that this program may use.
pub(super) async fn check_current(connection: &mut PgConnection) -> Result<(), Error> {
    let found = applied_version(connection).await?;
    let known = migrate::known_version(&MIGRATIONS);
    match found.cmp(&known) {
        std::cmp::Ordering::Greater => check_allowed(connection, found, known).await,
        std::cmp::Ordering::Less => Err(Error::Conflict(
            "the database is of an older version than this program: start the service first".into(),
        )),
        std::cmp::Ordering::Equal => Ok(()),
    }
}

/// Checks that the schema has exactly the version of this program: rows are moved between equal tables.
pub(super) async fn check_equal(connection: &mut PgConnection) -> Result<(), Error> {
    check_current(connection).await?;
    let found = applied_version(connection).await?;
    let known = migrate::known_version(&MIGRATIONS);
    match found == known {
        true => Ok(()),
        false => Err(Error::Newer { found, known }),
    }
}

/// Returns the last migration that the schema has been through, 0 when it is empty or missing.
pub(super) async fn applied_version(connection: &mut PgConnection) -> Result<i64, Error> {
    if !has_table(connection, "_sqlx_migrations").await? {
        return Ok(0);
    }
    let version: Option<i64> = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations")
        .fetch_one(connection)
        .await?;
    Ok(version.unwrap_or(0))
}

/// Returns whether the schema has a table; false while the schema is missing.
pub(super) async fn has_table(connection: &mut PgConnection, name: &str) -> Result<bool, Error> {
    let has_table = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(name)
        .fetch_one(connection)
        .await?;
    Ok(has_table)
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

    #[test]
    fn this_program_may_use_what_it_makes() {
        assert!(FLOOR <= migrate::known_version(&MIGRATIONS));
    }

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
