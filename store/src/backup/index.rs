//! Reads from a backup's database which blobs it names, their sizes and the names of files with these bytes.
//! No process writes to the copy, so that pages are consistent.

use std::{collections::BTreeSet, path::Path};

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection as _, SqliteConnection, query_as, query_scalar,
};

use crate::{
    Error,
    blob::BlobHash,
    blobs::{REFERENCES, naming},
    migrate, store,
};

/// Rows that are read, and then carried, at a time.
const PAGE: i64 = 200;
/// File names listed for files with the same bytes.
const FILENAMES: i64 = 3;

pub(super) struct BackupIndex {
    connection: SqliteConnection,
    schema_version: i64,
    /// SQL condition that something names the row of `blobs` and its bytes are a file; `None` for a database from before there were any.
    is_named: Option<String>,
}

#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub(super) struct Entry {
    pub hash: BlobHash,
    #[sqlx(try_from = "i64")]
    pub size_bytes: u64,
}

impl BackupIndex {
    /// Opens the index. `Error::Newer` for a database of a version whose references to blobs this program may not
    /// know.
    pub(super) async fn open(database: &Path) -> Result<Self, Error> {
        let options = store::read_only(database).immutable(true);
        let mut connection = options.connect().await?;
        let schema_version = migrate::applied_version(&mut connection).await?;
        migrate::check_known(schema_version)?;
        let tables: BTreeSet<String> =
            query_scalar("SELECT name FROM sqlite_schema WHERE type = 'table'")
                .fetch_all(&mut connection)
                .await?
                .into_iter()
                .collect();
        // A database of an older schema is copied before its upgrade: it has the tables of that schema.
        let references = REFERENCES
            .iter()
            .filter(|(table, _)| tables.contains(*table));
        let has_base: i64 =
            query_scalar("SELECT count(*) FROM pragma_table_info('blobs') WHERE name = 'base'")
                .fetch_one(&mut connection)
                .await?;
        let is_named = tables.contains("blobs").then(|| match has_base {
            0 => naming(references),
            // The bytes of others are in an object store.
            _ => format!("(blobs.base IS NULL AND {})", naming(references)),
        });
        Ok(Self {
            connection,
            schema_version,
            is_named,
        })
    }

    pub(super) fn schema_version(&self) -> i64 {
        self.schema_version
    }

    /// Counts the blobs that are named, and their bytes.
    pub(super) async fn totals(&mut self) -> Result<(u64, u64), Error> {
        let Some(is_named) = &self.is_named else {
            return Ok((0, 0));
        };
        let statement =
            format!("SELECT count(*), coalesce(sum(size_bytes), 0) FROM blobs WHERE {is_named}");
        let (count, bytes): (i64, i64) = query_as(AssertSqlSafe(statement))
            .fetch_one(&mut self.connection)
            .await?;
        Ok((count.unsigned_abs(), bytes.unsigned_abs()))
    }

    /// Returns the next blobs in the order of their hashes; none after the last.
    pub(super) async fn after(&mut self, last: Option<BlobHash>) -> Result<Vec<Entry>, Error> {
        let Some(is_named) = &self.is_named else {
            return Ok(Vec::new());
        };
        let statement = format!(
            "SELECT hash, size_bytes FROM blobs WHERE hash > $1 AND {is_named} ORDER BY hash LIMIT $2"
        );
        let after = last.map_or_else(Vec::new, |hash| hash.as_bytes().to_vec());
        let page = query_as(AssertSqlSafe(statement))
            .bind(after)
            .bind(PAGE)
            .fetch_all(&mut self.connection)
            .await?;
        Ok(page)
    }

    pub(super) async fn names(&mut self, hash: BlobHash) -> Result<bool, Error> {
        let Some(is_named) = &self.is_named else {
            return Ok(false);
        };
        let statement = format!("SELECT 1 FROM blobs WHERE hash = $1 AND {is_named}");
        let found: Option<i64> = query_scalar(AssertSqlSafe(statement))
            .bind(hash.as_bytes().as_slice())
            .fetch_optional(&mut self.connection)
            .await?;
        Ok(found.is_some())
    }

    /// Returns some of the stored files that have these bytes; none for a blob that only a job, a run or an upload
    /// needs.
    pub(super) async fn filenames(&mut self, hash: BlobHash) -> Result<Vec<String>, Error> {
        let names = query_scalar("SELECT filename FROM files WHERE blob_hash = $1 LIMIT $2")
            .bind(hash.as_bytes().as_slice())
            .bind(FILENAMES)
            .fetch_all(&mut self.connection)
            .await?;
        Ok(names)
    }

    pub(super) async fn close(self) -> Result<(), Error> {
        Ok(self.connection.close().await?)
    }
}
