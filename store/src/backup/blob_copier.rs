//! Copies or links blobs between a data folder and a backup; `--verify` compares every blob with its checksum.
//!
//! A blob is linked where both folders are on one file system, else copied; either way it has its name only once it is
//! whole and flushed. Blobs never change, so an existing one is kept. Everything here blocks.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::{
    BackupProgress, Transfer,
    digest::{Broken, Digest, digest, digest_of},
    index::Entry,
};
use crate::{
    Error,
    blob::{BlobHash, place_in},
    copy, folder,
};

/// File name extension of an incomplete copy.
const PARTIAL: &str = "partial";

pub(super) struct BlobCopier {
    from: PathBuf,
    to: PathBuf,
    transfer: Transfer,
    progress: BackupProgress,
    /// Prefix whose new names are not flushed yet.
    open_prefix: Option<PathBuf>,
    pub(super) brought: u64,
    pub(super) brought_bytes: u64,
}

/// Blob that could not be copied, and the reason, for people.
pub(super) type Failed = (BlobHash, String);

/// Returns whether a name is one that an interrupted copy left.
pub(super) fn is_partial(name: &Path) -> bool {
    name.extension().is_some_and(|it| it == PARTIAL)
}

enum Outcome {
    WasThere,
    Brought,
    Failed(String),
}

impl BlobCopier {
    /// Creates a copier between two folders of blobs; `totals` are the number and bytes of all blobs that
    /// [`BlobCopier::bring`] will get.
    pub(super) fn new(
        from: PathBuf,
        to: PathBuf,
        transfer: Transfer,
        (total_count, total_bytes): (u64, u64),
    ) -> Self {
        let progress = BackupProgress::begin(total_count, total_bytes);
        Self {
            from,
            to,
            transfer,
            progress,
            open_prefix: None,
            brought: 0,
            brought_bytes: 0,
        }
    }

    /// Copies or links the blobs of `entries`. Returns those that are missing or damaged in the source; an error is
    /// one of the target, and ends the work.
    pub(super) fn bring(&mut self, entries: &[Entry]) -> Result<Vec<Failed>, Error> {
        let mut failed = Vec::new();
        for entry in entries {
            let before = self.progress.bytes;
            match self.bring_one(entry)? {
                Outcome::WasThere => {}
                Outcome::Brought => {
                    self.brought += 1;
                    self.brought_bytes += entry.size_bytes;
                }
                Outcome::Failed(why) => failed.push((entry.hash, why)),
            }
            self.progress.count += 1;
            self.progress.bytes = before + entry.size_bytes;
            (self.transfer.watch)(self.progress);
        }
        Ok(failed)
    }

    /// Makes the last names durable.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        self.flush_prefix()?;
        match self.to.exists() {
            true => folder::sync_folder(&self.to),
            false => Ok(()),
        }
    }

    fn bring_one(&mut self, entry: &Entry) -> Result<Outcome, Error> {
        let (source, target) = (
            place_in(&self.from, &entry.hash),
            place_in(&self.to, &entry.hash),
        );
        if self.is_whole(&target, entry) {
            return Ok(Outcome::WasThere);
        }
        match fs::metadata(&source) {
            Ok(found) if found.len() == entry.size_bytes => {}
            Ok(found) => return Ok(Outcome::Failed(other_length(found.len(), entry))),
            Err(error) => return Ok(Outcome::Failed(unreadable(&error))),
        }
        self.open_prefix(&target)?;
        let partial = target.with_extension(PARTIAL);
        copy::remove_if_there(&partial)?;
        let failure = match fs::hard_link(&source, &partial) {
            Ok(()) => self.mismatch_of_link(&partial, entry),
            // Another file system, one without links, or a file of another user: the kernel has many error codes for
            // it.
            Err(_) => self.copy(&source, &partial, entry)?,
        };
        if let Some(why) = failure {
            copy::remove_if_there(&partial)?;
            return Ok(Outcome::Failed(why));
        }
        fs::rename(&partial, &target).map_err(Error::write("cannot rename", &partial))?;
        Ok(Outcome::Brought)
    }

    /// Returns whether a blob is in its place already.
    fn is_whole(&mut self, target: &Path, entry: &Entry) -> bool {
        let has_length = fs::metadata(target).is_ok_and(|found| found.len() == entry.size_bytes);
        has_length
            && (!self.transfer.verify
                || self
                    .read(target)
                    .is_ok_and(|digest| &digest.sha256 == entry.hash.as_bytes()))
    }

    fn mismatch_of_link(&mut self, link: &Path, entry: &Entry) -> Option<String> {
        if !self.transfer.verify {
            return None;
        }
        match self.read(link) {
            Ok(digest) => mismatch_of(&digest, entry),
            Err(error) => Some(unreadable(&error)),
        }
    }

    /// Copies a file; checks what it reads against the checksum.
    fn copy(
        &mut self,
        source: &Path,
        partial: &Path,
        entry: &Entry,
    ) -> Result<Option<String>, Error> {
        let from = match File::open(source) {
            Ok(from) => from,
            Err(error) => return Ok(Some(unreadable(&error))),
        };
        let to = folder::create_private_file(partial)?;
        match digest(from, &to, |length| self.moved(length)) {
            Ok(read) => {
                to.sync_all()
                    .map_err(Error::write("cannot flush", partial))?;
                Ok(mismatch_of(&read, entry))
            }
            Err(Broken::Source(error)) => Ok(Some(unreadable(&error))),
            Err(broken) => Err(broken.in_copy(source, partial)),
        }
    }

    fn read(&mut self, path: &Path) -> io::Result<Digest> {
        digest_of(path, |length| self.moved(length))
    }

    fn moved(&mut self, length: u64) {
        self.progress.bytes += length;
        (self.transfer.watch)(self.progress);
    }

    /// Opens the prefix of the next blob. Blobs are copied in the order of their hashes: a prefix is done when the
    /// next one begins.
    fn open_prefix(&mut self, target: &Path) -> Result<(), Error> {
        let prefix = target.parent().expect("a blob lies on a prefix");
        if self.open_prefix.as_deref() != Some(prefix) {
            self.flush_prefix()?;
            folder::create_private(prefix)?;
            self.open_prefix = Some(prefix.to_owned());
        }
        Ok(())
    }

    fn flush_prefix(&mut self) -> Result<(), Error> {
        self.open_prefix
            .take()
            .map_or(Ok(()), |prefix| folder::sync_folder(&prefix))
    }
}

fn mismatch_of(digest: &Digest, entry: &Entry) -> Option<String> {
    if digest.bytes != entry.size_bytes {
        return Some(other_length(digest.bytes, entry));
    }
    (&digest.sha256 != entry.hash.as_bytes()).then(|| "has other bytes than were stored".into())
}

fn other_length(found: u64, entry: &Entry) -> String {
    format!(
        "has {found} bytes instead of the {} that were stored",
        entry.size_bytes
    )
}

pub(super) fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "is missing".into(),
        _ => format!("cannot be read: {error}"),
    }
}
