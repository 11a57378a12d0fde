//! Copies the folders of video streams to and from a backup, and removes those that its database no longer names.
//!
//! Files of a stream that is ready never change: they are linked where that is possible. One in the making keeps
//! growing, and may end in the middle of a write where a process died: it is copied as far as its rows name it. An
//! existing file is never written to, since other backups may be links to it; a longer one replaces it. Files whose bytes are in
//! an object store stay there.

use std::{
    fs::{self, File},
    io::Read as _,
    path::Path,
};

use sqlx::{
    ConnectOptions as _, Connection as _, FromRow, SqliteConnection, query_as, query_scalar,
};
use uuid::Uuid;

use super::{
    blob_copier::unreadable,
    digest::{self, Broken},
    off_thread,
};
use crate::{
    Error, copy, folder, store,
    video::{Folder, MediaFile, StreamStatus, stream_folders},
};

/// Streams that are read, and then carried, at a time.
const PAGE: i64 = 50;
/// File name extension of an incomplete copy.
const PARTIAL: &str = "partial";

/// Result of the transfer of the folders of video streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedStreams {
    /// Streams with a folder.
    pub count: u64,
    pub bytes: u64,
    /// Files that could not be copied, for people: the stream, the file, and the reason.
    pub lost: Vec<String>,
}

/// Stream with the fields that the copy of its folder needs.
#[derive(Debug, FromRow)]
struct Row {
    id: Uuid,
    title: String,
    status: StreamStatus,
    has_poster: bool,
    has_storyboard: bool,
}

/// File with the number of bytes that are named; `None`: all of its bytes.
type Wanted = (MediaFile, Option<u64>);

/// Copies the folders of all streams that a database names from one data folder or backup to another.
pub(crate) async fn carry(
    database: &Path,
    from: &Path,
    to: &Path,
) -> Result<CarriedStreams, Error> {
    let mut carried = CarriedStreams::default();
    let Some(mut connection) = open(database).await? else {
        return Ok(carried);
    };
    let has_objects = has_table(&mut connection, "video_objects").await?;
    let mut last = Uuid::nil();
    loop {
        let page: Vec<Row> = query_as(
            "SELECT id, title, status, has_poster, has_storyboard FROM video_streams WHERE id > $1 AND status <> 'failed'
             ORDER BY id LIMIT $2",
        )
        .bind(last)
        .bind(PAGE)
        .fetch_all(&mut connection)
        .await?;
        let Some(end) = page.last() else { break };
        last = end.id;
        for row in page {
            let mut wanted = wanted(&mut connection, &row).await?;
            if has_objects {
                remove_stored(&mut connection, row.id, &mut wanted).await?;
            }
            if wanted.is_empty() {
                continue;
            }
            let (source, target) = (Folder::in_dir(from, row.id), Folder::in_dir(to, row.id));
            let brought = off_thread(move || bring(&source, &target, &row, wanted)).await?;
            carried.count += 1;
            carried.bytes += brought.bytes;
            carried.lost.extend(brought.lost);
        }
    }
    connection.close().await?;
    Ok(carried)
}

/// Removes from a backup the folders of streams that its database does not name.
pub(super) async fn remove_stale(database: &Path, dir: &Path) -> Result<(), Error> {
    let Some(mut connection) = open(database).await? else {
        return Ok(());
    };
    for id in stream_folders(dir)? {
        let named: Option<i64> =
            query_scalar("SELECT 1 FROM video_streams WHERE id = $1 AND status <> 'failed'")
                .bind(id)
                .fetch_optional(&mut connection)
                .await?;
        if named.is_none() {
            let folder = Folder::in_dir(dir, id);
            off_thread(move || folder.remove()).await?;
        }
    }
    connection.close().await?;
    Ok(())
}

/// Opens the database for reading; `None` for one from before there were streams.
async fn open(database: &Path) -> Result<Option<SqliteConnection>, Error> {
    let options = store::read_only(database).immutable(true);
    let mut connection = options.connect().await?;
    if !has_table(&mut connection, "video_streams").await? {
        connection.close().await?;
        return Ok(None);
    }
    Ok(Some(connection))
}

async fn has_table(connection: &mut SqliteConnection, name: &str) -> Result<bool, Error> {
    let table: Option<i64> =
        query_scalar("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1")
            .bind(name)
            .fetch_optional(connection)
            .await?;
    Ok(table.is_some())
}

/// Removes the files whose bytes are in an object store.
async fn remove_stored(
    connection: &mut SqliteConnection,
    stream_id: Uuid,
    wanted: &mut Vec<Wanted>,
) -> Result<(), Error> {
    let stored: Vec<(String, i64)> =
        query_as("SELECT file, sum(length) FROM video_objects WHERE stream_id = $1 GROUP BY file")
            .bind(stream_id)
            .fetch_all(connection)
            .await?;
    wanted.retain(|(file, bytes)| {
        let name = file.name();
        let found = stored.iter().find(|(file, _)| *file == name);
        // Images have one object, or few.
        found.is_none_or(|(_, stored)| bytes.is_some_and(|bytes| stored.unsigned_abs() < bytes))
    });
    Ok(())
}

async fn wanted(connection: &mut SqliteConnection, row: &Row) -> Result<Vec<Wanted>, Error> {
    let renditions: Vec<(String, i64)> = query_as(
        "SELECT name, size_bytes FROM video_renditions WHERE stream_id = $1 AND size_bytes > 0 ORDER BY number",
    )
    .bind(row.id)
    .fetch_all(connection)
    .await?;
    let mut wanted: Vec<Wanted> = renditions
        .into_iter()
        .map(|(name, bytes)| (MediaFile::Rendition(name), Some(bytes.unsigned_abs())))
        .collect();
    if row.has_poster {
        wanted.push((MediaFile::Poster, None));
    }
    if row.has_storyboard {
        wanted.push((MediaFile::StoryboardImage, None));
        wanted.push((MediaFile::StoryboardMap, None));
    }
    Ok(wanted)
}

/// Copies the folder of a stream. Files that the source lacks are reported in the result; an error is one of the
/// target, and ends the work.
fn bring(
    from: &Folder,
    to: &Folder,
    row: &Row,
    wanted: Vec<Wanted>,
) -> Result<CarriedStreams, Error> {
    to.make()?;
    let mut brought = CarriedStreams::default();
    for (file, bytes) in wanted {
        let (source, target) = (from.path(&file), to.path(&file));
        let lost = match fs::metadata(&source) {
            Err(error) => Some(unreadable(&error)),
            Ok(found) if bytes.is_some_and(|bytes| found.len() < bytes) => {
                Some(format!("has only {} bytes", found.len()))
            }
            Ok(found) => {
                let bytes = bytes.unwrap_or(found.len());
                let may_link = row.status == StreamStatus::Ready;
                let lost = bring_one(&source, &target, bytes, may_link)?;
                if lost.is_none() {
                    brought.bytes += bytes;
                }
                lost
            }
        };
        if let Some(why) = lost {
            let (title, name) = (&row.title, file.name());
            brought.lost.push(format!(
                "{name} of the video stream {title:?} ({}) {why}",
                row.id
            ));
        }
    }
    to.sync()?;
    Ok(brought)
}

/// Copies one file; returns the reason when the source could not be read.
fn bring_one(
    source: &Path,
    target: &Path,
    bytes: u64,
    may_link: bool,
) -> Result<Option<String>, Error> {
    let is_there = fs::metadata(target).is_ok_and(|found| found.len() == bytes);
    if is_there && may_link {
        return Ok(None);
    }
    let partial = target.with_extension(PARTIAL);
    copy::remove_if_there(&partial)?;
    if !(may_link && fs::hard_link(source, &partial).is_ok())
        && let Some(why) = copy_beginning(source, &partial, bytes)?
    {
        copy::remove_if_there(&partial)?;
        return Ok(Some(why));
    }
    fs::rename(&partial, target).map_err(Error::write("cannot rename", &partial))?;
    Ok(None)
}

fn copy_beginning(source: &Path, partial: &Path, bytes: u64) -> Result<Option<String>, Error> {
    let from = match File::open(source) {
        Ok(from) => from,
        Err(error) => return Ok(Some(unreadable(&error))),
    };
    let mut to = folder::create_private_file(partial)?;
    let copied = match digest::copy(from.take(bytes), &mut to, |_| {}) {
        Ok(copied) => copied,
        Err(Broken::Source(error)) => return Ok(Some(unreadable(&error))),
        Err(Broken::Target(error)) => return Err(Error::write("cannot copy to", partial)(error)),
    };
    to.sync_all()
        .map_err(Error::write("cannot copy to", partial))?;
    Ok((copied < bytes).then(|| format!("has only {copied} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_cannot_be_read_is_reported_and_ends_nothing() {
        let folder = tempfile::tempdir().unwrap();
        // A directory opens like a file and fails at the first read, as a bad disk does.
        let (source, target) = (folder.path().join("source"), folder.path().join("target"));
        fs::create_dir(&source).unwrap();
        let lost = bring_one(&source, &target, 10, false).unwrap();
        assert!(lost.is_some());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
