//! Writes ZIP archives of results: stored entries without compression, zip64, names that differ (`name (2).jpg`).
//!
//! Entries are copied as they are, on the blocking pool, in constant memory.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sluice_store::Error;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// Bytes from which on an entry needs zip64 fields; the writer has to know beforehand.
const LARGE: u64 = u32::MAX as u64;
/// Bytes copied at a time.
const PIECE: usize = 256 * 1024;

/// Copies files into a stored archive (APPNOTE 4.4.5, method 0) under names that differ.
pub(super) async fn pack(output: File, files: Vec<(File, String)>) -> Result<(), Error> {
    let mut names = HashSet::new();
    let entries = files
        .into_iter()
        .map(|(file, name)| (file, distinct(&name, &mut names)))
        .collect();
    let abandoned = Abandoned::default();
    let flag = abandoned.0.clone();
    let written = tokio::task::spawn_blocking(move || write(output, entries, &flag)).await;
    drop(abandoned);
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if error.kind() == io::ErrorKind::StorageFull => Err(Error::Full),
        Ok(Err(source)) => Err(Error::File {
            action: "cannot write an archive in",
            path: "the scratch folder".into(),
            source,
        }),
        Err(error) => Err(Error::Internal(format!("writing an archive: {error}"))),
    }
}

/// Stops the blocking work when no one waits for the archive any more.
#[derive(Default)]
struct Abandoned(Arc<AtomicBool>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn write(output: File, entries: Vec<(File, String)>, abandoned: &AtomicBool) -> io::Result<()> {
    let mut archive = ZipWriter::new(output);
    let mut piece = vec![0; PIECE];
    for (mut file, name) in entries {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(file.metadata()?.len() >= LARGE);
        archive.start_file(name, options)?;
        loop {
            if abandoned.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            match file.read(&mut piece)? {
                0 => break,
                count => archive.write_all(&piece[..count])?,
            }
        }
    }
    archive.finish()?;
    Ok(())
}

/// Returns the name, with " (2)" and so on before the extension when an entry has it already. Names compare without case,
/// since many file systems do.
fn distinct(name: &str, taken: &mut HashSet<String>) -> String {
    let (stem, extension) = match name.rfind('.') {
        Some(dot) if dot > 0 => name.split_at(dot),
        _ => (name, ""),
    };
    let numbered = (2u64..).map(|number| format!("{stem} ({number}){extension}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|candidate| taken.insert(candidate.to_lowercase()))
        .expect("there are more numbers than names")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_names_are_numbered_before_the_extension() {
        let mut taken = HashSet::new();
        let given = ["a.png", "A.PNG", "a.png", "a (2).png", ".x", ".x", "b", "b"];
        let expected = [
            "a.png",
            "A (2).PNG",
            "a (3).png",
            "a (2) (2).png",
            ".x",
            ".x (2)",
            "b",
            "b (2)",
        ];
        for (name, expected) in given.into_iter().zip(expected) {
            assert_eq!(distinct(name, &mut taken), expected);
        }
    }
}
