//! Kernel limits of a worker (rlimits): address space, processor time, file size, descriptors, threads.

use std::io;

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};

/// Descriptors of a worker: those of the largest job, and what codecs open beside them.
pub const DESCRIPTORS: u64 = 320;
/// Threads and processes of this user, all workers (and, without root, the service) together. Seccomp refuses new
/// processes; this bounds what threads could do.
const TASKS: u64 = 4096;

/// Limits of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Address space.
    pub memory_bytes: u64,
    /// Size of a file that it writes.
    pub file_bytes: u64,
    /// Descriptors that are open.
    pub descriptors: u64,
}

/// Lowers all limits but that of processor time, which [`allow_processor`] moves from job to job.
pub fn lower(bounds: Bounds) -> io::Result<()> {
    for (resource, most) in [
        (Resource::As, bounds.memory_bytes),
        (Resource::Fsize, bounds.file_bytes),
        (Resource::Nofile, bounds.descriptors),
        (Resource::Nproc, TASKS),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Core, 0),
    ] {
        // Where the machine allows less already, that stays.
        let most = getrlimit(resource)
            .maximum
            .map_or(most, |allowed| allowed.min(most));
        setrlimit(
            resource,
            Rlimit {
                current: Some(most),
                maximum: Some(most),
            },
        )?;
    }
    Ok(())
}

/// Lets this process use `seconds` more of processor time; then SIGXCPU ends it.
pub fn allow_processor(seconds: u32) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let used_seconds = u64::try_from(used.tv_sec).unwrap_or(0) + 1;
    let maximum = getrlimit(Resource::Cpu).maximum;
    setrlimit(
        Resource::Cpu,
        Rlimit {
            current: Some(used_seconds + u64::from(seconds)),
            maximum,
        },
    )?;
    Ok(())
}
