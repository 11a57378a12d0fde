//! Tables of SQLite as rows are moved from or to them: columns, keys, and the order in which references hold.

use std::collections::BTreeSet;

use sqlx::{SqliteConnection, query_as, query_scalar};

use super::row::{Datum, Row};
use crate::Error;

/// Sum that triggers keep: SQLite has it in one row, PostgreSQL in parts.
const SUMMED: &str = "event_storage";
/// Tables whose rows are of the database's processes, not of the service: nodes that have ended, programs that may run on the
/// schema, counts of a minute.
pub(super) const OF_PROCESSES: [&str; 3] = ["counters", "nodes", "schema_floor"];
/// Key of a table that declares none.
const ROW_ID: &str = "rowid";

/// Type of a column, as SQLite declares it. All tables are strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Integer,
    Real,
    Text,
    Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) column_type: ColumnType,
}

/// A table whose rows are moved as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) name: String,
    /// All but generated ones.
    pub(super) columns: Vec<Column>,
    /// Indexes into `columns` of the primary key's columns, in its order.
    pub(super) key: Vec<usize>,
    /// Indexes into `columns` of references to the table itself.
    pub(super) own_references: Vec<usize>,
    /// Tables that its rows refer to, itself left out.
    references: BTreeSet<String>,
}

impl Table {
    /// Returns the key of a row.
    pub(super) fn key_of(&self, row: &[Datum]) -> Row {
        self.key.iter().map(|index| row[*index].clone()).collect()
    }

    pub(super) fn index_of(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|found| found.name == column)
    }

    /// Returns the names of the columns, for a statement.
    pub(super) fn names(&self) -> String {
        let names = self.columns.iter().map(|column| quoted(&column.name));
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns the names of the key's columns, for a statement, each with this text after it.
    pub(super) fn key_names(&self, after: &str) -> String {
        let names = self.key.iter().map(|index| {
            let name = quoted(&self.columns[*index].name);
            format!("{name}{after}")
        });
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns the statement that reads a page of rows in the order of their keys. The key of the row before it is bound
    /// when there is one.
    pub(super) fn select(&self, has_before: bool, most: usize) -> String {
        let (names, table, keys) = (self.names(), quoted(&self.name), self.key_names(""));
        let after = match has_before {
            true => {
                let numbers = (1..=self.key.len()).map(|number| format!("${number}"));
                let numbers = numbers.collect::<Vec<_>>().join(", ");
                format!(" WHERE ({keys}) > ({numbers})")
            }
            false => String::new(),
        };
        format!("SELECT {names} FROM {table}{after} ORDER BY {keys} LIMIT {most}")
    }

    /// Returns the statement that reads the row with the greatest key.
    pub(super) fn select_last(&self) -> String {
        let (names, table) = (self.names(), quoted(&self.name));
        let keys = self.key_names(" DESC");
        format!("SELECT {names} FROM {table} ORDER BY {keys} LIMIT 1")
    }

    pub(super) fn count(&self) -> String {
        format!("SELECT count(*) FROM {}", quoted(&self.name))
    }
}

/// Returns a name for a statement.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Reads the tables, in an order in which each is behind those that it refers to; the installation's comes first.
pub(super) async fn tables(connection: &mut SqliteConnection) -> Result<Vec<Table>, Error> {
    let names: Vec<String> = query_scalar(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
             AND name NOT IN ('_sqlx_migrations', $1)
         ORDER BY name <> 'installation', name",
    )
    .bind(SUMMED)
    .fetch_all(&mut *connection)
    .await?;
    let mut tables = Vec::with_capacity(names.len());
    let moved = names
        .into_iter()
        .filter(|name| !OF_PROCESSES.contains(&name.as_str()));
    for name in moved {
        tables.push(table(connection, name).await?);
    }
    in_order(tables)
}

async fn table(connection: &mut SqliteConnection, name: String) -> Result<Table, Error> {
    let found: Vec<(String, String, i64)> =
        query_as("SELECT name, type, pk FROM pragma_table_xinfo($1) WHERE hidden = 0 ORDER BY cid")
            .bind(&name)
            .fetch_all(&mut *connection)
            .await?;
    let foreign: Vec<(String, String)> =
        query_as("SELECT \"table\", \"from\" FROM pragma_foreign_key_list($1)")
            .bind(&name)
            .fetch_all(&mut *connection)
            .await?;
    let mut columns = Vec::with_capacity(found.len() + 1);
    let mut key: Vec<(i64, usize)> = Vec::new();
    if found.iter().all(|(_, _, in_key)| *in_key == 0) {
        key.push((1, 0));
        columns.push(Column {
            name: ROW_ID.to_owned(),
            column_type: ColumnType::Integer,
        });
    }
    for (column, declared, in_key) in found {
        if in_key > 0 {
            key.push((in_key, columns.len()));
        }
        let column_type = type_of(&declared).ok_or_else(|| {
            Error::Internal(format!("the column {name}.{column} is of type {declared}"))
        })?;
        columns.push(Column {
            name: column,
            column_type,
        });
    }
    key.sort_unstable();
    let own_references = foreign
        .iter()
        .filter(|(to, _)| *to == name)
        .filter_map(|(_, from)| columns.iter().position(|column| column.name == *from));
    Ok(Table {
        own_references: own_references.collect(),
        references: foreign
            .iter()
            .filter(|(to, _)| *to != name)
            .map(|(to, _)| to.clone())
            .collect(),
        key: key.into_iter().map(|(_, index)| index).collect(),
        columns,
        name,
    })
}

fn type_of(declared: &str) -> Option<ColumnType> {
    Some(match declared {
        "INTEGER" | "INT" => ColumnType::Integer,
        "REAL" => ColumnType::Real,
        "TEXT" => ColumnType::Text,
        "BLOB" => ColumnType::Bytes,
        _ => return None,
    })
}

fn in_order(mut left: Vec<Table>) -> Result<Vec<Table>, Error> {
    let mut ordered: Vec<Table> = Vec::with_capacity(left.len());
    let mut placed = BTreeSet::new();
    while !left.is_empty() {
        let (ready, waiting): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|table| table.references.is_subset(&placed));
        if ready.is_empty() {
            let names: Vec<_> = waiting.iter().map(|table| &*table.name).collect();
            let names = names.join(", ");
            return Err(Error::Internal(format!(
                "tables refer to each other: {names}"
            )));
        }
        placed.extend(ready.iter().map(|table| table.name.clone()));
        ordered.extend(ready);
        left = waiting;
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use sqlx::{ConnectOptions as _, raw_sql, sqlite::SqliteConnectOptions};

    use super::{super::sqlite::empty_database, *};

    async fn in_memory() -> SqliteConnection {
        let options = SqliteConnectOptions::new().in_memory(true);
        options.connect().await.unwrap()
    }

    #[tokio::test]
    async fn references_hold_in_the_order_of_the_tables() {
        let mut connection = empty_database().await.unwrap();
        let tables = tables(&mut connection).await.unwrap();
        assert_eq!(tables[0].name, "installation");
        let place = |name: &str| tables.iter().position(|table| table.name == name);
        for (before, after) in [
            ("accounts", "users"),
            ("folders", "files"),
            ("blobs", "files"),
            ("files", "video_streams"),
            ("workflow_versions", "workflow_runs"),
            ("webhook_deliveries", "webhook_attempts"),
        ] {
            assert!(place(before).unwrap() < place(after).unwrap(), "{before}");
        }
        for not_moved in OF_PROCESSES.into_iter().chain([SUMMED]) {
            assert_eq!(place(not_moved), None, "{not_moved}");
        }
        let own: Vec<_> = tables
            .iter()
            .filter(|table| !table.own_references.is_empty())
            .map(|table| &*table.name)
            .collect();
        assert_eq!(own, ["folders"]);
    }

    #[tokio::test]
    async fn keys_and_columns_are_those_of_the_tables() {
        let mut connection = in_memory().await;
        let script =
            "CREATE TABLE b (y TEXT, x BLOB, z REAL, w INTEGER GENERATED ALWAYS AS (1) STORED,
                 PRIMARY KEY (x, y)) STRICT, WITHOUT ROWID;
             CREATE TABLE a (x BLOB REFERENCES b (x)) STRICT;";
        raw_sql(script).execute(&mut connection).await.unwrap();
        let tables = tables(&mut connection).await.unwrap();
        let [b, a] = tables.as_slice() else {
            panic!("{tables:?}")
        };
        assert_eq!(
            (b.names(), b.key_names("")),
            names("\"y\", \"x\", \"z\"", "\"x\", \"y\"")
        );
        assert_eq!(
            (a.names(), a.key_names("")),
            names("\"rowid\", \"x\"", "\"rowid\"")
        );
        assert_eq!(
            b.select(true, 5),
            "SELECT \"y\", \"x\", \"z\" FROM \"b\" WHERE (\"x\", \"y\") > ($1, $2) ORDER BY \"x\", \"y\" LIMIT 5"
        );
    }

    fn names(columns: &str, key: &str) -> (String, String) {
        (columns.to_owned(), key.to_owned())
    }

    #[tokio::test]
    async fn tables_that_refer_to_each_other_have_no_order() {
        let mut connection = in_memory().await;
        let script = "CREATE TABLE a (x BLOB PRIMARY KEY REFERENCES b (x)) STRICT;
             CREATE TABLE b (x BLOB PRIMARY KEY REFERENCES a (x)) STRICT;";
        raw_sql(script).execute(&mut connection).await.unwrap();
        let error = tables(&mut connection).await.unwrap_err();
        assert!(matches!(error, Error::Internal(_)), "{error:?}");
    }
}
