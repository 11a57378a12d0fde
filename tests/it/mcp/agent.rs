//! The official clients, as programs of their own (`tests/mcp`): each does the steps of a task and reports the results.

use std::{path::PathBuf, process::Stdio, time::Duration};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

use crate::support::{Failure, media::target_folder, skip};

/// Starting an interpreter on a busy machine, and a workflow.
const DEADLINE: Duration = Duration::from_secs(120);

/// A client of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// The Python library, which asks for 2026-07-28 first.
    Python,
    /// The Python library with the handshake of earlier revisions.
    PythonWithHandshake,
    TypeScript,
}

impl Agent {
    pub const ALL: [Self; 3] = [Self::Python, Self::PythonWithHandshake, Self::TypeScript];

    /// Runs the task; `None` when the client is not installed on a machine where tests may be skipped.
    pub async fn perform(self, mut task: Value) -> Result<Option<Value>, Failure> {
        let (command, needs) = self.program();
        if !is_there(&needs, &format!("{self:?} as an agent"))? {
            return Ok(None);
        }
        if self == Self::PythonWithHandshake {
            task["mode"] = "legacy".into();
        }
        let folder = TempDir::with_prefix("sluice-agent-")?;
        let written = folder.path().join("task.json");
        std::fs::write(&written, task.to_string())?;
        let said = output(command, |command| command.arg(&written)).await?;
        Ok(Some(serde_json::from_str(&said)?))
    }

    /// The program, and what must be there for it.
    fn program(self) -> (Command, PathBuf) {
        match self {
            Self::Python | Self::PythonWithHandshake => {
                let library = target_folder().join("tools/mcp");
                let mut command = Command::new("python3");
                command
                    .arg(folder().join("client.py"))
                    .env("PYTHONPATH", &library)
                    // No `__pycache__` is written into the sources.
                    .env("PYTHONDONTWRITEBYTECODE", "1");
                (command, library.join("complete"))
            }
            Self::TypeScript => {
                let mut command = Command::new("node");
                command.arg(folder().join("client.mjs"));
                (command, node_modules().join("sdk"))
            }
        }
    }
}

/// Returns the folder of the clients.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/mcp")
}

/// Returns the folder of their npm packages.
pub fn node_modules() -> PathBuf {
    folder().join("node_modules/@modelcontextprotocol")
}

/// Returns whether the needed program is installed; prints that the scenario is left out when not. A failure where
/// nothing may be left out.
pub fn is_there(needed: &std::path::Path, scenario: &str) -> Result<bool, Failure> {
    if needed.exists() {
        return Ok(true);
    }
    let reason = format!("no {} (`make test` installs it)", needed.display());
    if std::env::var_os("CI").is_some() {
        return Err(reason.into());
    }
    skip(scenario, &reason);
    Ok(false)
}

/// Returns the output of a program that succeeded.
pub async fn output(
    mut command: Command,
    adjust: impl FnOnce(&mut Command) -> &mut Command,
) -> Result<String, Failure> {
    adjust(&mut command).stdin(Stdio::null()).kill_on_drop(true);
    let ended = timeout(DEADLINE, command.output()).await??;
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    match ended.status.success() {
        true => Ok(said),
        false => Err(format!("{said}{}", String::from_utf8_lossy(&ended.stderr)).into()),
    }
}
