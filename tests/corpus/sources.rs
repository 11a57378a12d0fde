//! Folders of the files: installed by Debian's packages, or unpacked under target/tools.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use crate::support::media::target_folder;

const INSTALLED_TESTS: &str = "usr/libexec/installed-tests";
/// Suffix of the images that librsvg's tests compare with: plain ones by the hundred, that break nothing.
const REFERENCE: &str = "-ref.png";
/// Bound on a file; only archives of fonts in these packages are larger.
const LARGEST_BYTES: u64 = 30_000_000;

/// Returns all files but programs and reference images, always in the same order.
pub fn files() -> Vec<PathBuf> {
    let tools = target_folder().join("tools");
    let unpacked = |package: &str| tools.join(package).join(INSTALLED_TESTS);
    let folders = [
        Path::new("/").join(INSTALLED_TESTS),
        unpacked("gdk-pixbuf-tests"),
        unpacked("librsvg2-tests"),
        tools.join("pillow-source/Tests/images"),
    ];
    let mut files = Vec::new();
    for folder in folders {
        walk(&folder, &mut files);
    }
    files.retain(|path| !path.to_string_lossy().ends_with(REFERENCE) && !is_program(path));
    files
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        match path.symlink_metadata() {
            Ok(kind) if kind.is_dir() => walk(&path, files),
            Ok(kind) if kind.is_file() && kind.len() <= LARGEST_BYTES => files.push(path),
            _ => {}
        }
    }
}

fn is_program(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *b"\x7fELF"
}
