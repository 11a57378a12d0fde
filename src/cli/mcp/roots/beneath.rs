//! Opens paths below a folder so that no symbolic link leads out of it (openat2, or name by name).
//!
//! Linux has the call since 5.6. Where that is missing, or a container forbids it, each name is opened below
//! the last one, and none that is a link is gone through.

use std::{
    os::fd::OwnedFd,
    path::{Component, Path},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2},
    io::Errno,
};

/// Flags for a handle only: nothing is read, and a device or a pipe does not notice.
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// Flags for reading. A pipe in the file's place must not block, nor a terminal become this program's own.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);
/// Number of attempts when folders are renamed during a look-up (openat2(2), EAGAIN).
const MAX_TRIES: usize = 16;

/// Resolution of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Access {
    /// One call of the kernel; name by name where there is no such call.
    #[default]
    Kernel,
    /// Name by name.
    Walk,
}

/// A folder that is open, whatever its name leads to later.
#[derive(Debug)]
pub(super) struct Folder {
    handle: OwnedFd,
    access: Access,
}

impl Folder {
    /// Opens a folder. `path` is absolute and led through no link when it was allowed; a link on it now was put there since.
    pub(super) fn open(path: &Path, access: Access) -> Result<Self, Errno> {
        let handle = openat(CWD, "/", LOOK | OFlags::DIRECTORY, Mode::empty())?;
        let top = Self { handle, access };
        let names = path.strip_prefix("/").unwrap_or(path);
        if names.as_os_str().is_empty() {
            return Ok(top);
        }
        let handle = top.resolve(names, LOOK | OFlags::DIRECTORY)?;
        Ok(Self { handle, access })
    }

    /// A handle on whatever has this name; it may be anything but reached through a link. `names` are nothing but names.
    pub(super) fn look_at(&self, names: &Path) -> Result<OwnedFd, Errno> {
        self.resolve(names, LOOK)
    }

    /// Opens it for reading.
    pub(super) fn open_file(&self, names: &Path) -> Result<OwnedFd, Errno> {
        self.resolve(names, READ)
    }

    fn resolve(&self, names: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        if self.access == Access::Walk {
            return self.walk(names, flags);
        }
        match self.at_once(names, flags) {
            Err(Errno::NOSYS | Errno::PERM) => self.walk(names, flags),
            resolved => resolved,
        }
    }

    fn at_once(&self, names: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let beneath =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            tries += 1;
            match openat2(&self.handle, names, flags, Mode::empty(), beneath) {
                Err(Errno::AGAIN | Errno::INTR) if tries < MAX_TRIES => {}
                opened => return opened,
            }
        }
    }

    fn walk(&self, names: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut names = names.components().peekable();
        let mut folder = None;
        while let Some(name) = names.next() {
            let Component::Normal(name) = name else {
                return Err(Errno::XDEV);
            };
            let above = folder.as_ref().unwrap_or(&self.handle);
            if names.peek().is_none() {
                return openat(above, name, flags | OFlags::NOFOLLOW, Mode::empty());
            }
            // With PATH and NOFOLLOW a link is opened itself (open(2)); nothing can be opened below it.
            let next = openat(above, name, LOOK | OFlags::NOFOLLOW, Mode::empty())?;
            match FileType::from_raw_mode(fstat(&next)?.st_mode) {
                FileType::Directory => folder = Some(next),
                FileType::Symlink => return Err(Errno::LOOP),
                _ => return Err(Errno::NOTDIR),
            }
        }
        Err(Errno::ISDIR)
    }
}
