//! `sluice` with a sub-command, as an operator runs it, with or without a running service.

use std::{
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use tempfile::NamedTempFile;
use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
    time::timeout,
};

use super::{Failure, eventually, server::database_of};

/// Longer than any of them takes in a debug build on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// A call that has not run yet.
#[derive(Debug)]
pub struct Call {
    command: Command,
    input: String,
}

/// Outcome of a call.
#[derive(Debug)]
pub struct Outcome {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A call that runs on; it is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    _process: Child,
    stdout: NamedTempFile,
    stderr: NamedTempFile,
}

/// `sluice` with these arguments and none of this machine's settings.
pub fn sluice(arguments: &[&str]) -> Call {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let inherited = std::env::vars().map(|(name, _)| name);
    for name in inherited.filter(|name| name.starts_with("SLUICE_")) {
        command.env_remove(name);
    }
    command.args(arguments);
    // A service that starts although it should not takes no port that another needs.
    for name in [
        "HTTP__LISTEN",
        "RTMP__LISTEN",
        "RTMP__TLS_LISTEN",
        "WEBRTC__LISTEN",
        "WEBRTC__TCP_LISTEN",
    ] {
        command.env(format!("SLUICE_{name}"), "127.0.0.1:0");
    }
    Call {
        command,
        input: String::new(),
    }
}

/// Runs any program to its end, given what is typed into it; fails when that does not come in time.
pub async fn run(
    command: &mut Command,
    input: &[u8],
    deadline: Duration,
) -> Result<Output, Failure> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdin = child.stdin.take().expect("piped above");
    // A command that reads nothing may have ended already.
    let _ = stdin.write_all(input).await;
    drop(stdin);
    let output = timeout(deadline, child.wait_with_output()).await;
    Ok(output.map_err(|_| format!("{command:?} runs on after {deadline:?}"))??)
}

impl Call {
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn data_dir(mut self, path: &Path) -> Self {
        self.command.envs(database_of(path));
        let path = path.display().to_string();
        self.env("SLUICE_STORE__DATA_DIR", &path)
    }

    /// Sets its standard input.
    pub fn input(mut self, text: &str) -> Self {
        text.clone_into(&mut self.input);
        self
    }

    /// For anyone who talks to it.
    pub fn into_command(self) -> Command {
        self.command
    }

    /// Runs to its end; fails when that does not come in time.
    pub async fn run(mut self) -> Result<Outcome, Failure> {
        let output = run(&mut self.command, self.input.as_bytes(), DEADLINE).await?;
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

    /// Starts it and lets it run.
    pub fn start(mut self) -> Result<Running, Failure> {
        let (stdout, stderr) = (NamedTempFile::new()?, NamedTempFile::new()?);
        let process = self
            .command
            .stdin(Stdio::null())
            .stdout(stdout.reopen()?)
            .stderr(stderr.reopen()?)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Running {
            _process: process,
            stdout,
            stderr,
        })
    }
}

impl Running {
    /// Waits until standard output holds `words`; all of it.
    pub async fn wait_for(&self, words: &str) -> Result<String, Failure> {
        let said = eventually(words, DEADLINE, async || {
            Some(self.stdout()).filter(|said| said.contains(words))
        });
        said.await
            .map_err(|late| format!("{late}: {}{}", self.stdout(), self.stderr()).into())
    }

    pub fn stdout(&self) -> String {
        text(&self.stdout)
    }

    pub fn stderr(&self) -> String {
        text(&self.stderr)
    }
}

fn text(file: &NamedTempFile) -> String {
    String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned()
}
