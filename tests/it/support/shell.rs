//! A shell into which the commands of a document are pasted.

use std::{path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use super::{Failure, media::target_folder};

/// A shell in a folder of its own and all that it started, which ends with this.
pub struct Shell {
    process: Child,
    group: Pid,
    folder: TempDir,
}

impl Shell {
    /// Stops at the first command that fails.
    pub fn start(script: &str, environment: &[(&str, &str)]) -> Result<Self, Failure> {
        Self::start_beside(&[], script, environment)
    }

    /// The same with these files, by name, in its folder.
    pub fn start_beside(
        files: &[(&str, &[u8])],
        script: &str,
        environment: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let scratch = target_folder().join("tmp");
        std::fs::create_dir_all(&scratch)?;
        let folder = TempDir::with_prefix_in("shell-", scratch)?;
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), bytes)?;
        }
        let output = std::fs::File::create(folder.path().join("output"))?;
        let process = Command::new("sh")
            .args(["-e", "-c", script])
            .envs(environment.iter().copied())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        let id = process.id().ok_or("it has ended already")?;
        Ok(Self {
            group: Pid::from_raw(id.cast_signed()).ok_or("no process id")?,
            process,
            folder,
        })
    }

    /// Waits for its end, which must be a success; its background processes continue. Returns all output.
    pub async fn succeed(&mut self, deadline: Duration) -> Result<String, Failure> {
        let ended = timeout(deadline, self.process.wait()).await;
        let said = self.read("output");
        let Ok(status) = ended else {
            return Err(format!("the commands still run after {deadline:?}: {said}").into());
        };
        match status?.success() {
            true => Ok(said),
            false => Err(format!("a command failed: {said}").into()),
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file of its folder as text, `output` for what was said; empty when it is not there.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // All of them may have ended.
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}
