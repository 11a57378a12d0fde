//! Bytes of a ZIP as the client reads them: files opened ahead, buffers, a deleted file ends the answer.
//!
//! Files are opened some at a time shortly before their headers are sent, when it is looked whether they are still there. What the
//! system has in its memory is read at once, on the thread that sends it; what must come from the disk is read on the
//! blocking pool. Buffers are used again.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, IoSliceMut},
    os::unix::fs::FileExt as _,
    sync::Arc,
};

use actix_web::web::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use rustix::io::{ReadWriteFlags, preadv2};
use sluice_media::zip::{Cursor, Piece};
use sluice_store::{Store, archive, blob::Source};

use crate::application::archive::{limiter::ArchivePermit, listing::Listing};

/// Bytes read at a time. With a header before it, a piece fits into the buffer that the server keeps for a connection.
const PIECE_BYTES: usize = 60 * 1024;
/// Most files that are opened ahead of the reader.
const MAX_FILES_AHEAD: usize = 16;
/// Most bytes in the files that are opened ahead, but for the last one's.
const MAX_BYTES_AHEAD: u64 = 8 << 20;
/// Most buffers that are kept to be used again.
const MAX_KEPT_BUFFERS: usize = 4;

/// Returns part of an archive as a stream. Ends in an error when a file is deleted.
pub(super) fn pieces(
    store: Store,
    listing: Listing,
    start: u64,
    len: u64,
    permit: ArchivePermit,
) -> impl stream::Stream<Item = io::Result<Bytes>> + Send {
    let sending = Sending {
        cursor: listing.layout.cursor(start, len),
        store,
        listing,
        opened: VecDeque::new(),
        reading: None,
        buffers: Buffers::default(),
        _permit: permit,
    };
    stream::try_unfold(sending, |mut sending| async move {
        let piece = sending.next().await?;
        Ok(piece.map(|piece| (piece, sending)))
    })
}

struct Sending {
    store: Store,
    listing: Listing,
    cursor: Cursor,
    /// Files that come next, by number, from their headers on.
    opened: VecDeque<(u32, Source)>,
    reading: Option<Reading>,
    buffers: Buffers,
    _permit: ArchivePermit,
}

/// The rest of a file.
struct Reading {
    file: Source,
    offset: u64,
    left: u64,
}

impl Sending {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if let Some(reading) = self.reading.take() {
            return self.read(reading).await.map(Some);
        }
        match self.cursor.next(&self.listing.layout) {
            None => Ok(None),
            Some(Piece::Bytes(headers)) => {
                // A header is sent only after its file was opened.
                if let Some((file, len)) = self.cursor.contents_next(&self.listing.layout) {
                    self.open(file, self.cursor.left() - len, len).await?;
                }
                Ok(Some(headers.into()))
            }
            Some(Piece::Contents { file, offset, len }) => {
                self.open(file, self.cursor.left(), len).await?;
                let (_, mut file) = self.opened.pop_front().expect("it was just opened");
                file.read_until(offset + len);
                let reading = Reading {
                    file,
                    offset,
                    left: len,
                };
                self.read(reading).await.map(Some)
            }
        }
    }

    /// Opens the file of that number, of which `len` bytes are sent, and so many of the archive after them. It is the first of
    /// those that are open afterwards; others that come then follow.
    async fn open(&mut self, number: u32, after: u64, len: u64) -> io::Result<()> {
        if let Some((next, _)) = self.opened.front()
            && *next == number
        {
            return Ok(());
        }
        let numbers = self.ahead(number, after.min(MAX_BYTES_AHEAD.saturating_sub(len)));
        let ids: Vec<_> = numbers
            .iter()
            .map(|&number| self.listing.ids[number as usize])
            .collect();
        let files = archive::open(&self.store, &ids).await;
        let files = files.map_err(io::Error::other)?;
        self.opened = numbers.into_iter().zip(files).collect();
        match self.opened.front() {
            Some(_) => Ok(()),
            None => {
                let id = self.listing.ids[number as usize];
                tracing::info!(file = %id, "an archive ends short: a file of it is gone");
                Err(io::Error::from(io::ErrorKind::NotFound))
            }
        }
    }

    /// This file's number and the next ones', as far as their bytes are among so many; empty files are in their headers.
    fn ahead(&self, number: u32, mut left: u64) -> Vec<u32> {
        let layout = &self.listing.layout;
        let mut numbers = vec![number];
        for next in number + 1..layout.files() {
            if left == 0 || numbers.len() == MAX_FILES_AHEAD {
                break;
            }
            if layout.size(next) > 0 {
                numbers.push(next);
                left = left.saturating_sub(layout.size(next));
            }
        }
        numbers
    }

    async fn read(&mut self, reading: Reading) -> io::Result<Bytes> {
        let Reading { file, offset, left } = reading;
        let wanted = left.min(PIECE_BYTES as u64) as usize;
        let file = match file {
            Source::File(file) => file,
            Source::Pieces(mut pieces) => {
                let read = pieces.read(offset, wanted).await;
                let read = read.map_err(io::Error::other)?;
                self.continue_at(Source::Pieces(pieces), offset, left, read.len());
                return Ok(read);
            }
        };
        let mut buffer = self.buffers.take();
        let read = match read_cached(&file, &mut buffer[..wanted], offset) {
            Some(read) => read,
            None => {
                let reading = file.clone();
                let read = tokio::task::spawn_blocking(move || {
                    reading.read_exact_at(&mut buffer[..wanted], offset)?;
                    Ok::<_, io::Error>(buffer)
                });
                buffer = read.await.map_err(io::Error::other)??;
                wanted
            }
        };
        self.continue_at(Source::File(file), offset, left, read);
        Ok(self.buffers.lend(buffer, read))
    }

    /// Notes what is left of a file after so many bytes were read.
    fn continue_at(&mut self, file: Source, offset: u64, left: u64, read: usize) {
        let left = left - read as u64;
        self.reading = (left > 0).then_some(Reading {
            file,
            offset: offset + read as u64,
            left,
        });
    }
}

/// Reads the bytes that are in memory, without waiting for the disk; `None` when none are, or the file system does not
/// say.
fn read_cached(file: &File, buffer: &mut [u8], offset: u64) -> Option<usize> {
    let mut buffers = [IoSliceMut::new(buffer)];
    let read = preadv2(file, &mut buffers, offset, ReadWriteFlags::NOWAIT);
    read.ok().filter(|&read| read > 0)
}

/// Buffers of [`PIECE_BYTES`] that come back when what was read into them has been sent.
#[derive(Clone, Default)]
struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl Buffers {
    fn take(&self) -> Vec<u8> {
        let kept = self.0.lock().pop();
        kept.unwrap_or_else(|| vec![0; PIECE_BYTES])
    }

    /// The first bytes of the buffer.
    fn lend(&self, buffer: Vec<u8>, len: usize) -> Bytes {
        let lent = Bytes::from_owner(Lent {
            buffer,
            home: self.clone(),
        });
        lent.slice(..len)
    }
}

struct Lent {
    buffer: Vec<u8>,
    home: Buffers,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut kept = self.home.0.lock();
        if kept.len() < MAX_KEPT_BUFFERS {
            kept.push(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take();
        buffer[..5].copy_from_slice(b"hello");
        let address = buffer.as_ptr();
        let lent = buffers.lend(buffer, 5);
        let part = lent.slice(1..3);
        drop(lent);
        assert_eq!((&part[..], buffers.0.lock().len()), (&b"el"[..], 0));
        drop(part);
        let again = buffers.take();
        assert_eq!(again.as_ptr(), address);
    }

    #[test]
    fn what_is_in_memory_is_read_at_once() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &[7; 1000]).unwrap();
        let mut buffer = [0; 600];
        // Not every file system supports it.
        if let Some(read) = read_cached(&file, &mut buffer, 900) {
            assert_eq!((read, buffer[99], buffer[100]), (100, 7, 0));
        }
        assert_eq!(read_cached(&file, &mut buffer, 1000), None);
    }
}
