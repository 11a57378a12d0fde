//! Opens a data folder: lock, migrations, writer, readers, SQLite options, recovery after a crash; also as a node of a
//! cluster, and beside a running service.

use std::{
    cmp::Ordering,
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;
use sqlx::{
    ConnectOptions, Connection as _, SqlitePool,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::{sync::mpsc, time::Instant};
use uuid::Uuid;

use super::{Engine, Readers, Shared, Store, WriterHandle, read_only};
use crate::{
    Error, StoreSettings,
    blob::Blobs,
    blobs,
    changes::{ChangeLog, Recorder},
    cluster::{self, Cluster, ClusterSettings},
    folder::{self, FolderLock},
    installation,
    migrate::{self, MIGRATIONS},
    moving, name_key, now_ms,
    objects::{Claimant, Objects},
    postgres::{HoldMode, JoinTurn, Server},
    published::Published,
    tus, work,
    writer::{LOCK_WAIT, Writer},
};

/// Memory for the writer's pages, in SQLite's form: in KiB, and negative. A group of changes to the indexes of large
/// tables that does not fit is written to the log twice.
const PAGE_CACHE: &str = "-8000";

/// Way in which a process uses a PostgreSQL database.
enum Way<'a> {
    /// Only service of the database.
    Alone(FolderLock),
    Node(FolderLock, &'a ClusterSettings),
    /// Short command beside services.
    Beside,
}

/// Processes that have ended for sure when this one starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recovery {
    /// Every other.
    OfAll,
    /// The one that had the data folder before.
    OfFolder,
    None,
}

impl Store {
    /// Makes the data folder, locks it, migrates the database and starts the writer on the current tokio runtime.
    ///
    /// `Error::Locked` when another process has the folder, `Error::Newer` when a newer version wrote the database,
    /// `Error::Conflict` when its rows were moved away or have not all arrived ([`moving`]),
    /// `Error::Invalid` or `Error::Unsupported` for settings, or an object store, that cannot work; `Error::Unsupported` also for
    /// an object store of another installation, or without the objects that the rows name.
    pub async fn open(settings: &StoreSettings) -> Result<Self, Error> {
        Self::open_with(settings, &MIGRATIONS).await
    }

    /// Opens as [`Store::open`], on PostgreSQL as a node when the settings of the cluster say so: beside other nodes, and with a
    /// row that is renewed until [`Store::close`]. The node is [`Starting`](crate::cluster::NodeState) at first.
    ///
    /// `Error::InUseAlone` when a service that is no node has the database, `Error::OlderNode` when a node runs whose program is
    /// too old for this one's schema, `Error::Unsupported` also for another object store than that of the nodes that run.
    pub async fn open_node(
        settings: &StoreSettings,
        cluster: &ClusterSettings,
    ) -> Result<Self, Error> {
        let node = cluster.is_node().then_some(cluster);
        Self::open_as(settings, node, &MIGRATIONS).await
    }

    pub(crate) async fn open_with(
        settings: &StoreSettings,
        migrator: &Migrator,
    ) -> Result<Self, Error> {
        Self::open_as(settings, None, migrator).await
    }

    async fn open_as(
        settings: &StoreSettings,
        node: Option<&ClusterSettings>,
        migrator: &Migrator,
    ) -> Result<Self, Error> {
        settings.check()?;
        let server = Server::of(settings)?;
        let objects = Objects::of(settings)?;
        folder::create_private(&settings.data_dir)?;
        let lock = FolderLock::take(&settings.data_dir)?;
        if server.is_none() {
            moving::check_folder(&settings.data_dir)?;
        }
        if let Some(objects) = &objects {
            objects.prepare().await?;
        }
        let blobs = Blobs::new(settings, objects);
        blobs.prepare()?;
        if let Some(server) = server {
            let way = match node {
                Some(node) => Way::Node(lock, node),
                None => Way::Alone(lock),
            };
            return Self::start_postgres(settings, server, blobs, way).await;
        }
        folder::create_private_file(&folder::database(&settings.data_dir))?;
        let mut connection = read_write(settings).foreign_keys(false).connect().await?;
        migrate::migrate(&mut connection, migrator, &settings.data_dir, now_ms()).await?;
        connection.close().await?;
        Self::start(settings, blobs, Some(lock)).await
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
        let blobs = Blobs::new(settings, Objects::of(settings)?);
        if let Some(server) = Server::of(settings)? {
            return Self::start_postgres(settings, server, blobs, Way::Beside).await;
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
            Ordering::Equal => Self::start(settings, blobs, None).await,
        }
    }

    /// Starts writer and readers on a database that is up to date.
    async fn start(
        settings: &StoreSettings,
        blobs: Blobs,
        lock: Option<FolderLock>,
    ) -> Result<Self, Error> {
        let recovery = lock.as_ref().map_or(Recovery::None, |_| Recovery::OfAll);
        let changes = ChangeLog::default();
        let writer = start_writer(settings, changes.clone(), lock).await?;
        let readers = open_readers(&settings.data_dir, settings.readers, settings.busy_timeout);
        let cluster = Cluster::solo(Uuid::now_v7());
        let store = Self::new(
            settings,
            Readers::Sqlite(readers),
            writer,
            blobs,
            changes,
            cluster,
        );
        store.recover(recovery).await
    }

    /// Connects to PostgreSQL, migrates the database unless a service does, and starts writers and readers.
    async fn start_postgres(
        settings: &StoreSettings,
        server: Server,
        blobs: Blobs,
        way: Way<'_>,
    ) -> Result<Self, Error> {
        let id = Uuid::now_v7();
        let mut joined = None;
        let (hold, cluster, recovery) = match way {
            Way::Alone(lock) => {
                let hold = server.prepare(HoldMode::Alone, lock).await?;
                (Some(hold), Cluster::solo(id), Recovery::OfAll)
            }
            Way::Node(lock, node) => {
                let hold = server.prepare(HoldMode::Shared, lock).await?;
                let mut turn = server.turn_to_join().await?;
                claim_as_node(&blobs, &mut turn).await?;
                let (cluster, membership) = cluster::join(&server, id, node).await?;
                turn.end().await?;
                joined = Some(membership);
                (Some(hold), cluster, Recovery::OfFolder)
            }
            Way::Beside => {
                server.check_version_beside().await?;
                (None, Cluster::solo(id), Recovery::None)
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
        let store = Self::new(settings, readers, handle, blobs, changes, cluster);
        if let Some(joined) = joined {
            // From here on: the recovery may take longer than a lease.
            let membership = joined.run(store.downgrade());
            let _ = store.shared.membership.set(membership);
        }
        store.recover(recovery).await
    }

    fn new(
        settings: &StoreSettings,
        readers: Readers,
        writer: WriterHandle,
        blobs: Blobs,
        changes: ChangeLog,
        cluster: Cluster,
    ) -> Self {
        let readers = Arc::new(readers);
        blobs.set_readers(&readers);
        Self {
            shared: Arc::new(Shared {
                settings: settings.clone(),
                owner: cluster.node_id(),
                readers,
                writer,
                blobs,
                changes,
                cluster,
                membership: OnceLock::new(),
            }),
        }
    }

    /// Voids what processes left that have ended, as far as this one knows that they have.
    async fn recover(self, recovery: Recovery) -> Result<Self, Error> {
        let store = self;
        let is_alone = recovery == Recovery::OfAll;
        let is_on_postgres = store.engine() == Engine::Postgres;
        store
            .write(move |tx| {
                Box::pin(async move {
                    if is_alone {
                        let now = now_ms();
                        work::void_leases(tx, None, now).await?;
                        work::mend_due_times(tx, now).await?;
                        tus::release_all(tx, None).await?;
                    }
                    if is_alone && is_on_postgres {
                        cluster::forget_all(tx).await?;
                    }
                    installation::get_or_create(tx, now_ms()).await
                })
            })
            .await?;
        // A node has done so before it joined.
        if is_alone && let Err(error) = claim(&store).await {
            store.close().await;
            return Err(error);
        }
        if recovery == Recovery::OfFolder
            && let Some(former) = folder::last_process(store.data_dir())?
        {
            cluster::reject_copy(&store, former).await?;
            cluster::inherit(&store, former).await?;
        }
        if recovery != Recovery::None {
            if is_on_postgres {
                folder::note_process(store.data_dir(), store.owner())?;
            }
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
            Blobs::new(&settings, None),
            ChangeLog::default(),
            Cluster::solo(Uuid::now_v7()),
        ))
    }
}

/// Makes the installation the owner of its object store, if there is one.
async fn claim(store: &Store) -> Result<(), Error> {
    let Some(objects) = store.blobs().objects() else {
        return Ok(());
    };
    let claimant = Claimant::of(&mut store.read().await?).await?;
    objects.claim(&claimant).await
}

/// Makes the installation the owner of its object store, which must be the one of the nodes that run.
async fn claim_as_node(blobs: &Blobs, turn: &mut JoinTurn) -> Result<(), Error> {
    let Some(objects) = blobs.objects() else {
        return Ok(());
    };
    // The owner is derived from the key in its row.
    installation::get_or_create(&mut turn.tx(), now_ms()).await?;
    let node = turn.live_node().await?;
    let claimant = Claimant::of(&mut turn.tx()).await?;
    objects.claim(&claimant.beside(node)).await
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
