//! Upload of a resumable upload's bytes to the object store: complete pieces while they arrive, the tail before an offset counts;
//! the local file of an upload that another process received.
//!
//! - The local file is a cache: a [`KnownFiles`] entry says which of its bytes this process wrote. Without one the tail is
//!   read from the object store, and earlier pieces are compared with their hashes before they are used.
//! - Objects are deleted only after the commit of a row that does not name them.

use std::{
    collections::HashMap,
    fmt,
    fs::{File, OpenOptions},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use futures_util::future::try_join;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::{
    LeftObjects,
    tail::{self, Segment, Tail},
};
use crate::{
    Error,
    blob::{
        Blobs,
        pieces::{PIECE_HASH_BYTES, PieceUpload, Place, new_base, piece_hash, prefix_of, tail_key},
    },
    objects::PIECE,
};

/// Pieces before the local file's own bytes that are read for the end of an upload. Of a longer part only the first one is:
/// the file is neither cached nor inspected then, and its blob is fetched when it is first read.
const MOST_MENDED_PIECES: u64 = if cfg!(test) { 2 } else { 16 };
/// Files that are known at a time. The tail of one that was forgotten is read from the object store.
const MOST_KNOWN: usize = 10_000;

/// Objects of an upload's bytes, as its row names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialObjects {
    pub(crate) base: Uuid,
    /// Hashes of the complete pieces, as in [`Place::piece_hashes`].
    pub(crate) piece_hashes: Vec<u8>,
    /// `None` when the last piece is complete.
    pub(crate) tail: Option<Tail>,
}

impl PartialObjects {
    /// Reads the columns of a row.
    pub(crate) fn of_row(
        base: Option<Uuid>,
        piece_hashes: Option<&[u8]>,
        tail: i64,
        tail_hash: Option<&[u8]>,
    ) -> Option<Self> {
        Some(Self {
            base: base?,
            piece_hashes: piece_hashes.unwrap_or_default().to_vec(),
            tail: Tail::of(tail, tail_hash),
        })
    }

    /// Returns the bytes of the complete pieces.
    pub(super) fn complete(&self) -> u64 {
        let pieces = (self.piece_hashes.len() / PIECE_HASH_BYTES) as u64;
        pieces * PIECE as u64
    }
}

/// The local files of uploads whose bytes this process knows.
#[derive(Default)]
pub(in crate::blob) struct KnownFiles(Mutex<HashMap<Uuid, KnownFile>>);

/// Local file that has the bytes of its row from `valid_from` on, for as long as the row's length is this one: each length
/// is recorded by one request only.
#[derive(Clone)]
struct KnownFile {
    length: u64,
    valid_from: u64,
    segments: Vec<Segment>,
}

impl KnownFiles {
    fn get(&self, upload: Uuid, length: u64) -> Option<KnownFile> {
        let known = self.0.lock().get(&upload).cloned();
        known.filter(|known| known.length == length)
    }

    fn insert(&self, upload: Uuid, file: KnownFile) {
        let mut known = self.0.lock();
        if known.len() >= MOST_KNOWN
            && !known.contains_key(&upload)
            && let Some(any) = known.keys().next().copied()
        {
            known.remove(&any);
        }
        known.insert(upload, file);
    }

    pub(super) fn remove(&self, upload: Uuid) {
        self.0.lock().remove(&upload);
    }
}

/// Objects of an upload to which a request adds.
pub(super) struct ObjectUpload {
    blobs: Blobs,
    upload: Uuid,
    /// `None` until there are bytes to upload: a base tells its age.
    pieces: Option<PieceUpload>,
    /// State of the row.
    saved: SavedObjects,
    /// State that [`ObjectUpload::save`] returned and whose commit is not known yet.
    unsettled: Option<SavedObjects>,
    /// True when the upload's row may name the objects.
    is_named: bool,
    /// The local file has the right bytes from here on.
    valid_from: u64,
}

#[derive(Clone, Default)]
struct SavedObjects {
    length: u64,
    piece_hashes: Vec<u8>,
    segments: Vec<Segment>,
}

impl SavedObjects {
    /// Returns the numbers of the tail's objects that `later` does not name.
    fn numbers_beside(&self, later: &Self) -> Vec<i64> {
        let numbers = self.segments.iter().map(|segment| segment.object.number);
        let is_named = |number: &i64| later.segments.iter().any(|it| it.object.number == *number);
        numbers.filter(|number| !is_named(number)).collect()
    }
}

impl fmt::Debug for ObjectUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectUpload")
            .field("upload", &self.upload)
            .field("length", &self.saved.length)
            .field("valid_from", &self.valid_from)
            .finish_non_exhaustive()
    }
}

impl ObjectUpload {
    /// Begins an upload without bytes.
    pub(super) fn new(blobs: &Blobs, upload: Uuid) -> Self {
        blobs.known_files().remove(upload);
        Self {
            blobs: blobs.clone(),
            upload,
            pieces: None,
            saved: SavedObjects::default(),
            unsettled: None,
            is_named: false,
            valid_from: 0,
        }
    }

    /// Continues an upload of `length` bytes. Its local file has the bytes of its tail afterwards; bytes before them may be
    /// missing, until [`ObjectUpload::mend`] has returned true.
    pub(super) async fn resume(
        blobs: &Blobs,
        upload: Uuid,
        objects: &PartialObjects,
        length: u64,
        file: &Path,
    ) -> Result<Self, Error> {
        let mut known = blobs.known_files().get(upload, length);
        if known.is_some() && !has_length(blobs, file, length).await? {
            known = None;
        }
        let (segments, valid_from) = match known {
            Some(known) => (known.segments, known.valid_from),
            None => {
                let segments = restore_tail(blobs, objects, length, file).await?;
                (segments, objects.complete())
            }
        };
        let saved = SavedObjects {
            length,
            piece_hashes: objects.piece_hashes.clone(),
            segments,
        };
        let pieces = PieceUpload::new(blobs, objects.base, objects.piece_hashes.clone());
        let this = Self {
            blobs: blobs.clone(),
            upload,
            pieces: Some(pieces),
            saved,
            unsettled: None,
            is_named: true,
            valid_from,
        };
        this.note_file(&this.saved);
        Ok(this)
    }

    fn pieces(&mut self) -> &mut PieceUpload {
        let blobs = &self.blobs;
        self.pieces
            .get_or_insert_with(|| PieceUpload::new(blobs, new_base(), Vec::new()))
    }

    /// Begins to upload the complete pieces of the first `length` bytes, which are in the file and will be kept.
    pub(super) async fn push(&mut self, file: &Path, length: u64) -> Result<(), Error> {
        self.pieces().push(file, length).await
    }

    /// Uploads all of the file's `length` bytes. They are safe when this returns; they count once the returned state is
    /// committed.
    pub(super) async fn save(&mut self, file: &Path, length: u64) -> Result<PartialObjects, Error> {
        let (blobs, saved) = (self.blobs.clone(), self.saved.clone());
        let pieces = self.pieces();
        let base = pieces.base();
        let tail = add_tail(&blobs, base, file, &saved, length);
        let complete = async {
            pieces.push(file, length).await?;
            pieces.settled().await
        };
        let (piece_hashes, segments) = try_join(complete, tail).await?;
        let now = SavedObjects {
            length,
            piece_hashes,
            segments,
        };
        self.unsettled = Some(now.clone());
        self.is_named = true;
        Ok(PartialObjects {
            base,
            piece_hashes: now.piece_hashes,
            tail: now.segments.last().map(|newest| newest.object),
        })
    }

    /// Returns the complete pieces, of `written` bytes, that are durable although an upload failed, with their length in bytes, when
    /// they are more than the row names. They count once they are committed.
    pub(super) async fn salvage(&mut self, written: u64) -> Option<(u64, PartialObjects)> {
        let pieces = self.pieces.as_mut()?;
        let objects = PartialObjects {
            base: pieces.base(),
            piece_hashes: pieces.salvaged().await,
            tail: None,
        };
        let length = objects.complete();
        // The last one may be shorter than the others; it does not count then.
        if !(self.saved.length + 1..=written).contains(&length) {
            return None;
        }
        self.unsettled = Some(SavedObjects {
            length,
            piece_hashes: objects.piece_hashes.clone(),
            segments: Vec::new(),
        });
        self.is_named = true;
        Some((length, objects))
    }

    /// Notes whether the state that [`ObjectUpload::save`] returned was committed, and deletes the objects of the tail that
    /// no row names then, in the background. An unknown outcome leaves them all; the end of the upload deletes them.
    pub(super) fn settle(&mut self, committed: &Result<(), Error>) {
        let Some(now) = self.unsettled.take() else {
            return;
        };
        let unnamed = match committed {
            Ok(()) => {
                let unnamed = self.saved.numbers_beside(&now);
                self.note_file(&now);
                self.saved = now;
                unnamed
            }
            Err(Error::Unknown) => return,
            Err(_) => now.numbers_beside(&self.saved),
        };
        let Some(base) = self.pieces.as_ref().map(PieceUpload::base) else {
            return;
        };
        if !unnamed.is_empty() {
            let keys = unnamed
                .into_iter()
                .map(move |number| tail_key(base, number));
            self.blobs.delete_later(keys);
        }
    }

    fn note_file(&self, saved: &SavedObjects) {
        let file = KnownFile {
            length: saved.length,
            valid_from: self.valid_from,
            segments: saved.segments.clone(),
        };
        self.blobs.known_files().insert(self.upload, file);
    }

    /// Reads pieces that the local file may not have, unless they are more than [`MOST_MENDED_PIECES`] and not `all` are
    /// needed; the first one in any case. Returns whether the file has all bytes.
    pub(super) async fn mend(&mut self, file: &Path, all: bool) -> Result<bool, Error> {
        let missing = self.valid_from / PIECE as u64;
        let is_all = all || missing <= MOST_MENDED_PIECES;
        let mended = match is_all {
            true => missing,
            false => 1,
        };
        let place = self.place();
        for number in 0..mended {
            mend_piece(&self.blobs, &place, number, file).await?;
        }
        if is_all {
            self.valid_from = 0;
        }
        Ok(is_all)
    }

    /// The complete pieces that the row names.
    fn place(&self) -> Place {
        Place {
            base: self.pieces.as_ref().map_or(Uuid::nil(), PieceUpload::base),
            piece_hashes: self.saved.piece_hashes.clone(),
        }
    }

    /// Uploads what is missing of the file's `length` bytes; everything is durable when this returns.
    pub(super) async fn finish(&mut self, file: &Path, length: u64) -> Result<Finished, Error> {
        let place = self.pieces().finish_all(file, length).await?;
        // From here on the place is the blob's.
        self.pieces = None;
        Ok(Finished {
            place,
            is_named: self.is_named,
        })
    }
}

impl Drop for ObjectUpload {
    /// Deletes, in the background, the objects of a request that came to nothing and that no row names.
    fn drop(&mut self) {
        if self.is_named || Handle::try_current().is_err() {
            return;
        }
        if let Some(pieces) = self.pieces.take() {
            pieces.discard();
        }
    }
}

/// Place of all bytes of an upload.
pub(super) struct Finished {
    pub(super) place: Place,
    /// True when the upload's row names the place.
    pub(super) is_named: bool,
}

impl Blobs {
    /// Deletes, in the background, the objects that an upload has left; call it after the commit of its end.
    pub fn remove_objects(&self, left: LeftObjects) {
        match left {
            LeftObjects::None => {}
            LeftObjects::Tail(base) => self.delete_below(format!("{}t", prefix_of(base))),
            LeftObjects::All(base) => self.delete_below(prefix_of(base)),
        }
    }
}

/// Uploads the bytes after the last complete piece of `length`; returns the segments of the tail.
async fn add_tail(
    blobs: &Blobs,
    base: Uuid,
    file: &Path,
    saved: &SavedObjects,
    length: u64,
) -> Result<Vec<Segment>, Error> {
    let begin = length - length % PIECE as u64;
    let mut segments = match saved.length > begin {
        true => saved.segments.clone(),
        false => Vec::new(),
    };
    let new = length - begin - tail::length_of(&segments);
    if new == 0 {
        return Ok(segments);
    }
    segments.truncate(tail::kept(&segments, new));
    let from = begin + tail::length_of(&segments);
    let remote = blobs.remote()?;
    // Its bytes are in memory only while it has its turn.
    let _turn = remote.uploads().turn().await?;
    let before = segments.clone();
    let object = at_file(blobs, file, move |path| {
        let mut bytes = vec![0; (length - from) as usize];
        File::open(path)
            .and_then(|file| file.read_exact_at(&mut bytes, from))
            .map_err(Error::file("cannot read", path))?;
        let object = tail::write(bytes, &before);
        let hash = piece_hash(&object);
        Ok((object, hash))
    });
    let (object, hash) = object.await?;
    let number = tail::new_number();
    remote.put(&tail_key(base, number), object).await?;
    segments.push(Segment {
        object: Tail { number, hash },
        length: (length - from) as u32,
    });
    Ok(segments)
}

/// Gives the local file the length and the bytes of the tail; makes it when there is none, or one that is a blob, too.
async fn restore_tail(
    blobs: &Blobs,
    objects: &PartialObjects,
    length: u64,
    file: &Path,
) -> Result<Vec<Segment>, Error> {
    let (begin, base) = (objects.complete(), objects.base);
    let newest = match objects.tail {
        Some(newest) => Some((newest, read_tail(blobs, base, newest).await?)),
        None => None,
    };
    let mut segments = Vec::new();
    if let Some((newest, content)) = &newest {
        segments.clone_from(&content.before);
        segments.push(Segment {
            object: *newest,
            length: content.bytes.len() as u32,
        });
    }
    if begin + tail::length_of(&segments) != length {
        return Err(blobs.remote()?.damaged(format!(
            "the objects b/{} have other bytes than the {length} that were stored",
            base.simple()
        )));
    }
    prepare_file(blobs, file, length).await?;
    let mut at = begin;
    for segment in &segments {
        let bytes = match &newest {
            Some((newest, content)) if *newest == segment.object => content.bytes.clone(),
            _ => read_tail(blobs, base, segment.object).await?.bytes,
        };
        if bytes.len() as u64 != u64::from(segment.length) {
            let key = tail_key(base, segment.object.number);
            return Err(blobs.wrong_object(&key));
        }
        write_at(blobs, file, at, bytes).await?;
        at += u64::from(segment.length);
    }
    Ok(segments)
}

/// Reads an object of a tail. `Error::NotFound` when the object store does not have it, as after a restore of older rows:
/// the upload cannot be continued.
async fn read_tail(blobs: &Blobs, base: Uuid, tail: Tail) -> Result<tail::Content, Error> {
    let remote = blobs.remote()?;
    let _turn = remote.downloads().turn().await?;
    let key = tail_key(base, tail.number);
    let Ok(object) = remote.find(&key).await? else {
        return Err(super::lost());
    };
    let reading = blobs.blocking(move || {
        Ok(match piece_hash(&object) == tail.hash {
            true => tail::read(&object),
            false => None,
        })
    });
    reading.await?.ok_or_else(|| blobs.wrong_object(&key))
}

/// Compares a piece of the local file with its hash, and fetches it when it is another.
async fn mend_piece(blobs: &Blobs, place: &Place, number: u64, file: &Path) -> Result<(), Error> {
    let expected = place.hash(number).copied();
    let at = number * PIECE as u64;
    let remote = blobs.remote()?;
    let _turn = remote.downloads().turn().await?;
    let is_there = at_file(blobs, file, move |path| {
        let mut bytes = vec![0; PIECE];
        File::open(path)
            .and_then(|file| file.read_exact_at(&mut bytes, at))
            .map_err(Error::file("cannot read", path))?;
        Ok(expected == Some(piece_hash(&bytes)))
    });
    if is_there.await? {
        return Ok(());
    }
    let piece = place.piece(number, at + PIECE as u64)?;
    let bytes = blobs.fetch(&piece).await?;
    write_at(blobs, file, at, bytes).await
}

async fn has_length(blobs: &Blobs, file: &Path, length: u64) -> Result<bool, Error> {
    at_file(blobs, file, move |path| {
        Ok(path.metadata().is_ok_and(|found| found.len() >= length))
    })
    .await
}

async fn prepare_file(blobs: &Blobs, file: &Path, length: u64) -> Result<(), Error> {
    let at = blobs.clone();
    at_file(blobs, file, move |path| {
        at.check_space()?;
        super::unlink_shared(path)?;
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .and_then(|file| file.set_len(length))
            .map_err(Error::write("cannot make", path))
    })
    .await
}

async fn write_at(blobs: &Blobs, file: &Path, at: u64, bytes: Bytes) -> Result<(), Error> {
    let space = blobs.clone();
    at_file(blobs, file, move |path| {
        space.check_space()?;
        OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| file.write_all_at(&bytes, at))
            .map_err(Error::write("cannot write", path))
    })
    .await
}

async fn at_file<T: Send + 'static>(
    blobs: &Blobs,
    file: &Path,
    work: impl FnOnce(&PathBuf) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let path = file.to_owned();
    blobs.blocking(move || work(&path)).await
}
