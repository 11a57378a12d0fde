//! Programs of the scenarios: where they are, their ports, start with a log, signals, end.

use std::{
    fs::OpenOptions,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use sluice_testkit::process::free_port;

use super::Failure;

/// Longest time for the end of a process that was asked to end.
const END_DEADLINE: Duration = Duration::from_secs(50);
/// Pause between two looks whether it has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A process that ends when this is dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
}

impl Process {
    /// Starts the command with its output at the end of `log`.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self, Failure> {
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .map_err(|cause| format!("{name} does not start: {cause}"))?;
        Ok(Self {
            name: name.to_owned(),
            child,
        })
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?).ok_or("no process id")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Sends a signal and waits for the end; returns whether that was a success. Kills it when it takes too long.
    pub fn end(mut self, signal: Signal) -> Result<bool, Failure> {
        self.signal(signal)?;
        let began = Instant::now();
        while began.elapsed() < END_DEADLINE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.success());
            }
            thread::sleep(LOOK_AGAIN);
        }
        Err(format!("{} runs {END_DEADLINE:?} after {signal:?}", self.name).into())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Each fails only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a loopback address with a [`free_port`].
pub fn free_address() -> Result<SocketAddr, Failure> {
    Ok(([127, 0, 0, 1], free_port()?).into())
}

/// Returns a program of `target/tools` or of the machine; an error names what installs it.
pub fn program(name: &str, in_tools: &str) -> Result<PathBuf, Failure> {
    let unpacked = root().join("target/tools").join(in_tools);
    if unpacked.exists() {
        return Ok(unpacked);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.find_map(|folder| Some(folder.join(name)).filter(|it| it.is_file()));
    found.ok_or_else(|| format!("{name} is missing: scripts/install.sh test").into())
}

/// Returns the folder of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Shows the end of a log, which the test harness prints for a scenario that failed.
pub fn show_end(name: &str, log: &Path) {
    const SHOWN_BYTES: usize = 8 * 1024;
    let log = std::fs::read(log).unwrap_or_default();
    let end = &log[log.len().saturating_sub(SHOWN_BYTES)..];
    eprintln!("--- {name}:\n{}---", String::from_utf8_lossy(end));
}
