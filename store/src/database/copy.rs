//! Copies a database in use consistently (`VACUUM INTO`); renames and flushes files durably.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use sqlx::{SqliteConnection, query};

use crate::{Error, folder};

/// Copies the database as of now to a new private file, flushed; while it is written it has another name.
pub(crate) async fn database(
    connection: &mut SqliteConnection,
    target: &Path,
) -> Result<(), Error> {
    let partial = target.with_extension("partial");
    remove_if_there(&partial)?;
    // SQLite takes an empty file as its target, and this one only this user can read.
    folder::create_private_file(&partial)?;
    let partial_name = partial.to_str().ok_or_else(|| {
        Error::Invalid(format!("{}: expected a path in UTF-8", partial.display()))
    })?;
    query("VACUUM INTO $1")
        .bind(partial_name)
        .execute(connection)
        .await?;
    rename_durably(&partial, target)
}

/// Flushes a file, gives it its name and flushes the folder.
pub(crate) fn rename_durably(from: &Path, to: &Path) -> Result<(), Error> {
    File::open(from)
        .and_then(|file| file.sync_all())
        .map_err(Error::file("cannot flush", from))?;
    fs::rename(from, to).map_err(Error::file("cannot rename", from))?;
    match to.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => folder::sync_folder(dir),
        _ => folder::sync_folder(Path::new(".")),
    }
}

/// Removes a file; one that is not there is fine.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), Error> {
    removed(path, fs::remove_file(path))
}

/// Removes a folder with everything in it; one that is not there is fine.
pub(crate) fn remove_folder_if_there(path: &Path) -> Result<(), Error> {
    removed(path, fs::remove_dir_all(path))
}

fn removed(path: &Path, result: io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::file("cannot remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Formats a time for file names, such as `20261121T093000Z`; names sort by it.
pub(crate) fn time_in_name(now_ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(now_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%Y%m%dT%H%M%SZ").to_string()
}
