//! Connections on which SQL runs: `Tx` in the writer's transaction, `Reader` from the pool. The driver's types stay
//! hidden, so that another database can be put behind the same verbs.

use sqlx::{Sqlite, SqliteConnection, pool::PoolConnection};

/// Unit of work inside the writer's transaction. Only verbs of this crate can use it.
pub struct Tx<'c> {
    connection: &'c mut SqliteConnection,
    /// The last event that it has written down.
    newest_event: Option<i64>,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(connection: &'c mut SqliteConnection) -> Self {
        Self {
            connection,
            newest_event: None,
        }
    }

    /// Notes an event for the writer, which publishes it after the commit.
    pub(crate) fn note_event(&mut self, seq: i64) {
        self.newest_event = self.newest_event.max(Some(seq));
    }

    pub(crate) fn newest_event(&self) -> Option<i64> {
        self.newest_event
    }

    pub(crate) fn sqlite(&mut self) -> &mut SqliteConnection {
        self.connection
    }
}

/// Read-only connection, returned to the pool when dropped. Hold it for a few statements, never across other waits.
pub struct Reader {
    connection: PoolConnection<Sqlite>,
}

impl Reader {
    pub(crate) fn new(connection: PoolConnection<Sqlite>) -> Self {
        Self { connection }
    }
}

/// Connection for verbs that only read: a [`Tx`] or a [`Reader`].
pub trait Connection: sealed::Driver + Send {}

impl Connection for Tx<'_> {}
impl Connection for Reader {}

pub(crate) mod sealed {
    use sqlx::SqliteConnection;

    /// Private outside the crate: callers can neither use the driver nor add connections of their own.
    pub trait Driver {
        fn sqlite(&mut self) -> &mut SqliteConnection;
    }

    impl Driver for super::Tx<'_> {
        fn sqlite(&mut self) -> &mut SqliteConnection {
            self.connection
        }
    }

    impl Driver for super::Reader {
        fn sqlite(&mut self) -> &mut SqliteConnection {
            &mut self.connection
        }
    }
}
