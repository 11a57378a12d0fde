//! Rows of a SQLite database: pages in the order of keys, and rows that arrive.

use std::{cmp::Ordering, path::Path};

use futures_util::TryStreamExt as _;
use sqlx::{
    Arguments as _, AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _,
    SqliteConnection, query, query_as, query_scalar, query_with, raw_sql,
    sqlite::{
        SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteRow, SqliteSynchronous,
    },
};

use super::{
    PAGE_BYTES, PAGE_ROWS,
    catalogue::{ColumnType, Table, quoted},
    row::{Datum, Row},
};
use crate::{
    Error, folder,
    migrate::{self, MIGRATIONS},
    store,
};

/// Connection to a SQLite database.
pub(super) struct SqliteSide {
    pub(super) connection: SqliteConnection,
}

impl SqliteSide {
    /// Opens the database of a data folder for reading.
    pub(super) async fn open_to_read(data_dir: &Path) -> Result<Self, Error> {
        Self::with(store::read_only(&folder::database(data_dir))).await
    }

    /// Opens the database of a data folder whose blobs are moved.
    pub(super) async fn open_to_change(data_dir: &Path) -> Result<Self, Error> {
        let options = SqliteConnectOptions::new()
            .filename(folder::database(data_dir))
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true);
        Self::with(options).await
    }

    async fn with(options: SqliteConnectOptions) -> Result<Self, Error> {
        let mut connection = options.connect().await?;
        let found = migrate::applied_version(&mut connection).await?;
        let known = migrate::schema_version();
        match found.cmp(&known) {
            Ordering::Equal => Ok(Self { connection }),
            Ordering::Greater => Err(Error::Newer { found, known }),
            Ordering::Less => Err(Error::Conflict(
                "the database is of an older version than this program: start the service once, stop it, and move then".into(),
            )),
        }
    }

    /// Makes a database for rows that arrive, or opens it again. It has no triggers until [`SqliteSide::finish`].
    pub(super) async fn open_arriving(database: &Path, data_dir: &Path) -> Result<Self, Error> {
        folder::create_private_file(database)?;
        let mut connection = SqliteConnectOptions::new()
            .filename(database)
            .journal_mode(SqliteJournalMode::Delete)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(false)
            .connect()
            .await?;
        let found = migrate::applied_version(&mut connection).await?;
        if found == 0 {
            migrate::migrate(&mut connection, &MIGRATIONS, data_dir, 0).await?;
        } else if found != migrate::schema_version() {
            return Err(Error::Conflict(format!(
                "{} was begun by another version of this program: remove it to begin again",
                database.display()
            )));
        }
        let triggers: Vec<String> =
            query_scalar("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
                .fetch_all(&mut connection)
                .await?;
        for trigger in triggers {
            let drop = format!("DROP TRIGGER {}", quoted(&trigger));
            raw_sql(AssertSqlSafe(drop))
                .execute(&mut connection)
                .await?;
        }
        Ok(Self { connection })
    }

    pub(super) async fn page(
        &mut self,
        table: &Table,
        after: Option<&[Datum]>,
    ) -> Result<Vec<Row>, Error> {
        let text = table.select(after.is_some(), PAGE_ROWS);
        let values = arguments(after.unwrap_or_default())?;
        let mut found = query_with(AssertSqlSafe(text), values).fetch(&mut self.connection);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while let Some(row) = found.try_next().await? {
            let row = read(table, &row)?;
            bytes += row.iter().map(Datum::memory).sum::<usize>();
            rows.push(row);
            if bytes > PAGE_BYTES {
                break;
            }
        }
        Ok(rows)
    }

    pub(super) async fn last_key(&mut self, table: &Table) -> Result<Option<Row>, Error> {
        let last = query(AssertSqlSafe(table.select_last()))
            .fetch_optional(&mut self.connection)
            .await?;
        match last {
            Some(last) => Ok(Some(table.key_of(&read(table, &last)?))),
            None => Ok(None),
        }
    }

    pub(super) async fn count(&mut self, table: &Table) -> Result<u64, Error> {
        let count: i64 = query_scalar(AssertSqlSafe(table.count()))
            .fetch_one(&mut self.connection)
            .await?;
        Ok(count.unsigned_abs())
    }

    /// Adds rows in one transaction. References are not checked before [`SqliteSide::finish`].
    pub(super) async fn insert(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error> {
        let numbers = (1..=table.columns.len()).map(|number| format!("${number}"));
        let text = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            quoted(&table.name),
            table.names(),
            numbers.collect::<Vec<_>>().join(", ")
        );
        let mut transaction = self.connection.begin().await?;
        for row in rows {
            query_with(AssertSqlSafe(text.as_str()), arguments(row)?)
                .execute(&mut *transaction)
                .await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Returns the bytes that events take.
    pub(super) async fn event_bytes(&mut self) -> Result<i64, Error> {
        let bytes: Option<i64> = query_scalar("SELECT bytes FROM event_storage")
            .fetch_optional(&mut self.connection)
            .await?;
        Ok(bytes.unwrap_or(0))
    }

    /// Returns the last number of each table that gives none twice.
    pub(super) async fn sequences(&mut self) -> Result<Vec<(String, i64)>, Error> {
        Ok(query_as("SELECT name, seq FROM sqlite_sequence")
            .fetch_all(&mut self.connection)
            .await?)
    }

    /// Completes a database whose rows have arrived: sums, numbers, triggers; checks it.
    pub(super) async fn finish(
        &mut self,
        event_bytes: i64,
        sequences: &[(String, i64)],
    ) -> Result<(), Error> {
        let triggers = triggers().await?;
        let mut transaction = self.connection.begin().await?;
        query("UPDATE event_storage SET bytes = $1")
            .bind(event_bytes)
            .execute(&mut *transaction)
            .await?;
        for (table, last) in sequences {
            // Only of tables that keep their last number: the row may be missing while the table was always empty.
            query(
                "DELETE FROM sqlite_sequence WHERE name = $1 AND EXISTS (
                     SELECT 1 FROM sqlite_schema WHERE name = $1 AND sql LIKE '%AUTOINCREMENT%')",
            )
            .bind(table)
            .execute(&mut *transaction)
            .await?;
            query(
                "INSERT INTO sqlite_sequence (name, seq) SELECT name, $2 FROM sqlite_schema
                 WHERE type = 'table' AND name = $1 AND sql LIKE '%AUTOINCREMENT%'",
            )
            .bind(table)
            .bind(last)
            .execute(&mut *transaction)
            .await?;
        }
        for trigger in triggers {
            raw_sql(AssertSqlSafe(trigger))
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        self.check().await
    }

    async fn check(&mut self) -> Result<(), Error> {
        let dangling = query("PRAGMA foreign_key_check")
            .fetch_all(&mut self.connection)
            .await?;
        if !dangling.is_empty() {
            return Err(Error::Internal(format!(
                "{} rows that were moved refer to rows that do not exist",
                dangling.len()
            )));
        }
        let verdict: String = query_scalar("PRAGMA quick_check(1)")
            .fetch_one(&mut self.connection)
            .await?;
        match verdict.as_str() {
            "ok" => Ok(()),
            _ => Err(Error::Internal(format!(
                "the database that was made is damaged: {verdict}"
            ))),
        }
    }

    pub(super) async fn close(self) -> Result<(), Error> {
        Ok(self.connection.close().await?)
    }
}

/// Makes an empty database of this program's schema, in memory.
pub(super) async fn empty_database() -> Result<SqliteConnection, Error> {
    let mut connection = SqliteConnectOptions::new()
        .in_memory(true)
        .foreign_keys(false)
        .connect()
        .await?;
    MIGRATIONS.run(&mut connection).await?;
    Ok(connection)
}

/// Returns the statements that make the triggers of this program's schema.
async fn triggers() -> Result<Vec<String>, Error> {
    let mut connection = empty_database().await?;
    let triggers = query_scalar("SELECT sql FROM sqlite_schema WHERE type = 'trigger'")
        .fetch_all(&mut connection)
        .await?;
    connection.close().await?;
    Ok(triggers)
}

fn arguments(row: &[Datum]) -> Result<SqliteArguments, Error> {
    let mut arguments = SqliteArguments::default();
    for datum in row {
        match datum {
            Datum::Null => arguments.add(None::<i64>),
            Datum::Integer(number) => arguments.add(*number),
            Datum::Real(number) => arguments.add(*number),
            Datum::Text(text) => arguments.add(text.clone()),
            Datum::Bytes(bytes) => arguments.add(bytes.clone()),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

fn read(table: &Table, row: &SqliteRow) -> Result<Row, Error> {
    let mut values = Vec::with_capacity(table.columns.len());
    for (index, column) in table.columns.iter().enumerate() {
        let value = match column.column_type {
            ColumnType::Integer => row.try_get::<Option<i64>, _>(index)?.map(Datum::Integer),
            ColumnType::Real => row.try_get::<Option<f64>, _>(index)?.map(Datum::Real),
            ColumnType::Text => row.try_get::<Option<String>, _>(index)?.map(Datum::Text),
            ColumnType::Bytes => row.try_get::<Option<Vec<u8>>, _>(index)?.map(Datum::Bytes),
        };
        values.push(value.unwrap_or(Datum::Null));
    }
    Ok(values)
}
