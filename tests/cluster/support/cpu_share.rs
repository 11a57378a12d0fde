//! Share of a core for a process and its descendants, by a control group of either version.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use super::Failure;

/// Where version 1 has its groups for processor time, and version 2 all of them.
const FIRST_VERSION: &str = "/sys/fs/cgroup/cpu";
const SECOND_VERSION: &str = "/sys/fs/cgroup";
const PERIOD_US: u32 = 100_000;
/// Enters the group before the program begins.
const ENTER: &str = r#"echo $$ >"$0" && exec "$@""#;

/// The group; it is removed when this is dropped, after its processes have ended.
pub struct CpuShare {
    folder: PathBuf,
}

impl CpuShare {
    /// Fails where this process may make no groups.
    pub fn new(name: &str, percent: u32) -> Result<Self, Failure> {
        let quota_us = PERIOD_US / 100 * percent;
        let is_first_version = Path::new(FIRST_VERSION).is_dir();
        let root = Path::new(match is_first_version {
            true => FIRST_VERSION,
            false => SECOND_VERSION,
        });
        let folder = root.join(format!("sluice-cluster-{}-{name}", std::process::id()));
        std::fs::create_dir(&folder)?;
        let group = Self { folder };
        match is_first_version {
            true => group.write("cpu.cfs_quota_us", &quota_us.to_string())?,
            false => group.write("cpu.max", &format!("{quota_us} {PERIOD_US}"))?,
        }
        Ok(group)
    }

    /// Returns the command that runs another one in the group.
    pub fn of(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        inside
            .args(["-c", ENTER])
            .arg(self.folder.join("cgroup.procs"))
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        let path = self.folder.join(file);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()).into())
    }
}

impl Drop for CpuShare {
    fn drop(&mut self) {
        // Workers end a moment after the service that was killed.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}
