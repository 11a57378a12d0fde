//! End of a worker process: exit status, signal, exceeded limit (memory, processor time, file size), last output on
//! standard error.

use std::{
    fmt, io,
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    process::ExitStatus,
};

use rustix::{
    io::{Errno, read},
    pipe::{PipeFlags, pipe_with},
    process::Signal,
};

/// Bytes of the output that are kept: its end matters.
const KEPT: usize = 2048;
const CHUNK: usize = 4096;
/// Chunks that are read at a look, twice what a pipe holds: a process that prints without end is not listened to for ever.
const CHUNKS: usize = 32;
/// Messages of allocators before they abort: Rust's, GLib's, the C++ library's.
const OUT_OF_MEMORY: [&str; 4] = [
    "memory allocation of",
    "failed to allocate",
    "std::bad_alloc",
    "out of memory",
];

/// A limit that the kernel keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Processor,
    FileSize,
    Memory,
}

/// End of a process.
#[derive(Debug)]
pub(crate) struct End {
    /// `None` when it could not be waited for.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) printed: String,
}

impl End {
    /// The limit that ended it, if one did.
    pub(crate) fn limit(&self) -> Option<Limit> {
        let signal = self.status?.signal().and_then(Signal::from_named_raw);
        let ran_out = || {
            OUT_OF_MEMORY
                .iter()
                .any(|words| self.printed.contains(words))
        };
        match signal? {
            Signal::XCPU => Some(Limit::Processor),
            Signal::XFSZ => Some(Limit::FileSize),
            Signal::ABORT | Signal::TRAP if ran_out() => Some(Limit::Memory),
            _ => None,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status}")?,
            None => f.write_str("its end was not seen")?,
        }
        match self.printed.trim() {
            "" => Ok(()),
            printed => write!(f, ", after printing {printed:?}"),
        }
    }
}

/// The last lines of a worker's standard error. Nothing of it gets into a log by itself: libraries print for every odd
/// file. Anyone who prints more than fits between two looks loses it, and never waits.
#[derive(Debug)]
pub(crate) struct StderrTail {
    pipe: OwnedFd,
    kept: Vec<u8>,
}

impl StderrTail {
    /// The second is the worker's end.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let (pipe, printing) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let kept = Vec::new();
        Ok((Self { pipe, kept }, printing))
    }

    /// Empties the pipe and forgets what was in it.
    pub(crate) fn forget(&mut self) {
        self.drain();
        self.kept.clear();
    }

    /// Returns the output since [`forget`](Self::forget), at most its last 2 KiB.
    pub(crate) fn take(&mut self) -> String {
        self.drain();
        String::from_utf8_lossy(&std::mem::take(&mut self.kept)).into_owned()
    }

    fn drain(&mut self) {
        let mut chunk = [0; CHUNK];
        for _ in 0..CHUNKS {
            match read(&self.pipe, &mut chunk) {
                Ok(0) | Err(Errno::AGAIN) => return,
                Ok(length) => self.keep(&chunk[..length]),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn keep(&mut self, printed: &[u8]) {
        self.kept.extend_from_slice(printed);
        let surplus = self.kept.len().saturating_sub(KEPT);
        self.kept.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use rustix::{io::write, pipe::fcntl_setpipe_size};

    use super::*;

    #[test]
    fn only_limits_explain_an_end() {
        let glib = "GLib-ERROR **: ../gmem.c:106: failed to allocate 17179869184 bytes";
        for (signal, printed, limit) in [
            (Signal::XCPU, "", Some(Limit::Processor)),
            (Signal::XFSZ, "", Some(Limit::FileSize)),
            (Signal::TRAP, glib, Some(Limit::Memory)),
            (
                Signal::ABORT,
                "memory allocation of 9 bytes failed",
                Some(Limit::Memory),
            ),
            (Signal::ABORT, "free(): invalid pointer", None),
            (Signal::SEGV, "out of memory", None),
            (Signal::KILL, "", None),
        ] {
            let end = End {
                status: Some(ExitStatus::from_raw(signal.as_raw())),
                printed: printed.to_owned(),
            };
            assert_eq!(end.limit(), limit, "{end}");
        }
        let exited = End {
            status: Some(ExitStatus::from_raw(256)),
            printed: "out of memory".into(),
        };
        assert_eq!(exited.limit(), None);
    }

    #[test]
    fn a_noisy_library_is_cut_short_and_never_waits() {
        let (mut stderr_tail, printing) = StderrTail::new().unwrap();
        let noise = [b'x'; 3000];
        while write(&printing, &noise).is_ok() {}
        stderr_tail.forget();
        assert_eq!(stderr_tail.take(), "");
        write(&printing, &noise).unwrap();
        write(&printing, b"the last words").unwrap();
        let kept = stderr_tail.take();
        assert_eq!(kept.len(), KEPT);
        assert!(kept.ends_with("xthe last words"));
    }
    #[test]
    fn a_look_ends_although_there_is_more() {
        let (mut stderr_tail, printing) = StderrTail::new().unwrap();
        fcntl_setpipe_size(&printing, 4 * CHUNK * CHUNKS).unwrap();
        while write(&printing, &[b'x'; CHUNK]).is_ok() {}
        stderr_tail.forget();
        assert_eq!(stderr_tail.take().len(), KEPT);
    }
}
