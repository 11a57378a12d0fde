//! Bytes of a resumable (tus) upload until its end, at `{data_dir}/partial/{upload}`: appended, truncated, hashed again
//! after an upgrade. An upload may take several connections and days.
//!
//! - Only the bytes of a [`PartialState`] count: they were on the disk, or in the object store, before it was made. Bytes
//!   after them, from a crash or a rejected piece, are truncated: by [`Blobs::cut_partial`], and when the file is opened
//!   again.
//! - With an object store the file is a cache: it is made again where it is missing or another node received more
//!   ([`upload`]). An upload that began without an object store stays a file.
//! - A file that has become a blob has a second name. It is never written or truncated again: a copy replaces it.
//! - Long files are read [`TURN_BYTES`] at a time, so that other work is done in between.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom},
    ops::Range,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use sha2::{
    Digest, Sha256,
    digest::common::hazmat::{SerializableState, SerializedState},
};
use uuid::Uuid;

use super::{
    Blobs, HEAD_BYTES, Sealed,
    appender::{Appender, PIECE, Writer},
    spool::{Temporary, placed, temporary_writer},
};
use crate::{Error, copy::remove_if_there, folder};

mod moving;
mod tail;
mod upload;

pub use upload::PartialObjects;

pub(super) use upload::KnownFiles;

use upload::{Finished, ObjectUpload};

/// Bytes that are read, or copied, in one go before others have their turn on the blocking pool.
const TURN_BYTES: u64 = 8 << 20;

/// Hash state and length of the bytes that are safe, as a row keeps them; empty at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialState {
    pub length: u64,
    pub crc32: u32,
    /// Intermediate state of SHA-256, as the library writes it. One that a later release of the library cannot read is
    /// computed again from the bytes.
    pub sha256: Vec<u8>,
    /// `None`: the bytes are in the file only.
    pub objects: Option<PartialObjects>,
}

/// Objects of an upload that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftObjects {
    None,
    /// Those of the tail: the pieces are a blob's.
    Tail(Uuid),
    /// All with this base.
    All(Uuid),
}

/// File to which an upload is appended, by one request at a time. It is kept when this is dropped.
#[derive(Debug)]
pub struct Partial {
    blobs: Blobs,
    path: PathBuf,
    appender: Appender,
    written: u64,
    /// `None` without an object store.
    objects: Option<ObjectUpload>,
    /// Complete pieces whose upload has begun.
    begun_pieces: u64,
    /// True when its name is not durable yet.
    is_new: bool,
    is_hashed_again: bool,
    /// Committed state, without its objects.
    saved: PartialState,
    /// State that [`Partial::sync`] returned and whose commit is not known yet, without its objects.
    unsettled: Option<PartialState>,
}

impl Partial {
    /// Appends bytes. `Error::Full` when the disk is full, or falls below `store.min_free`; this is unusable
    /// afterwards.
    pub async fn write(&mut self, bytes: &Bytes) -> Result<(), Error> {
        self.written += bytes.len() as u64;
        self.appender.write(bytes).await
    }

    /// The bytes of the file, with those given to [`Partial::write`].
    pub fn len(&self) -> u64 {
        self.written
    }

    pub fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// Returns true when the state of SHA-256 was not readable, so that the bytes were hashed again, until
    /// [`Partial::sync`] has returned a new state: store that soon, to avoid hashing them once more.
    pub fn is_hashed_again(&self) -> bool {
        self.is_hashed_again
    }

    /// Begins to upload the complete pieces of what was given to [`Partial::write`], which the caller will not reject any
    /// more. Does nothing without an object store.
    pub async fn upload(&mut self) -> Result<(), Error> {
        let Some(objects) = &mut self.objects else {
            return Ok(());
        };
        let in_file = self.written - self.appender.unwritten() as u64;
        let complete_pieces = in_file / crate::objects::PIECE as u64;
        if complete_pieces > self.begun_pieces {
            objects.push(&self.path, in_file).await?;
            self.begun_pieces = complete_pieces;
        }
        Ok(())
    }

    /// Flushes everything to the disk, or uploads it; the returned state may be stored or sent. Once it is committed, or
    /// could not be, call [`Partial::settle`].
    pub async fn sync(&mut self) -> Result<PartialState, Error> {
        self.appender.flush().await?;
        let (path, length, is_new) = (self.path.clone(), self.written, self.is_new);
        let is_cache = self.objects.is_some();
        let mut progress = self
            .appender
            .with_writer(move |writer| {
                if !is_cache {
                    writer
                        .file
                        .sync_data()
                        .map_err(Error::write("cannot flush", &path))?;
                }
                if is_new && !is_cache {
                    folder::sync_folder(path.parent().expect("it lies in a folder"))?;
                }
                Ok(PartialState {
                    length,
                    crc32: writer.crc32.clone().finalize(),
                    sha256: writer.sha256.serialize().to_vec(),
                    objects: None,
                })
            })
            .await?;
        self.unsettled = Some(progress.clone());
        if let Some(objects) = &mut self.objects {
            progress.objects = Some(objects.save(&self.path, length).await?);
        }
        (self.is_new, self.is_hashed_again) = (false, false);
        Ok(progress)
    }

    /// Returns the state up to the end of the complete pieces that are in the object store although [`Partial::upload`],
    /// [`Partial::sync`] or [`Partial::seal`] failed; `None` when these are no more than the committed ones. It may be stored, and then
    /// [`Partial::settle`] is called; nothing else works after the failure.
    pub async fn salvage(&mut self) -> Result<Option<PartialState>, Error> {
        let Some(objects) = &mut self.objects else {
            return Ok(None);
        };
        let sha256 = match self.saved.length {
            0 => Some(Sha256::new()),
            _ => restored(&self.saved.sha256),
        };
        let Some(sha256) = sha256 else {
            return Ok(None);
        };
        let Some((length, objects)) = objects.salvage(self.written).await else {
            return Ok(None);
        };
        let from = self.saved.length;
        let crc32 = crc32fast::Hasher::new_with_initial_len(self.saved.crc32, from);
        let path = self.path.clone();
        let opened = self
            .blobs
            .blocking(move || File::open(&path).map_err(Error::file("cannot open", path)));
        let (sha256, crc32) = digested(
            &self.blobs,
            opened.await?,
            &self.path,
            from..length,
            (sha256, crc32),
            add_to_sums,
        )
        .await?;
        let progress = PartialState {
            length,
            crc32: crc32.finalize(),
            sha256: sha256.serialize().to_vec(),
            objects: None,
        };
        self.unsettled = Some(progress.clone());
        Ok(Some(PartialState {
            objects: Some(objects),
            ..progress
        }))
    }

    /// Takes the outcome of the commit of the state that [`Partial::sync`] has returned last. Objects that no row names
    /// then are deleted in the background.
    pub fn settle(&mut self, committed: &Result<(), Error>) {
        if let (Some(now), Ok(())) = (self.unsettled.take(), committed) {
            self.saved = now;
        }
        if let Some(objects) = &mut self.objects {
            objects.settle(committed);
        }
    }

    /// Reads what the file may not have of the upload, because other nodes received it. Returns false when that is too
    /// much: only the first bytes can be read from the file then.
    pub async fn make_whole(&mut self) -> Result<bool, Error> {
        match &mut self.objects {
            Some(objects) => objects.mend(&self.path, false).await,
            None => Ok(true),
        }
    }

    /// Digests what was written from `from` on.
    pub async fn digest<D: Send + 'static>(
        &mut self,
        from: u64,
        digest: D,
        update: fn(&mut D, &[u8]),
    ) -> Result<D, Error> {
        let file = self.reader().await?;
        digested(
            &self.blobs,
            file,
            &self.path,
            from..u64::MAX,
            digest,
            update,
        )
        .await
    }

    /// Opens what was written so far for reading only, with a position of its own.
    pub async fn reader(&mut self) -> Result<File, Error> {
        self.appender.flush().await?;
        let path = self.path.clone();
        self.blobs
            .blocking(move || File::open(&path).map_err(Error::file("cannot open", path)))
            .await
    }

    /// Makes a blob of it, as [`super::Spool::seal`] does. The partial file is kept, so that a change that cannot be
    /// committed loses nothing; call [`Blobs::remove_partial`] after the commit. `Error::NotFound` when the file was
    /// removed. A file that [`Partial::make_whole`] cannot complete is not in the cache afterwards. Only
    /// [`Partial::salvage`] works after it.
    pub async fn seal(&mut self) -> Result<Sealed, Error> {
        let is_whole = self.make_whole().await?;
        let writer = self.appender.take_writer().await?;
        let (blobs, path) = (self.blobs.clone(), self.path.clone());
        let Some(objects) = &mut self.objects else {
            let sealing = self.blobs.blocking(move || {
                // From here on the file counts as shared: a later request copies it before it appends.
                let link = second_name(&blobs, &path)?;
                let head = head_of(&writer.file, &path)?;
                let blob = writer.finish(&path)?;
                placed(&blobs, link, blob, head)
            });
            return sealing.await;
        };
        let file = path.clone();
        let finishing = self.blobs.blocking(move || {
            let link = match is_whole {
                true => Some(second_name(&blobs, &path)?),
                false => None,
            };
            let head = head_of(&writer.file, &path)?;
            Ok((link, head, writer.finish(&path)?))
        });
        let (link, head, blob) = finishing.await?;
        let Finished { place, is_named } = objects.finish(&file, blob.size).await?;
        let mut sealed = Sealed::in_objects(&self.blobs, blob, head, place, is_named);
        sealed.look_for_loss().await;
        if let Some(link) = link {
            self.blobs.keep(link, blob).await;
        }
        Ok(sealed)
    }
}

impl Blobs {
    /// Opens an upload's file to append after `progress`; creates it when `progress` is empty. `Error::NotFound` when
    /// the bytes are missing, as after a restore; `Error::Full` when the disk is below `store.min_free`.
    pub async fn partial(&self, upload: Uuid, progress: PartialState) -> Result<Partial, Error> {
        let path = self.partial_path(upload);
        let objects = self.object_upload(upload, &progress, &path).await?;
        let (writer, is_hashed_again) = match progress.length {
            0 => (fresh(self, &path).await?, false),
            _ => resumed(self, &path, &progress).await?,
        };
        Ok(Partial {
            appender: Appender::new(self.clone(), path.clone(), writer),
            blobs: self.clone(),
            path,
            written: progress.length,
            objects,
            begun_pieces: progress.length / crate::objects::PIECE as u64,
            is_new: progress.length == 0,
            is_hashed_again,
            saved: PartialState {
                objects: None,
                ..progress
            },
            unsettled: None,
        })
    }

    /// Returns the upload's objects, and makes its file again where it has not the bytes that are needed; `None` for an
    /// upload that is a file only.
    async fn object_upload(
        &self,
        upload: Uuid,
        progress: &PartialState,
        path: &Path,
    ) -> Result<Option<ObjectUpload>, Error> {
        if progress.length == 0 {
            return Ok(self.has_objects().then(|| ObjectUpload::new(self, upload)));
        }
        let Some(objects) = &progress.objects else {
            return Ok(None);
        };
        let mut objects =
            ObjectUpload::resume(self, upload, objects, progress.length, path).await?;
        if restored(&progress.sha256).is_none() {
            // All bytes are hashed again.
            objects.mend(path, true).await?;
        }
        Ok(Some(objects))
    }

    /// Truncates an upload's file to `length` bytes; one that is not longer, or does not exist, is fine, and so is one
    /// that is a blob, too: that is left as it is. Only for a caller that is the only one working on the upload.
    pub async fn cut_partial(&self, upload: Uuid, length: u64) -> Result<(), Error> {
        let path = self.partial_path(upload);
        self.blocking(move || match length {
            0 => remove_if_there(&path),
            _ => cut(&path, length),
        })
        .await
    }

    /// Returns whether an upload's file has at least `length` bytes.
    pub async fn has_partial(&self, upload: Uuid, length: u64) -> Result<bool, Error> {
        let path = self.partial_path(upload);
        self.blocking(move || match fs::metadata(&path) {
            Ok(found) => Ok(found.len() >= length),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(length == 0),
            Err(error) => Err(Error::file("cannot measure", path)(error)),
        })
        .await
    }

    /// Removes an upload's file; none is fine.
    pub async fn remove_partial(&self, upload: Uuid) -> Result<(), Error> {
        let path = self.partial_path(upload);
        self.known_files().remove(upload);
        self.blocking(move || remove_if_there(&path)).await
    }

    /// The uploads that have a file.
    pub(crate) async fn partials(&self) -> Result<Vec<Uuid>, Error> {
        let path = self.shared.partial.clone();
        self.blocking(move || {
            let names = folder::names_in(&path)?;
            let uploads = names.iter().filter_map(|name| name.to_str()?.parse().ok());
            Ok(uploads.collect())
        })
        .await
    }

    fn known_files(&self) -> &KnownFiles {
        &self.shared.known_files
    }

    fn partial_path(&self, upload: Uuid) -> PathBuf {
        self.shared.partial.join(upload.to_string())
    }
}

/// Reads a part of a file, or what there is of it, without moving the file's position.
async fn digested<D: Send + 'static>(
    blobs: &Blobs,
    file: File,
    path: &Path,
    part: Range<u64>,
    mut digest: D,
    update: fn(&mut D, &[u8]),
) -> Result<D, Error> {
    let file = Arc::new(file);
    let mut at = part.start;
    loop {
        let (file, path) = (file.clone(), path.to_owned());
        let most = part.end.saturating_sub(at).min(TURN_BYTES);
        let turn = blobs.blocking(move || {
            let count = read_turn(&file, at, most, |piece| update(&mut digest, piece))
                .map_err(Error::file("cannot read", &path))?;
            Ok((digest, count))
        });
        let count;
        (digest, count) = turn.await?;
        if count < TURN_BYTES {
            return Ok(digest);
        }
        at += count;
    }
}

/// Reads `most` bytes from there on, fewer at the end of the file; returns how many.
fn read_turn(file: &File, from: u64, most: u64, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
    let (mut piece, mut done) = (vec![0; PIECE], 0);
    while done < most {
        let wanted = piece.len().min((most - done) as usize);
        let count = file.read_at(&mut piece[..wanted], from + done)?;
        if count == 0 {
            break;
        }
        take(&piece[..count]);
        done += count as u64;
    }
    Ok(done)
}

async fn fresh(blobs: &Blobs, path: &Path) -> Result<Writer, Error> {
    let (at, path) = (blobs.clone(), path.to_owned());
    blobs
        .blocking(move || {
            remove_if_there(&path)?;
            Writer::create(&at, &path)
        })
        .await
}

/// Opens a file for appending; the flag is true when the bytes had to be hashed again.
async fn resumed(
    blobs: &Blobs,
    path: &Path,
    progress: &PartialState,
) -> Result<(Writer, bool), Error> {
    let length = progress.length;
    let found = found(blobs, path, length).await?;
    let file = match found.is_own {
        true => found.file,
        false => copied(blobs, found.file, path, length).await?,
    };
    let file = cut_to_append(blobs, file, path, length).await?;
    if let Some(sha256) = restored(&progress.sha256) {
        let crc32 = crc32fast::Hasher::new_with_initial_len(progress.crc32, length);
        return Ok((
            Writer {
                file,
                sha256,
                crc32,
            },
            false,
        ));
    }
    Ok((hashed_again(blobs, file, path).await?, true))
}

/// The file under an upload's name.
struct FoundPartial {
    file: File,
    /// True when the file has no other name.
    is_own: bool,
}

/// Opens an upload's file. `Error::NotFound` when it has fewer bytes.
async fn found(blobs: &Blobs, path: &Path, length: u64) -> Result<FoundPartial, Error> {
    let (at, path) = (blobs.clone(), path.to_owned());
    blobs
        .blocking(move || {
            at.check_space()?;
            let file = match open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(lost()),
                opened => opened.map_err(Error::file("cannot open", &path))?,
            };
            let metadata = file
                .metadata()
                .map_err(Error::file("cannot measure", &path))?;
            match metadata.len() < length {
                true => Err(lost()),
                false => Ok(FoundPartial {
                    file,
                    is_own: metadata.nlink() == 1,
                }),
            }
        })
        .await
}

async fn cut_to_append(
    blobs: &Blobs,
    mut file: File,
    path: &Path,
    length: u64,
) -> Result<File, Error> {
    let path = path.to_owned();
    blobs
        .blocking(move || {
            file.set_len(length)
                .and_then(|()| file.seek(SeekFrom::Start(length)))
                .map_err(Error::write("cannot cut", &path))?;
            Ok(file)
        })
        .await
}

/// Replaces the file by a copy of its first `length` bytes.
async fn copied(blobs: &Blobs, file: File, path: &Path, length: u64) -> Result<File, Error> {
    let at = blobs.clone();
    let (aside, writer) = blobs.blocking(move || temporary_writer(&at)).await?;
    let (mut file, mut copy, mut left) = (file, writer.file, length);
    while left > 0 {
        let (at, path) = (blobs.clone(), path.to_owned());
        let turn = blobs.blocking(move || {
            let count = copy_turn(&at, &file, &copy, &path, left)?;
            Ok((file, copy, count))
        });
        let count;
        (file, copy, count) = turn.await?;
        left -= count;
    }
    let path = path.to_owned();
    blobs
        .blocking(move || {
            copy.sync_all()
                .and_then(|()| aside.rename(&path))
                .map_err(Error::write("cannot copy", &path))?;
            folder::sync_folder(path.parent().expect("it lies in a folder"))?;
            Ok(copy)
        })
        .await
}

/// Copies [`TURN_BYTES`], or the fewer that are left, and flushes them to the disk, so that the flush at the end is
/// short. Returns how many; keeps `store.min_free` free.
fn copy_turn(
    blobs: &Blobs,
    file: &File,
    mut copy: &File,
    path: &Path,
    left: u64,
) -> Result<u64, Error> {
    blobs.check_space()?;
    let wanted = left.min(TURN_BYTES);
    let count = io::copy(&mut file.take(wanted), &mut copy)
        .and_then(|count| copy.sync_data().map(|()| count))
        .map_err(Error::write("cannot copy", path))?;
    match count == wanted {
        true => Ok(count),
        false => Err(lost()),
    }
}

fn cut(path: &Path, length: u64) -> Result<(), Error> {
    let file = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(Error::file("cannot open", path))?,
    };
    let metadata = file
        .metadata()
        .map_err(Error::file("cannot measure", path))?;
    match metadata.len() > length && metadata.nlink() == 1 {
        true => file
            .set_len(length)
            .map_err(Error::write("cannot cut", path)),
        false => Ok(()),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

fn lost() -> Error {
    Error::NotFound("the upload's bytes")
}

fn restored(state: &[u8]) -> Option<Sha256> {
    let state = SerializedState::<Sha256>::try_from(state).ok()?;
    Sha256::deserialize(&state).ok()
}

/// Hashes a file's bytes again; the file's position is unchanged.
async fn hashed_again(blobs: &Blobs, file: File, path: &Path) -> Result<Writer, Error> {
    let reader = file
        .try_clone()
        .map_err(Error::file("cannot duplicate the descriptor of", path))?;
    let sums = (Sha256::new(), crc32fast::Hasher::new());
    let (sha256, crc32) = digested(blobs, reader, path, 0..u64::MAX, sums, add_to_sums).await?;
    Ok(Writer {
        file,
        sha256,
        crc32,
    })
}

fn add_to_sums((sha256, crc32): &mut (Sha256, crc32fast::Hasher), piece: &[u8]) {
    sha256.update(piece);
    crc32.update(piece);
}

/// Removes a name of a file that has others.
fn unlink_shared(path: &Path) -> Result<(), Error> {
    match fs::metadata(path) {
        Ok(found) if found.nlink() > 1 => remove_if_there(path),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::file("cannot measure", path)(error)),
    }
}

/// Reads the first bytes of a file, for recognising its format.
fn head_of(file: &File, path: &Path) -> Result<Vec<u8>, Error> {
    let mut head = vec![0; HEAD_BYTES];
    let count = file
        .read_at(&mut head, 0)
        .map_err(Error::file("cannot read", path))?;
    head.truncate(count);
    Ok(head)
}

fn second_name(blobs: &Blobs, path: &Path) -> Result<Temporary, Error> {
    let name = blobs.temporary_path();
    match fs::hard_link(path, &name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(lost()),
        linked => linked
            .map(|()| Temporary(name))
            .map_err(Error::write("cannot link", path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreSettings, blobs, now_ms};

    async fn store(folder: &tempfile::TempDir) -> Store {
        let settings = StoreSettings::without_reserve(folder.path());
        Store::open(&settings).await.unwrap()
    }

    async fn append(
        store: &Store,
        id: Uuid,
        after: PartialState,
        bytes: &'static [u8],
    ) -> PartialState {
        let mut partial = store.blobs().partial(id, after).await.unwrap();
        partial.write(&Bytes::from_static(bytes)).await.unwrap();
        partial.sync().await.unwrap()
    }

    #[tokio::test]
    async fn bytes_in_pieces_make_the_same_blob_as_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let whole: Vec<u8> = (0..600_000_u32).map(|n| (n * 7 + n / 251) as u8).collect();
        let mut spool = store.blobs().spool().await.unwrap();
        spool.write(Bytes::from(whole.clone())).await.unwrap();
        let expected = *spool.seal().await.unwrap().blob();

        let id = Uuid::new_v4();
        let mut progress = PartialState::default();
        // Around the 64 bytes of a block, and more than is gathered.
        for cut in [1, 63, 64, 65, 129, 300_000, whole.len()] {
            let length = progress.length as usize;
            let mut partial = store.blobs().partial(id, progress).await.unwrap();
            let bytes = Bytes::copy_from_slice(&whole[length..cut]);
            partial.write(&bytes).await.unwrap();
            progress = partial.sync().await.unwrap();
            assert_eq!(progress.length, cut as u64);
        }
        let forgotten = PartialState {
            sha256: vec![1, 2, 3],
            ..progress.clone()
        };
        for after in [progress, forgotten] {
            let mut partial = store.blobs().partial(id, after).await.unwrap();
            let sealed = partial.seal().await.unwrap();
            assert_eq!(
                (*sealed.blob(), sealed.head()),
                (expected, &whole[..HEAD_BYTES])
            );
        }
    }

    #[tokio::test]
    async fn what_was_not_reported_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let id = Uuid::new_v4();
        let kept = append(&store, id, PartialState::default(), b"kept").await;
        append(&store, id, kept.clone(), b" and not kept").await;
        assert!(store.blobs().has_partial(id, 17).await.unwrap());
        let kept = append(&store, id, kept, b"!").await;
        assert_eq!(fs::read(store.blobs().partial_path(id)).unwrap(), b"kept!");
        // An empty state: from the beginning.
        append(&store, id, PartialState::default(), b"new").await;
        let rejected = store.blobs().partial(id, kept).await.unwrap_err();
        assert!(matches!(rejected, Error::NotFound(_)), "{rejected}");
        assert_eq!(store.blobs().partials().await.unwrap(), [id]);
        store.blobs().remove_partial(id).await.unwrap();
        store.blobs().remove_partial(id).await.unwrap();
        assert!(!store.blobs().has_partial(id, 1).await.unwrap());
        assert!(store.blobs().has_partial(id, 0).await.unwrap());
    }

    /// Checks a file that became a blob although its row could not be written, say; the same bytes may be another's
    /// blob since.
    #[tokio::test]
    async fn a_file_that_became_a_blob_is_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let id = Uuid::new_v4();
        let progress = append(&store, id, PartialState::default(), b"first").await;
        let mut partial = store.blobs().partial(id, progress.clone()).await.unwrap();
        let sealed = partial.seal().await.unwrap();
        let hash = sealed.blob().hash;
        store
            .write(move |tx| Box::pin(async move { blobs::record(tx, &sealed, now_ms()).await }))
            .await
            .unwrap();
        let shorter = PartialState {
            length: 2,
            sha256: Vec::new(),
            ..progress
        };
        append(&store, id, shorter, b"nally").await;
        assert_eq!(fs::read(store.blobs().path(&hash)).unwrap(), b"first");
        assert_eq!(
            fs::read(store.blobs().partial_path(id)).unwrap(),
            b"finally"
        );
    }

    #[tokio::test]
    async fn what_a_request_left_behind_is_cut_off_where_the_file_is_the_uploads_own() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let blobs = store.blobs();
        let id = Uuid::new_v4();
        let path = blobs.partial_path(id);
        blobs.cut_partial(id, 4).await.unwrap();
        let progress = append(&store, id, PartialState::default(), b"kept and not").await;
        for (length, left) in [(20, "kept and not"), (4, "kept"), (4, "kept")] {
            blobs.cut_partial(id, length).await.unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), left);
        }
        blobs.cut_partial(id, 0).await.unwrap();
        assert!(!path.exists());

        append(&store, id, PartialState::default(), b"kept and not").await;
        let mut partial = blobs.partial(id, progress).await.unwrap();
        let sealed = partial.seal().await.unwrap();
        let blob = blobs.path(&sealed.blob().hash);
        blobs.cut_partial(id, 4).await.unwrap();
        assert_eq!(fs::read_to_string(&blob).unwrap(), "kept and not");
        // Only its own name is removed.
        blobs.cut_partial(id, 0).await.unwrap();
        assert!(!path.exists());
        assert_eq!(fs::read_to_string(&blob).unwrap(), "kept and not");
    }

    /// Uses one permit for all work: others wait for the running turn only.
    #[tokio::test]
    async fn others_work_while_a_long_file_is_hashed_again_or_copied() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings {
            file_work: 1,
            ..StoreSettings::without_reserve(folder.path())
        };
        let store = Store::open(&settings).await.unwrap();
        let blobs = store.blobs();
        let id = Uuid::new_v4();
        let kept = append(&store, id, PartialState::default(), b"begins").await;
        let path = blobs.partial_path(id);
        let length = 3 * TURN_BYTES + 1;
        open(&path).unwrap().set_len(length).unwrap();
        let forgotten = PartialState {
            length,
            sha256: Vec::new(),
            ..kept
        };
        for has_other_name in [false, true] {
            let other_name = folder.path().join("other");
            if has_other_name {
                fs::hard_link(&path, &other_name).unwrap();
            }
            let opened = std::sync::atomic::AtomicBool::new(false);
            let opening = async {
                let partial = blobs.partial(id, forgotten.clone()).await.unwrap();
                opened.store(true, std::sync::atomic::Ordering::Relaxed);
                partial
            };
            let other = async {
                // Far fewer than the turns that the file takes: the end may be noticed late.
                for _ in 0..2 {
                    blobs.blocking(|| Ok(())).await.unwrap();
                }
                assert!(!opened.load(std::sync::atomic::Ordering::Relaxed));
            };
            let (mut partial, ()) = tokio::join!(opening, other);
            assert!(partial.is_hashed_again());
            let progress = partial.sync().await.unwrap();
            assert!(!partial.is_hashed_again());
            let again = blobs.partial(id, progress).await.unwrap();
            assert!(!again.is_hashed_again());
            assert_eq!(fs::metadata(&path).unwrap().nlink(), 1);
            assert_eq!(other_name.exists(), has_other_name);
        }
    }
}
