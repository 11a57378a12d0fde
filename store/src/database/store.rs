//! `Store`, the handle of database and blobs: `write` runs changes in the one writer, `read` takes a reader; disk space,
//! write failures, statistics.

mod open;

use std::{
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, OnceLock, Weak, atomic::Ordering::Relaxed},
};

use parking_lot::Mutex;
use sqlx::{PgPool, SqlitePool, sqlite::SqliteConnectOptions};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::{Instant, timeout},
};
use tracing::{debug, warn};
use uuid::Uuid;

use crate::{
    Error, Reader, StoreSettings, Tx,
    blob::{Blobs, ObjectStatistics},
    changes::{ChangeLog, EverythingFollower, Follower},
    cluster::{Cluster, Membership},
    connection::{Pooled, PooledPostgres},
    folder, now_ms,
    postgres::CatchUp,
    published::View,
    serial::Serial,
    unit::{Queued, Submitted},
    work,
};

/// Future that a unit of work returns: `Box::pin(async move { … })`.
pub type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 't>>;

/// The database of one data folder. Clones share it; [`Store::close`] or dropping the last one ends it.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    settings: StoreSettings,
    owner: Uuid,
    readers: Arc<Readers>,
    writer: WriterHandle,
    blobs: Blobs,
    changes: ChangeLog,
    cluster: Cluster,
    /// Membership of a node; it ends with the store.
    membership: OnceLock<Membership>,
}

/// A store that may have ended, for tasks that must not keep it.
pub(crate) struct WeakStore(Weak<Shared>);

impl WeakStore {
    pub(crate) fn upgrade(&self) -> Option<Store> {
        self.0.upgrade().map(|shared| Store { shared })
    }
}

/// Program that keeps the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

/// Connections for reading. [`Blobs`] use them, too, for as long as the store is open.
pub(crate) enum Readers {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl Readers {
    pub(crate) async fn acquire(&self) -> Result<Pooled, sqlx::Error> {
        Ok(match self {
            Self::Sqlite(pool) => Pooled::Sqlite(pool.acquire().await?),
            Self::Postgres(pool) => Pooled::Postgres(PooledPostgres::acquire(pool).await?),
        })
    }

    async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

/// Handle of the writer, if there is one.
enum WriterHandle {
    /// Opened beside a running service: there is no writer.
    None,
    Running {
        /// `None` once the queue is closed.
        queue: Mutex<Option<mpsc::Sender<Queued>>>,
        task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
        view: View,
        /// Asks PostgreSQL's log of changes to be read up to now.
        catch_up: Option<CatchUp>,
    },
}

/// Reason why changes fail at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteFailure {
    pub since_ms: i64,
    /// Reason, for people.
    pub reason: String,
}

/// Counters of the writer since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub commits: u64,
    /// Units of work that were committed.
    pub units: u64,
    /// Units of work that failed or were rejected.
    pub failures: u64,
    /// Units of work that wait now.
    pub waiting: u64,
    /// Length of the write-ahead log.
    pub wal_bytes: u64,
    /// Time from the queue to the commit of the unit that waited longest in the last commit; while changes fail, the time since
    /// they began to.
    pub wait_ms: u64,
}

/// The disk under the data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    pub free_bytes: u64,
    pub total_bytes: u64,
    /// `store.min_free` in bytes.
    pub min_free_bytes: u64,
}

impl DiskSpace {
    /// Returns whether uploads and jobs have to wait.
    pub fn is_low(&self) -> bool {
        self.free_bytes < self.min_free_bytes
    }
}

/// Runs a unit of work as [`Store::write`] does, or with an account as [`Store::write_for`], and waits for it. The work is an
/// async block that owns what it uses: an async closure could not say that its future is `Send`.
#[macro_export]
macro_rules! write_tx {
    ($store:expr, |$tx:ident| $work:expr) => {
        $store
            .write(move |$tx| ::std::boxed::Box::pin(async move { $work }))
            .await
    };
    ($store:expr, $account_id:expr, |$tx:ident| $work:expr) => {
        $store
            .write_for($account_id, move |$tx| {
                ::std::boxed::Box::pin(async move { $work })
            })
            .await
    };
}

impl Store {
    /// Runs a unit of work beside which no other of this kind runs, and returns what it returned once that has been committed to
    /// disk.
    ///
    /// ```no_run
    /// # use sluice_store::{Error, Store, accounts, write_tx};
    /// # async fn example(store: Store) -> Result<(), Error> {
    /// let account = write_tx!(store, |tx| accounts::create(tx, "Default", 0).await)?;
    /// # Ok(()) }
    /// ```
    ///
    /// Units share commits; an error or a panic undoes that unit only. `Error::Busy`: nothing was changed, because the queue
    /// is full, the database was locked or away for `store.busy_timeout`, or the commit failed. `Error::Unknown` (PostgreSQL):
    /// the connection was lost during the commit. A unit must wait for nothing but its own verbs. It runs even when the caller
    /// has left.
    pub async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx<'_>) -> Work<'t, T> + Send + 'static,
    {
        self.submit(Serial::All, work).await
    }

    /// [`Store::write`] for a unit that reads and changes rows of one account only: on PostgreSQL units of other accounts run
    /// beside it.
    pub async fn write_for<T, F>(&self, account_id: Uuid, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx<'_>) -> Work<'t, T> + Send + 'static,
    {
        self.submit(Serial::Account(account_id), work).await
    }

    /// [`Store::write`] for a unit that is right whatever runs beside it: its statements do not depend on rows that were read
    /// before them, and it appends no event.
    pub async fn write_beside<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx<'_>) -> Work<'t, T> + Send + 'static,
    {
        self.submit(Serial::Nothing, work).await
    }

    async fn submit<T, F>(&self, serial: Serial, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx<'_>) -> Work<'t, T> + Send + 'static,
    {
        let queue = self.queue()?;
        let (unit, answer) = Submitted::new(work);
        let since = Instant::now();
        let queued = Queued {
            since,
            expires: since + self.shared.settings.busy_timeout,
            serial,
            unit: Box::new(unit),
        };
        queue.try_send(queued).map_err(|rejected| match rejected {
            mpsc::error::TrySendError::Full(_) => {
                Error::Busy("too many changes are waiting".into())
            }
            mpsc::error::TrySendError::Closed(_) => shutting_down(),
        })?;
        // The writer must see the queue closed as soon as the store closes it, not only after this answer.
        drop(queue);
        answer.await.unwrap_or_else(|_| Err(shutting_down()))
    }

    fn queue(&self) -> Result<mpsc::Sender<Queued>, Error> {
        match &self.shared.writer {
            WriterHandle::None => Err(Error::Unsupported(
                "this store was opened for reading only".into(),
            )),
            WriterHandle::Running { queue, .. } => queue.lock().clone().ok_or_else(shutting_down),
        }
    }

    /// A reader, which sees everything that [`Store::write`] has answered. `Error::Busy` when none is free for
    /// `store.busy_timeout`.
    pub async fn read(&self) -> Result<Reader, Error> {
        Ok(Reader::new(self.shared.readers.acquire().await?))
    }

    /// Returns why changes fail at present, for health and readiness; `None` when all is well. Published state: costs
    /// nothing.
    pub fn write_failure(&self) -> Option<WriteFailure> {
        match &self.shared.writer {
            WriterHandle::None => None,
            WriterHandle::Running { view, .. } => view.write_failure.borrow().clone(),
        }
    }

    /// Follows [`Event::seq`](crate::events::Event::seq) of the last event that this process has committed, 0 at
    /// first. A reader sees every event up to it. It closes when the store does.
    pub fn newest_event(&self) -> watch::Receiver<i64> {
        match &self.shared.writer {
            WriterHandle::None => watch::channel(0).1,
            WriterHandle::Running { view, .. } => view.newest_event.clone(),
        }
    }

    /// The log of changes, to which actors add those of state that has no row.
    pub fn changes(&self) -> &ChangeLog {
        &self.shared.changes
    }

    /// Follows the changes of an account. Whatever was committed before this returns can be read; everything after it is
    /// among the changes. `Error::Busy` as for [`Store::write`], which it may need.
    pub async fn follow_changes(&self, account_id: Uuid) -> Result<Follower, Error> {
        self.catch_up().await?;
        let follower = self.changes().follow(account_id);
        if !self.changes().is_recorded() {
            // The writer records from the group of this unit on, at the latest; groups before it are committed by then.
            self.notice_foreign_commits().await?;
        }
        Ok(follower)
    }

    /// Follows the changes of rows of all accounts, by this process and by others, for directories and caches. On SQLite each
    /// commit costs more while there is such a follower.
    pub fn follow_everything(&self) -> EverythingFollower {
        EverythingFollower::new(self.clone())
    }

    /// Waits until PostgreSQL's log of changes is read up to now, so that a follower sees nothing from before.
    async fn catch_up(&self) -> Result<(), Error> {
        let WriterHandle::Running {
            catch_up: Some(catch_up),
            ..
        } = &self.shared.writer
        else {
            return Ok(());
        };
        let (request, answer) = oneshot::channel();
        let behind = || Error::Busy("the log of changes cannot be read".into());
        catch_up.try_send(request).map_err(|_| behind())?;
        match timeout(self.shared.settings.busy_timeout, answer).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(behind()),
        }
    }

    /// Makes the writer look whether another process, such as a short command beside the service, has changed the database:
    /// followers then get a loss of all kinds. The writer does so with each change too.
    pub async fn notice_foreign_commits(&self) -> Result<(), Error> {
        self.write_beside(|_| Box::pin(async { Ok(()) })).await
    }

    /// Published state, as [`Store::write_failure`].
    pub fn statistics(&self) -> Statistics {
        match &self.shared.writer {
            WriterHandle::None => Statistics::default(),
            WriterHandle::Running { queue, view, .. } => Statistics {
                commits: view.counters.commits.load(Relaxed),
                units: view.counters.units.load(Relaxed),
                failures: view.counters.failures.load(Relaxed),
                waiting: queue
                    .lock()
                    .as_ref()
                    .map_or(0, |queue| queue.max_capacity() - queue.capacity())
                    as u64
                    + view.counters.waiting.load(Relaxed),
                wal_bytes: view.counters.wal_bytes.load(Relaxed),
                wait_ms: match &*view.write_failure.borrow() {
                    Some(failure) => (now_ms() - failure.since_ms).unsigned_abs(),
                    None => view.counters.wait_ms.load(Relaxed),
                },
            },
        }
    }

    pub fn data_dir(&self) -> &Path {
        &self.shared.settings.data_dir
    }

    pub(crate) fn downgrade(&self) -> WeakStore {
        WeakStore(Arc::downgrade(&self.shared))
    }

    /// Returns the id under which leases are held ([`work`]): made at each opening.
    pub fn owner(&self) -> Uuid {
        self.shared.owner
    }

    /// The nodes of the service.
    pub fn cluster(&self) -> &Cluster {
        &self.shared.cluster
    }

    /// The bytes of users.
    pub fn blobs(&self) -> &Blobs {
        &self.shared.blobs
    }

    /// Returns counters of the object store and its cache; `None` without one.
    pub fn objects(&self) -> Option<ObjectStatistics> {
        self.blobs().object_statistics()
    }

    /// Returns address or folder of the object store, for people; `None` without one.
    pub fn object_place(&self) -> Option<String> {
        Some(self.blobs().objects()?.place())
    }

    /// Returns why requests to the object store fail now; `None` when they do not, or without one.
    pub fn object_failure(&self) -> Option<String> {
        self.blobs().object_failure()
    }

    /// The program that keeps the rows.
    pub fn engine(&self) -> Engine {
        match *self.shared.readers {
            Readers::Sqlite(_) => Engine::Sqlite,
            Readers::Postgres(_) => Engine::Postgres,
        }
    }

    /// Returns the bytes of the database: of the file and its write-ahead log, as the file system has them, or those that
    /// PostgreSQL said within the last minute.
    pub fn database_bytes(&self) -> u64 {
        if let (Engine::Postgres, WriterHandle::Running { view, .. }) =
            (self.engine(), &self.shared.writer)
        {
            return view.counters.database_bytes.load(Relaxed);
        }
        let bytes = std::fs::metadata(self.database()).map_or(0, |file| file.len());
        bytes + self.statistics().wal_bytes
    }

    /// Returns the database's file, for copies.
    pub(crate) fn database(&self) -> PathBuf {
        folder::database(self.data_dir())
    }

    /// Queries the file system; a system call.
    pub fn disk_space(&self) -> Result<DiskSpace, Error> {
        disk_space(&self.shared.settings)
    }

    /// Commits what is queued, frees the leases of [`Store::owner`] so that the next process continues at once,
    /// rejects later changes, and releases the lock. Waits for readers at most `store.busy_timeout`.
    pub async fn close(&self) {
        if let WriterHandle::Running { queue, task, .. } = &self.shared.writer {
            self.free_leases().await;
            // The writer ends when the last sender is dropped. It must be the last to close the database: only then is
            // the log written back and removed.
            let queue = queue.lock().take();
            let _ = timeout(
                self.shared.settings.busy_timeout,
                self.shared.readers.close(),
            )
            .await;
            drop(queue);
            if let Some(task) = task.lock().await.take() {
                let _ = task.await;
            }
            // Last: up to here others must not take what is being given back for that of a dead node.
            if let Some(membership) = self.shared.membership.get() {
                membership.leave().await;
            }
        } else {
            self.shared.readers.close().await;
        }
    }

    /// Frees the leases of this process. Those that cannot be freed are void at the next start, which takes its work
    /// for interrupted.
    async fn free_leases(&self) {
        let owner = self.owner();
        let freed = self.write_beside(move |tx| Box::pin(work::release_all(tx, None, owner)));
        match freed.await {
            Ok(freed) => debug!(freed, "leases are free"),
            Err(error) => warn!(%error, "leases are void at the next start only"),
        }
    }
}

/// Options of a connection that changes nothing.
pub(crate) fn read_only(database: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(database)
        .read_only(true)
}

/// The disk under the data folder now; a system call.
pub(crate) fn disk_space(settings: &StoreSettings) -> Result<DiskSpace, Error> {
    let disk = rustix::fs::statvfs(&settings.data_dir).map_err(|error| {
        Error::file("cannot measure the disk of", &settings.data_dir)(error.into())
    })?;
    let total_bytes = disk.f_blocks * disk.f_frsize;
    Ok(DiskSpace {
        free_bytes: disk.f_bavail * disk.f_frsize,
        total_bytes,
        min_free_bytes: settings.min_free_bytes(total_bytes)?,
    })
}

fn shutting_down() -> Error {
    Error::Busy("the store is shutting down".into())
}
