//! Descriptors of a worker: closes inherited ones, maps inputs into memory.
#![allow(
    unsafe_code,
    reason = "nothing owns inherited descriptors, and a mapping trusts its file"
)]

use std::{fs::File, io, ops::Deref, os::fd::OwnedFd};

use memmap2::{Advice, Mmap};

/// The first descriptor after standard input, output and error.
const FIRST_UNOWNED: libc::c_uint = 3;

/// Closes every descriptor from 3 on: the service marks its own close-on-exec, but its parent may have left it some.
///
/// Only for the start of a process, before it opens anything.
pub fn close_inherited() -> io::Result<()> {
    // SAFETY: at the start of the process nothing owns a descriptor above the standard three.
    let closed =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST_UNOWNED, libc::c_uint::MAX, 0) };
    match closed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A file in memory, read on demand; empty files have no mapping.
pub struct Mapped(Option<Mmap>);

impl Mapped {
    /// Maps the whole file for reading, whatever its position.
    pub fn new(file: OwnedFd) -> io::Result<Self> {
        let file = File::from(file);
        if file.metadata()?.len() == 0 {
            return Ok(Self(None));
        }
        // SAFETY: inputs are blobs and spools that are written no more. Were one cut short all the same, this process
        // would end by SIGBUS, which the service takes for a crash of the decoder.
        let mapping = unsafe { Mmap::map(&file) }?;
        // Advice that the kernel does not take changes nothing.
        let _ = mapping.advise(Advice::Sequential);
        Ok(Self(Some(mapping)))
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}
