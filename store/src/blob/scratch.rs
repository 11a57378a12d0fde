//! Scratch files: intermediate results of a workflow run, at `{data_dir}/scratch/{run}/{position}`.
//!
//! Nothing here is flushed. An owner that needs a file again after a crash has its length and SHA-256 in the run's
//! journal, and makes it again when they do not match the file; so a file that a power loss truncated or emptied is
//! only lost work.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Blobs, Sealed, spool};
use crate::{Error, copy::remove_folder_if_there, folder};

/// Bytes that are hashed at a time.
const PIECE: usize = 256 * 1024;

/// A scratch file that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratched {
    /// Length in bytes.
    pub length: u64,
    pub sha256: [u8; 32],
}

/// Scratch file that is being written. It is kept when this is dropped; the next one of its name replaces it.
#[derive(Debug)]
pub struct Scratch {
    blobs: Blobs,
    path: PathBuf,
    writer: File,
    /// Descriptor with a position of its own, of the same file even when the path has another one by then.
    reader: File,
}

impl Scratch {
    /// A descriptor for another, such as a worker, to write the file through.
    pub fn file(&self) -> Result<File, Error> {
        self.writer.try_clone().map_err(Error::file(
            "cannot duplicate the descriptor of",
            &self.path,
        ))
    }

    /// Hashes the written bytes; returns the file too, opened for reading from its beginning.
    pub async fn seal(self) -> Result<(Scratched, File), Error> {
        let blobs = self.blobs.clone();
        blobs
            .blocking(move || {
                let scratched = measure(&self.reader, &self.path)?;
                Ok((scratched, self.reader))
            })
            .await
    }
}

impl Blobs {
    /// Creates a scratch file of a run, replacing an existing one. `Error::Full` when the disk is below
    /// `store.min_free`.
    pub async fn scratch(&self, run_id: Uuid, position: u32) -> Result<Scratch, Error> {
        let blobs = self.clone();
        self.blocking(move || {
            blobs.check_space()?;
            let path = blobs.scratch_path(run_id, position);
            let (writer, reader) = match create(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    folder::create_private(&blobs.scratch_folder(run_id))?;
                    create(&path)
                }
                created => created,
            }
            .map_err(Error::write("cannot create", &path))?;
            Ok(Scratch {
                blobs,
                path,
                writer,
                reader,
            })
        })
        .await
    }

    /// Opens a scratch file for reading. `None` when it does not exist, or has not the expected bytes: they are read
    /// and hashed.
    pub async fn open_scratch(
        &self,
        run_id: Uuid,
        position: u32,
        expected: &Scratched,
    ) -> Result<Option<File>, Error> {
        let (path, expected) = (self.scratch_path(run_id, position), *expected);
        self.blocking(move || open_expected(&path, &expected)).await
    }

    /// Makes a blob of a file that a worker wrote: copied, hashed and flushed on the way, so that a process that kept
    /// a descriptor cannot change it any more. `None` when its bytes are not the expected ones.
    pub async fn seal_scratch(
        &self,
        file: &File,
        expected: &Scratched,
    ) -> Result<Option<Sealed>, Error> {
        let source = file
            .try_clone()
            .map_err(Error::file("cannot duplicate the descriptor of", "scratch"))?;
        let blobs = self.clone();
        let copying = self.blocking(move || spool::copied(&blobs, &source, Path::new("scratch")));
        let copy = copying.await?;
        match copy.blob.hash.as_bytes() == &expected.sha256 {
            true => Ok(Some(spool::sealed(self, copy).await?)),
            false => Ok(None),
        }
    }

    /// Removes all scratch of a run; none is fine.
    pub async fn remove_scratch(&self, run_id: Uuid) -> Result<(), Error> {
        let path = self.scratch_folder(run_id);
        self.blocking(move || remove_folder_if_there(&path)).await
    }

    /// The runs that have a scratch folder.
    pub(crate) async fn scratch_folders(&self) -> Result<Vec<Uuid>, Error> {
        let path = self.shared.scratch.clone();
        self.blocking(move || {
            let names = folder::names_in(&path)?;
            let runs = names.iter().filter_map(|name| name.to_str()?.parse().ok());
            Ok(runs.collect())
        })
        .await
    }

    fn scratch_folder(&self, run_id: Uuid) -> PathBuf {
        self.shared.scratch.join(run_id.to_string())
    }

    fn scratch_path(&self, run_id: Uuid, position: u32) -> PathBuf {
        self.scratch_folder(run_id).join(position.to_string())
    }
}

/// Creates a new file, even where an earlier owner of the run still writes to the one of this name, or creates one at
/// this moment: it gets the name once both descriptors are open.
fn create(path: &Path) -> io::Result<(File, File)> {
    let fresh = path.with_extension(Uuid::new_v4().simple().to_string());
    // The writer of an MP4 reads in it, to move its index to the front.
    let writer = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)?;
    let reader = File::open(&fresh)?;
    fs::rename(&fresh, path)?;
    Ok((writer, reader))
}

fn open_expected(path: &Path, expected: &Scratched) -> Result<Option<File>, Error> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(Error::file("cannot open", path))?,
    };
    let metadata = file
        .metadata()
        .map_err(Error::file("cannot measure", path))?;
    if metadata.len() != expected.length || measure(&file, path)? != *expected {
        return Ok(None);
    }
    Ok(Some(file))
}

/// Reads the file from its beginning, without moving its position.
fn measure(file: &File, path: &Path) -> Result<Scratched, Error> {
    let mut sha256 = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut length = 0;
    loop {
        let count = file
            .read_at(&mut piece, length)
            .map_err(Error::file("cannot read", path))?;
        if count == 0 {
            break;
        }
        sha256.update(&piece[..count]);
        length += count as u64;
    }
    Ok(Scratched {
        length,
        sha256: sha256.finalize().into(),
    })
}
