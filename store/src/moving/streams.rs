//! Brings the files of video streams from the object store back to a data folder.

use std::{
    collections::BTreeSet,
    fs::File,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use sqlx::{
    ConnectOptions as _, Connection as _, raw_sql,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use uuid::Uuid;

use super::{MoveProgress, Watch, side::Side};
use crate::{
    Error,
    backup::{BackupProgress, CarriedStreams},
    blob::{
        Blobs,
        pieces::{PieceHash, piece_hash},
    },
    folder,
    statement::query_as,
    video::{Folder, MediaFile, OBJECT_PREFIX},
};

/// Rows that are read at a time.
const PAGE: i64 = 200;
/// Condition that a row is one of a stream whose files are wanted.
const WANTED: &str = "stream_id IN (SELECT id FROM video_streams WHERE status <> 'failed')";

/// Row of `video_objects`.
#[derive(Clone, Debug, sqlx::FromRow)]
struct ObjectRow {
    stream_id: Uuid,
    file: String,
    #[sqlx(try_from = "i64")]
    offset: u64,
    #[sqlx(try_from = "i64")]
    length: u64,
    object: Uuid,
    hash: Vec<u8>,
}

/// Writes the objects of all streams into the files of which they are parts, flushed; counts them in `carried`.
pub(super) async fn bring(
    side: &mut Side,
    blobs: &Blobs,
    data_dir: &Path,
    carried: &mut CarriedStreams,
    watch: &mut Watch,
) -> Result<(), Error> {
    let (count, bytes): (i64, i64) = query_as(format!(
        "SELECT count(*), CAST(coalesce(sum(length), 0) AS INTEGER) FROM video_objects WHERE {WANTED}"
    ))
    .fetch_one(&mut side.tx())
    .await?;
    let mut progress = BackupProgress::begin(count.unsigned_abs(), bytes.unsigned_abs());
    let statement = format!(
        "SELECT * FROM video_objects WHERE (stream_id, file, \"offset\") > ($1, $2, $3) AND {WANTED}
         ORDER BY stream_id, file, \"offset\" LIMIT $4"
    );
    let (mut stream_id, mut file, mut offset) = (Uuid::nil(), String::new(), -1_i64);
    loop {
        let page: Vec<ObjectRow> = query_as(statement.clone())
            .bind(stream_id)
            .bind(file)
            .bind(offset)
            .bind(PAGE)
            .fetch_all(&mut side.tx())
            .await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        let last_stream = stream_id;
        stream_id = last.stream_id;
        file = last.file.clone();
        offset = last.offset.cast_signed();
        let mut changed = BTreeSet::new();
        let streams: BTreeSet<Uuid> = page.iter().map(|row| row.stream_id).collect();
        carried.count += streams.iter().filter(|id| **id != last_stream).count() as u64;
        for row in page {
            let folder = Folder::in_dir(data_dir, row.stream_id);
            folder.make()?;
            let path = path_of(&folder, &row)?;
            if let Some(why) = bring_one(blobs, &row, &path).await? {
                let (file, id) = (&row.file, row.stream_id);
                carried
                    .lost
                    .push(format!("{file} of the video stream {id} {why}"));
            } else {
                carried.bytes += row.length;
                changed.insert(path);
            }
            progress.count += 1;
            progress.bytes += row.length;
            watch(MoveProgress::Streams(progress));
        }
        blobs.blocking(move || flush(&changed)).await?;
    }
}

/// Returns the path of a row's file. `Error::Internal` when its name leads out of the folder.
fn path_of(folder: &Folder, row: &ObjectRow) -> Result<PathBuf, Error> {
    let name = Path::new(&row.file);
    match name.file_name() {
        Some(plain) if plain == name.as_os_str() => {
            Ok(folder.path(&MediaFile::Poster).with_file_name(plain))
        }
        _ => Err(Error::Internal(format!(
            "{:?} is no file of a video stream",
            row.file
        ))),
    }
}

/// Writes an object into its file, unless it is there; returns the reason when it cannot be used.
async fn bring_one(blobs: &Blobs, row: &ObjectRow, path: &Path) -> Result<Option<String>, Error> {
    let Ok(hash) = PieceHash::try_from(row.hash.as_slice()) else {
        return Ok(Some("has a hash that is cut".to_owned()));
    };
    let (offset, length, target) = (row.offset, row.length, path.to_owned());
    let is_there = blobs.blocking(move || Ok(has_bytes(&target, offset, length, &hash)));
    if is_there.await? {
        return Ok(None);
    }
    let (stream, object) = (row.stream_id.simple(), row.object.simple());
    let key = format!("{OBJECT_PREFIX}{stream}/{object}");
    let bytes = match blobs.fetch_object(&key, hash, length).await? {
        Ok(bytes) => bytes,
        Err(unusable) => return Ok(Some(unusable)),
    };
    let target = path.to_owned();
    blobs
        .blocking(move || write(&target, offset, &bytes))
        .await?;
    Ok(None)
}

fn has_bytes(path: &Path, offset: u64, length: u64, hash: &PieceHash) -> bool {
    let mut bytes = vec![0; length as usize];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut bytes, offset));
    read.is_ok() && piece_hash(&bytes) == *hash
}

fn write(path: &Path, offset: u64, bytes: &Bytes) -> Result<(), Error> {
    folder::create_private_file(path)?
        .write_all_at(bytes, offset)
        .map_err(Error::write("cannot write", path))
}

fn flush(changed: &BTreeSet<PathBuf>) -> Result<(), Error> {
    for path in changed {
        File::open(path)
            .and_then(|file| file.sync_all())
            .map_err(Error::write("cannot flush", path))?;
        folder::sync_folder(path.parent().expect("it lies in the folder of a stream"))?;
    }
    Ok(())
}

/// Deletes the rows of the objects from a database that has arrived: all bytes are files.
pub(super) async fn forget_objects(database: &Path) -> Result<(), Error> {
    let mut connection = SqliteConnectOptions::new()
        .filename(database)
        .journal_mode(SqliteJournalMode::Delete)
        .synchronous(SqliteSynchronous::Full)
        .connect()
        .await?;
    raw_sql("DELETE FROM video_objects")
        .execute(&mut connection)
        .await?;
    Ok(connection.close().await?)
}
