//! The folder of a video stream, `{data_dir}/video/{id}`: names of its files; opened, locked, flushed, removed. Its
//! files grow while the stream is made, and never change afterwards.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use uuid::Uuid;

use crate::{
    Error, Store,
    copy::{remove_folder_if_there, remove_if_there},
    folder::{create_private, create_private_file, names_in, sync_folder},
};

const VIDEO: &str = "video";

/// A file of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaFile {
    /// File of the rendition with that name.
    Rendition(String),
    Poster,
    /// Storyboard image, one of many.
    StoryboardImage,
    /// Map of the storyboard (WebVTT).
    StoryboardMap,
}

impl MediaFile {
    pub fn name(&self) -> String {
        match self {
            Self::Rendition(name) => format!("{name}.mp4"),
            Self::Poster => "poster.jpg".to_owned(),
            Self::StoryboardImage => "storyboard.jpg".to_owned(),
            Self::StoryboardMap => "storyboard.vtt".to_owned(),
        }
    }
}

/// The folder of one stream. Its functions block.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a handle; does not access the disk.
    pub fn of(store: &Store, id: Uuid) -> Self {
        Self::in_dir(store.data_dir(), id)
    }

    /// Returns the stream's folder in a data folder or a backup.
    pub(crate) fn in_dir(dir: &Path, id: Uuid) -> Self {
        Self(in_data_dir(dir).join(id.to_string()))
    }

    pub fn path(&self, file: &MediaFile) -> PathBuf {
        self.0.join(file.name())
    }

    /// Creates the folder; an existing one is left as it is.
    pub fn make(&self) -> Result<(), Error> {
        let parent = self.0.parent().expect("a stream's folder lies in another");
        let is_first = !parent.exists();
        create_private(&self.0)?;
        if let (true, Some(dir)) = (is_first, parent.parent()) {
            sync_folder(dir)?;
        }
        sync_folder(parent)
    }

    /// Opens a file to read and to write it; it is made when it is not there.
    pub fn open(&self, file: &MediaFile) -> Result<File, Error> {
        create_private_file(&self.path(file))
    }

    /// Opens a file as [`open`](Self::open) does, for its only writer: truncated or filled up to that length, with its
    /// end as the position. `Error::Busy` while one that was opened so before, or a copy of its descriptor, is open in
    /// any process: a worker whose owner has lost the stream may write for a moment longer, and would write into the
    /// next one's file.
    pub fn open_at(&self, file: &MediaFile, length: u64) -> Result<File, Error> {
        let mut opened = self.open(file)?;
        opened.try_lock().map_err(|rejected| match rejected {
            TryLockError::WouldBlock => {
                Error::Busy("the last writer of a stream has not ended yet".into())
            }
            TryLockError::Error(source) => Error::file("cannot lock", self.path(file))(source),
        })?;
        let cut = opened
            .set_len(length)
            .and_then(|()| opened.seek(SeekFrom::Start(length)));
        cut.map_err(Error::write("cannot cut", self.path(file)))?;
        Ok(opened)
    }

    /// Flushes a file to the disk; returns its length.
    pub fn flush(&self, file: &MediaFile) -> Result<u64, Error> {
        let opened = self.read(file)?;
        let flushed = opened
            .sync_data()
            .and_then(|()| Ok(opened.metadata()?.len()));
        flushed.map_err(Error::write("cannot flush", self.path(file)))
    }

    /// Removes a file; one that is not there is fine.
    pub fn remove_file(&self, file: &MediaFile) -> Result<(), Error> {
        remove_if_there(&self.path(file))
    }

    /// Opens a file to read it. `Error::NotFound` when it is not there.
    pub fn read(&self, file: &MediaFile) -> Result<File, Error> {
        let path = self.path(file);
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::NotFound("file of the stream"))
            }
            opened => opened.map_err(Error::file("cannot open", path)),
        }
    }

    /// Bytes of a file; 0 when it is not there.
    pub fn length(&self, file: &MediaFile) -> Result<u64, Error> {
        let path = self.path(file);
        match fs::metadata(&path) {
            Ok(found) => Ok(found.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(Error::file("cannot look at", path)(error)),
        }
    }

    /// Makes the names in it durable.
    pub fn sync(&self) -> Result<(), Error> {
        sync_folder(&self.0)
    }

    /// Removes it with everything in it; one that is not there is fine.
    pub fn remove(&self) -> Result<(), Error> {
        remove_folder_if_there(&self.0)
    }
}

/// Returns the folder of all streams' folders, in a data folder or a backup.
pub(crate) fn in_data_dir(dir: &Path) -> PathBuf {
    dir.join(VIDEO)
}

/// Returns the streams that have a folder; other names are skipped.
pub(crate) fn all(dir: &Path) -> Result<Vec<Uuid>, Error> {
    let folder = in_data_dir(dir);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let names = names_in(&folder)?.into_iter();
    let ids = names.filter_map(|name| Uuid::try_parse(name.to_str()?).ok());
    Ok(ids.collect())
}
