//! `sluice` with a sub-command, as an operator types it beside the service or without one.

use std::{path::Path, process::Stdio, time::Duration};

use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use super::Failure;

/// Longer than any of them takes in a debug build on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// A call that has not run yet.
#[derive(Debug)]
pub struct Call {
    command: Command,
    input: String,
}

/// What a call ended with.
#[derive(Debug)]
pub struct Outcome {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// `sluice` with these arguments and none of this machine's settings.
pub fn sluice(arguments: &[&str]) -> Call {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let inherited = std::env::vars().map(|(name, _)| name);
    for name in inherited.filter(|name| name.starts_with("SLUICE_")) {
        command.env_remove(name);
    }
    command.args(arguments);
    // A service that starts although it should not takes no port that somebody else needs.
    for name in ["HTTP__LISTEN", "RTMP__LISTEN", "RTMP__TLS_LISTEN"] {
        command.env(format!("SLUICE_{name}"), "127.0.0.1:0");
    }
    Call {
        command,
        input: String::new(),
    }
}

impl Call {
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn data_dir(self, path: &Path) -> Self {
        let path = path.display().to_string();
        self.env("SLUICE_STORE__DATA_DIR", &path)
    }

    /// What is typed into it.
    pub fn input(mut self, text: &str) -> Self {
        text.clone_into(&mut self.input);
        self
    }

    /// Runs to its end; fails when that does not come in time.
    pub async fn run(mut self) -> Result<Outcome, Failure> {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut stdin = child.stdin.take().expect("piped above");
        // A command that reads nothing may have ended already.
        let _ = stdin.write_all(self.input.as_bytes()).await;
        drop(stdin);
        let output = timeout(DEADLINE, child.wait_with_output())
            .await
            .map_err(|_| format!("{:?} runs on after {DEADLINE:?}", self.command))??;
        Ok(Outcome {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// The standard output of a run that must succeed.
    pub async fn succeed(self) -> Result<String, Failure> {
        let outcome = self.run().await?;
        match outcome.code {
            Some(0) => Ok(outcome.stdout),
            _ => Err(format!("{outcome:?}").into()),
        }
    }

    /// The standard error of a run that must end with code 1.
    pub async fn fail(self) -> Result<String, Failure> {
        let outcome = self.run().await?;
        match outcome.code {
            Some(1) => Ok(outcome.stderr),
            _ => Err(format!("{outcome:?}").into()),
        }
    }
}
