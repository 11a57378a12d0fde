//! Move of a service to PostgreSQL and an object store, and back to a data folder (`sluice move`), while it is stopped.
//!
//! - Rows go table by table in the order of their keys, so that the greatest key that has arrived says where to continue.
//!   Then all tables are compared, then the bytes of files follow; each file is compared with its checksum.
//! - Forward, unfinished resumable uploads stay in the data folder, from where they continue. Back, their acknowledged bytes
//!   follow, from the object store too.
//! - The source stays as it is, but for a mark. Files that are missing or damaged are named, and keep the move from ending.
//! - No service starts on a target that is not complete, nor on a source that was moved away.

mod bytes;
mod catalogue;
mod mark;
mod postgres;
mod row;
mod rows;
mod side;
mod sqlite;
mod streams;
mod uploads;

use std::path::Path;

use sqlx::{Connection as _, PgConnection, query_scalar};

use crate::{
    Error, StoreSettings,
    backup::{BackupProgress, Carried, CarriedStreams, carry_streams},
    blob::Blobs,
    copy, folder,
    folder::FolderLock,
    now_ms,
    objects::{Claimant, Objects},
    postgres::Server,
    statement,
};

use catalogue::Table;
use mark::SchemaMark;
use postgres::PostgresSide;
use side::Side;
use sqlite::SqliteSide;

pub use uploads::CarriedUploads;

pub(crate) use mark::{check_folder, check_schema};

/// Rows, and their bytes, that are in memory at a time.
const PAGE_ROWS: usize = 1_000;
const PAGE_BYTES: usize = 4 << 20;

/// Is called for each step, on a thread that may block.
type Watch = dyn FnMut(MoveProgress) + Send;

/// Settings of a move.
pub struct MoveOptions {
    /// Leaves out files that are missing or damaged. Otherwise the move does not end while there are any.
    pub skip_damaged: bool,
    pub watch: Box<Watch>,
}

impl Default for MoveOptions {
    fn default() -> Self {
        Self {
            skip_damaged: false,
            watch: Box::new(|_| ()),
        }
    }
}

/// Progress of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveProgress {
    /// So many rows of a table have arrived.
    Rows {
        table: String,
        count: u64,
        total: u64,
    },
    /// A table is compared.
    Compared { table: String },
    /// Stored files.
    Bytes(BackupProgress),
    /// Objects of video streams.
    Streams(BackupProgress),
    /// Unfinished resumable uploads.
    Uploads(BackupProgress),
}

/// Result of a move.
#[derive(Clone, Debug)]
pub struct Moved {
    /// Rows of all tables in the new place; 0 when they stayed where they are.
    pub rows: u64,
    pub blobs: Carried,
    /// Video streams whose files were copied.
    pub streams: CarriedStreams,
    /// Unfinished resumable uploads whose acknowledged bytes were copied.
    pub uploads: CarriedUploads,
    /// Unfinished resumable uploads that continue from the data folder, which has their bytes.
    pub uploads_in_folder: u64,
    /// False when files are lost and were not to be left out: nothing is marked, and the same move continues.
    pub is_finished: bool,
}

/// Moves a service forward: the rows of SQLite to the PostgreSQL of `target`, and the files of the folder to its object store.
/// All that `target` has in common with `source` stays where it is; the data folder is the same.
///
/// `Error::Locked` or `Error::InUse` while a service runs on either; `Error::Conflict` when the target has other rows or the
/// source was moved before; `Error::Invalid` or `Error::Unsupported` for settings that cannot work, and for the object store of
/// another installation. An interrupted move is continued by the same call.
pub async fn forward(
    source: &StoreSettings,
    target: &StoreSettings,
    options: MoveOptions,
) -> Result<Moved, Error> {
    source.check()?;
    target.check()?;
    check_way(source, target)?;
    let objects = Objects::of(target)?;
    let lock = lock_source(source)?;
    if let Some(objects) = &objects {
        objects.prepare().await?;
    }
    let mut work = Work {
        source,
        options,
        _lock: lock,
    };
    match target.is_on_postgres() && !source.is_on_postgres() {
        true => work.move_to_postgres(target, objects).await,
        false => work.in_place(target, objects).await,
    }
}

/// Moves a service back: its rows to SQLite in a fresh data folder, its files to the folder of blobs in it, the folders of
/// video streams, and the acknowledged bytes of unfinished resumable uploads.
///
/// Errors as for [`forward`].
pub async fn back(
    source: &StoreSettings,
    data_dir: &Path,
    options: MoveOptions,
) -> Result<Moved, Error> {
    source.check()?;
    if !source.is_on_postgres() && source.objects_url.is_empty() {
        return Err(Error::Invalid(
            "the rows and files are in a data folder already: copy it, or use `sluice backup`"
                .into(),
        ));
    }
    check_free(data_dir)?;
    let objects = Objects::of(source)?;
    let lock = lock_source(source)?;
    let work = Work {
        source,
        options,
        _lock: lock,
    };
    work.move_to_folder(data_dir, objects).await
}

fn check_way(source: &StoreSettings, target: &StoreSettings) -> Result<(), Error> {
    let has_other_rows = source.is_on_postgres()
        && (source.database_url != target.database_url
            || source.database_schema != target.database_schema);
    if has_other_rows {
        return Err(Error::Invalid(
            "the rows are on PostgreSQL (store.database_url) already: \
             move them to another server or schema by pg_dump and pg_restore"
                .into(),
        ));
    }
    if !source.objects_url.is_empty() && source.objects_url != target.objects_url {
        return Err(Error::Invalid(
            "store.objects_url names an object store already: \
             copy its objects to another one by a tool for that, and change store.objects_url"
                .into(),
        ));
    }
    Ok(())
}

fn lock_source(source: &StoreSettings) -> Result<FolderLock, Error> {
    let database = folder::database(&source.data_dir);
    if !source.is_on_postgres() && !database.exists() {
        return Err(Error::Invalid(format!(
            "there is no database in {}: set store.data_dir to the folder of the service",
            source.data_dir.display()
        )));
    }
    FolderLock::take(&source.data_dir)
}

/// Checks that a folder is fresh, or one to which a move was interrupted.
fn check_free(data_dir: &Path) -> Result<(), Error> {
    folder::create_private(data_dir)?;
    if mark::is_arriving(data_dir) {
        return Ok(());
    }
    let mut names = folder::names_in(data_dir)?.into_iter();
    match names.any(|name| folder::is_content(&name)) {
        false => Ok(()),
        true => Err(Error::Conflict(format!(
            "{} is not empty: name a new folder",
            data_dir.display()
        ))),
    }
}

/// A move under way; the source is locked.
struct Work<'m> {
    source: &'m StoreSettings,
    options: MoveOptions,
    _lock: FolderLock,
}

impl Work<'_> {
    /// Moves rows from SQLite to PostgreSQL, and files to the object store if there is one.
    async fn move_to_postgres(
        &mut self,
        target: &StoreSettings,
        objects: Option<Objects>,
    ) -> Result<Moved, Error> {
        let data_dir = &self.source.data_dir;
        let server = Server::of(target)?.expect("the target is on PostgreSQL");
        let mut from = SqliteSide::open_to_read(data_dir).await?;
        let tables = catalogue::tables(&mut from.connection).await?;
        let mut from = Side::Sqlite(from);
        let key = installation_key(&mut from).await?;
        let connection = arrival(&server, data_dir, key.as_deref()).await?;
        claim(&mut from, objects.as_ref()).await?;
        let to = PostgresSide::new(connection, &tables).await?;
        let mut to = begin_arrival(to, &tables, data_dir).await?;

        let rows = move_rows(
            &mut from,
            &mut to,
            &tables,
            rows::NOTHING,
            &mut *self.options.watch,
        )
        .await?;
        let blobs = self.send(&mut to, target, objects).await?;
        let uploads_in_folder = uploads::count_in_folder(&mut to).await?;
        let is_finished = self.is_enough(&blobs);
        if is_finished && let Side::Postgres(to) = &mut to {
            // The source first: two services must not go on from the same rows.
            mark::mark_folder(data_dir, &server.place(), now_ms())?;
            mark::unmark_schema(&mut to.connection).await?;
        }
        from.close().await?;
        to.close().await?;
        Ok(Moved {
            rows,
            blobs,
            streams: CarriedStreams::default(),
            uploads: CarriedUploads::default(),
            uploads_in_folder,
            is_finished,
        })
    }

    /// Moves the files of the folder to the object store; the rows stay where they are.
    async fn in_place(
        &mut self,
        target: &StoreSettings,
        objects: Option<Objects>,
    ) -> Result<Moved, Error> {
        if objects.is_none() {
            return Err(Error::Invalid(
                "there is nothing to move: name a database or an object store".into(),
            ));
        }
        let mut side = match Server::of(self.source)? {
            None => {
                check_folder(&self.source.data_dir)?;
                Side::Sqlite(SqliteSide::open_to_change(&self.source.data_dir).await?)
            }
            Some(server) => {
                let mut connection = server.connect_alone().await?;
                check_schema(&mut connection).await?;
                server.check_version(&mut connection).await?;
                let tables = schema_tables().await?;
                Side::Postgres(PostgresSide::new(connection, &tables).await?)
            }
        };
        claim(&mut side, objects.as_ref()).await?;
        let blobs = self.send(&mut side, target, objects).await?;
        let uploads_in_folder = uploads::count_in_folder(&mut side).await?;
        side.close().await?;
        Ok(Moved {
            rows: 0,
            is_finished: self.is_enough(&blobs),
            blobs,
            streams: CarriedStreams::default(),
            uploads: CarriedUploads::default(),
            uploads_in_folder,
        })
    }

    /// Moves rows, files, video streams and unfinished resumable uploads to a fresh data folder.
    async fn move_to_folder(
        mut self,
        data_dir: &Path,
        objects: Option<Objects>,
    ) -> Result<Moved, Error> {
        let _lock = FolderLock::take(data_dir)?;
        let is_continued = mark::is_arriving(data_dir);
        let tables = schema_tables().await?;
        let mut from = self.open_source(&tables, is_continued).await?;
        check_recordings(&mut from).await?;
        let arriving = mark::arriving(data_dir);
        let mut to = Side::Sqlite(SqliteSide::open_arriving(&arriving, data_dir).await?);
        let key = installation_key(&mut from).await?;
        if let Some(arrived) = installation_key(&mut to).await?
            && Some(arrived) != key
        {
            return Err(Error::Conflict(format!(
                "{} has rows of another service: name a new folder",
                data_dir.display()
            )));
        }
        let watch = &mut *self.options.watch;
        let rows = move_rows(&mut from, &mut to, &tables, rows::PLACES, watch).await?;
        let stored = Blobs::new(self.source, objects);
        let blobs = bytes::bring(&mut from, &stored, data_dir, watch).await?;
        to.close().await?;
        // Without the files that are in objects, which the rows name.
        let mut streams = carry_streams(&arriving, &self.source.data_dir, data_dir).await?;
        streams::bring(&mut from, &stored, data_dir, &mut streams, watch).await?;
        let uploads = uploads::bring(&mut from, &stored, data_dir, watch).await?;

        let is_whole = streams.lost.is_empty() && uploads.lost == 0;
        let is_finished = self.is_enough(&blobs) && (is_whole || self.options.skip_damaged);
        if is_finished {
            let place = data_dir.display().to_string();
            // The source first: two services must not go on from the same rows.
            match &mut from {
                Side::Postgres(from) => {
                    mark::mark_moved(&mut from.connection, &place, now_ms()).await?;
                }
                Side::Sqlite(_) => mark::mark_folder(&self.source.data_dir, &place, now_ms())?,
            }
            streams::forget_objects(&arriving).await?;
            copy::rename_durably(&arriving, &folder::database(data_dir))?;
        }
        from.close().await?;
        Ok(Moved {
            rows,
            blobs,
            streams,
            uploads,
            uploads_in_folder: 0,
            is_finished,
        })
    }

    /// Opens the database whose rows are brought back. One that was marked is only read to continue.
    async fn open_source(&self, tables: &[Table], is_continued: bool) -> Result<Side, Error> {
        let Some(server) = Server::of(self.source)? else {
            if !is_continued {
                check_folder(&self.source.data_dir)?;
            }
            let side = SqliteSide::open_to_read(&self.source.data_dir).await?;
            return Ok(Side::Sqlite(side));
        };
        let mut connection = server.connect_alone().await?;
        match mark::schema_mark(&mut connection).await? {
            SchemaMark::Moved(_) if is_continued => {}
            _ => check_schema(&mut connection).await?,
        }
        server.check_version(&mut connection).await?;
        Ok(Side::Postgres(PostgresSide::new(connection, tables).await?))
    }

    async fn send(
        &mut self,
        side: &mut Side,
        target: &StoreSettings,
        objects: Option<Objects>,
    ) -> Result<Carried, Error> {
        if objects.is_none() {
            return Ok(Carried::default());
        }
        bytes::send(side, &Blobs::new(target, objects), &mut *self.options.watch).await
    }

    fn is_enough(&self, blobs: &Carried) -> bool {
        blobs.lost == 0 || self.options.skip_damaged
    }
}

async fn move_rows(
    from: &mut Side,
    to: &mut Side,
    tables: &[Table],
    replaced: rows::Replaced,
    watch: &mut Watch,
) -> Result<u64, Error> {
    rows::copy(from, to, tables, replaced, watch).await?;
    rows::compare(from, to, tables, replaced, watch).await
}

/// Returns the tables of this program's schema.
async fn schema_tables() -> Result<Vec<Table>, Error> {
    let mut connection = sqlite::empty_database().await?;
    let tables = catalogue::tables(&mut connection).await?;
    connection.close().await?;
    Ok(tables)
}

/// Rejects media of recordings that are not stored as files yet: they are no files that can be brought back.
async fn check_recordings(from: &mut Side) -> Result<(), Error> {
    let waiting: Option<String> =
        statement::query_scalar("SELECT broadcast FROM live_segments LIMIT 1")
            .fetch_optional(&mut from.tx())
            .await?;
    match waiting {
        None => Ok(()),
        Some(broadcast) => Err(Error::Conflict(format!(
            "the recording of the broadcast {broadcast} is not stored yet: \
             start the service until no recording is being stored, and move then"
        ))),
    }
}

/// Returns the key of the installation whose rows they are; `None` before they are anyone's.
async fn installation_key(side: &mut Side) -> Result<Option<Vec<u8>>, Error> {
    Ok(
        statement::query_scalar("SELECT key FROM installation WHERE id = 1")
            .fetch_optional(&mut side.tx())
            .await?,
    )
}

/// Makes the installation whose rows they are the owner of the object store to which files are moved, before the first is there.
/// `Error::Unsupported` when it is another one's.
async fn claim(side: &mut Side, objects: Option<&Objects>) -> Result<(), Error> {
    let Some(objects) = objects else {
        return Ok(());
    };
    let claimant = Claimant::of(&mut side.tx()).await?;
    objects.claim(&claimant).await
}

/// Connects to the schema to which rows are moved, made and migrated. `Error::Conflict` when it is in use.
async fn arrival(
    server: &Server,
    data_dir: &Path,
    key: Option<&[u8]>,
) -> Result<PgConnection, Error> {
    let mut connection = server.connect_alone().await?;
    let arrived = arrived_key(&mut connection).await?;
    match mark::schema_mark(&mut connection).await? {
        SchemaMark::Moved(moved) => return Err(Error::Conflict(moved)),
        // An empty one is of a move that was interrupted at its beginning.
        SchemaMark::Arriving { .. } if arrived.is_none() || arrived.as_deref() == key => {}
        SchemaMark::Arriving { .. } => return Err(in_use(server)),
        SchemaMark::None => {
            // Moved before, to this place or another one.
            check_folder(data_dir)?;
            if arrived.is_some() {
                return Err(in_use(server));
            }
        }
    }
    server.migrate(&mut connection).await?;
    server.check_version(&mut connection).await?;
    Ok(connection)
}

/// Marks the schema to which rows are moved. `Error::Conflict` when it has rows and no mark.
async fn begin_arrival(
    mut to: PostgresSide,
    tables: &[Table],
    data_dir: &Path,
) -> Result<Side, Error> {
    if mark::schema_mark(&mut to.connection).await? == SchemaMark::None {
        for table in tables {
            if to.last_key(table).await?.is_some() {
                return Err(Error::Conflict(format!(
                    "the table {} of the schema has rows: name an empty schema with --schema",
                    table.name
                )));
            }
        }
        let from = data_dir.display().to_string();
        mark::mark_arriving(&mut to.connection, &from, now_ms()).await?;
    }
    Ok(Side::Postgres(to))
}

async fn arrived_key(connection: &mut PgConnection) -> Result<Option<Vec<u8>>, Error> {
    let has_table: bool = query_scalar("SELECT to_regclass('installation') IS NOT NULL")
        .fetch_one(&mut *connection)
        .await?;
    if !has_table {
        return Ok(None);
    }
    Ok(query_scalar("SELECT key FROM installation WHERE id = 1")
        .fetch_optional(connection)
        .await?)
}

fn in_use(server: &Server) -> Error {
    Error::Conflict(format!(
        "{} has the rows of another service: name an empty schema with --schema",
        server.place()
    ))
}
