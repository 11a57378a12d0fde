//! `sluice doctor` on the data folder: writable, mode, lock holder, free space (`store.min_free`).

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use bytesize::ByteSize;
use rustix::fs::{major, minor};
use sluice_store::StoreSettings;

use super::finding::Finding;

/// Free bytes below which the database itself may fail, whatever `store.min_free` is.
const LEAST_FREE_BYTES: u64 = 256 << 20;
/// The name of the file that the store locks in its folder.
const LOCK: &str = "lock";
/// File that is written for a moment to see whether the folder can be written.
const PROBE: &str = ".sluice-doctor";

pub(super) fn check(settings: &StoreSettings, holder: Option<u32>) -> Vec<Finding> {
    let data_dir = &settings.data_dir;
    let existing = data_dir
        .ancestors()
        .find(|folder| folder.exists())
        .unwrap_or(Path::new("."));
    let existing = if existing.as_os_str().is_empty() {
        Path::new(".")
    } else {
        existing
    };
    vec![
        judge_folder(
            data_dir,
            data_dir.exists(),
            try_write(existing),
            mode(data_dir),
        ),
        judge_holder(holder),
        free_space(settings, existing),
    ]
}

/// The process that has the folder's lock, as the kernel lists it: asking for the lock could take it from a service
/// that starts at this moment.
pub(super) fn lock_holder(data_dir: &Path) -> Option<u32> {
    let file = fs::metadata(data_dir.join(LOCK)).ok()?;
    holder_of(
        &fs::read_to_string("/proc/locks").ok()?,
        file.dev(),
        file.ino(),
    )
}

/// Finds an exclusive flock in the text of /proc/locks (proc(5)): `1: FLOCK ADVISORY WRITE 712 fe:00:1234 0 EOF`. Other
/// file systems may have a file of the same number. Some, such as Btrfs, name another device there than in stat(2): without
/// an equal device the number alone counts.
fn holder_of(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let device = format!("{:02x}:{:02x}", major(device), minor(device));
    let holders = locks.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let kind = (fields.next()?, fields.next()?, fields.next()?);
        let process: u32 = fields.next()?.parse().ok()?;
        let (of, number) = fields.next()?.rsplit_once(':')?;
        let is_holder =
            kind == ("FLOCK", "ADVISORY", "WRITE") && number.parse::<u64>().ok()? == inode;
        is_holder.then_some((of == device, process))
    });
    let holders: Vec<_> = holders.collect();
    let same_device = holders.iter().find(|(is_same, _)| *is_same);
    same_device.or(holders.first()).map(|(_, process)| *process)
}

fn judge_holder(holder: Option<u32>) -> Finding {
    match holder {
        Some(process) => Finding::ok(
            "lock",
            format!("process {process} uses the data folder: the service is running"),
        ),
        None => Finding::ok(
            "lock",
            "no one uses the data folder: the service is not running",
        ),
    }
}

fn mode(data_dir: &Path) -> Option<u32> {
    Some(fs::metadata(data_dir).ok()?.permissions().mode())
}

fn try_write(folder: &Path) -> io::Result<()> {
    let probe = folder.join(PROBE);
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&probe)?;
    fs::remove_file(probe)
}

fn judge_folder(
    data_dir: &Path,
    exists: bool,
    written: io::Result<()>,
    mode: Option<u32>,
) -> Finding {
    const CHECK: &str = "data folder";
    let shown = data_dir.display();
    match written {
        Err(error) => Finding::fail(
            CHECK,
            format!("{shown} cannot be written: {error}"),
            "give it to the user that runs the service (chown), or choose another one with store.data_dir",
        ),
        Ok(()) if !exists => Finding::ok(
            CHECK,
            format!("{shown} does not exist yet; the first start makes it"),
        ),
        Ok(()) if mode.is_some_and(|mode| mode & 0o007 != 0) => Finding::warn(
            CHECK,
            format!("{shown} is open to every user of this machine"),
            format!("chmod 700 {shown}"),
        ),
        Ok(()) => Finding::ok(CHECK, format!("{shown} can be written")),
    }
}

fn free_space(settings: &StoreSettings, folder: &Path) -> Finding {
    let Ok(disk) = rustix::fs::statvfs(folder) else {
        return Finding::warn(
            "disk",
            "its free space cannot be measured",
            "look at it with df",
        );
    };
    let total_bytes = disk.f_blocks * disk.f_frsize;
    // Settings that were loaded have been checked.
    let min_free_bytes = settings.min_free_bytes(total_bytes).unwrap_or_default();
    judge_space(disk.f_bavail * disk.f_frsize, total_bytes, min_free_bytes)
}

fn judge_space(free_bytes: u64, total_bytes: u64, min_free_bytes: u64) -> Finding {
    const CHECK: &str = "disk";
    let found = format!("{} free of {}", ByteSize(free_bytes), ByteSize(total_bytes));
    if free_bytes < LEAST_FREE_BYTES {
        Finding::fail(
            CHECK,
            found,
            "free some space: live windows and the database need it",
        )
    } else if free_bytes < min_free_bytes {
        Finding::warn(
            CHECK,
            format!(
                "{found}, below store.min_free ({})",
                ByteSize(min_free_bytes)
            ),
            "free some space, or lower store.min_free",
        )
    } else {
        Finding::ok(CHECK, found)
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::makedev;

    use super::{super::finding::Level, *};

    #[test]
    fn the_holder_is_the_process_with_the_exclusive_flock() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 fe:00:77 0 EOF\n\
                     2: FLOCK  ADVISORY  READ 12 fe:00:77 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 13 fe:00:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 14 fe:00:78 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 15 00:2f:77 0 EOF\n\
                     5: FLOCK  ADVISORY  WRITE 16 00:30:77 0 EOF\n\
                     garbage\n";
        let holder = |device, inode| holder_of(locks, makedev(0, device), inode);
        assert_eq!(holder(0x2f, 77), Some(15));
        assert_eq!(holder(0x30, 77), Some(16));
        assert_eq!(holder(0x31, 77), Some(15));
        assert_eq!(holder(0x2f, 79), None);
        assert_eq!(holder_of("", 0, 77), None);
    }

    #[test]
    fn space_is_judged_by_the_setting_and_by_a_floor() {
        const GB: u64 = 1_000_000_000;
        for (free, min_free, level) in [
            (0, 0, Level::Fail),
            (GB / 10, 0, Level::Fail),
            (GB, 5 * GB, Level::Warn),
            (5 * GB, 5 * GB, Level::Ok),
            (GB, 0, Level::Ok),
        ] {
            assert_eq!(
                judge_space(free, 100 * GB, min_free).level,
                level,
                "{free} of {min_free}"
            );
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_fails_and_an_open_one_warns() {
        let rejected = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
        for (exists, written, mode, level) in [
            (true, rejected(), Some(0o40700), Level::Fail),
            (false, rejected(), None, Level::Fail),
            (false, Ok(()), None, Level::Ok),
            (true, Ok(()), Some(0o40755), Level::Warn),
            (true, Ok(()), Some(0o40750), Level::Ok),
        ] {
            assert_eq!(
                judge_folder(Path::new("data"), exists, written, mode).level,
                level,
                "{exists} {mode:?}"
            );
        }
    }
}
