//! Disks that are soon full, or read-only.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};

use tokio::process::Command;

use super::Failure;

/// A small file system in memory; unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where this user may not mount.
    pub async fn mount(folder: PathBuf, mebibytes: u32) -> Result<Option<Self>, Failure> {
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new("mount");
        let size = format!("size={mebibytes}m");
        command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]);
        let Ok(output) = command.arg(&folder).output().await else {
            return Ok(None);
        };
        Ok(output.status.success().then_some(Self(folder)))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Takes all the space that is left, with a file to be deleted.
    pub fn fill(&self) -> Result<PathBuf, Failure> {
        let path = self.0.join("ballast");
        let mut file = File::create(&path)?;
        while file.write_all(&[0; 4096]).is_ok() {}
        Ok(path)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A lazy unmount, since the service may still have files open.
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .status();
    }
}

/// A folder that has become read-only for anyone who opens a file in it; what is open already can still be written.
/// Writable again when dropped.
#[derive(Debug)]
pub struct ReadOnly(PathBuf);

impl ReadOnly {
    /// `None` where this user may not mount.
    pub async fn mount(folder: &Path) -> Result<Option<Self>, Failure> {
        let mount = async |options: &[&str]| {
            let output = Command::new("mount")
                .args(options)
                .arg(folder)
                .output()
                .await;
            output.is_ok_and(|output| output.status.success())
        };
        let source = folder.to_str().ok_or("a path that is no text")?;
        if !mount(&["--bind", source]).await {
            return Ok(None);
        }
        let mounted = Self(folder.to_owned());
        Ok(mount(&["-o", "remount,bind,ro"]).await.then_some(mounted))
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .status();
    }
}
