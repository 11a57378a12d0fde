//! Connections on which SQL runs: `Tx` in a transaction of a writer, `Reader` from the pool. The drivers' types stay hidden, so
//! that verbs do not know which engine they run on.

use sqlx::{PgConnection, PgPool, Postgres, Sqlite, SqliteConnection, pool::PoolConnection};
use tokio::{runtime::Handle, time::timeout};

use crate::serial::Serial;

/// Unit of work inside a writer's transaction. Only verbs of this crate can use it.
pub struct Tx<'c> {
    driver: Driver<'c>,
    serial: Serial,
    /// The last event that it has written down.
    newest_event: Option<i64>,
}

impl<'c> Tx<'c> {
    pub(crate) fn sqlite(connection: &'c mut SqliteConnection) -> Self {
        Self {
            driver: Driver::Sqlite(connection),
            // One writer: every unit is serial with every other.
            serial: Serial::All,
            newest_event: None,
        }
    }

    pub(crate) fn postgres(connection: &'c mut PgConnection, serial: Serial) -> Self {
        Self {
            driver: Driver::Postgres(connection),
            serial,
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

    /// Units that run at no time beside this one.
    pub(crate) fn serial(&self) -> Serial {
        self.serial
    }
}

/// Read-only connection, returned to the pool when dropped. Hold it for a few statements, never across other waits.
pub struct Reader {
    connection: Pooled,
}

pub(crate) enum Pooled {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PooledPostgres),
}

/// Connection of PostgreSQL from a pool, which is back in the pool or closed within the time that a caller waits for one.
///
/// The pool itself would wait without end for a server that is silent, after a time-out or when a caller left in the middle of a
/// statement, and would open no other connection meanwhile.
pub(crate) struct PooledPostgres {
    connection: PoolConnection<Postgres>,
    pool: PgPool,
}

impl PooledPostgres {
    pub(crate) async fn acquire(pool: &PgPool) -> Result<Self, sqlx::Error> {
        Ok(Self {
            connection: pool.acquire().await?,
            pool: pool.clone(),
        })
    }
}

impl Drop for PooledPostgres {
    fn drop(&mut self) {
        // Dropped before its end, this closes the connection and gives its place to another.
        let returned = self.connection.return_to_pool();
        if let Ok(runtime) = Handle::try_current() {
            let within = self.pool.options().get_acquire_timeout();
            runtime.spawn(timeout(within, returned));
        }
    }
}

impl Reader {
    pub(crate) fn new(connection: Pooled) -> Self {
        Self { connection }
    }
}

/// Connection of either engine.
pub(crate) enum Driver<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

/// Connection for verbs that only read: a [`Tx`] or a [`Reader`].
#[expect(
    private_bounds,
    reason = "callers can neither use the driver nor add connections of their own"
)]
pub trait Connection: Drive + Send {}

impl Connection for Tx<'_> {}
impl Connection for Reader {}

pub(crate) trait Drive {
    fn driver(&mut self) -> Driver<'_>;
}

impl Drive for Tx<'_> {
    fn driver(&mut self) -> Driver<'_> {
        match &mut self.driver {
            Driver::Sqlite(connection) => Driver::Sqlite(connection),
            Driver::Postgres(connection) => Driver::Postgres(connection),
        }
    }
}

impl Drive for Reader {
    fn driver(&mut self) -> Driver<'_> {
        match &mut self.connection {
            Pooled::Sqlite(connection) => Driver::Sqlite(connection),
            Pooled::Postgres(pooled) => Driver::Postgres(&mut pooled.connection),
        }
    }
}
