//! Temporary file that becomes a blob: written by an upload or a worker, hashed while it is written, sealed at the
//! end.
//!
//! Memory is bounded for each spool, whatever the length of the file.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use bytes::Bytes;
use uuid::Uuid;

use super::{
    Blob, Blobs,
    appender::{Appender, PIECE, Writer},
    pieces::{PieceUpload, Place, made_ms, new_base},
};
use crate::{Error, now_ms};

/// Bytes from the beginning of a file that are kept for recognising its format.
pub const HEAD_BYTES: usize = 4096;

/// Age of a base from which the pieces of a spool are uploaded again under a new one when it is sealed, and from which it is not
/// recorded any more: objects without a row are deleted when their base is 24 hours old, and clocks differ.
const MAX_SEALED_AGE_MS: i64 = 8 * 60 * 60 * 1000;
const MAX_RECORDED_AGE_MS: i64 = 16 * 60 * 60 * 1000;

/// A temporary file; dropping it removes the file.
#[derive(Debug)]
pub struct Spool {
    blobs: Blobs,
    link: Temporary,
    appender: Appender,
    head: Vec<u8>,
    written: u64,
    /// True when another process has a descriptor for writing: the hash computed so far does not count.
    is_shared: bool,
    /// `None` without an object store.
    upload: Option<OwnUpload>,
}

impl Spool {
    pub(super) async fn create(blobs: Blobs) -> Result<Self, Error> {
        let at = blobs.clone();
        let (link, writer) = blobs.blocking(move || temporary_writer(&at)).await?;
        Ok(Self {
            appender: Appender::new(blobs.clone(), link.0.clone(), writer),
            upload: blobs.has_objects().then(|| OwnUpload::new(&blobs)),
            blobs,
            link,
            head: Vec::new(),
            written: 0,
            is_shared: false,
        })
    }

    /// Appends bytes. `Error::Full` when the disk is full, or falls below `store.min_free`; the spool is unusable
    /// afterwards.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Error> {
        let missing = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        self.written += bytes.len() as u64;
        self.appender.write(&bytes).await?;
        match &mut self.upload {
            Some(upload) if !self.is_shared => {
                let in_file = self.written - self.appender.unwritten() as u64;
                upload.push(&self.link.0, in_file).await
            }
            _ => Ok(()),
        }
    }

    /// Returns the bytes given to [`Spool::write`]; a worker's bytes show in the sealed blob.
    pub fn len(&self) -> u64 {
        self.written
    }

    pub fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// The first [`HEAD_BYTES`] given to [`Spool::write`], for recognising the format.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns a descriptor with which another process, such as a worker, writes the file; its position is shared by
    /// all duplicates. [`Spool::seal`] makes the blob of a copy then: a process that kept a descriptor cannot change
    /// it any more.
    pub fn file(&mut self) -> Result<File, Error> {
        self.is_shared = true;
        let file = &self.appender.writer()?.file;
        file.try_clone().map_err(Error::file(
            "cannot duplicate the descriptor of",
            &self.link.0,
        ))
    }

    /// Opens what was written so far for reading only, with a position of its own.
    pub async fn reader(&mut self) -> Result<File, Error> {
        self.appender.flush().await?;
        let path = self.link.0.clone();
        self.blobs
            .blocking(move || File::open(&path).map_err(Error::file("cannot open", path)))
            .await
    }

    /// Makes a blob of it: hashed, flushed to the disk and under its name when this returns, or durable in the object store. It
    /// counts once [`crate::blobs::record`] has written its row.
    pub async fn seal(self) -> Result<Sealed, Error> {
        let Self {
            blobs,
            link,
            mut appender,
            head,
            is_shared,
            upload,
            ..
        } = self;
        let writer = appender.take_writer().await?;
        let at = blobs.clone();
        let upload = match upload {
            None => {
                let sealing = blobs.blocking(move || {
                    let finished = finished(&at, link, writer, head, is_shared)?;
                    placed(&at, finished.link, finished.blob, finished.head)
                });
                return sealing.await;
            }
            // The worker may have changed what was uploaded.
            Some(_) if is_shared => OwnUpload::new(&blobs),
            Some(upload) => upload,
        };
        let finished = blobs
            .blocking(move || finished(&at, link, writer, head, is_shared))
            .await?;
        uploaded(&blobs, finished, upload).await
    }
}

/// Upload under a base of its own, which no row names: what is up is deleted when it comes to nothing.
#[derive(Debug)]
struct OwnUpload(Option<PieceUpload>);

impl OwnUpload {
    fn new(blobs: &Blobs) -> Self {
        Self(Some(PieceUpload::new(blobs, new_base(), Vec::new())))
    }

    async fn push(&mut self, file: &Path, len: u64) -> Result<(), Error> {
        match &mut self.0 {
            Some(upload) => upload.push(file, len).await,
            None => Ok(()),
        }
    }

    /// Uploads what is missing.
    async fn finish(mut self, file: &Path, len: u64) -> Result<Place, Error> {
        let upload = self.0.as_mut().expect("it is taken by its end only");
        let place = upload.finish_all(file, len).await?;
        self.0 = None;
        Ok(place)
    }

    fn is_old(&self) -> bool {
        let made = self.0.as_ref().map(|upload| upload.base());
        made.is_none_or(|base| is_older(base, MAX_SEALED_AGE_MS))
    }
}

impl Drop for OwnUpload {
    fn drop(&mut self) {
        if let Some(upload) = self.0.take() {
            upload.discard();
        }
    }
}

fn is_older(base: Uuid, age_ms: i64) -> bool {
    made_ms(base).is_none_or(|made| now_ms() - made > age_ms)
}

/// A file that is complete, with what is known of it.
pub(super) struct Finished {
    pub(super) link: Temporary,
    pub(super) blob: Blob,
    pub(super) head: Vec<u8>,
}

/// Finishes a spool's file, or a copy of one that another process wrote; blocks.
fn finished(
    blobs: &Blobs,
    link: Temporary,
    writer: Writer,
    head: Vec<u8>,
    is_shared: bool,
) -> Result<Finished, Error> {
    match is_shared {
        true => copied(blobs, &writer.file, &link.0),
        false => {
            let blob = writer.finish(&link.0)?;
            Ok(Finished { link, blob, head })
        }
    }
}

/// Makes a blob of a finished file: places it in the folder, or uploads it.
pub(super) async fn sealed(blobs: &Blobs, finished: Finished) -> Result<Sealed, Error> {
    if blobs.has_objects() {
        return uploaded(blobs, finished, OwnUpload::new(blobs)).await;
    }
    let at = blobs.clone();
    let Finished { link, blob, head } = finished;
    blobs.blocking(move || placed(&at, link, blob, head)).await
}

/// Uploads what is missing of a finished file, which goes into the cache.
async fn uploaded(
    blobs: &Blobs,
    finished: Finished,
    mut upload: OwnUpload,
) -> Result<Sealed, Error> {
    let Finished { link, blob, head } = finished;
    if upload.is_old() {
        upload = OwnUpload::new(blobs);
    }
    let place = upload.finish(&link.0, blob.size).await?;
    // Before the file: what comes to nothing is deleted.
    let mut sealed = Sealed::in_objects(blobs, blob, head, place, false);
    sealed.look_for_loss().await;
    blobs.keep(link, blob).await;
    Ok(sealed)
}

/// A writer to a new temporary file; blocks.
pub(super) fn temporary_writer(blobs: &Blobs) -> Result<(Temporary, Writer), Error> {
    let path = blobs.temporary_path();
    let writer = Writer::create(blobs, &path)?;
    Ok((Temporary(path), writer))
}

/// A writer to a new temporary file for bytes that are read and not stored; blocks.
pub(super) fn writer_to_read(blobs: &Blobs) -> Result<(Temporary, Writer), Error> {
    let path = blobs.temporary_path();
    let writer = Writer::create_to_read(blobs, &path)?;
    Ok((Temporary(path), writer))
}

/// Flushes the file through a descriptor of its own: the one that wrote may be closed already.
fn sync(path: &Path) -> Result<(), Error> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(Error::write("cannot flush", path))
}

/// Flushes a finished file and gives it its blob's name; blocks.
pub(super) fn placed(
    blobs: &Blobs,
    link: Temporary,
    blob: Blob,
    head: Vec<u8>,
) -> Result<Sealed, Error> {
    sync(&link.0)?;
    blobs.place(&link.0, &blob)?;
    Ok(Sealed {
        blobs: blobs.clone(),
        blob,
        head,
        bytes: SealedBytes::File(link),
    })
}

/// Copies a file that another process wrote, which may be at `path`, from its beginning without moving its position; blocks.
pub(super) fn copied(blobs: &Blobs, shared: &File, path: &Path) -> Result<Finished, Error> {
    let (link, mut writer) = temporary_writer(blobs)?;
    let (mut head, mut size) = (Vec::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        let count = shared
            .read_at(&mut piece, size)
            .map_err(Error::file("cannot read", path))?;
        if count == 0 {
            break;
        }
        if size == 0 {
            head.extend_from_slice(&piece[..count.min(HEAD_BYTES)]);
        }
        writer.take(&piece[..count], blobs, &link.0)?;
        size += count as u64;
    }
    let blob = writer.finish(&link.0)?;
    Ok(Finished { link, blob, head })
}

/// Blob whose bytes are on the disk under its name, or in the object store. Until it is dropped a sweep between sealing and
/// [`crate::blobs::record`] loses nothing.
#[derive(Debug)]
pub struct Sealed {
    blobs: Blobs,
    blob: Blob,
    head: Vec<u8>,
    bytes: SealedBytes,
}

#[derive(Debug)]
enum SealedBytes {
    /// A link of its own keeps them.
    File(Temporary),
    Objects(SealedObjects),
}

/// Objects that [`crate::blobs::record`] may give to a row.
#[derive(Debug)]
struct SealedObjects {
    blobs: Blobs,
    place: Place,
    /// True when the row of a resumable upload names the base, too.
    is_of_upload: bool,
    /// Base of the objects of the blob's row, which are lost.
    lost_base: Option<Uuid>,
    /// True once a unit of work has given them to a row, whatever became of it.
    is_recorded: AtomicBool,
}

impl Drop for SealedObjects {
    /// Deletes objects that are in no row: the blob was stored before, or is not wanted.
    fn drop(&mut self) {
        if !self.is_of_upload && !self.is_recorded.load(Relaxed) {
            self.blobs.delete_later(self.place.keys());
        }
    }
}

impl Sealed {
    pub fn blob(&self) -> &Blob {
        &self.blob
    }

    /// The first [`HEAD_BYTES`] of the file.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Makes a blob of objects that are durable. `is_of_upload`: the row of a resumable upload names their base, so that they are
    /// not deleted when the blob comes to nothing.
    pub(super) fn in_objects(
        blobs: &Blobs,
        blob: Blob,
        head: Vec<u8>,
        place: Place,
        is_of_upload: bool,
    ) -> Self {
        let objects = SealedObjects {
            blobs: blobs.clone(),
            place,
            is_of_upload,
            lost_base: None,
            is_recorded: AtomicBool::new(false),
        };
        Self {
            blobs: blobs.clone(),
            blob,
            head,
            bytes: SealedBytes::Objects(objects),
        }
    }

    /// Finds out whether the row of the same blob, if there is one, names objects that are lost.
    pub(super) async fn look_for_loss(&mut self) {
        if let SealedBytes::Objects(objects) = &mut self.bytes {
            objects.lost_base = self.blobs.lost_base(&self.blob.hash).await;
        }
    }

    /// Returns whether the objects of this base are lost, so that these are recorded in their place.
    pub(crate) fn replaces(&self, base: Uuid) -> bool {
        match &self.bytes {
            SealedBytes::File(_) => false,
            SealedBytes::Objects(objects) => objects.lost_base == Some(base),
        }
    }

    /// Returns where the bytes are in the object store; `None`: they are in the folder.
    pub(crate) fn place(&self) -> Option<&Place> {
        match &self.bytes {
            SealedBytes::File(_) => None,
            SealedBytes::Objects(objects) => Some(&objects.place),
        }
    }

    /// Notes that a row names the objects, when its unit of work is committed. `Error::Objects` when they are so old that a sweep
    /// may have taken them for lost.
    pub(crate) fn note_recorded(&self) -> Result<(), Error> {
        let SealedBytes::Objects(objects) = &self.bytes else {
            return Ok(());
        };
        if !objects.is_of_upload && is_older(objects.place.base, MAX_RECORDED_AGE_MS) {
            let reason = "stored bytes waited too long for their row: store them again";
            tracing::warn!(hash = %self.blob.hash, "{reason}");
            return Err(Error::Objects(reason.to_owned()));
        }
        objects.is_recorded.store(true, Relaxed);
        Ok(())
    }

    /// Returns whether the folder has the blob's file; blocks, for microseconds.
    pub(crate) fn is_in_folder(&self) -> bool {
        let found = fs::metadata(self.blobs.path(&self.blob.hash));
        found.is_ok_and(|found| found.len() == self.blob.size)
    }

    /// Restores the file under the blob's name when a sweep has removed it; blocks, for microseconds when it exists. Does nothing
    /// for bytes in the object store.
    pub(crate) fn ensure_placed(&self) -> Result<(), Error> {
        match &self.bytes {
            SealedBytes::File(link) if !self.is_in_folder() => {
                self.blobs.place(&link.0, &self.blob)
            }
            _ => Ok(()),
        }
    }
}

/// A name in the folder of temporary files, removed when it is dropped.
#[derive(Debug)]
pub(super) struct Temporary(pub(super) PathBuf);

impl Temporary {
    /// Gives the file a permanent name, replacing an existing file.
    pub(super) fn rename(mut self, lasting: &Path) -> io::Result<()> {
        fs::rename(&self.0, lasting)?;
        self.0 = PathBuf::new();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.0);
        if path.as_os_str().is_empty() {
            return;
        }
        let remove = move || {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(%error, path = %path.display(), "a temporary file is removed at the next start");
            }
        };
        // Freeing the blocks of a large file takes long enough to hold up an async thread.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}
