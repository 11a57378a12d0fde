//! Objects with the bytes of a stream's files (`store.objects_url`): upload, rows, reads, deletion.
//!
//! - The object `v/{stream}/{object}` has a segment, an init section or an image, or a part of a large one; never bytes of two
//!   segments, so that what is made again begins at an object. Each upload makes new ids, which tell their age.
//! - Objects are durable before their rows are written, in the transaction that records their bytes.
//! - Bytes that rows name are read from objects only: the file in the folder of this node may be that of an earlier owner, with
//!   other bytes or a hole. Without rows, the file has the bytes.

use std::{
    collections::{BTreeSet, HashMap},
    fs::File,
    ops::Range,
    os::unix::fs::FileExt as _,
    sync::Arc,
};

use serde::Serialize;
use uuid::Uuid;

use super::folder::{Folder, MediaFile};
use crate::{
    Connection, Error, Store, Tx,
    blob::{
        Source,
        pieces::{FilePart, PIECE_HASH_BYTES, Piece, PieceHash, made_ms, new_base, send_parts},
    },
    credentials::hexadecimal,
    objects::PIECE,
    rows,
    statement::{Builder, query, query_as, query_scalar},
};

/// Age from which objects are not recorded any more: those without a row are deleted when they are 24 hours old, and clocks
/// differ.
const MAX_RECORDED_AGE_MS: i64 = 16 * 60 * 60 * 1000;
/// Objects that are looked up in one statement.
const PAGE: usize = 200;
/// Bytes that are copied into a file at a time.
const COPIED: u64 = 1 << 20;
/// Beginning of the keys of all streams.
pub(crate) const PREFIX: &str = "v/";

/// Object with a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StreamObject {
    offset: u64,
    length: u64,
    id: Uuid,
    hash: PieceHash,
}

impl StreamObject {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    fn piece(&self, stream_id: Uuid) -> Piece {
        Piece {
            base: self.id,
            number: 0,
            key: key(stream_id, self.id),
            hash: self.hash,
            len: self.length,
        }
    }
}

/// Object that was uploaded and has no row yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewObject {
    file: String,
    object: StreamObject,
}

/// Objects of all files of a stream, as its rows name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamObjects(HashMap<String, Vec<StreamObject>>);

impl StreamObjects {
    /// Adds objects that were recorded.
    pub fn add(&mut self, new: &[NewObject]) {
        for NewObject { file, object } in new {
            self.push(file.clone(), *object);
        }
    }

    /// Adds an object; one that does not lie behind the others of its file is left out.
    fn push(&mut self, file: String, object: StreamObject) {
        let objects = self.0.entry(file).or_default();
        if objects.last().map_or(0, StreamObject::end) == object.offset {
            objects.push(object);
        }
    }

    /// Returns the number of objects.
    pub fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Returns how many bytes from the beginning of a file objects have.
    pub fn covered(&self, file: &MediaFile) -> u64 {
        let last = self.0.get(&file.name()).and_then(|objects| objects.last());
        last.map_or(0, StreamObject::end)
    }

    /// Returns the objects with a range of a file, each with its offset; `None` when they do not have all of it.
    fn pieces(
        &self,
        stream_id: Uuid,
        file: &MediaFile,
        range: &Range<u64>,
    ) -> Option<Vec<(u64, Piece)>> {
        let objects = self.0.get(&file.name())?;
        if objects.last()?.end() < range.end {
            return None;
        }
        let first = objects.partition_point(|object| object.end() <= range.start);
        let last = objects.partition_point(|object| object.offset < range.end);
        let found = objects.get(first..last)?.iter();
        let pieces = found.map(|object| (object.offset, object.piece(stream_id)));
        Some(pieces.collect())
    }
}

fn prefix_of(stream_id: Uuid) -> String {
    format!("{PREFIX}{}/", stream_id.simple())
}

fn key(stream_id: Uuid, object: Uuid) -> String {
    format!("{}{}", prefix_of(stream_id), object.simple())
}

/// Returns the id of the object with a key; `None` for a key of another form.
fn object_of(key: &str) -> Option<Uuid> {
    let (stream, object) = key.strip_prefix(PREFIX)?.split_once('/')?;
    let id = |text: &str| {
        let id = Uuid::try_parse(text).ok();
        id.filter(|id| id.simple().to_string() == text)
    };
    id(stream).and_then(|_| id(object))
}

/// Uploads parts of a stream's files, which were flushed and do not change any more: for each part as few objects as hold it.
/// Returns what [`add_objects`] is to record; none without an object store.
pub async fn upload(
    store: &Store,
    stream_id: Uuid,
    parts: Vec<(MediaFile, Range<u64>)>,
) -> Result<Vec<NewObject>, Error> {
    let blobs = store.blobs();
    if !blobs.has_objects() {
        return Ok(Vec::new());
    }
    let folder = Folder::of(store, stream_id);
    let mut new = Vec::with_capacity(parts.len());
    let mut sent = Vec::with_capacity(parts.len());
    for (file, part) in parts {
        for (offset, length) in cut(part) {
            let id = new_base();
            sent.push(FilePart {
                file: folder.path(&file),
                offset,
                len: length,
                key: key(stream_id, id),
            });
            let object = StreamObject {
                offset,
                length,
                id,
                hash: [0; PIECE_HASH_BYTES],
            };
            let file = file.name();
            new.push(NewObject { file, object });
        }
    }
    let hashes = send_parts(blobs, sent).await?;
    for (new, hash) in new.iter_mut().zip(hashes) {
        new.object.hash = hash;
    }
    Ok(new)
}

/// Cuts a part of a file into objects; returns offset and length of each.
fn cut(part: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    let end = part.end;
    part.step_by(PIECE)
        .map(move |offset| (offset, (end - offset).min(PIECE as u64)))
}

/// Row of an object, for a statement.
#[derive(Serialize)]
struct NewRow<'o> {
    file: &'o str,
    offset: u64,
    length: u64,
    object: String,
    /// Only its first bytes.
    sha256: String,
}

/// Records objects that were uploaded, in the transaction that records their bytes. `Error::Objects` when they are so old that a
/// sweep may have taken them for lost.
pub async fn add_objects(
    tx: &mut Tx<'_>,
    stream_id: Uuid,
    new: &[NewObject],
    now_ms: i64,
) -> Result<(), Error> {
    if new.is_empty() {
        return Ok(());
    }
    let oldest_ms = now_ms - MAX_RECORDED_AGE_MS;
    let is_old = |id: Uuid| made_ms(id).is_none_or(|made| made < oldest_ms);
    if new.iter().any(|new| is_old(new.object.id)) {
        return Err(Error::Objects(
            "bytes of a video stream waited too long for their rows: they are stored again".into(),
        ));
    }
    let new_rows: Vec<NewRow<'_>> = new
        .iter()
        .map(|NewObject { file, object }| NewRow {
            file,
            offset: object.offset,
            length: object.length,
            object: rows::hex(object.id),
            sha256: hexadecimal(&object.hash),
        })
        .collect();
    query(
        "INSERT INTO video_objects (stream_id, file, \"offset\", length, object, hash)
         SELECT $1, value ->> 'file', CAST(value ->> 'offset' AS INTEGER), CAST(value ->> 'length' AS INTEGER),
             unhex(value ->> 'object'), unhex(value ->> 'sha256')
         FROM json_each($2)",
    )
    .bind(stream_id)
    .bind(rows::json(&new_rows)?)
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the objects of a stream; none of one that has failed or was deleted, although their rows may not be swept yet.
pub async fn objects(db: &mut impl Connection, stream_id: Uuid) -> Result<StreamObjects, Error> {
    let found: Vec<(String, i64, i64, Uuid, Vec<u8>)> = query_as(
        "SELECT file, \"offset\", length, object, hash FROM video_objects
         WHERE stream_id = $1 AND NOT EXISTS (SELECT 1 FROM video_discarded WHERE stream_id = $1)
         ORDER BY file, \"offset\"",
    )
    .bind(stream_id)
    .fetch_all(db)
    .await?;
    let mut objects = StreamObjects::default();
    for (file, offset, length, id, hash) in found {
        let hash = PieceHash::try_from(hash.as_slice())
            .map_err(|_| Error::Internal("the hash of an object of a stream is cut".into()))?;
        let object = StreamObject {
            offset: offset.unsigned_abs(),
            length: length.unsigned_abs(),
            id,
            hash,
        };
        objects.push(file, object);
    }
    Ok(objects)
}

/// Opens a file of a stream to read it, or a range of it. `Error::NotFound` when it is not there; `Error::Objects` when the
/// object store cannot be used now, `Error::Lost` when it has lost or damaged the bytes.
pub async fn source(
    store: &Store,
    stream_id: Uuid,
    file: &MediaFile,
    objects: &StreamObjects,
    range: Option<Range<u64>>,
) -> Result<Source, Error> {
    let range = range.unwrap_or_else(|| 0..objects.covered(file));
    if let Some(pieces) = objects.pieces(stream_id, file, &range) {
        let mut reader = store.blobs().listed(pieces)?;
        if !range.is_empty() {
            reader.look(range.start).await?;
        }
        return Ok(Source::Pieces(reader));
    }
    let (folder, file) = (Folder::of(store, stream_id), file.clone());
    let opened = tokio::task::spawn_blocking(move || folder.read(&file))
        .await
        .map_err(|error| Error::Internal(format!("opening a file of a stream: {error}")))?;
    Ok(Source::File(Arc::new(opened?)))
}

/// Writes the first bytes of a rendition's file, which its worker compares, into the file that this node has of it. Does nothing
/// when no objects have them.
pub async fn copy_beginning(
    store: &Store,
    stream_id: Uuid,
    file: &MediaFile,
    objects: &StreamObjects,
    length: u64,
    target: &File,
) -> Result<(), Error> {
    let Some(pieces) = objects.pieces(stream_id, file, &(0..length)) else {
        return Ok(());
    };
    let mut reader = store.blobs().listed(pieces)?;
    let path = Folder::of(store, stream_id).path(file);
    let mut offset = 0;
    while offset < length {
        let bytes = reader
            .read(offset, (length - offset).min(COPIED) as usize)
            .await?;
        let count = bytes.len() as u64;
        let target = target
            .try_clone()
            .map_err(Error::file("cannot duplicate the descriptor of", &path))?;
        let written = path.clone();
        store
            .blobs()
            .blocking(move || {
                target
                    .write_all_at(&bytes, offset)
                    .map_err(Error::write("cannot write", written))
            })
            .await?;
        offset += count;
    }
    Ok(())
}

/// Deletes the objects of a stream that is gone or has failed, in the background; a sweep finds those that are left.
pub fn delete_objects(store: &Store, stream_id: Uuid) {
    store.blobs().delete_below(prefix_of(stream_id));
}

/// Deletes the rows of objects behind the segments that are left of a stream's renditions. A sweep deletes the objects.
pub(super) async fn cut_objects(tx: &mut Tx<'_>, stream_id: Uuid) -> Result<(), Error> {
    let any: Option<i64> =
        query_scalar("SELECT CAST(1 AS INTEGER) FROM video_objects WHERE stream_id = $1 LIMIT 1")
            .bind(stream_id)
            .fetch_optional(tx)
            .await?;
    if any.is_none() {
        return Ok(());
    }
    let ends: Vec<(String, i64)> = query_as(
        "SELECT r.name, CAST(coalesce(max(s.\"offset\" + s.length), 0) AS INTEGER) FROM video_renditions r
         LEFT JOIN video_segments s ON s.stream_id = r.stream_id AND s.rendition = r.number
         WHERE r.stream_id = $1 GROUP BY r.number, r.name",
    )
    .bind(stream_id)
    .fetch_all(tx)
    .await?;
    for (name, end) in ends {
        query("DELETE FROM video_objects WHERE stream_id = $1 AND file = $2 AND \"offset\" >= $3")
            .bind(stream_id)
            .bind(MediaFile::Rendition(name).name())
            .bind(end)
            .execute(tx)
            .await?;
    }
    Ok(())
}

/// Deletes at most `most` rows of a stream that is gone or has failed; returns how many.
pub(super) async fn delete_rows(tx: &mut Tx<'_>, stream_id: Uuid, most: u64) -> Result<u64, Error> {
    let deleted = query(
        "DELETE FROM video_objects WHERE stream_id = $1 AND (file, \"offset\") IN (
             SELECT file, \"offset\" FROM video_objects WHERE stream_id = $1 ORDER BY file, \"offset\" LIMIT $2)",
    )
    .bind(stream_id)
    .bind(i64::try_from(most).unwrap_or(i64::MAX))
    .execute(tx)
    .await?;
    Ok(deleted.rows_affected())
}

/// Returns those of these streams that are ready and whose files are all in objects: nothing needs their folders.
pub(super) async fn stored_whole(
    db: &mut impl Connection,
    streams: &[Uuid],
) -> Result<Vec<Uuid>, Error> {
    Ok(query_scalar(
        "SELECT v.id FROM json_each($1) j CROSS JOIN video_streams v ON v.id = unhex(j.value)
         WHERE v.status = 'ready'
             AND NOT EXISTS (SELECT 1 FROM video_renditions r WHERE r.stream_id = v.id AND r.size_bytes > coalesce(
                 (SELECT sum(o.length) FROM video_objects o WHERE o.stream_id = r.stream_id AND o.file = r.name || '.mp4'), 0))
             AND (v.has_poster = 0
                 OR EXISTS (SELECT 1 FROM video_objects o WHERE o.stream_id = v.id AND o.file = 'poster.jpg'))
             AND (v.has_storyboard = 0
                 OR EXISTS (SELECT 1 FROM video_objects o WHERE o.stream_id = v.id AND o.file = 'storyboard.jpg')
                     AND EXISTS (SELECT 1 FROM video_objects o WHERE o.stream_id = v.id AND o.file = 'storyboard.vtt'))",
    )
    .bind(rows::ids(streams)?)
    .fetch_all(db)
    .await?)
}

/// Returns the keys of those of these objects that were made before a time and have no row.
pub(crate) async fn strays(
    store: &Store,
    keys: Vec<String>,
    before_ms: i64,
) -> Result<Vec<String>, Error> {
    let is_old = |id: &Uuid| made_ms(*id).is_some_and(|made| made < before_ms);
    let old: Vec<(Uuid, String)> = keys
        .into_iter()
        .filter_map(|key| Some((object_of(&key).filter(is_old)?, key)))
        .collect();
    let mut strays = Vec::new();
    for page in old.chunks(PAGE) {
        let mut statement = Builder::new("SELECT object FROM video_objects WHERE object IN (");
        statement
            .push_list(page.iter().map(|(id, _)| *id))
            .push(")");
        let named: Vec<Uuid> = statement
            .build_query_scalar()
            .fetch_all(&mut store.read().await?)
            .await?;
        let named: BTreeSet<Uuid> = named.into_iter().collect();
        let unnamed = page.iter().filter(|(id, _)| !named.contains(id));
        strays.extend(unnamed.map(|(_, key)| key.clone()));
    }
    Ok(strays)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(offset: u64, length: u64) -> StreamObject {
        StreamObject {
            offset,
            length,
            id: Uuid::from_u128(offset.into()),
            hash: [1; PIECE_HASH_BYTES],
        }
    }

    #[test]
    fn a_range_is_in_the_objects_that_touch_it() {
        let file = MediaFile::Rendition("360p".into());
        let mut objects = StreamObjects::default();
        // The last two do not lie behind the others.
        for (offset, length) in [(0, 10), (10, 90), (100, 50), (140, 20), (200, 10)] {
            objects.push(file.name(), object(offset, length));
        }
        assert_eq!((objects.count(), objects.covered(&file)), (3, 150));
        assert_eq!(objects.covered(&MediaFile::Poster), 0);
        let cases: [(Range<u64>, Option<&[u64]>); 8] = [
            (0..150, Some(&[0, 10, 100])),
            (0..10, Some(&[0])),
            (10..100, Some(&[10])),
            (99..101, Some(&[10, 100])),
            (149..150, Some(&[100])),
            (0..0, Some(&[])),
            (100..151, None),
            (160..170, None),
        ];
        for (range, expected) in cases {
            let pieces = objects.pieces(Uuid::nil(), &file, &range);
            let offsets: Option<Vec<u64>> =
                pieces.map(|pieces| pieces.iter().map(|(offset, _)| *offset).collect());
            assert_eq!(offsets.as_deref(), expected, "{range:?}");
        }
        assert!(
            objects
                .pieces(Uuid::nil(), &MediaFile::Poster, &(0..1))
                .is_none()
        );
    }

    #[test]
    fn parts_are_cut_where_objects_are_full() {
        let piece = PIECE as u64;
        let cases = [
            (5..5, vec![]),
            (5..6, vec![(5, 1)]),
            (5..5 + piece, vec![(5, piece)]),
            (5..6 + piece, vec![(5, piece), (5 + piece, 1)]),
        ];
        for (part, expected) in cases {
            let found: Vec<_> = cut(part.clone()).collect();
            assert_eq!(found, expected, "{part:?}");
        }
    }

    #[test]
    fn a_key_names_its_object() {
        let [stream, object] = [1, 2].map(Uuid::from_u128);
        let known = key(stream, object);
        assert_eq!(object_of(&known), Some(object));
        let (stream, object) = (stream.simple(), object.simple());
        for foreign in [
            format!("v/{stream}"),
            format!("v/{stream}/"),
            format!("v/{stream}/{object}/1"),
            format!("v/{stream}/{object}0"),
            format!("v/notes/{object}"),
            format!("b/{stream}/{object}"),
            "v/00000000-0000-0000-0000-000000000001/00000000000000000000000000000002".to_owned(),
        ] {
            assert_eq!(object_of(&foreign), None, "{foreign}");
        }
    }
}
