//! The one writer of SQLite: group commits, a locked database, a full or failing disk, truncation of the
//! write-ahead log. It takes queued units of work in groups, each group one commit, each unit in a savepoint of its
//! own.
//!
//! - A caller is answered after the commit, whatever the answer is: a rejection may rest on an uncommitted unit of the
//!   same group.
//! - When the database is locked or the disk fails, the writer waits and tries again; units are rejected when their
//!   time has passed. It publishes why ([`WriteFailure`]) and detects by itself when it is over.
//! - A connection that failed in any way is replaced.
//! - Ends when its queue is closed and empty.

use std::{fs, path::PathBuf, sync::atomic::Ordering::Relaxed, time::Duration};

use sqlx::{
    ConnectOptions, Connection as _, SqliteConnection, query, sqlite::SqliteConnectOptions,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tracing::warn;

use crate::{
    Error, Tx,
    changes::{Recorded, Recorder},
    folder::FolderLock,
    now_ms,
    published::{Published, reason_of},
    serial::Serial,
    statement,
    unit::{Queued, Submitted},
};

/// Time for which SQLite itself waits for a lock: the writer looks after its queue in between.
pub(crate) const LOCK_WAIT: Duration = Duration::from_millis(250);
/// Shortest wait that is published as a `WriteFailure`.
const FAILING_AFTER: Duration = Duration::from_secs(1);
/// Interval of the writer's probes while changes fail and none is queued.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Interval of attempts to truncate a log that readers hold.
const TRUNCATE_EVERY: Duration = Duration::from_secs(1);
/// Time for which a truncation may wait for readers.
const TRUNCATE_WAIT: Duration = Duration::from_millis(20);

pub(crate) struct Writer {
    pub(crate) queue: mpsc::Receiver<Queued>,
    pub(crate) commit_group: usize,
    pub(crate) options: SqliteConnectOptions,
    /// `None` after a failure, until the next attempt.
    pub(crate) connection: Option<SqliteConnection>,
    pub(crate) wal: PathBuf,
    pub(crate) wal_truncate_above: u64,
    pub(crate) next_truncation: Instant,
    pub(crate) published: Published,
    pub(crate) recorder: Recorder,
    /// Released when the writer has ended, and not before; `None` beside a running service.
    pub(crate) lock: Option<FolderLock>,
}

impl Writer {
    pub(crate) async fn run(mut self) {
        while let Some(group) = self.next_group().await {
            self.commit(group).await;
            self.truncate_log().await;
        }
        if let Some(connection) = self.connection.take() {
            // The last connection to close writes the log back and removes it.
            if let Err(error) = connection.close().await {
                warn!(%error, "closing the database");
            }
        }
        // Only now: another process must not open the folder before the log is written back.
        drop(self.lock);
    }

    /// Waits for work and takes what is queued; `None` when the queue is closed and empty.
    async fn next_group(&mut self) -> Option<Vec<Queued>> {
        // Without probes an outage that is over would be reported until the next change.
        let first = if self.published.is_failing() {
            match timeout(PROBE_EVERY, self.queue.recv()).await {
                Ok(received) => received?,
                Err(_) => probe(Serial::All),
            }
        } else {
            self.queue.recv().await?
        };
        let mut group = vec![first];
        self.fill(&mut group);
        Some(group)
    }

    /// Takes more units, up to the size of a group.
    fn fill(&mut self, group: &mut Vec<Queued>) {
        while group.len() < self.commit_group {
            match self.queue.try_recv() {
                Ok(queued) => group.push(queued),
                Err(_) => return,
            }
        }
    }

    /// Runs the group, with units that arrive while it waits for the database, and answers every unit.
    async fn commit(&mut self, mut group: Vec<Queued>) {
        let waiting_since = (Instant::now(), now_ms());
        let mut connection = loop {
            match self.begin().await {
                Ok(connection) => break connection,
                Err(error) => {
                    let reason = reason_of(&error);
                    if waiting_since.0.elapsed() >= FAILING_AFTER {
                        self.published.fail(&reason, waiting_since.1);
                    }
                    self.reject_expired(&mut group, &error, waiting_since.1);
                    if group.is_empty() {
                        return;
                    }
                }
            }
        };
        match run_group(&mut connection, &mut group, &self.recorder).await {
            Ok(done) => {
                self.connection = Some(connection);
                self.published.recover();
                // After the commit, so that a follower of the number can read the event.
                self.published.event(done.newest_event);
                self.recorder.publish(done.recorded);
                self.published.commit(&group, done.units);
                for queued in group {
                    queued.unit.answer(None);
                }
            }
            Err(error) => {
                let error = Error::from(error);
                self.published.fail(&reason_of(&error), waiting_since.1);
                // Closing rolls the transaction back and drops whatever state the failure left behind.
                let _ = connection.close().await;
                self.recorder.disconnected();
                self.published.reject(group, &error);
            }
        }
    }

    /// Opens a transaction that is sure to be able to write. A failure takes at least [`LOCK_WAIT`]: SQLite waits for a
    /// lock, and any other failure is waited out here, so that repeating is no busy loop.
    async fn begin(&mut self) -> Result<SqliteConnection, Error> {
        let earliest_failure = Instant::now() + LOCK_WAIT;
        let begun = self.try_begin().await;
        if begun.is_err() {
            sleep_until(earliest_failure).await;
        }
        begun
    }

    async fn try_begin(&mut self) -> Result<SqliteConnection, Error> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.options.connect().await?,
        };
        let begun = async {
            self.recorder.prepare(&mut connection).await?;
            // A deferred transaction could fail as locked in the middle of the group, when it first writes.
            query("BEGIN IMMEDIATE").execute(&mut connection).await
        };
        match begun.await.map_err(Error::from) {
            Ok(_) => Ok(connection),
            Err(locked @ Error::Busy(_)) => {
                self.connection = Some(connection);
                Err(locked)
            }
            Err(broken) => {
                let _ = connection.close().await;
                self.recorder.disconnected();
                Err(broken)
            }
        }
    }

    /// Rejects units that have waited too long and takes more instead, until none of the queued ones is late.
    fn reject_expired(&mut self, group: &mut Vec<Queued>, error: &Error, since_ms: i64) {
        loop {
            self.fill(group);
            let now = Instant::now();
            let (late, waiting): (Vec<_>, Vec<_>) = std::mem::take(group)
                .into_iter()
                .partition(|queued| queued.expires <= now);
            *group = waiting;
            if late.is_empty() {
                return;
            }
            self.published.fail(&reason_of(error), since_ms);
            self.published.reject(late, error);
        }
    }

    /// Empties a write-ahead log that has grown too long. Readers of old rows can prevent it; then it is tried again later.
    async fn truncate_log(&mut self) {
        let bytes = fs::metadata(&self.wal).map_or(0, |wal| wal.len());
        self.published.counters.wal_bytes.store(bytes, Relaxed);
        if bytes <= self.wal_truncate_above || Instant::now() < self.next_truncation {
            return;
        }
        self.next_truncation = Instant::now() + TRUNCATE_EVERY;
        let Some(connection) = self.connection.as_mut() else {
            return;
        };
        if let Err(error) = truncate(connection).await {
            warn!(%error, bytes, "the write-ahead log could not be truncated");
        }
        let left = fs::metadata(&self.wal).map_or(0, |wal| wal.len());
        self.published.counters.wal_bytes.store(left, Relaxed);
    }
}

/// Returns an empty change, which shows whether changes succeed.
pub(crate) fn probe(serial: Serial) -> Queued {
    let (unit, _answer) = Submitted::new(|tx| Box::pin(async move { touch(tx).await }));
    let since = Instant::now();
    Queued {
        since,
        // Late at once, so that the first failed attempt rejects it.
        expires: since,
        serial,
        unit: Box::new(unit),
    }
}

/// Changes nothing, by a statement that writes.
async fn touch(tx: &mut Tx<'_>) -> Result<(), Error> {
    statement::query("UPDATE installation SET created_at = created_at")
        .execute(tx)
        .await?;
    Ok(())
}

/// Units of a group that were committed.
#[derive(Default)]
struct Done {
    units: u64,
    newest_event: Option<i64>,
    recorded: Recorded,
}

/// Runs every unit in a savepoint, commits, and returns what was committed. An error means that nothing of the group
/// was.
async fn run_group(
    connection: &mut SqliteConnection,
    group: &mut [Queued],
    recorder: &Recorder,
) -> Result<Done, sqlx::Error> {
    let mut done = Done::default();
    for queued in group {
        query("SAVEPOINT unit").execute(&mut *connection).await?;
        let mut tx = Tx::sqlite(connection);
        if queued.unit.run(&mut tx).await {
            done.units += 1;
            done.newest_event = done.newest_event.max(tx.newest_event());
        } else {
            query("ROLLBACK TO unit").execute(&mut *connection).await?;
        }
        query("RELEASE unit").execute(&mut *connection).await?;
    }
    done.recorded = recorder.take(&mut *connection).await?;
    query("COMMIT").execute(connection).await?;
    Ok(done)
}

async fn truncate(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    // A truncation waits for readers, and every change waits for it meanwhile.
    set_lock_wait(connection, TRUNCATE_WAIT).await?;
    let outcome = query("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut *connection)
        .await;
    set_lock_wait(connection, LOCK_WAIT).await?;
    outcome.map(|_| ())
}

async fn set_lock_wait(
    connection: &mut SqliteConnection,
    wait: Duration,
) -> Result<(), sqlx::Error> {
    // A PRAGMA takes no bound parameters; the number is our own.
    let statement = sqlx::AssertSqlSafe(format!("PRAGMA busy_timeout = {}", wait.as_millis()));
    query(statement).execute(connection).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreSettings, accounts, changes::ChangeLog};

    async fn store() -> (Store, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::on_sqlite(folder.path());
        (Store::open(&settings).await.unwrap(), folder)
    }

    #[tokio::test]
    async fn commits_are_flushed_and_references_enforced() {
        let (store, _folder) = store().await;
        let facts: (i64, i64, String) = store
            .write(|tx| {
                Box::pin(async move {
                    let facts = "SELECT s.synchronous, f.foreign_keys, j.journal_mode
                        FROM pragma_synchronous s, pragma_foreign_keys f, pragma_journal_mode j";
                    Ok(statement::query_as(facts).fetch_one(tx).await?)
                })
            })
            .await
            .unwrap();
        // 2 is FULL: every commit flushes the log.
        assert_eq!(facts, (2, 1, "wal".into()));
    }

    /// Checks that a database that cannot even be opened is not tried again at once, and again.
    #[tokio::test]
    async fn a_connection_that_fails_at_once_is_waited_out() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer {
            queue: mpsc::channel(1).1,
            commit_group: 1,
            options: SqliteConnectOptions::new().filename(folder.path().join("missing/sluice.db")),
            connection: None,
            wal: folder.path().join("wal"),
            wal_truncate_above: 0,
            next_truncation: Instant::now(),
            published: Published::new().0,
            recorder: Recorder::new(ChangeLog::default()),
            lock: None,
        };
        let since = Instant::now();
        assert!(writer.begin().await.is_err());
        assert!(since.elapsed() >= LOCK_WAIT);
    }

    /// Checks that a failed commit fails its whole group, is retryable, and is cleared by the next one.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_failed_commit_fails_its_group_and_nothing_else() {
        let (store, _folder) = store().await;
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let held = {
            let store = store.clone();
            tokio::spawn(async move {
                store
                    .write(move |_| {
                        Box::pin(async move {
                            let _ = begun.send(());
                            let _ = released.await;
                            Ok(())
                        })
                    })
                    .await
            })
        };
        has_begun.await.unwrap();
        let breaking = store.write(|tx| {
            Box::pin(async move {
                // Checked only by the commit.
                statement::query("PRAGMA defer_foreign_keys = ON")
                    .execute(tx)
                    .await?;
                statement::query("INSERT INTO welcome_codes VALUES (zeroblob(16), 'c', 0)")
                    .execute(tx)
                    .await?;
                Ok(())
            })
        });
        let innocent =
            store.write(|tx| Box::pin(async move { accounts::create(tx, "innocent", 0).await }));
        let let_go = async {
            while store.statistics().waiting < 2 {
                tokio::task::yield_now().await;
            }
            let _ = release.send(());
        };
        let (held, breaking, innocent, ()) = tokio::join!(held, breaking, innocent, let_go);
        held.unwrap().unwrap();
        assert!(breaking.unwrap_err().is_retryable());
        assert!(innocent.unwrap_err().is_retryable());
        assert_eq!(
            accounts::count(&mut store.read().await.unwrap())
                .await
                .unwrap(),
            0
        );

        store
            .write(|tx| Box::pin(async move { accounts::create(tx, "later", 0).await }))
            .await
            .unwrap();
        assert_eq!(store.write_failure(), None);
        assert_eq!(store.statistics().failures, 2);
    }
}
