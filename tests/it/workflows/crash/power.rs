//! Simulates a power loss: files that were not flushed are short, changed or missing.

use std::{fs::OpenOptions, os::unix::fs::FileExt as _, path::Path};

use crate::support::{Failure, dice::Dice};

/// Spoils some of the files below `folder` in the ways of file systems; how many.
pub(super) fn fail(folder: &Path, dice: &mut Dice) -> Result<usize, Failure> {
    let mut spoilt = 0;
    for entry in entries(folder)? {
        if entry.is_dir() {
            spoilt += fail(&entry, dice)?;
        } else if dice.below(4) != 0 {
            spoil(&entry, dice)?;
            spoilt += 1;
        }
    }
    Ok(spoilt)
}

/// Returns the entries sorted by name, so that the seed selects the same ones.
fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>, Failure> {
    let mut entries = Vec::new();
    if folder.exists() {
        for entry in std::fs::read_dir(folder)? {
            entries.push(entry?.path());
        }
    }
    entries.sort();
    Ok(entries)
}

fn spoil(file: &Path, dice: &mut Dice) -> Result<(), Failure> {
    let length = std::fs::metadata(file)?.len();
    let open = || OpenOptions::new().write(true).open(file);
    match dice.below(5) {
        // The directory entry was not flushed.
        0 => std::fs::remove_file(file)?,
        // The length was not flushed.
        1 => open()?.set_len(0)?,
        2 => open()?.set_len(length / 2)?,
        // The length was flushed, and a page was not.
        3 => open()?.write_all_at(&[0; 4096], length / 2)?,
        // One bit is flipped.
        _ => {
            let mut bytes = std::fs::read(file)?;
            if let Some(byte) = bytes.get_mut(length as usize / 2) {
                *byte ^= 1;
            }
            std::fs::write(file, bytes)?;
        }
    }
    Ok(())
}
