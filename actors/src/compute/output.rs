//! Output files of a worker: memory files or files of the caller, sealed, bounded (`image_workers.max_output`) and read
//! back.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::FileExt,
    },
};

use bytes::Bytes;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use sluice_media::task::{Failure, FailureCode, Task};

use super::assignment::Output;

/// Returns the number of results that a task has.
pub(crate) fn count(task: &Task) -> usize {
    match task {
        Task::Inspect { .. } | Task::ListArchive => 0,
        Task::Render(_)
        | Task::Vectorize { .. }
        | Task::ImagesToPdf { .. }
        | Task::ExtractMember { .. }
        | Task::Placeholder { .. } => 1,
        Task::Av(task) => task.outputs(),
    }
}

/// Target of an attempt's output.
#[derive(Debug)]
pub(super) enum Target<'a> {
    Memory(Vec<File>),
    Files(&'a [File]),
}

impl<'a> Target<'a> {
    /// Makes the target of an attempt; memory is fresh for each.
    pub(super) fn of(output: &'a Output, task: &Task) -> Result<Self, Failure> {
        let expected = count(task);
        match output {
            Output::Memory => (0..expected)
                .map(|_| memory())
                .collect::<io::Result<_>>()
                .map(Self::Memory)
                .map_err(|error| Failure::internal(format!("no memory for a result: {error}"))),
            Output::Files(files) if files.len() == expected => Ok(Self::Files(files)),
            Output::Files(files) => Err(Failure::internal(format!(
                "{} files for {expected} results",
                files.len()
            ))),
        }
    }

    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let files = match self {
            Self::Memory(files) => files,
            Self::Files(files) => *files,
        };
        files.iter().map(AsFd::as_fd).collect()
    }

    /// Returns the content of memory files; at most `max_bytes` of each are taken.
    pub(super) fn collect(self, max_bytes: u64) -> Result<Vec<Bytes>, Failure> {
        match self {
            Self::Files(_) => Ok(Vec::new()),
            Self::Memory(files) => files.iter().map(|file| read(file, max_bytes)).collect(),
        }
    }
}

fn memory() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    Ok(File::from(memfd_create("result", flags)?))
}

/// Reads a result. The file is sealed first: the worker has a descriptor too, and the content must neither change nor grow
/// any more. It is emptied at the end, since a descriptor that a worker keeps would keep the memory.
fn read(file: &File, max_bytes: u64) -> Result<Bytes, Failure> {
    let seals = SealFlags::SEAL | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(file, seals).map_err(|error| unreadable(error.into()))?;
    let bytes = content(file, max_bytes);
    file.set_len(0).map_err(unreadable)?;
    bytes
}

/// Reads the whole content. The worker chose the length; one that shortens the file meanwhile makes the read fail.
fn content(file: &File, max_bytes: u64) -> Result<Bytes, Failure> {
    let length = file.metadata().map_err(unreadable)?.len();
    if length > max_bytes {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the result has {length} bytes, at most {max_bytes} are allowed (image_workers.max_output)"
            ),
        ));
    }
    let length = usize::try_from(length)
        .map_err(|_| Failure::internal("a result is larger than this machine can address"))?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, 0).map_err(unreadable)?;
    Ok(bytes.into())
}

fn unreadable(error: io::Error) -> Failure {
    Failure::internal(format!("a result cannot be read back: {error}"))
}

#[cfg(test)]
mod tests {
    use sluice_media::format::Format;

    use super::*;

    const ONE: Task = Task::ExtractMember { index: 0 };

    #[test]
    fn memory_comes_back_and_a_kept_descriptor_has_nothing() {
        let target = Target::of(&Output::Memory, &ONE).unwrap();
        let Target::Memory(files) = &target else {
            panic!("memory was asked for");
        };
        let worker = files[0].try_clone().unwrap();
        worker.write_all_at(b"result", 0).unwrap();
        assert_eq!(target.collect(6).unwrap(), ["result"]);
        assert_eq!(worker.metadata().unwrap().len(), 0);
        assert!(worker.write_all_at(b"RESULT", 0).is_err());
        assert!(worker.set_len(6).is_err());
    }

    #[test]
    fn more_than_allowed_is_not_read() {
        let target = Target::of(&Output::Memory, &ONE).unwrap();
        let Target::Memory(files) = &target else {
            panic!("memory was asked for");
        };
        files[0].set_len(1 << 40).unwrap();
        assert_eq!(
            target.collect(1 << 30).unwrap_err().code,
            FailureCode::TooLarge
        );
    }

    #[test]
    fn there_are_as_many_files_as_results() {
        let inspect = Task::Inspect {
            format: Format::Jpg,
        };
        let file = || tempfile::tempfile().unwrap();
        for (task, files, fits) in [
            (&ONE, vec![file()], true),
            (&ONE, vec![], false),
            (&inspect, vec![], true),
            (&inspect, vec![file()], false),
        ] {
            let output = Output::Files(files.into());
            assert_eq!(Target::of(&output, task).is_ok(), fits, "{task:?}");
        }
    }
}
