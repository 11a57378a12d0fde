//! Sources of stored bytes: a local file, or objects as they are asked for, such as the pieces of a large blob; what is not in
//! the cache is fetched from the object store.

use std::{
    fs::File,
    io::{self, Write as _},
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    BlobHash, Blobs,
    flights::{Flight, Key, Running, landed},
    pieces::{Piece, piece_hash},
    remote::Stored,
    spool::writer_to_read,
};
use crate::{Error, objects::PIECE};

/// Pieces of a blob that are fetched at a time when all of it is wanted.
const FETCHED_AT_ONCE: usize = 4;
/// Size up to which a blob is fetched as a whole when a part of it is wanted.
const MAX_WHOLE: u64 = 2 * PIECE as u64;

/// Bytes of a blob, for reading at any offset.
#[derive(Debug)]
pub enum Source {
    /// Read it by offsets only: its position is shared.
    File(Arc<File>),
    Pieces(PiecesReader),
}

impl From<Arc<File>> for Source {
    fn from(file: Arc<File>) -> Self {
        Self::File(file)
    }
}

impl Source {
    /// Returns the number of bytes; a system call.
    pub fn size(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Pieces(reader) => Ok(reader.layout.size()),
        }
    }

    /// Fetches what is needed to read the byte at an offset, so that a failure shows before anything is sent.
    pub async fn look(&mut self, offset: u64) -> Result<(), Error> {
        match self {
            Self::File(_) => Ok(()),
            Self::Pieces(reader) => reader.look(offset).await,
        }
    }

    /// Sets the offset up to which will be read: nothing after it is fetched ahead.
    pub fn read_until(&mut self, end: u64) {
        if let Self::Pieces(reader) = self {
            reader.end = reader.layout.size().min(end);
        }
    }
}

/// Arrangement of objects as one sequence of bytes.
#[derive(Debug)]
enum Layout {
    /// Pieces of a blob.
    Blob(Stored),
    /// Pieces with the offset of each, one behind the other.
    Listed(Vec<(u64, Piece)>),
}

impl Layout {
    /// Returns the offset behind the last byte.
    fn size(&self) -> u64 {
        match self {
            Self::Blob(stored) => stored.size,
            Self::Listed(pieces) => pieces.last().map_or(0, |(offset, last)| offset + last.len),
        }
    }

    /// Returns the piece with the byte at an offset, and the offset of its first byte.
    fn at(&self, offset: u64) -> Result<(u64, Piece), Error> {
        match self {
            Self::Blob(stored) => {
                let number = offset / PIECE as u64;
                let piece = stored.place.piece(number, stored.size)?;
                Ok((number * PIECE as u64, piece))
            }
            Self::Listed(pieces) => {
                let number = pieces.partition_point(|(start, _)| *start <= offset);
                let found = number.checked_sub(1).and_then(|number| pieces.get(number));
                found.cloned().ok_or_else(outside)
            }
        }
    }
}

fn outside() -> Error {
    Error::Internal("a read outside of the stored bytes".into())
}

/// Reader of objects, such as the pieces of a blob, which are fetched as they are read, one ahead.
#[derive(Debug)]
pub struct PiecesReader {
    blobs: Blobs,
    layout: Layout,
    /// Offset behind the last byte that will be read.
    end: u64,
    /// The piece that was read last.
    current: Option<Opened>,
    /// The one behind it, with its offset.
    ahead: Option<(u64, Flight)>,
}

/// Piece in the cache, with the offsets of its first byte and behind its last one.
#[derive(Clone, Debug)]
struct Opened {
    start: u64,
    end: u64,
    file: Arc<File>,
}

impl PiecesReader {
    fn new(blobs: Blobs, layout: Layout) -> Self {
        Self {
            blobs,
            end: layout.size(),
            layout,
            current: None,
            ahead: None,
        }
    }

    /// Reads at most `most` bytes from there, fewer at the end of a piece, at least one. `Error::Objects` when the object store
    /// cannot be used now, `Error::Lost` when it has lost or damaged the piece.
    pub async fn read(&mut self, offset: u64, most: usize) -> Result<Bytes, Error> {
        if offset >= self.layout.size() {
            return Err(outside());
        }
        let Opened { start, end, file } = self.piece(offset).await?;
        let count = end.saturating_sub(offset).min(most as u64) as usize;
        if count == 0 {
            return Err(outside());
        }
        let reading = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; count];
            file.read_exact_at(&mut bytes, offset - start)
                .map_err(Error::file("cannot read", "a piece in the cache"))?;
            Ok::<_, Error>(Bytes::from(bytes))
        });
        reading
            .await
            .map_err(|error| Error::Internal(format!("read of a piece: {error}")))?
    }

    /// Fetches the piece with the byte at an offset, so that a failure shows before anything is sent.
    pub(crate) async fn look(&mut self, offset: u64) -> Result<(), Error> {
        self.piece(offset).await.map(drop)
    }

    /// Opens the piece with the byte at an offset.
    async fn piece(&mut self, offset: u64) -> Result<Opened, Error> {
        if let Some(current) = &self.current
            && (current.start..current.end).contains(&offset)
        {
            return Ok(current.clone());
        }
        let (start, piece) = self.layout.at(offset)?;
        let end = start + piece.len;
        let ahead = self.ahead.take().filter(|(ahead, _)| *ahead == start);
        let file = match ahead {
            // It may have ended long ago, in an outage that is over.
            Some((_, flight)) => match landed(flight).await {
                Err(Error::Objects(_)) => landed(self.begin(piece)?).await?,
                outcome => outcome?,
            },
            None => landed(self.begin(piece)?).await?,
        };
        let opened = Opened { start, end, file };
        self.current = Some(opened.clone());
        if end < self.end {
            let (next, piece) = self.layout.at(end)?;
            self.ahead = Some((next, self.begin(piece)?));
        }
        Ok(opened)
    }

    fn begin(&self, piece: Piece) -> Result<Flight, Error> {
        let blobs = self.blobs.clone();
        let key = Key::Piece(piece.base, piece.number);
        self.blobs.fly(key, move |running| async move {
            cached_piece(&blobs, &piece, &running).await
        })
    }
}

impl Blobs {
    /// Opens a blob for reading, the whole of which is local then. `Error::NotFound` when it is nowhere; `Error::Objects` when
    /// the object store cannot be used now, `Error::Lost` when it has lost or damaged the bytes.
    pub async fn open(&self, hash: &BlobHash) -> Result<File, Error> {
        if let Some(file) = self.open_local(hash).await? {
            return Ok(file);
        }
        let stored = self.stored(hash).await?;
        let file = landed(self.fill(*hash, stored)?).await?;
        // A descriptor with a position of its own, also when the file has been removed from the cache since.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        self.blocking(move || {
            let _file = file;
            File::open(&path).map_err(Error::file("cannot open", path))
        })
        .await
    }

    /// Opens a blob for reads of parts of it, as [`Blobs::open`]; of a large one only those pieces are fetched that are read.
    pub async fn source(&self, hash: &BlobHash) -> Result<Source, Error> {
        if let Some(file) = self.open_local(hash).await? {
            return Ok(Source::File(Arc::new(file)));
        }
        let stored = self.stored(hash).await?;
        self.remote()?;
        if stored.size > MAX_WHOLE {
            let layout = Layout::Blob(stored);
            return Ok(Source::Pieces(PiecesReader::new(self.clone(), layout)));
        }
        let file = landed(self.fill(*hash, stored)?).await?;
        Ok(Source::File(file))
    }

    /// Returns a reader of objects that lie one behind the other, each with its offset; of bytes before the first of them there
    /// are none. `Error::Unsupported` without an object store.
    pub(crate) fn listed(&self, pieces: Vec<(u64, Piece)>) -> Result<PiecesReader, Error> {
        self.remote()?;
        Ok(PiecesReader::new(self.clone(), Layout::Listed(pieces)))
    }

    /// Begins to fetch the beginning of a blob that will be read soon. Failures show when it is read.
    pub(crate) async fn prefetch(&self, hash: &BlobHash) -> Result<(), Error> {
        let stored = self.stored(hash).await?;
        let flight = match stored.size > MAX_WHOLE {
            true => {
                let first = stored.place.piece(0, stored.size)?;
                PiecesReader::new(self.clone(), Layout::Blob(stored)).begin(first)?
            }
            false => self.fill(*hash, stored)?,
        };
        // Work that has no caller and no turn would end.
        tokio::spawn(async move { landed(flight).await.map(drop) });
        Ok(())
    }

    /// Opens a blob's local file; `None` when there is none.
    async fn open_local(&self, hash: &BlobHash) -> Result<Option<File>, Error> {
        let (at, hash) = (self.clone(), *hash);
        self.blocking(move || at.local_file(&hash)).await
    }

    /// Opens a blob's local file, in the cache or in the folder; blocks.
    pub(crate) fn local_file(&self, hash: &BlobHash) -> Result<Option<File>, Error> {
        if let Some(remote) = &self.shared.remote
            && let Some(file) = remote.cache().open(&remote.cache().blob_path(hash))?
        {
            remote.count_hit();
            return Ok(Some(file));
        }
        let path = self.path(hash);
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(Error::file("cannot open", path)),
        }
    }

    fn fill(&self, hash: BlobHash, stored: Stored) -> Result<Flight, Error> {
        let blobs = self.clone();
        self.fly(Key::Blob(hash), move |running| async move {
            fetch_whole(&blobs, hash, stored, &running).await
        })
    }
}

/// Brings a whole blob into the cache.
async fn fetch_whole(
    blobs: &Blobs,
    hash: BlobHash,
    stored: Stored,
    running: &Running,
) -> Result<Arc<File>, Error> {
    let remote = blobs.remote()?;
    // Another caller may have brought it since this one has looked.
    let at = blobs.clone();
    let found = blobs.blocking(move || {
        let cache = at.remote()?.cache();
        cache.open(&cache.blob_path(&hash))
    });
    if let Some(file) = found.await? {
        return Ok(Arc::new(file));
    }
    let Stored { place, size } = stored;
    // For the temporary file; others may fill the cache while it is fetched.
    blobs.make_room(size).await?;
    // Before there is a temporary file: many may wait.
    let mut turn = match place.pieces() {
        0 => None,
        _ => Some(running.first_turn().await?),
    };
    let at = blobs.clone();
    let (link, mut writer) = blobs.blocking(move || writer_to_read(&at)).await?;
    // In their order, so that an earlier piece never waits for the turn of a later one.
    let mut pieces = stream::iter(0..place.pieces())
        .map(|number| {
            let (blobs, piece, turn) = (blobs.clone(), place.piece(number, size), turn.take());
            async move { piece_bytes(blobs, piece?, turn).await }
        })
        .buffered(FETCHED_AT_ONCE);
    while let Some(piece) = pieces.next().await {
        let (bytes, turn) = piece?;
        let (at, path) = (blobs.clone(), link.0.clone());
        writer = blobs
            .blocking(move || {
                let _turn = turn;
                writer.take_to_read(&bytes, &at, &path)?;
                Ok(writer)
            })
            .await?;
    }
    drop(pieces);
    let (at, base) = (blobs.clone(), place.base);
    let is_kept = blobs.make_room(size).await?;
    let file = blobs
        .blocking(move || {
            let file = File::open(&link.0).map_err(Error::file("cannot open", &link.0))?;
            let blob = writer.finish(&link.0)?;
            if blob.hash != hash || blob.size != size {
                let remote = at.remote()?;
                remote.note_damaged(base);
                let base = base.simple();
                let what = format!("the objects b/{base} are not the blob {hash} of {size} bytes");
                return Err(remote.damaged(what));
            }
            if is_kept {
                let cache = at.remote()?.cache();
                cache.take(link, size, &cache.blob_path(&hash))?;
            }
            Ok(Arc::new(file))
        })
        .await?;
    remote.count_fill();
    Ok(file)
}

/// Returns the bytes of a piece, from the cache or the object store, with the turn in which they may be in memory: the given one,
/// or another.
async fn piece_bytes(
    blobs: Blobs,
    piece: Piece,
    turn: Option<OwnedSemaphorePermit>,
) -> Result<(Bytes, OwnedSemaphorePermit), Error> {
    let turn = match turn {
        Some(turn) => turn,
        None => blobs.remote()?.downloads().turn().await?,
    };
    let (at, wanted) = (blobs.clone(), piece.clone());
    let cached = blobs.blocking(move || read_cached(&at, &wanted));
    let bytes = match cached.await? {
        Some(bytes) => bytes,
        None => blobs.fetch(&piece).await?,
    };
    Ok((bytes, turn))
}

/// Reads a piece that is in the cache; `None` when it is not, or has other bytes. Blocks.
fn read_cached(blobs: &Blobs, piece: &Piece) -> Result<Option<Bytes>, Error> {
    let cache = blobs.remote()?.cache();
    let path = cache.piece_path(piece.base, piece.number);
    let Some(file) = cache.open(&path)? else {
        return Ok(None);
    };
    let mut bytes = vec![0; piece.len as usize];
    let is_whole = file.read_exact_at(&mut bytes, 0).is_ok();
    if !is_whole || piece.hash != piece_hash(&bytes) {
        tracing::warn!(path = %path.display(), "a cached piece is damaged and is fetched again");
        cache.remove(&path);
        return Ok(None);
    }
    Ok(Some(Bytes::from(bytes)))
}

/// Opens a piece in the cache, and brings it there first if needed.
async fn cached_piece(blobs: &Blobs, piece: &Piece, running: &Running) -> Result<Arc<File>, Error> {
    let remote = blobs.remote()?;
    let path = remote.cache().piece_path(piece.base, piece.number);
    let (at, opened) = (blobs.clone(), path.clone());
    let found = blobs.blocking(move || at.remote()?.cache().open(&opened));
    if let Some(file) = found.await? {
        remote.count_hit();
        return Ok(Arc::new(file));
    }
    let is_kept = blobs.make_room(piece.len).await?;
    let turn = running.first_turn().await?;
    let bytes = blobs.fetch(piece).await?;
    let (at, len) = (blobs.clone(), piece.len);
    let file = blobs
        .blocking(move || {
            let _turn = turn;
            let (link, mut writer) = writer_to_read(&at)?;
            let written = writer.file.write_all(&bytes);
            written.map_err(Error::write("cannot write", &link.0))?;
            if is_kept {
                at.remote()?.cache().take(link, len, &path)?;
            }
            Ok(Arc::new(writer.file))
        })
        .await?;
    remote.count_fill();
    Ok(file)
}
