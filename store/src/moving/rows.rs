//! Moves the rows of all tables, and compares both sides.

use super::{
    MoveProgress, Watch,
    catalogue::Table,
    row::{Datum, Row, Sum},
    side::Side,
};
use crate::Error;

/// Values that rows have in the new place instead of their own, as (table, column, value).
pub(super) type Replaced = &'static [(&'static str, &'static str, Datum)];

/// For rows that are moved as they are.
pub(super) const NOTHING: Replaced = &[];

/// For rows whose bytes are brought back from the object store.
pub(super) const PLACES: Replaced = &[
    ("blobs", "base", Datum::Null),
    ("blobs", "piece_hashes", Datum::Null),
    ("tus_uploads", "base", Datum::Null),
    ("tus_uploads", "piece_hashes", Datum::Null),
    ("tus_uploads", "tail", Datum::Integer(0)),
    ("tus_uploads", "tail_hash", Datum::Null),
];

/// Columns that are not compared, since they change as bytes are moved.
const WRITTEN_LATER: Replaced = &[
    ("blobs", "base", Datum::Null),
    ("blobs", "piece_hashes", Datum::Null),
];

fn replace(table: &Table, replaced: Replaced, rows: &mut [Row]) {
    for (name, column, value) in replaced {
        if *name != table.name {
            continue;
        }
        let Some(index) = table.index_of(column) else {
            continue;
        };
        for row in rows.iter_mut() {
            row[index] = value.clone();
        }
    }
}

/// Adds the rows that the target does not have yet, and what is made of all of them.
pub(super) async fn copy(
    source: &mut Side,
    target: &mut Side,
    tables: &[Table],
    replaced: Replaced,
    watch: &mut Watch,
) -> Result<(), Error> {
    for table in tables {
        copy_table(source, target, table, replaced, watch).await?;
        if target.links_later() && !table.own_references.is_empty() {
            link(source, target, table).await?;
        }
    }
    let (event_bytes, sequences) = (source.event_bytes().await?, source.sequences().await?);
    target.finish(event_bytes, &sequences).await
}

async fn copy_table(
    source: &mut Side,
    target: &mut Side,
    table: &Table,
    replaced: Replaced,
    watch: &mut Watch,
) -> Result<(), Error> {
    let total = source.count(table).await?;
    let mut count = target.count(table).await?;
    let mut last = target.last_key(table).await?;
    loop {
        let mut rows = source.page(table, last.as_deref()).await?;
        let Some(end) = rows.last() else {
            return Ok(());
        };
        last = Some(table.key_of(end));
        replace(table, replaced, &mut rows);
        target.insert(table, &rows).await?;
        count += rows.len() as u64;
        watch(MoveProgress::Rows {
            table: table.name.clone(),
            count,
            total,
        });
    }
}

async fn link(source: &mut Side, target: &mut Side, table: &Table) -> Result<(), Error> {
    let mut last: Option<Row> = None;
    loop {
        let rows = source.page(table, last.as_deref()).await?;
        let Some(end) = rows.last() else {
            return Ok(());
        };
        last = Some(table.key_of(end));
        target.link(table, &rows).await?;
    }
}

/// Compares the rows of all tables by their number and a sum; returns the number of all. `Error::Conflict` when they differ.
pub(super) async fn compare(
    source: &mut Side,
    target: &mut Side,
    tables: &[Table],
    replaced: Replaced,
    watch: &mut Watch,
) -> Result<u64, Error> {
    let mut rows = 0;
    for table in tables {
        watch(MoveProgress::Compared {
            table: table.name.clone(),
        });
        let expected = sum(source, table, replaced).await?;
        let found = sum(target, table, NOTHING).await?;
        if expected != found {
            return Err(Error::Conflict(format!(
                "the rows of {} are not the same after the move ({} and {}): they were changed since it began; \
                 remove what has arrived, and begin again",
                table.name, expected.rows, found.rows
            )));
        }
        rows += found.rows;
    }
    let (expected, found) = (source.event_bytes().await?, target.event_bytes().await?);
    match expected == found {
        true => Ok(rows),
        false => Err(Error::Internal(format!(
            "events take {expected} bytes, and {found} after the move"
        ))),
    }
}

async fn sum(side: &mut Side, table: &Table, replaced: Replaced) -> Result<Sum, Error> {
    let mut sum = Sum::default();
    let mut last: Option<Row> = None;
    loop {
        let mut rows = side.page(table, last.as_deref()).await?;
        let Some(end) = rows.last() else {
            return Ok(sum);
        };
        last = Some(table.key_of(end));
        replace(table, replaced, &mut rows);
        replace(table, WRITTEN_LATER, &mut rows);
        for row in &rows {
            sum.add(row);
        }
    }
}
