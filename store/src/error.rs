//! What can go wrong, sorted by what the caller can do about it.

use std::path::PathBuf;

/// The crate's error. Messages are for people; a database's own words stay in the source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such row, or not one of this account.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The caller's value is not acceptable; the text names it and what is allowed.
    #[error("{0}")]
    Invalid(String),
    /// The rows are in a state that forbids the change.
    #[error("{0}")]
    Conflict(String),
    /// It was there, and is not kept any longer.
    #[error("{0}")]
    Gone(&'static str),
    /// Nothing was changed; the same call may succeed later.
    #[error("the database is busy: {0}")]
    Busy(String),
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
    /// The database was written by a newer version of the service.
    #[error(
        "the database is of a newer version (schema {found}; this program knows up to {known}): start the newer program, \
         or restore the copy that it made in the folder backups before it migrated"
    )]
    Newer { found: i64, known: i64 },
    /// Asked for something that this release or this handle does not do.
    #[error("{0}")]
    Unsupported(String),
    /// A file of the data folder or of a backup cannot be used.
    #[error("{action} {}", .path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The database failed in a way that a retry will not mend.
    #[error("the database failed")]
    Database(#[source] sqlx::Error),
    /// A migration failed; the database is as it was before.
    #[error("the database could not be migrated")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// A fault of this program.
    #[error("internal fault: {0}")]
    Internal(String),
}

impl Error {
    /// Whether the same call may succeed a moment later without any change by the caller.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Busy(_))
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
    /// Like [`Error::file`], for what takes room on the disk: [`Error::Full`] when there is none.
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
    /// Sorts the driver's errors: a locked or full database is worth a retry. A broken constraint is a fault of ours, since
    /// verbs answer the conflicts that callers can cause themselves.
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::PoolTimedOut => Self::Busy("all readers are taken".into()),
            sqlx::Error::PoolClosed => Self::Busy("the store is shutting down".into()),
            sqlx::Error::RowNotFound => Self::NotFound("row"),
            sqlx::Error::Database(database) => match primary_code(database.as_ref()) {
                Some(SQLITE_BUSY | SQLITE_LOCKED) => {
                    Self::Busy("another process has locked it".into())
                }
                Some(SQLITE_FULL) => Self::Busy("the disk is full".into()),
                _ => Self::Database(error),
            },
            _ => Self::Database(error),
        }
    }
}

// Primary result codes, <https://sqlite.org/rescode.html>.
const SQLITE_BUSY: i32 = 5;
const SQLITE_LOCKED: i32 = 6;
const SQLITE_FULL: i32 = 13;

/// The low byte of an extended result code is the primary one.
fn primary_code(error: &dyn sqlx::error::DatabaseError) -> Option<i32> {
    let extended: i32 = error.code()?.parse().ok()?;
    Some(extended & 0xff)
}
