//! Copies and hashes (SHA-256) the files of a backup piece by piece, with progress.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
};

use sha2::{Digest as _, Sha256};

use crate::Error;

/// Bytes that are copied and hashed at a time.
const PIECE: usize = 256 * 1024;

/// Hash and length of the bytes that were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest {
    pub bytes: u64,
    pub sha256: [u8; 32],
}

/// Side of a copy that failed.
#[derive(Debug)]
pub(super) enum Broken {
    Source(io::Error),
    Target(io::Error),
}

/// Copies all bytes from one to the other. `moved` is called with the length of each piece.
pub(super) fn digest(
    from: impl Read,
    to: impl Write,
    mut moved: impl FnMut(u64),
) -> Result<Digest, Broken> {
    let mut hasher = Sha256::new();
    let bytes = copy(from, to, |piece| {
        hasher.update(piece);
        moved(piece.len() as u64);
    })?;
    Ok(Digest {
        bytes,
        sha256: hasher.finalize().into(),
    })
}

/// Copies all bytes from one to the other; returns how many. `moved` is called with each piece that was written.
pub(super) fn copy(
    mut from: impl Read,
    mut to: impl Write,
    mut moved: impl FnMut(&[u8]),
) -> Result<u64, Broken> {
    let mut piece = vec![0; PIECE];
    let mut bytes = 0;
    loop {
        let length = from.read(&mut piece).map_err(Broken::Source)?;
        if length == 0 {
            return Ok(bytes);
        }
        to.write_all(&piece[..length]).map_err(Broken::Target)?;
        bytes += length as u64;
        moved(&piece[..length]);
    }
}

/// Hashes a whole file.
pub(super) fn digest_of(path: &Path, moved: impl FnMut(u64)) -> io::Result<Digest> {
    digest(File::open(path)?, io::sink(), moved).map_err(|broken| match broken {
        Broken::Source(error) | Broken::Target(error) => error,
    })
}

impl Broken {
    /// Maps the error for a copy in which either side's failure ends the work.
    pub(super) fn in_copy(self, from: &Path, to: &Path) -> Error {
        match self {
            Self::Source(error) => Error::file("cannot read", from)(error),
            Self::Target(error) => Error::write("cannot write", to)(error),
        }
    }
}
