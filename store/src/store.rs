//! The handle: opens the data folder, runs changes through the one writer and reads through a few readers.

use std::{
    cmp::Ordering,
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed},
    time::Duration,
};

use sqlx::{
    ConnectOptions, Connection as _, SqlitePool,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, timeout},
};
use tracing::{debug, warn};
use uuid::Uuid;

use crate::{
    Error, Reader, StoreSettings, Tx,
    blob::Blobs,
    blobs,
    folder::{self, FolderLock},
    installation, maintenance,
    migrate::{self, MIGRATIONS},
    now_ms, tus,
    unit::{Queued, Submitted},
    webhooks::{Retention, retention},
    work, workflows,
    writer::{Counters, LOCK_WAIT, Writer},
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
    readers: SqlitePool,
    writer: WriterHandle,
    blobs: Blobs,
}

/// Handle of the writer, if there is one.
enum WriterHandle {
    /// Opened beside a running service: there is no writer.
    None,
    Running {
        /// `None` once the queue is closed.
        queue: Mutex<Option<mpsc::Sender<Queued>>>,
        task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
        counters: Arc<Counters>,
        write_failure: watch::Receiver<Option<WriteFailure>>,
        newest_event: watch::Receiver<i64>,
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

impl Store {
    /// Makes the data folder, locks it, migrates the database and starts the writer on the current tokio runtime.
    ///
    /// `Error::Locked` when another process has the folder, `Error::Newer` when a newer version wrote the database,
    /// `Error::Invalid` or `Error::Unsupported` for settings that cannot work.
    pub async fn open(settings: &StoreSettings) -> Result<Self, Error> {
        Self::open_with(settings, &MIGRATIONS).await
    }

    pub(crate) async fn open_with(
        settings: &StoreSettings,
        migrator: &Migrator,
    ) -> Result<Self, Error> {
        settings.check()?;
        folder::create_private(&settings.data_dir)?;
        let lock = FolderLock::take(&settings.data_dir)?;
        Blobs::new(settings).prepare()?;
        folder::create_private_file(&folder::database(&settings.data_dir))?;
        let mut connection = read_write(settings).foreign_keys(false).connect().await?;
        migrate::migrate(&mut connection, migrator, &settings.data_dir, now_ms()).await?;
        connection.close().await?;
        Self::start(settings, Some(lock)).await
    }

    /// Opens for a short command: as [`Store::open`], or beside a running service, without its lock. Both then write
    /// to the database in turn.
    ///
    /// `Error::Conflict` when the running service is of an older version than this program, else as [`Store::open`].
    pub async fn open_beside(settings: &StoreSettings) -> Result<Self, Error> {
        match Self::open(settings).await {
            Err(Error::Locked { .. }) => {}
            opened => return opened,
        }
        let mut connection = read_only(&folder::database(&settings.data_dir))
            .connect()
            .await?;
        let found = migrate::applied_version(&mut connection).await?;
        connection.close().await?;
        let known = migrate::known_version(&MIGRATIONS);
        match found.cmp(&known) {
            Ordering::Greater => Err(Error::Newer { found, known }),
            Ordering::Less => Err(Error::Conflict(
                "the running service is of an older version than this program".into(),
            )),
            Ordering::Equal => Self::start(settings, None).await,
        }
    }

    /// Starts writer and readers on a database that is up to date.
    async fn start(settings: &StoreSettings, lock: Option<FolderLock>) -> Result<Self, Error> {
        let is_alone = lock.is_some();
        let store = Self {
            shared: Arc::new(Shared {
                settings: settings.clone(),
                owner: Uuid::now_v7(),
                readers: open_readers(&settings.data_dir, settings.readers, settings.busy_timeout),
                writer: start_writer(settings, lock).await?,
                blobs: Blobs::new(settings),
            }),
        };
        store
            .write(move |tx| {
                Box::pin(async move {
                    if is_alone {
                        let now = now_ms();
                        work::void_leases(tx, now).await?;
                        work::mend_due_times(tx, now).await?;
                        tus::release_all(tx).await?;
                    }
                    installation::get_or_create(tx, now_ms()).await
                })
            })
            .await?;
        if is_alone {
            blobs::note_start(store.blobs(), now_ms());
            tus::cut_partials(&store).await?;
        }
        Ok(store)
    }

    /// Opens the database of a data folder for reading only and without its lock, beside a running service or without one.
    /// [`Store::write`] fails on it.
    pub async fn open_for_backup(data_dir: &Path) -> Result<Self, Error> {
        let database = folder::database(data_dir);
        std::fs::metadata(&database).map_err(Error::file("there is no database", &database))?;
        let settings = StoreSettings {
            data_dir: data_dir.to_owned(),
            readers: 1,
            ..StoreSettings::default()
        };
        Ok(Self {
            shared: Arc::new(Shared {
                readers: open_readers(data_dir, settings.readers, settings.busy_timeout),
                blobs: Blobs::new(&settings),
                settings,
                owner: Uuid::now_v7(),
                writer: WriterHandle::None,
            }),
        })
    }

    /// Runs a unit of work in the writer, and returns what it returned once that has been committed to disk.
    ///
    /// ```no_run
    /// # use sluice_store::{Error, Store, accounts};
    /// # async fn example(store: Store) -> Result<(), Error> {
    /// let account = store.write(|tx| Box::pin(async move { accounts::create(tx, "Default", 0).await })).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// Units share commits; an error or a panic undoes that unit only. `Error::Busy`: nothing was changed, because the queue
    /// is full, the database was locked for `store.busy_timeout`, or the commit failed. A unit must wait for nothing but
    /// its own verbs. It runs even when the caller has left.
    pub async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx<'_>) -> Work<'t, T> + Send + 'static,
    {
        let queue = self.queue()?;
        let (unit, answer) = Submitted::new(work);
        let queued = Queued {
            expires: Instant::now() + self.shared.settings.busy_timeout,
            unit: Box::new(unit),
        };
        queue.try_send(queued).map_err(|refused| match refused {
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
            WriterHandle::Running { queue, .. } => locked(queue).clone().ok_or_else(shutting_down),
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
            WriterHandle::Running { write_failure, .. } => write_failure.borrow().clone(),
        }
    }

    /// Follows [`Event::seq`](crate::events::Event::seq) of the last event that this process has committed, 0 at
    /// first. A reader sees every event up to it. It closes when the store does.
    pub fn newest_event(&self) -> watch::Receiver<i64> {
        match &self.shared.writer {
            WriterHandle::None => watch::channel(0).1,
            WriterHandle::Running { newest_event, .. } => newest_event.clone(),
        }
    }

    /// Published state, as [`Store::write_failure`].
    pub fn statistics(&self) -> Statistics {
        match &self.shared.writer {
            WriterHandle::None => Statistics::default(),
            WriterHandle::Running {
                queue, counters, ..
            } => Statistics {
                commits: counters.commits.load(Relaxed),
                units: counters.units.load(Relaxed),
                failures: counters.failures.load(Relaxed),
                waiting: locked(queue)
                    .as_ref()
                    .map_or(0, |queue| queue.max_capacity() - queue.capacity())
                    as u64,
                wal_bytes: counters.wal_bytes.load(Relaxed),
            },
        }
    }

    pub fn data_dir(&self) -> &Path {
        &self.shared.settings.data_dir
    }

    /// Returns the id under which leases are held ([`work`]): made at each opening.
    pub fn owner(&self) -> Uuid {
        self.shared.owner
    }

    /// The bytes of users.
    pub fn blobs(&self) -> &Blobs {
        &self.shared.blobs
    }

    /// Returns the database's file, for copies.
    pub(crate) fn database(&self) -> PathBuf {
        folder::database(self.data_dir())
    }

    /// Queries the file system; a system call.
    pub fn disk_space(&self) -> Result<DiskSpace, Error> {
        disk_space(&self.shared.settings)
    }

    /// Deletes expired rows and files, in turns of about 20 ms with other work between them; returns how many rows.
    pub async fn sweep(&self, now_ms: i64) -> Result<u64, Error> {
        maintenance::sweep(self, now_ms).await
    }

    /// [`Store::sweep`] for events and the deliveries of webhooks.
    pub async fn sweep_events(&self, retention: &Retention, now_ms: i64) -> Result<u64, Error> {
        retention::sweep(self, retention, now_ms).await
    }

    /// [`Store::sweep`] for workflows and their runs.
    pub async fn sweep_runs(
        &self,
        retention: &workflows::Retention,
        now_ms: i64,
    ) -> Result<u64, Error> {
        workflows::sweep(self, retention, now_ms).await
    }

    /// Commits what is queued, frees the leases of [`Store::owner`] so that the next process continues at once,
    /// rejects later changes, and releases the lock. Waits for readers at most `store.busy_timeout`.
    pub async fn close(&self) {
        if let WriterHandle::Running { queue, task, .. } = &self.shared.writer {
            self.free_leases().await;
            // The writer ends when the last sender is dropped. It must be the last to close the database: only then is
            // the log written back and removed.
            let queue = locked(queue).take();
            let _ = timeout(
                self.shared.settings.busy_timeout,
                self.shared.readers.close(),
            )
            .await;
            drop(queue);
            if let Some(task) = task.lock().await.take() {
                let _ = task.await;
            }
        } else {
            self.shared.readers.close().await;
        }
    }

    /// Frees the leases of this process. Those that cannot be freed are void at the next start, which takes its work
    /// for interrupted.
    async fn free_leases(&self) {
        let owner = self.owner();
        let freed = self.write(move |tx| Box::pin(work::release_all(tx, None, owner)));
        match freed.await {
            Ok(freed) => debug!(freed, "leases are free"),
            Err(error) => warn!(%error, "leases are void at the next start only"),
        }
    }
}

/// Memory for the writer's pages, in SQLite's form: in KiB, and negative. A group of changes to the indexes of large
/// tables that does not fit is written to the log twice.
const PAGE_CACHE: &str = "-8000";

/// Starts the writer's task, which keeps the folder's lock for as long as it runs.
async fn start_writer(
    settings: &StoreSettings,
    lock: Option<FolderLock>,
) -> Result<WriterHandle, Error> {
    let options = read_write(settings)
        .busy_timeout(LOCK_WAIT)
        // Pages as they were before each unit's savepoint: a file for them cost a sixth of the writer's time under load.
        .pragma("temp_store", "MEMORY")
        .pragma("cache_size", PAGE_CACHE);
    let (queue, receiver) = mpsc::channel(settings.writer_queue);
    let (write_failure, published_write_failure) = watch::channel(None);
    let (newest_event, published_event) = watch::channel(0);
    let counters = Arc::new(Counters::default());
    let [wal, _index] = folder::log_files(&folder::database(&settings.data_dir));
    let writer = Writer {
        queue: receiver,
        commit_group: settings.commit_group,
        connection: Some(options.connect().await?),
        options,
        wal,
        wal_truncate_above: settings.wal_truncate_above.as_u64(),
        next_truncation: Instant::now(),
        counters: counters.clone(),
        write_failure,
        newest_event,
        lock,
    };
    Ok(WriterHandle::Running {
        queue: Mutex::new(Some(queue)),
        task: tokio::sync::Mutex::new(Some(tokio::spawn(writer.run()))),
        counters,
        write_failure: published_write_failure,
        newest_event: published_event,
    })
}

/// Readers are opened when they are first needed.
fn open_readers(data_dir: &Path, readers: u32, busy_timeout: Duration) -> SqlitePool {
    let options = read_only(&folder::database(data_dir))
        .busy_timeout(busy_timeout)
        .pragma("query_only", "ON");
    SqlitePoolOptions::new()
        .max_connections(readers)
        .acquire_timeout(busy_timeout)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options)
}

/// Options of a connection whose commits survive the crash of the machine.
fn read_write(settings: &StoreSettings) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(folder::database(&settings.data_dir))
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(settings.busy_timeout)
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

/// Locks a mutex. The lock guards one move of a value, which cannot panic half-way.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
