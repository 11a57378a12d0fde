//! Rows of a schema of PostgreSQL: pages in the order of keys, and rows that arrive.

use std::collections::BTreeMap;

use futures_util::TryStreamExt as _;
use sqlx::{
    Arguments as _, AssertSqlSafe, Connection as _, PgConnection, Row as _,
    postgres::{PgArguments, PgRow},
    query, query_as, query_scalar, query_with, raw_sql,
};
use uuid::Uuid;

use super::{
    PAGE_BYTES, PAGE_ROWS,
    catalogue::{ColumnType, OF_PROCESSES, Table, quoted},
    row::{Datum, Row},
};
use crate::Error;

/// Tables that only PostgreSQL has.
const OWN: [&str; 4] = [
    "_sqlx_migrations",
    "changes",
    "event_storage_parts",
    "move_mark",
];
/// Column in which SQLite has an empty id for the top, and PostgreSQL the nil one.
const WITH_TOP: (&str, &str) = ("folder_totals", "folder_id");

/// Connection to a schema.
pub(super) struct PostgresSide {
    pub(super) connection: PgConnection,
    tables: BTreeMap<String, Facts>,
}

/// Facts that the rows of a table need here.
#[derive(Debug, Default)]
struct Facts {
    /// Types of the columns, in the order of [`Table::columns`].
    types: Vec<PgType>,
    /// Columns whose values a sequence gives.
    identities: Vec<String>,
    has_triggers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PgType {
    Number,
    Flag,
    Fraction,
    Text,
    Bytes,
    Id,
    /// An id, the nil one of which is the top.
    IdOrTop,
}

/// Column as the server describes it.
#[derive(Debug, sqlx::FromRow)]
struct Described {
    table: String,
    column: String,
    declared: String,
    is_identity: bool,
    has_triggers: bool,
}

impl PostgresSide {
    /// Takes a connection to a schema of this program's version. `Error::Internal` when it has other tables or columns than
    /// SQLite.
    pub(super) async fn new(mut connection: PgConnection, tables: &[Table]) -> Result<Self, Error> {
        let described: Vec<Described> = query_as(
            "SELECT c.relname::text AS \"table\", a.attname::text AS \"column\", format_type(a.atttypid, NULL) AS declared,
                 a.attidentity <> '' AS is_identity,
                 EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal) AS has_triggers
             FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND a.attnum > 0
                 AND NOT a.attisdropped AND a.attgenerated = ''",
        )
        .fetch_all(&mut connection)
        .await?;
        Ok(Self {
            connection,
            tables: matched(&described, tables)?,
        })
    }

    fn facts(&self, table: &Table) -> Result<&Facts, Error> {
        let facts = self.tables.get(&table.name);
        facts.ok_or_else(|| Error::Internal(format!("the table {} is not known", table.name)))
    }

    pub(super) async fn page(
        &mut self,
        table: &Table,
        after: Option<&[Datum]>,
    ) -> Result<Vec<Row>, Error> {
        let text = table.select(after.is_some(), PAGE_ROWS);
        let types = self.facts(table)?.types.clone();
        let mut values = PgArguments::default();
        for (index, datum) in table.key.iter().zip(after.unwrap_or_default()) {
            add_value(&mut values, types[*index], datum.clone())
                .map_err(|reason| rejected(table, *index, &reason))?;
        }
        let mut found = query_with(AssertSqlSafe(text), values).fetch(&mut self.connection);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while let Some(row) = found.try_next().await? {
            let row = read(&types, &row)?;
            bytes += row.iter().map(Datum::memory).sum::<usize>();
            rows.push(row);
            if bytes > PAGE_BYTES {
                break;
            }
        }
        Ok(rows)
    }

    pub(super) async fn last_key(&mut self, table: &Table) -> Result<Option<Row>, Error> {
        let types = self.facts(table)?.types.clone();
        let last = query(AssertSqlSafe(table.select_last()))
            .fetch_optional(&mut self.connection)
            .await?;
        match last {
            Some(last) => Ok(Some(table.key_of(&read(&types, &last)?))),
            None => Ok(None),
        }
    }

    pub(super) async fn count(&mut self, table: &Table) -> Result<u64, Error> {
        let count: i64 = query_scalar(AssertSqlSafe(table.count()))
            .fetch_one(&mut self.connection)
            .await?;
        Ok(count.unsigned_abs())
    }

    /// Adds rows in one transaction. References to rows of the same table are left to [`PostgresSide::link`].
    pub(super) async fn insert(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error> {
        let types = &self.facts(table)?.types;
        let (mut values, mut arrays) = (PgArguments::default(), Vec::new());
        for (index, pg_type) in types.iter().enumerate() {
            let is_own = table.own_references.contains(&index);
            let column = rows.iter().map(|row| match is_own {
                true => Datum::Null,
                false => row[index].clone(),
            });
            add_array(&mut values, *pg_type, column)
                .map_err(|reason| rejected(table, index, &reason))?;
            arrays.push(format!("${}::{}[]", index + 1, pg_type.name()));
        }
        let text = format!(
            "INSERT INTO {} ({}) SELECT * FROM unnest({})",
            quoted(&table.name),
            table.names(),
            arrays.join(", ")
        );
        self.change(table, text, values).await
    }

    /// Sets the references of rows to rows of the same table.
    pub(super) async fn link(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error> {
        for own in &table.own_references {
            let linked: Vec<&Row> = rows.iter().filter(|row| row[*own] != Datum::Null).collect();
            if linked.is_empty() {
                continue;
            }
            let types = &self.facts(table)?.types;
            let (mut values, mut arrays, mut conditions) =
                (PgArguments::default(), Vec::new(), Vec::new());
            for (number, index) in table.key.iter().chain([own]).enumerate() {
                let column = linked.iter().map(|row| row[*index].clone());
                add_array(&mut values, types[*index], column)
                    .map_err(|reason| rejected(table, *index, &reason))?;
                arrays.push(format!("${}::{}[]", number + 1, types[*index].name()));
                if number < table.key.len() {
                    let name = quoted(&table.columns[*index].name);
                    conditions.push(format!("moved.{name} = given.c{number}"));
                }
            }
            let names = (0..arrays.len()).map(|number| format!("c{number}"));
            let (value, column) = (table.key.len(), quoted(&table.columns[*own].name));
            let text = format!(
                "UPDATE {} AS moved SET {column} = given.c{value} FROM unnest({}) AS given ({})
                 WHERE {} AND moved.{column} IS DISTINCT FROM given.c{value}",
                quoted(&table.name),
                arrays.join(", "),
                names.collect::<Vec<_>>().join(", "),
                conditions.join(" AND ")
            );
            self.change(table, text, values).await?;
        }
        Ok(())
    }

    /// Runs a statement without the triggers of the program: what they would write is moved, too.
    async fn change(
        &mut self,
        table: &Table,
        text: String,
        values: PgArguments,
    ) -> Result<(), Error> {
        let has_triggers = self.facts(table)?.has_triggers;
        let triggers =
            |what: &str| format!("ALTER TABLE {} {what} TRIGGER USER", quoted(&table.name));
        let mut transaction = self.connection.begin().await?;
        if has_triggers {
            raw_sql(AssertSqlSafe(triggers("DISABLE")))
                .execute(&mut *transaction)
                .await?;
        }
        query_with(AssertSqlSafe(text), values)
            .execute(&mut *transaction)
            .await?;
        if has_triggers {
            raw_sql(AssertSqlSafe(triggers("ENABLE")))
                .execute(&mut *transaction)
                .await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Returns the bytes that events take.
    pub(super) async fn event_bytes(&mut self) -> Result<i64, Error> {
        Ok(query_scalar("SELECT bytes FROM event_storage")
            .fetch_one(&mut self.connection)
            .await?)
    }

    /// Returns the last number of each table whose rows are numbered.
    pub(super) async fn sequences(&mut self) -> Result<Vec<(String, i64)>, Error> {
        let mut sequences = Vec::new();
        for (table, facts) in &self.tables {
            for column in &facts.identities {
                let last: i64 = query_scalar(
                    "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, $2)::regclass), 0)",
                )
                .bind(quoted(table))
                .bind(column)
                .fetch_one(&mut self.connection)
                .await?;
                sequences.push((table.clone(), last));
            }
        }
        Ok(sequences)
    }

    /// Completes a schema whose rows have arrived: sums and numbers.
    pub(super) async fn finish(
        &mut self,
        event_bytes: i64,
        sequences: &[(String, i64)],
    ) -> Result<(), Error> {
        let mut transaction = self.connection.begin().await?;
        query("DELETE FROM event_storage_parts")
            .execute(&mut *transaction)
            .await?;
        query("INSERT INTO event_storage_parts (part, bytes) VALUES (0, $1)")
            .bind(event_bytes)
            .execute(&mut *transaction)
            .await?;
        for (table, facts) in &self.tables {
            let given = sequences.iter().filter(|(name, _)| name == table);
            let given = given.map(|(_, last)| *last).max().unwrap_or(0);
            for column in &facts.identities {
                let largest = format!("SELECT max({}) FROM {}", quoted(column), quoted(table));
                let largest: Option<i64> = query_scalar(AssertSqlSafe(largest))
                    .fetch_one(&mut *transaction)
                    .await?;
                let last = given.max(largest.unwrap_or(0));
                if last < 1 {
                    continue;
                }
                query("SELECT setval(pg_get_serial_sequence($1, $2)::regclass, $3)")
                    .bind(quoted(table))
                    .bind(column)
                    .bind(last)
                    .execute(&mut *transaction)
                    .await?;
            }
        }
        Ok(transaction.commit().await?)
    }

    pub(super) async fn close(self) -> Result<(), Error> {
        Ok(self.connection.close().await?)
    }
}

impl PgType {
    /// Returns the type of a column that has the values of one of SQLite.
    fn of(table: &str, column: &str, column_type: ColumnType, declared: &str) -> Option<Self> {
        Some(match (column_type, declared) {
            (ColumnType::Integer, "bigint") => Self::Number,
            (ColumnType::Integer, "boolean") => Self::Flag,
            (ColumnType::Real, "double precision") => Self::Fraction,
            (ColumnType::Text, "text") => Self::Text,
            (ColumnType::Bytes, "bytea") => Self::Bytes,
            (ColumnType::Bytes, "uuid") if (table, column) == WITH_TOP => Self::IdOrTop,
            (ColumnType::Bytes, "uuid") => Self::Id,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Number => "bigint",
            Self::Flag => "boolean",
            Self::Fraction => "double precision",
            Self::Text => "text",
            Self::Bytes => "bytea",
            Self::Id | Self::IdOrTop => "uuid",
        }
    }
}

/// Finds each column of SQLite among those of the schema, which has no others.
fn matched(described: &[Described], tables: &[Table]) -> Result<BTreeMap<String, Facts>, Error> {
    let moved = described
        .iter()
        .map(|found| (found.table.as_str(), found))
        .filter(|(table, _)| !OWN.contains(table) && !OF_PROCESSES.contains(table));
    let mut left: BTreeMap<(&str, &str), &Described> = moved
        .map(|(table, found)| ((table, found.column.as_str()), found))
        .collect();
    let mut matched = BTreeMap::new();
    for table in tables {
        let mut facts = Facts::default();
        for column in &table.columns {
            let name = (table.name.as_str(), column.name.as_str());
            let found = left.remove(&name);
            let pg_type = found
                .and_then(|found| PgType::of(name.0, name.1, column.column_type, &found.declared));
            let (Some(found), Some(pg_type)) = (found, pg_type) else {
                return Err(differ(name.0, name.1));
            };
            facts.types.push(pg_type);
            facts.has_triggers |= found.has_triggers;
            if found.is_identity {
                facts.identities.push(column.name.clone());
            }
        }
        matched.insert(table.name.clone(), facts);
    }
    match left.first_key_value() {
        None => Ok(matched),
        Some(((table, column), _)) => Err(differ(table, column)),
    }
}

fn differ(table: &str, column: &str) -> Error {
    Error::Internal(format!(
        "SQLite and PostgreSQL differ in the column {column} of the table {table}"
    ))
}

fn rejected(table: &Table, index: usize, reason: &str) -> Error {
    let (table, column) = (&table.name, &table.columns[index].name);
    Error::Invalid(format!(
        "a row of {table} cannot be moved: its {column} {reason}"
    ))
}

fn add_value(arguments: &mut PgArguments, pg_type: PgType, value: Datum) -> Result<(), String> {
    let added = match pg_type {
        PgType::Number => arguments.add(number(value)?),
        PgType::Flag => arguments.add(flag(value)?),
        PgType::Fraction => arguments.add(fraction(value)?),
        PgType::Text => arguments.add(text(value)?),
        PgType::Bytes => arguments.add(bytes(value)?),
        PgType::Id => arguments.add(id(value)?),
        PgType::IdOrTop => arguments.add(id_or_top(value)?),
    };
    added.map_err(|error| error.to_string())
}

fn add_array(
    arguments: &mut PgArguments,
    pg_type: PgType,
    values: impl Iterator<Item = Datum>,
) -> Result<(), String> {
    let added = match pg_type {
        PgType::Number => arguments.add(all(values, number)?),
        PgType::Flag => arguments.add(all(values, flag)?),
        PgType::Fraction => arguments.add(all(values, fraction)?),
        PgType::Text => arguments.add(all(values, text)?),
        PgType::Bytes => arguments.add(all(values, bytes)?),
        PgType::Id => arguments.add(all(values, id)?),
        PgType::IdOrTop => arguments.add(all(values, id_or_top)?),
    };
    added.map_err(|error| error.to_string())
}

fn all<T>(
    values: impl Iterator<Item = Datum>,
    convert: fn(Datum) -> Result<Option<T>, String>,
) -> Result<Vec<Option<T>>, String> {
    values.map(convert).collect()
}

fn number(value: Datum) -> Result<Option<i64>, String> {
    match value {
        Datum::Null => Ok(None),
        Datum::Integer(number) => Ok(Some(number)),
        _ => Err("is no number".to_owned()),
    }
}

fn flag(value: Datum) -> Result<Option<bool>, String> {
    match value {
        Datum::Null => Ok(None),
        Datum::Integer(0) => Ok(Some(false)),
        Datum::Integer(1) => Ok(Some(true)),
        _ => Err("is neither 0 nor 1".to_owned()),
    }
}

fn fraction(value: Datum) -> Result<Option<f64>, String> {
    match value {
        Datum::Null => Ok(None),
        Datum::Real(number) => Ok(Some(number)),
        _ => Err("is no number".to_owned()),
    }
}

fn text(value: Datum) -> Result<Option<String>, String> {
    match value {
        Datum::Null => Ok(None),
        Datum::Text(text) if text.contains('\0') => {
            let beginning: String = text.chars().take(60).collect();
            Err(format!(
                "has a NUL character, which PostgreSQL does not keep, in {beginning:?}: change or delete it in the service first"
            ))
        }
        Datum::Text(text) => Ok(Some(text)),
        _ => Err("is no text".to_owned()),
    }
}

fn bytes(value: Datum) -> Result<Option<Vec<u8>>, String> {
    match value {
        Datum::Null => Ok(None),
        Datum::Bytes(bytes) => Ok(Some(bytes)),
        _ => Err("is no bytes".to_owned()),
    }
}

fn id(value: Datum) -> Result<Option<Uuid>, String> {
    match value {
        Datum::Null => Ok(None),
        Datum::Bytes(bytes) => match Uuid::from_slice(&bytes) {
            Ok(id) => Ok(Some(id)),
            Err(_) => Err(format!("is an id of {} bytes", bytes.len())),
        },
        _ => Err("is no id".to_owned()),
    }
}

fn id_or_top(value: Datum) -> Result<Option<Uuid>, String> {
    match value {
        Datum::Bytes(bytes) if bytes.is_empty() => Ok(Some(Uuid::nil())),
        other => id(other),
    }
}

fn read(types: &[PgType], row: &PgRow) -> Result<Row, Error> {
    let mut values = Vec::with_capacity(types.len());
    for (index, pg_type) in types.iter().enumerate() {
        let value = match pg_type {
            PgType::Number => row.try_get::<Option<i64>, _>(index)?.map(Datum::Integer),
            PgType::Flag => row
                .try_get::<Option<bool>, _>(index)?
                .map(|flag| Datum::Integer(flag.into())),
            PgType::Fraction => row.try_get::<Option<f64>, _>(index)?.map(Datum::Real),
            PgType::Text => row.try_get::<Option<String>, _>(index)?.map(Datum::Text),
            PgType::Bytes => row.try_get::<Option<Vec<u8>>, _>(index)?.map(Datum::Bytes),
            PgType::Id => row.try_get::<Option<Uuid>, _>(index)?.map(of_id),
            PgType::IdOrTop => row
                .try_get::<Option<Uuid>, _>(index)?
                .map(|id| match id.is_nil() {
                    true => Datum::Bytes(Vec::new()),
                    false => of_id(id),
                }),
        };
        values.push(value.unwrap_or(Datum::Null));
    }
    Ok(values)
}

fn of_id(id: Uuid) -> Datum {
    Datum::Bytes(id.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_postgresql_cannot_hold_are_rejected() {
        let mut arguments = PgArguments::default();
        let mut add = |pg_type, value| add_value(&mut arguments, pg_type, value);
        for (pg_type, value) in [
            (PgType::Flag, Datum::Integer(2)),
            (PgType::Id, Datum::Bytes(Vec::new())),
            (PgType::Id, Datum::Text("0123456789abcdef".into())),
            (PgType::Text, Datum::Text("a\0b".into())),
            (PgType::Number, Datum::Real(1.0)),
        ] {
            assert!(add(pg_type, value.clone()).is_err(), "{value:?}");
        }
        for (pg_type, value) in [
            (PgType::Flag, Datum::Integer(1)),
            (PgType::IdOrTop, Datum::Bytes(Vec::new())),
            (PgType::Id, Datum::Bytes(vec![7; 16])),
            (PgType::Text, Datum::Null),
            (PgType::Bytes, Datum::Bytes(Vec::new())),
        ] {
            assert_eq!(add(pg_type, value), Ok(()));
        }
    }
}
