//! Memory of the machine, or the limit of the service's control group (cgroup `memory.max`), from which
//! `av_workers.memory_total` is derived.

use std::{fs, path::Path};

use rustix::system::sysinfo;

const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Returns it in bytes. A bound of a group above the service's own is not seen.
pub(super) fn memory_bytes() -> u64 {
    let machine = sysinfo();
    let whole = machine.totalram.saturating_mul(u64::from(machine.mem_unit));
    own_bound().map_or(whole, |bound| bound.min(whole))
}

/// Reads `memory.max` of the service's control group (version 2).
fn own_bound() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let folder = Path::new(CONTROL_GROUPS).join(unified(&groups)?);
    bound(&fs::read_to_string(folder.join("memory.max")).ok()?)
}

/// Returns the path below the mount point of the one hierarchy of version 2 (cgroups(7)).
fn unified(groups: &str) -> Option<&str> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(path.trim_start_matches('/'))
}

fn bound(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_version_2_is_found_and_may_have_no_bound() {
        for (groups, expected) in [
            ("", None),
            ("12:cpu,cpuacct:/user.slice\n", None),
            ("0::/\n", Some("")),
            (
                "1:name=systemd:/a\n0::/system.slice/sluice.service\n",
                Some("system.slice/sluice.service"),
            ),
        ] {
            assert_eq!(unified(groups), expected, "{groups:?}");
        }
        assert_eq!(bound("max\n"), None);
        assert_eq!(bound("2147483648\n"), Some(2_147_483_648));
        assert!(memory_bytes() > 0);
    }
}
