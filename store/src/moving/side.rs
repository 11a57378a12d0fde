//! One of the two databases of a move, on either engine.

use super::{
    catalogue::Table,
    postgres::PostgresSide,
    row::{Datum, Row},
    sqlite::SqliteSide,
};
use crate::{Error, Tx, serial::Serial};

pub(super) enum Side {
    Sqlite(SqliteSide),
    Postgres(PostgresSide),
}

impl Side {
    /// Returns the connection for statements that both engines know. Each of them is a transaction of its own.
    pub(super) fn tx(&mut self) -> Tx<'_> {
        match self {
            Self::Sqlite(side) => Tx::sqlite(&mut side.connection),
            Self::Postgres(side) => Tx::postgres(&mut side.connection, Serial::Nothing),
        }
    }

    /// Reads rows in the order of their keys, behind the row with that key: as many as may be in memory. None after the last.
    pub(super) async fn page(
        &mut self,
        table: &Table,
        after: Option<&[Datum]>,
    ) -> Result<Vec<Row>, Error> {
        match self {
            Self::Sqlite(side) => side.page(table, after).await,
            Self::Postgres(side) => side.page(table, after).await,
        }
    }

    /// Returns the greatest key of a table. Rows arrive in the order of their keys, so that a move continues behind it.
    pub(super) async fn last_key(&mut self, table: &Table) -> Result<Option<Row>, Error> {
        match self {
            Self::Sqlite(side) => side.last_key(table).await,
            Self::Postgres(side) => side.last_key(table).await,
        }
    }

    pub(super) async fn count(&mut self, table: &Table) -> Result<u64, Error> {
        match self {
            Self::Sqlite(side) => side.count(table).await,
            Self::Postgres(side) => side.count(table).await,
        }
    }

    /// Adds rows in one transaction.
    pub(super) async fn insert(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error> {
        match self {
            Self::Sqlite(side) => side.insert(table, rows).await,
            Self::Postgres(side) => side.insert(table, rows).await,
        }
    }

    /// Sets references of rows to rows of the same table, all of which have arrived.
    pub(super) async fn link(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error> {
        match self {
            // They came with the rows.
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(side) => side.link(table, rows).await,
        }
    }

    /// Returns whether references to rows of the same table are set after all its rows have arrived.
    pub(super) fn links_later(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    pub(super) async fn event_bytes(&mut self) -> Result<i64, Error> {
        match self {
            Self::Sqlite(side) => side.event_bytes().await,
            Self::Postgres(side) => side.event_bytes().await,
        }
    }

    pub(super) async fn sequences(&mut self) -> Result<Vec<(String, i64)>, Error> {
        match self {
            Self::Sqlite(side) => side.sequences().await,
            Self::Postgres(side) => side.sequences().await,
        }
    }

    /// Completes the database to which rows were moved.
    pub(super) async fn finish(
        &mut self,
        event_bytes: i64,
        sequences: &[(String, i64)],
    ) -> Result<(), Error> {
        match self {
            Self::Sqlite(side) => side.finish(event_bytes, sequences).await,
            Self::Postgres(side) => side.finish(event_bytes, sequences).await,
        }
    }

    pub(super) async fn close(self) -> Result<(), Error> {
        match self {
            Self::Sqlite(side) => side.close().await,
            Self::Postgres(side) => side.close().await,
        }
    }
}
