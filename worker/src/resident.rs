//! Resident memory of a worker process, from `/proc/{pid}/status`.

use std::{fs::File, os::unix::fs::FileExt};

/// The whole file is about 1.4 KB.
const STATUS_BYTES: usize = 4096;

/// `/proc/{pid}/status`, opened while the process is young: afterwards it hides itself, and with `hidepid` all of its folder.
#[derive(Debug)]
pub(crate) struct Resident(Option<File>);

impl Resident {
    pub(crate) fn of(process: u32) -> Self {
        Self(File::open(format!("/proc/{process}/status")).ok())
    }

    /// Returns the bytes; `None` where the kernel does not report them, and after the process has ended.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let mut status = [0; STATUS_BYTES];
        let length = self.0.as_ref()?.read_at(&mut status, 0).ok()?;
        resident_bytes(&String::from_utf8_lossy(&status[..length]))
    }
}

/// proc_pid_status(5): `VmRSS` in KiB.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_has_no_such_line() {
        assert_eq!(
            resident_bytes("Name:\tx\nVmRSS:\t    1234 kB\n"),
            Some(1_263_616)
        );
        for odd in ["", "Name:\tx\nState:\tZ\n", "VmRSS:\tmuch kB\n"] {
            assert_eq!(resident_bytes(odd), None, "{odd}");
        }
    }

    #[test]
    fn this_process_holds_something_and_no_process_holds_nothing() {
        assert!(Resident::of(std::process::id()).bytes().unwrap() > 100_000);
        assert_eq!(Resident::of(u32::MAX).bytes(), None);
    }
}
