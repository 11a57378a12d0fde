//! The bytes of an upload that may take several connections and days, at `{data_dir}/partial/{upload}`.
//!
//! - Only what a [`Progress`] tells counts: those bytes were on the disk before it was made. What lies behind them, after a
//!   crash or a piece that was refused, is cut off when the file is opened again.
//! - A file that has become a blob has a second name. It is never written again: a copy takes its place.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
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
    spool::{Temporary, placed},
};
use crate::{Error, folder};

/// Bytes that are read in one go before others have their turn on the blocking pool.
const TURN_BYTES: u64 = 8 << 20;

/// What a row keeps of the bytes that are safe; nothing at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub length: u64,
    pub crc32: u32,
    /// SHA-256 in the midst of its work, as the library writes it. One that a later release of the library does not understand
    /// is made anew from the bytes.
    pub sha256: Vec<u8>,
}

/// A file that an upload is appended to, by one request at a time. It stays when this is dropped.
#[derive(Debug)]
pub struct Partial {
    blobs: Blobs,
    path: PathBuf,
    appender: Appender,
    written: u64,
    /// Its name is not durable yet.
    is_new: bool,
}

impl Partial {
    /// Appends. `Error::Full` when the disk is, or falls below `store.min_free`; this is of no use afterwards.
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

    /// Brings everything to the disk; what it returns may be told to others.
    pub async fn sync(&mut self) -> Result<Progress, Error> {
        self.appender.flush().await?;
        let (path, length, is_new) = (self.path.clone(), self.written, self.is_new);
        let progress = self
            .appender
            .with_writer(move |writer| {
                writer
                    .file
                    .sync_data()
                    .map_err(Error::write("cannot flush", &path))?;
                if is_new {
                    folder::sync_folder(path.parent().expect("it lies in a folder"))?;
                }
                Ok(Progress {
                    length,
                    crc32: writer.crc32.clone().finalize(),
                    sha256: writer.sha256.serialize().to_vec(),
                })
            })
            .await?;
        self.is_new = false;
        Ok(progress)
    }

    /// Reads what was written from there on, on the blocking pool, [`TURN_BYTES`] at a time.
    pub async fn digest<D: Send + 'static>(
        &mut self,
        from: u64,
        mut digest: D,
        update: fn(&mut D, &[u8]),
    ) -> Result<D, Error> {
        let file = Arc::new(self.reader().await?);
        let mut at = from;
        loop {
            let (file, path) = (file.clone(), self.path.clone());
            let turn = self.blobs.blocking(move || {
                let count = read_turn(&file, at, |piece| update(&mut digest, piece))
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

    /// What was written so far, opened for reading only, with a position of its own.
    pub async fn reader(&mut self) -> Result<File, Error> {
        self.appender.flush().await?;
        let path = self.path.clone();
        self.blobs
            .blocking(move || File::open(&path).map_err(Error::file("cannot open", path)))
            .await
    }

    /// Makes a blob of it, as [`super::Spool::seal`]. The partial file stays, so that a change that cannot be committed loses
    /// nothing; [`Blobs::remove_partial`] once it has been. `Error::NotFound` when somebody has removed it.
    pub async fn seal(self) -> Result<Sealed, Error> {
        let writer = self.appender.into_writer().await?;
        let (blobs, path) = (self.blobs.clone(), self.path);
        self.blobs
            .blocking(move || {
                let link = second_name(&blobs, &path)?;
                let mut head = vec![0; HEAD_BYTES];
                let count = writer
                    .file
                    .read_at(&mut head, 0)
                    .map_err(Error::file("cannot read", &path))?;
                head.truncate(count);
                let blob = writer.finish(&path)?;
                placed(&blobs, link, blob, head)
            })
            .await
    }
}

impl Blobs {
    /// Opens an upload's file to append behind `progress`; a new one when that is nothing. `Error::NotFound` when the bytes are
    /// not there, as after a restore; `Error::Full` when the disk is below `store.min_free`.
    pub async fn partial(&self, upload: Uuid, progress: Progress) -> Result<Partial, Error> {
        let (path, blobs) = (self.partial_path(upload), self.clone());
        self.blocking(move || {
            let (written, is_new) = (progress.length, progress.length == 0);
            let writer = match is_new {
                true => fresh(&blobs, &path)?,
                false => resumed(&blobs, &path, &progress)?,
            };
            Ok(Partial {
                appender: Appender::new(blobs.clone(), path.clone(), writer),
                blobs,
                path,
                written,
                is_new,
            })
        })
        .await
    }

    /// Whether so many bytes of an upload are there.
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
        self.blocking(move || remove(&path)).await
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

    fn partial_path(&self, upload: Uuid) -> PathBuf {
        self.shared.partial.join(upload.to_string())
    }
}

/// Reads [`TURN_BYTES`] from there on, fewer at the end of the file; returns how many.
fn read_turn(file: &File, from: u64, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
    let (mut piece, mut done) = (vec![0; PIECE], 0);
    while done < TURN_BYTES {
        let wanted = piece.len().min((TURN_BYTES - done) as usize);
        let count = file.read_at(&mut piece[..wanted], from + done)?;
        if count == 0 {
            break;
        }
        take(&piece[..count]);
        done += count as u64;
    }
    Ok(done)
}

fn fresh(blobs: &Blobs, path: &Path) -> Result<Writer, Error> {
    remove(path)?;
    Writer::create(blobs, path)
}

fn resumed(blobs: &Blobs, path: &Path, progress: &Progress) -> Result<Writer, Error> {
    blobs.check_space()?;
    let mut file = own_file(blobs, path, progress.length)?;
    file.set_len(progress.length)
        .and_then(|()| file.seek(SeekFrom::Start(progress.length)))
        .map_err(Error::write("cannot cut", path))?;
    let Some(sha256) = restored(&progress.sha256) else {
        return hashed_again(file, path);
    };
    Ok(Writer {
        file,
        sha256,
        crc32: crc32fast::Hasher::new_with_initial_len(progress.crc32, progress.length),
    })
}

/// The file under that name, when nobody else has another name for it, else a copy in its place.
fn own_file(blobs: &Blobs, path: &Path, length: u64) -> Result<File, Error> {
    let file = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(lost()),
        opened => opened.map_err(Error::file("cannot open", path)),
    }?;
    let metadata = file
        .metadata()
        .map_err(Error::file("cannot measure", path))?;
    if metadata.len() < length {
        return Err(lost());
    }
    match metadata.nlink() {
        1 => Ok(file),
        _ => copied(blobs, file, path, length),
    }
}

fn copied(blobs: &Blobs, file: File, path: &Path, length: u64) -> Result<File, Error> {
    let aside = blobs.temporary_path();
    let mut copy = Writer::create(blobs, &aside)?.file;
    let placed = copy_pieces(blobs, &file, &mut copy, path, length).and_then(|()| {
        copy.sync_all()
            .and_then(|()| fs::rename(&aside, path))
            .map_err(Error::write("cannot copy", path))
    });
    if let Err(error) = placed {
        remove(&aside)?;
        return Err(error);
    }
    folder::sync_folder(path.parent().expect("it lies in a folder"))?;
    Ok(copy)
}

/// The first `length` bytes; leaves `store.min_free`.
fn copy_pieces(
    blobs: &Blobs,
    file: &File,
    copy: &mut File,
    path: &Path,
    length: u64,
) -> Result<(), Error> {
    let mut left = length;
    while left > 0 {
        blobs.check_space()?;
        let count = io::copy(&mut file.take(left.min(PIECE as u64)), copy)
            .map_err(Error::write("cannot copy", path))?;
        if count == 0 {
            return Err(lost());
        }
        left -= count;
    }
    Ok(())
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

/// From the beginning; the position is at the end afterwards.
fn hashed_again(mut file: File, path: &Path) -> Result<Writer, Error> {
    file.rewind().map_err(Error::file("cannot read", path))?;
    let mut writer = Writer {
        file,
        sha256: Sha256::new(),
        crc32: crc32fast::Hasher::new(),
    };
    let mut piece = vec![0; PIECE];
    loop {
        let count = writer
            .file
            .read(&mut piece)
            .map_err(Error::file("cannot read", path))?;
        match count {
            0 => return Ok(writer),
            _ => writer.hash(&piece[..count]),
        }
    }
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

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::file("cannot remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreSettings, blobs, now_ms};

    async fn store(folder: &tempfile::TempDir) -> Store {
        let settings = StoreSettings {
            data_dir: folder.path().to_owned(),
            ..StoreSettings::default()
        };
        Store::open(&settings).await.unwrap()
    }

    async fn append(store: &Store, id: Uuid, after: Progress, bytes: &'static [u8]) -> Progress {
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
        let mut progress = Progress::default();
        // Around the 64 bytes of a block, and more than is gathered.
        for cut in [1, 63, 64, 65, 129, 300_000, whole.len()] {
            let length = progress.length as usize;
            let mut partial = store.blobs().partial(id, progress).await.unwrap();
            let bytes = Bytes::copy_from_slice(&whole[length..cut]);
            partial.write(&bytes).await.unwrap();
            progress = partial.sync().await.unwrap();
            assert_eq!(progress.length, cut as u64);
        }
        let forgotten = Progress {
            sha256: vec![1, 2, 3],
            ..progress.clone()
        };
        for after in [progress, forgotten] {
            let partial = store.blobs().partial(id, after).await.unwrap();
            let sealed = partial.seal().await.unwrap();
            assert_eq!(
                (*sealed.blob(), sealed.head()),
                (expected, &whole[..HEAD_BYTES])
            );
        }
    }

    #[tokio::test]
    async fn what_was_not_told_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let id = Uuid::new_v4();
        let told = append(&store, id, Progress::default(), b"told").await;
        append(&store, id, told.clone(), b" and not told").await;
        assert!(store.blobs().has_partial(id, 17).await.unwrap());
        let told = append(&store, id, told, b"!").await;
        assert_eq!(fs::read(store.blobs().partial_path(id)).unwrap(), b"told!");
        // Nothing is told: from the beginning.
        append(&store, id, Progress::default(), b"new").await;
        let refused = store.blobs().partial(id, told).await.unwrap_err();
        assert!(matches!(refused, Error::NotFound(_)), "{refused}");
        assert_eq!(store.blobs().partials().await.unwrap(), [id]);
        store.blobs().remove_partial(id).await.unwrap();
        store.blobs().remove_partial(id).await.unwrap();
        assert!(!store.blobs().has_partial(id, 1).await.unwrap());
        assert!(store.blobs().has_partial(id, 0).await.unwrap());
    }

    /// Its row could not be written, say; the same bytes may be somebody else's blob since.
    #[tokio::test]
    async fn a_file_that_became_a_blob_is_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let id = Uuid::new_v4();
        let progress = append(&store, id, Progress::default(), b"first").await;
        let partial = store.blobs().partial(id, progress.clone()).await.unwrap();
        let sealed = partial.seal().await.unwrap();
        let hash = sealed.blob().hash;
        store
            .write(move |tx| Box::pin(async move { blobs::record(tx, &sealed, now_ms()).await }))
            .await
            .unwrap();
        let shorter = Progress {
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
}
