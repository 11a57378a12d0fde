//! Opens a data folder: lock, migrations, writer, readers, SQLite options, recovery after a crash; also beside a
//! running service.

use std::{cmp::Ordering, path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use sqlx::{
    ConnectOptions, Connection as _, SqlitePool,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::{sync::mpsc, time::Instant};
use uuid::Uuid;

use super::{Readers, Shared, Store, WriterHandle, read_only};
use crate::{
    Error, StoreSettings,
    blob::Blobs,
    blobs,
    changes::{ChangeLog, Recorder},
    folder::{self, FolderLock},
    installation,
    migrate::{self, MIGRATIONS},
    name_key, now_ms,
    postgres::Server,
    published::Published,
    tus, work,
    writer::{LOCK_WAIT, Writer},
};

/// Memory for the writer's pages, in SQLite's form: in KiB, and negative. A group of changes to the indexes of large
/// tables that does not fit is written to the log twice.
const PAGE_CACHE: &str = "-8000";

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
        let server = Server::of(settings)?;
        folder::create_private(&settings.data_dir)?;
        let lock = FolderLock::take(&settings.data_dir)?;
        Blobs::new(settings).prepare()?;
        if let Some(server) = server {
            return Self::start_postgres(settings, server, Some(lock)).await;
        }
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
            Err(Error::Locked { .. } | Error::InUse { .. }) => {}
            opened => return opened,
        }
        if let Some(server) = Server::of(settings)? {
            return Self::start_postgres(settings, server, None).await;
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
        let changes = ChangeLog::default();
        let writer = start_writer(settings, changes.clone(), lock).await?;
        let readers = open_readers(&settings.data_dir, settings.readers, settings.busy_timeout);
        let store = Self::new(settings, Readers::Sqlite(readers), writer, changes);
        store.recover(is_alone).await
    }

    /// Connects to PostgreSQL, migrates the database when this process has it alone, and starts writers and readers.
    async fn start_postgres(
        settings: &StoreSettings,
        server: Server,
        lock: Option<FolderLock>,
    ) -> Result<Self, Error> {
        let is_alone = lock.is_some();
        let hold = match lock {
            Some(lock) => Some(server.prepare(lock).await?),
            None => {
                server.check_version_beside().await?;
                None
            }
        };
        let changes = ChangeLog::default();
        let (writer, follower, catch_up, view) = server.writer(changes.clone(), hold).await?;
        // The writer takes as many again, to sort them.
        let (queue, receiver) = mpsc::channel(settings.writer_queue.div_ceil(2));
        let handle = WriterHandle::Running {
            queue: Mutex::new(Some(queue)),
            task: tokio::sync::Mutex::new(Some(tokio::spawn(writer.run(receiver, follower)))),
            view,
            catch_up: Some(catch_up),
        };
        let readers = Readers::Postgres(server.readers());
        let store = Self::new(settings, readers, handle, changes);
        store.recover(is_alone).await
    }

    fn new(
        settings: &StoreSettings,
        readers: Readers,
        writer: WriterHandle,
        changes: ChangeLog,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                settings: settings.clone(),
                owner: Uuid::now_v7(),
                readers,
                writer,
                blobs: Blobs::new(settings),
                changes,
            }),
        }
    }

    /// Voids what a process left that had the database before, if this one has it alone.
    async fn recover(self, is_alone: bool) -> Result<Self, Error> {
        let store = self;
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
            name_key::fill(&store).await?;
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
        let readers = open_readers(data_dir, settings.readers, settings.busy_timeout);
        Ok(Self::new(
            &settings,
            Readers::Sqlite(readers),
            WriterHandle::None,
            ChangeLog::default(),
        ))
    }
}

/// Starts the writer's task, which keeps the folder's lock for as long as it runs.
async fn start_writer(
    settings: &StoreSettings,
    changes: ChangeLog,
    lock: Option<FolderLock>,
) -> Result<WriterHandle, Error> {
    let options = read_write(settings)
        .busy_timeout(LOCK_WAIT)
        // Pages as they were before each unit's savepoint: a file for them cost a sixth of the writer's time under load.
        .pragma("temp_store", "MEMORY")
        .pragma("cache_size", PAGE_CACHE);
    let (queue, receiver) = mpsc::channel(settings.writer_queue);
    let (published, view) = Published::new();
    let [wal, _index] = folder::log_files(&folder::database(&settings.data_dir));
    let writer = Writer {
        queue: receiver,
        commit_group: settings.commit_group,
        connection: Some(options.connect().await?),
        options,
        wal,
        wal_truncate_above: settings.wal_truncate_above.as_u64(),
        next_truncation: Instant::now(),
        published,
        recorder: Recorder::new(changes),
        lock,
    };
    Ok(WriterHandle::Running {
        queue: Mutex::new(Some(queue)),
        task: tokio::sync::Mutex::new(Some(tokio::spawn(writer.run()))),
        view,
        catch_up: None,
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
