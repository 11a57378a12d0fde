//! Data folder (`store.data_dir`): created private, locked by one process, names of the store's files in it.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{ErrorKind, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use uuid::Uuid;

use crate::Error;

/// The database's name, in a data folder as in a backup.
pub(crate) const DATABASE: &str = "sluice.db";
const LOCK: &str = "lock";
/// The process that had the folder last, with rows in PostgreSQL.
const PROCESS: &str = "process";
const COPIES: &str = "backups";

/// The database's path in a data folder.
pub(crate) fn database(data_dir: &Path) -> PathBuf {
    data_dir.join(DATABASE)
}

/// The write-ahead log and its index, which SQLite keeps beside the database.
pub(crate) fn log_files(database: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|suffix| {
        let mut path = database.as_os_str().to_owned();
        path.push(suffix);
        path.into()
    })
}

/// Returns the folder of the copies made before migrations and restores.
pub(crate) fn copies(data_dir: &Path) -> PathBuf {
    data_dir.join(COPIES)
}

/// Returns whether an entry of a data folder shows that it is in use: the lock's file and a file system's own folder
/// do not.
pub(crate) fn is_content(name: &std::ffi::OsStr) -> bool {
    name != LOCK && name != "lost+found"
}

/// Returns the id of the process that had the folder last; `None` when none is noted that can be read.
pub(crate) fn last_process(data_dir: &Path) -> Result<Option<Uuid>, Error> {
    let path = data_dir.join(PROCESS);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Uuid::try_parse(text.trim()).ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("cannot read", path)(error)),
    }
}

/// Notes that this process has the folder. Replaced by rename: a crash leaves the one before, from which is taken over again.
pub(crate) fn note_process(data_dir: &Path, id: Uuid) -> Result<(), Error> {
    let (path, fresh) = (
        data_dir.join(PROCESS),
        data_dir.join(format!("{PROCESS}.new")),
    );
    fs::write(&fresh, format!("{id}\n"))
        .and_then(|()| fs::rename(&fresh, &path))
        .map_err(Error::write("cannot write", path))
}

/// Makes a folder, with its parents, that only this user can enter; one that exists is left as it is.
pub(crate) fn create_private(dir: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(Error::file("cannot create the folder", dir))
}

/// Makes an empty file that only this user can read; one that exists is left as it is.
pub(crate) fn create_private_file(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(Error::file("cannot open", path))
}

pub(crate) fn names_in(dir: &Path) -> Result<Vec<OsString>, Error> {
    fs::read_dir(dir)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect())
        .map_err(Error::file("cannot list", dir))
}

/// Makes names in a folder durable: a rename counts only once its folder has been flushed.
pub(crate) fn sync_folder(dir: &Path) -> Result<(), Error> {
    File::open(dir)
        .and_then(|folder| folder.sync_all())
        .map_err(Error::file("cannot flush the folder", dir))
}

/// Exclusive lock of a data folder. The kernel releases it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Locks the folder. `Error::Locked` names the process that has it.
    pub(crate) fn take(data_dir: &Path) -> Result<Self, Error> {
        let path = data_dir.join(LOCK);
        let mut file = create_private_file(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked {
                    data_dir: data_dir.to_owned(),
                    holder: holder(&mut file),
                });
            }
            Err(TryLockError::Error(source)) => {
                return Err(Error::file("cannot lock", path)(source));
            }
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(Error::file("cannot write", path))?;
        Ok(Self { _file: file })
    }
}

/// Returns the holder of the lock, as that process wrote it down.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    // A holder that has only just taken the lock may not have written its id yet.
    match file.take(32).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        _ => "another process".into(),
    }
}
