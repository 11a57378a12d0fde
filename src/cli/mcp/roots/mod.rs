//! Folders whose files `sluice mcp` may send (`--root`, `mcp.roots`), and why a `filePath` is rejected: outside, link, not a file,
//! empty. None is allowed unless its user names it.
//!
//! What an agent asks for is data that another may have written. So a path decides only which folder and which names
//! below it; that none of them leads out is decided by the kernel while it opens them ([`beneath`]), not by looking first.

mod beneath;

use std::{
    fmt, fs, io,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{FileType, Stat, fstat},
    io::Errno,
};

use super::super::shown;
use beneath::{Access, Folder};

/// The longest path that Linux takes (`PATH_MAX`, its zero included).
const MAX_PATH_BYTES: usize = 4_095;
/// Longest part of a path that an error shows.
const MAX_SHOWN_CHARS: usize = 300;

/// Reason why a file is not sent, in words for an agent to repeat to its user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Rejection {
    #[error(
        "no file of this machine may be sent: allow a folder with `sluice mcp --root FOLDER` or mcp.roots \
         (SLUICE_MCP__ROOTS) where this server is configured; fileId and uploadUrl work without"
    )]
    NoRoots,
    #[error("filePath must be a path of 1 to {MAX_PATH_BYTES} bytes without a zero byte")]
    NoPath,
    #[error("filePath `{0}` must not contain `..`: name the file from its folder on")]
    Climbs(String),
    #[error("filePath `{path}` is in none of the folders that may be sent from: {folders}")]
    Outside { path: String, folders: String },
    #[error("`{0}` does not exist")]
    Missing(String),
    #[error(
        "`{0}` is a symbolic link or lies behind one; links are not followed, so name the file itself"
    )]
    Link(String),
    #[error("`{path}` is {kind}, not a file")]
    NoFile { path: String, kind: &'static str },
    #[error("`{0}` is empty")]
    Empty(String),
    #[error("`{0}` was exchanged while it was opened: ask again when nothing writes there")]
    Exchanged(String),
    #[error("`{path}` cannot be opened: {reason}")]
    Unopened { path: String, reason: String },
}

/// A file that may be sent, opened.
#[derive(Debug)]
pub(super) struct LocalFile {
    pub(super) file: fs::File,
    /// Its name, without folders.
    pub(super) name: String,
    /// At the time it was opened; never 0.
    pub(super) length: u64,
}

/// The allowed folders, in the order they were named.
#[derive(Clone, Debug)]
pub(super) struct Roots {
    roots: Vec<Root>,
}

#[derive(Clone, Debug)]
struct Root {
    /// Path as the user named it, made absolute.
    named: PathBuf,
    /// Its real path, as far as it exists.
    real: PathBuf,
}

/// A file by its folder and the names below it.
#[derive(Debug, PartialEq, Eq)]
struct Place<'a> {
    root: &'a Path,
    /// Names only.
    below: PathBuf,
    name: String,
}

impl Roots {
    /// Makes roots of the folders that the user named. `~` is the home folder: what starts this program is no shell. Links on the way to a root are its user's own and
    /// are followed, now and once.
    pub(super) fn new(folders: &[PathBuf], home: Option<&Path>) -> io::Result<Self> {
        let mut roots = Vec::new();
        for folder in folders {
            let folder = match (folder.strip_prefix("~"), home) {
                (Ok(below), Some(home)) => home.join(below),
                _ => folder.clone(),
            };
            let named = std::path::absolute(folder)?;
            let real = real(&named);
            roots.push(Root { named, real });
        }
        Ok(Self { roots })
    }

    /// Opens a file for reading. What is returned is a regular file below a root, whatever happens to the names meanwhile.
    pub(super) fn open(&self, path: &str) -> Result<LocalFile, Rejection> {
        self.open_with(path, Access::default(), || {})
    }

    /// `between` runs after the look at the file and before it is opened.
    fn open_with(
        &self,
        path: &str,
        access: Access,
        between: impl FnOnce(),
    ) -> Result<LocalFile, Rejection> {
        let place = self.place(path)?;
        let rejection_of = |errno| rejection_of(path, errno);
        let folder = Folder::open(place.root, access).map_err(rejection_of)?;
        // Opening a device or a pipe can have effects, so it is looked at before.
        let looked_at = folder.look_at(&place.below).map_err(rejection_of)?;
        let looked_at = fstat(&looked_at).map_err(rejection_of)?;
        check_kind(path, &looked_at)?;
        between();
        let file = folder.open_file(&place.below).map_err(rejection_of)?;
        let opened = fstat(&file).map_err(rejection_of)?;
        check_kind(path, &opened)?;
        if (opened.st_dev, opened.st_ino) != (looked_at.st_dev, looked_at.st_ino) {
            return Err(Rejection::Exchanged(path_shown(path)));
        }
        let length = u64::try_from(opened.st_size).unwrap_or_default();
        if length == 0 {
            return Err(Rejection::Empty(path_shown(path)));
        }
        Ok(LocalFile {
            file: file.into(),
            name: place.name,
            length,
        })
    }

    /// Finds the root of a path, and the names below it. Relative paths begin at the first root.
    fn place(&self, path: &str) -> Result<Place<'_>, Rejection> {
        let first = self.roots.first().ok_or(Rejection::NoRoots)?;
        if path.is_empty() || path.len() > MAX_PATH_BYTES || path.contains('\0') {
            return Err(Rejection::NoPath);
        }
        let asked = Path::new(path);
        if asked.components().any(|part| part == Component::ParentDir) {
            return Err(Rejection::Climbs(path_shown(path)));
        }
        let found = match asked.is_relative() {
            true => Some((first, asked)),
            false => self.roots.iter().find_map(|root| {
                let below = asked.strip_prefix(&root.named);
                let below = below.or_else(|_| asked.strip_prefix(&root.real)).ok()?;
                Some((root, below))
            }),
        };
        let Some((root, below)) = found else {
            return Err(Rejection::Outside {
                path: path_shown(path),
                folders: self.to_string(),
            });
        };
        let names = below.components();
        let below: PathBuf = names
            .filter(|part| matches!(part, Component::Normal(_)))
            .collect();
        let name = below.file_name().ok_or_else(|| Rejection::NoFile {
            path: path_shown(path),
            kind: "a folder",
        })?;
        let name = name.to_string_lossy().into_owned();
        Ok(Place {
            root: &root.real,
            below,
            name,
        })
    }
}

/// Lists them as in a sentence.
impl fmt::Display for Roots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = (self.roots.iter())
            .map(|root| root.named.display().to_string())
            .collect();
        formatter.write_str(&named.join(", "))
    }
}

impl Roots {
    pub(super) fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// Returns the roots that are not folders now, for a warning.
    pub(super) fn missing(&self) -> impl Iterator<Item = &Path> {
        let missing = self.roots.iter().filter(|root| !root.real.is_dir());
        missing.map(|root| root.named.as_path())
    }
}

/// Returns the path without links, as far as it exists.
fn real(named: &Path) -> PathBuf {
    let found = named.ancestors().find_map(|there| {
        let below = named.strip_prefix(there).ok()?;
        let mut real = fs::canonicalize(there).ok()?;
        real.extend(below);
        Some(real)
    });
    found.unwrap_or_else(|| named.to_owned())
}

fn check_kind(path: &str, stat: &Stat) -> Result<(), Rejection> {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => return Err(Rejection::Link(path_shown(path))),
        FileType::Directory => "a folder",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something else",
    };
    Err(Rejection::NoFile {
        path: path_shown(path),
        kind,
    })
}

fn rejection_of(path: &str, errno: Errno) -> Rejection {
    let shown = path_shown(path);
    match errno {
        Errno::NOENT => Rejection::Missing(shown),
        // XDEV: something on the way leads out of the root.
        Errno::LOOP | Errno::XDEV => Rejection::Link(shown),
        _ => Rejection::Unopened {
            path: shown,
            reason: io::Error::from(errno).to_string(),
        },
    }
}

fn path_shown(path: &str) -> String {
    shown(path, MAX_SHOWN_CHARS)
}

#[cfg(test)]
mod tests;
