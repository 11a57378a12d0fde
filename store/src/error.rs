//! Errors of the store: what a locked, full, damaged, lost or failing database means to the caller, and which errors
//! are worth a retry.

use std::path::PathBuf;

use sqlx::postgres::PgDatabaseError;

/// Error of the crate. Messages are for people; a database's own text stays in the source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The row does not exist, or is not one of this account.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The caller's value is not acceptable; the text names it and what is allowed.
    #[error("{0}")]
    Invalid(String),
    /// The rows are in a state that forbids the change.
    #[error("{0}")]
    Conflict(String),
    /// The object existed, and is not kept any longer.
    #[error("{0}")]
    Gone(&'static str),
    /// Nothing was changed; the same call may succeed later.
    #[error("the database is busy: {0}")]
    Busy(String),
    /// The connection was lost while a change was committed, and it could not be found out in time whether it was.
    #[error(
        "the database was lost while a change was committed: whether it was made is not known; look before you repeat it"
    )]
    Unknown,
    /// The disk is full, or below `store.min_free`; nothing was changed.
    #[error("the disk is full")]
    Full,
    /// The account's files would take more than its plan allows; nothing was changed.
    #[error("the storage of the plan is used up: {used_bytes} of {limit_bytes} bytes are stored")]
    OverQuota { used_bytes: u64, limit_bytes: u64 },
    /// Another process holds the data folder.
    #[error(
        "the data folder {} is in use by {holder}: stop that process first, or choose another folder with store.data_dir",
        .data_dir.display()
    )]
    Locked { data_dir: PathBuf, holder: String },
    /// Another service has the database.
    #[error(
        "the database is in use by {holder}: stop that service first, or choose another database with store.database_url or \
         another schema with store.database_schema; several services share a database as nodes, each with cluster.listen set"
    )]
    InUse { holder: String },
    /// A service that is no node has the database, and this process is one.
    #[error(
        "the database is in use by {holder}, a service that is no node of a cluster: stop it, and start it again with \
         cluster.listen set"
    )]
    InUseAlone { holder: String },
    /// The schema needs newer programs than a node that runs.
    #[error(
        "the node {node} is of an older version (schema {schema}) than may run beside this one ({floor} or newer): stop that \
         node first"
    )]
    OlderNode {
        node: String,
        schema: i64,
        floor: i64,
    },
    /// The database was written by a newer version of the service.
    #[error(
        "the database is of a newer version (schema {found}; this program knows up to {known}): start the newer program, \
         or restore the copy that it made in the folder backups before it migrated"
    )]
    Newer { found: i64, known: i64 },
    /// The request needs something that this release or this handle does not support.
    #[error("{0}")]
    Unsupported(String),
    /// A file of the data folder or of a backup cannot be used.
    #[error("{action} {}", .path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The database's file cannot be read or written: the disk failed, became read-only, or damaged it. PostgreSQL cannot be
    /// reached, its disk fails, or it takes no connections of this user to this database.
    #[error("the database cannot be read or written")]
    Failing(#[source] sqlx::Error),
    /// The object store cannot be used now; nothing was changed. The text is for the log, and has been logged when bytes were to
    /// be read or written.
    #[error("{0}")]
    Objects(String),
    /// The object store has lost or damaged stored bytes; nothing was changed. The text has been logged. A retry succeeds only
    /// once they are brought back.
    #[error("{0}")]
    Lost(String),
    /// The database failed in a way that a retry does not repair.
    #[error("the database failed")]
    Database(#[source] sqlx::Error),
    /// A migration failed; the database is as it was before.
    #[error("the database could not be migrated")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// An error of this program.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Error {
    /// Returns whether the same call may succeed later without any change by the caller: the state of the machine
    /// prevented it.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Busy(_)
                | Self::Full
                | Self::Failing(_)
                | Self::Objects(_)
                | Self::Lost(_)
                | Self::Unknown
        )
    }

    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }
}

impl Error {
    /// Wraps an error as [`Error::file`] does, for operations that use disk space: [`Error::Full`] when there is none.
    pub(crate) fn write(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        use std::io::ErrorKind;
        let path = path.into();
        move |source| match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::file(action, path)(source),
        }
    }
}

impl From<sqlx::Error> for Error {
    /// Sorts the driver's errors: a locked database, a full or failing disk is worth a retry. A violated constraint is
    /// a bug of ours, since verbs answer the conflicts that callers can cause themselves.
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::PoolTimedOut => Self::Busy("all readers are taken".into()),
            sqlx::Error::PoolClosed => Self::Busy("the store is shutting down".into()),
            sqlx::Error::RowNotFound => Self::NotFound("row"),
            sqlx::Error::Database(database) => {
                if database.try_downcast_ref::<PgDatabaseError>().is_some() {
                    return of_postgres(error);
                }
                match primary_code(database.as_ref()) {
                    Some(SQLITE_BUSY | SQLITE_LOCKED) => {
                        Self::Busy("another process has locked it".into())
                    }
                    Some(SQLITE_FULL) => Self::Full,
                    Some(code) if FAILING.contains(&code) => Self::Failing(error),
                    _ => Self::Database(error),
                }
            }
            // The last two: a server that went away in the middle of an answer.
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => {
                Self::Failing(error)
            }
            _ => Self::Database(error),
        }
    }
}

/// Sorts PostgreSQL's errors by their SQLSTATE, <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn of_postgres(error: sqlx::Error) -> Error {
    let code = error.as_database_error().and_then(|error| error.code());
    match code.as_deref().unwrap_or_default() {
        "53100" => Error::Full,
        // A text with a NUL, which SQLite keeps.
        "22021" | "22P05" => Error::Invalid("a text contains a NUL character: remove it".into()),
        // Deadlock, serialization, lock not available, too many connections, canceled by a time-out.
        "40001" | "40P01" | "55P03" | "53300" | "57014" => Error::Busy(error.to_string()),
        // Connection lost, the server stops or starts, its disk is read-only or fails, it is a replica.
        code if code.starts_with("08") || code.starts_with("57P") || code.starts_with("58") => {
            Error::Failing(error)
        }
        "25006" | "53200" | "53400" => Error::Failing(error),
        // A new connection is rejected: password, user, `pg_hba.conf`, a database that was renamed. The operator mends it.
        code if code.starts_with("28") || code == "3D000" => Error::Failing(error),
        _ => Error::Database(error),
    }
}

// Primary result codes, <https://sqlite.org/rescode.html>.
const SQLITE_BUSY: i32 = 5;
const SQLITE_LOCKED: i32 = 6;
const SQLITE_READONLY: i32 = 8;
const SQLITE_IOERR: i32 = 10;
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_FULL: i32 = 13;
const SQLITE_CANTOPEN: i32 = 14;
const SQLITE_NOTADB: i32 = 26;

/// SQLite's codes for failures of the machine's storage, not of the request.
const FAILING: [i32; 5] = [
    SQLITE_READONLY,
    SQLITE_IOERR,
    SQLITE_CORRUPT,
    SQLITE_CANTOPEN,
    SQLITE_NOTADB,
];

/// The low byte of an extended result code is the primary one.
fn primary_code(error: &dyn sqlx::error::DatabaseError) -> Option<i32> {
    let extended: i32 = error.code()?.parse().ok()?;
    Some(extended & 0xff)
}

#[cfg(test)]
mod tests {
    use sqlx::{
        ConnectOptions as _, SqliteConnection, postgres::PgConnectOptions, query,
        sqlite::SqliteConnectOptions,
    };

    use super::*;
    use crate::{Store, StoreSettings};

    async fn run(connection: &mut SqliteConnection, statement: &'static str) -> Result<(), Error> {
        query(statement).execute(connection).await?;
        Ok(())
    }

    /// SQLite's own errors, not built ones: the codes are what counts.
    #[tokio::test]
    async fn errors_of_the_disk_differ_from_errors_of_the_call() {
        let folder = tempfile::tempdir().unwrap();
        let database = |name: &str| SqliteConnectOptions::new().filename(folder.path().join(name));

        let missing = database("missing.db").connect().await.map(drop);
        let missing = Error::from(missing.unwrap_err());
        assert!(matches!(missing, Error::Failing(_)), "{missing:?}");

        let mut connection = database("a.db")
            .create_if_missing(true)
            .connect()
            .await
            .unwrap();
        run(&mut connection, "CREATE TABLE t (x INTEGER PRIMARY KEY)")
            .await
            .unwrap();
        run(&mut connection, "PRAGMA query_only = ON")
            .await
            .unwrap();
        let read_only = run(&mut connection, "INSERT INTO t VALUES (1)")
            .await
            .unwrap_err();
        assert!(
            matches!(read_only, Error::Failing(_)) && read_only.is_retryable(),
            "{read_only:?}"
        );

        run(&mut connection, "PRAGMA query_only = OFF")
            .await
            .unwrap();
        run(&mut connection, "PRAGMA max_page_count = 2")
            .await
            .unwrap();
        let full = run(&mut connection, "CREATE TABLE u AS SELECT zeroblob(100000)")
            .await
            .unwrap_err();
        assert!(matches!(full, Error::Full), "{full:?}");

        run(&mut connection, "INSERT INTO t VALUES (1)")
            .await
            .unwrap();
        let twice = run(&mut connection, "INSERT INTO t VALUES (1)")
            .await
            .unwrap_err();
        assert!(
            matches!(twice, Error::Database(_)) && !twice.is_retryable(),
            "{twice:?}"
        );

        std::fs::write(folder.path().join("b.db"), [b'x'; 8192]).unwrap();
        let mut garbage = database("b.db").connect().await.unwrap();
        let garbage = run(&mut garbage, "CREATE TABLE t (x)").await.unwrap_err();
        assert!(matches!(garbage, Error::Failing(_)), "{garbage:?}");
    }

    /// With `SLUICE_TEST_POSTGRES`: no such database (3D000), no such user (28000, or 28P01 where a password is asked for).
    #[tokio::test]
    async fn a_server_that_rejects_connections_is_failing() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(folder.path());
        if !settings.is_on_postgres() {
            return;
        }
        let server: PgConnectOptions = settings.database_url.parse().unwrap();
        let rejected = [
            server.clone().database("sluice_no_such_database"),
            server.username("sluice_no_such_user"),
        ];
        for options in rejected {
            let rejected = options.connect().await.map(drop);
            let error = Error::from(rejected.unwrap_err());
            assert!(
                matches!(error, Error::Failing(_)) && error.is_retryable(),
                "{error:?}"
            );
        }
        // A start says what to change.
        let (server, _) = settings.database_url.rsplit_once('/').unwrap();
        let settings = StoreSettings {
            database_url: format!("{server}/sluice_no_such_database"),
            ..settings
        };
        let rejected = Store::open(&settings).await.map(drop);
        assert!(
            matches!(&rejected, Err(Error::Unsupported(reason))
                if reason.contains("sluice_no_such_database") && reason.contains("correct the address")),
            "{rejected:?}"
        );
    }
}
