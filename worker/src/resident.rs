//! Resident memory and processor time of a worker process, from `/proc/{pid}/status` and `/proc/{pid}/stat`.

use std::{fs::File, os::unix::fs::FileExt, time::Duration};

/// The whole file is about 1.4 KB.
const STATUS_BYTES: usize = 4096;
/// The unit of processor time in `/proc` (`USER_HZ` is 100 on every architecture that workers run on).
const TICK_MS: u64 = 10;

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

/// `/proc/{pid}/stat`, opened while the process is young, as [`Resident`] is.
#[derive(Debug)]
pub struct ProcessorTime(Option<File>);

impl ProcessorTime {
    pub(crate) fn of(process: u32) -> Self {
        Self(File::open(format!("/proc/{process}/stat")).ok())
    }

    /// Returns the time that it has used; `None` where the kernel does not report it, and after the process has ended.
    pub fn used(&self) -> Option<Duration> {
        let mut stat = [0; STATUS_BYTES];
        let length = self.0.as_ref()?.read_at(&mut stat, 0).ok()?;
        let ticks = processor_ticks(&String::from_utf8_lossy(&stat[..length]))?;
        Some(Duration::from_millis(ticks.saturating_mul(TICK_MS)))
    }
}

/// proc_pid_stat(5): `utime` and `stime`, fields 14 and 15; the name before them may hold anything.
fn processor_ticks(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
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
    fn processor_time_is_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 55 66 0 0 20 0";
        assert_eq!(processor_ticks(stat), Some(121));
        assert_eq!(processor_ticks("7 (a) S 1"), None);
        assert!(ProcessorTime::of(std::process::id()).used().is_some());
        assert_eq!(ProcessorTime::of(u32::MAX).used(), None);
    }

    #[test]
    fn this_process_holds_something_and_no_process_holds_nothing() {
        assert!(Resident::of(std::process::id()).bytes().unwrap() > 100_000);
        assert_eq!(Resident::of(u32::MAX).bytes(), None);
    }
}
