//! Real photographs: Debian's wallpapers, installed or unpacked under target/tools, or one drawn in their place.

use std::path::{Path, PathBuf};

use super::{Failure, drawn_folder, target_folder};

/// At most `count` JPEG files, always the same ones on one machine.
pub fn photographs(count: usize) -> Result<Vec<PathBuf>, Failure> {
    let tools = target_folder().join("tools");
    let places = [
        PathBuf::from("/usr/share/backgrounds/mate/nature"),
        tools.join("mate-backgrounds/usr/share/backgrounds/mate/nature"),
    ];
    let mut found: Vec<PathBuf> = places.iter().flat_map(|place| jpegs(place)).collect();
    if found.is_empty() {
        found.push(drawn_folder()?.join("photograph.jpg"));
    }
    found.sort();
    found.truncate(count);
    Ok(found)
}

fn jpegs(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "jpg"))
        .collect()
}
