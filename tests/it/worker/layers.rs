//! Each layer of the sandbox alone: what it covers, and what it leaves to the others.

use std::{fs, os::unix::fs::PermissionsExt, process::Output};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::{Failure, skip};

const MEMORY_BYTES: &str = "1073741824";
const FILE_BYTES: &str = "8388608";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Done,
    Refused,
    Killed(Signal),
}
use Came::{Done, Killed, Refused};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_sandbox_everything_goes() -> Result<(), Failure> {
    // Proof that the other tests can fail. `outlive` and the like depend on the user, and are listed there.
    expect(
        "none",
        &[
            ("read", Done),
            ("list", Done),
            ("write", Done),
            ("create", Done),
            ("delete", Done),
            ("rename", Done),
            ("make-folder", Done),
            ("link", Done),
            ("mode", Done),
            ("tcp-connect", Done),
            ("tcp-listen", Done),
            ("udp-send", Done),
            ("unix-listen", Done),
            ("socket-pair", Done),
            ("datagram-pair", Done),
            ("program", Done),
            ("process", Done),
            ("thread", Done),
            ("signal", Done),
            ("signal-by-kernel", Done),
            ("leave-group", Done),
            ("turns-of-group", Done),
            ("outlive", Done),
            ("large-file", Done),
            ("more-files", Done),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_bound_size_time_memory_and_descriptors() -> Result<(), Failure> {
    expect(
        "limits",
        &[
            ("large-file", Killed(Signal::XFSZ)),
            ("time", Killed(Signal::XCPU)),
            ("memory", Killed(Signal::ABORT)),
            ("more-files", Refused),
            ("read", Done),
            ("thread", Done),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn privileges_are_gone() -> Result<(), Failure> {
    expect(
        "privileges",
        &[
            ("root", Refused),
            ("capabilities", Refused),
            ("read", Done),
            ("thread", Done),
        ],
    )
    .await?;
    if !rustix::process::getuid().is_root() {
        skip("privileges_are_gone", "only root has some to lose");
        return Ok(());
    }
    expect("none", &[("root", Done), ("capabilities", Done)]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn landlock_covers_files_tcp_ports_and_signals() -> Result<(), Failure> {
    expect(
        "files",
        &[
            ("read", Refused),
            ("list", Refused),
            ("write", Refused),
            ("create", Refused),
            ("delete", Refused),
            ("rename", Refused),
            ("make-folder", Refused),
            ("link", Refused),
            ("program", Refused),
            ("tcp-connect", Refused),
            ("tcp-listen", Refused),
            ("unix-listen", Refused),
            ("signal", Refused),
            ("read-fonts", Done),
            ("thread", Done),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seccomp_covers_sockets_programs_and_processes() -> Result<(), Failure> {
    expect(
        "calls",
        &[
            ("tcp-connect", Refused),
            ("tcp-listen", Refused),
            ("udp-send", Refused),
            ("unix-connect", Refused),
            ("unix-listen", Refused),
            // Connected to itself alone: GStreamer wakes its threads by it. One of datagrams sends to any address.
            ("socket-pair", Done),
            ("datagram-pair", Refused),
            ("program", Refused),
            ("process", Refused),
            ("signal", Refused),
            ("signal-by-kernel", Refused),
            ("leave-group", Refused),
            ("turns-of-group", Refused),
            ("outlive", Refused),
            ("write", Refused),
            ("create", Refused),
            ("delete", Refused),
            ("rename", Refused),
            ("make-folder", Refused),
            ("link", Refused),
            ("mode", Refused),
            ("root", Refused),
            ("read", Done),
            ("list", Done),
            ("thread", Done),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_layers_together_leave_nothing_but_computing() -> Result<(), Failure> {
    expect(
        "all",
        &[
            ("read", Refused),
            ("list", Refused),
            ("write", Refused),
            ("create", Refused),
            ("delete", Refused),
            ("mode", Refused),
            ("tcp-connect", Refused),
            ("udp-send", Refused),
            ("unix-connect", Refused),
            ("socket-pair", Done),
            ("datagram-pair", Refused),
            ("program", Refused),
            ("process", Refused),
            ("signal", Refused),
            ("signal-by-kernel", Refused),
            ("leave-group", Refused),
            ("turns-of-group", Refused),
            ("outlive", Refused),
            ("root", Refused),
            ("capabilities", Refused),
            ("time", Killed(Signal::XCPU)),
            ("memory", Killed(Signal::ABORT)),
            ("read-fonts", Done),
            ("thread", Done),
        ],
    )
    .await
}

/// A filter for one architecture must not leave the doors of another open.
#[cfg(target_arch = "x86_64")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_other_architectures_are_no_way_around() -> Result<(), Failure> {
    expect("calls", &[("ia32", Killed(Signal::SYS))]).await?;
    // A kernel without x32 says that there is no such call; the filter is asked first.
    let output = attempt_output("calls", "x32").await?;
    let outcome: Value = serde_json::from_slice(&output.stdout)?;
    let error = outcome["error"].as_str().unwrap_or_default();
    assert!(error.contains("not permitted"), "{outcome}");
    Ok(())
}

/// Tries each on its own; all that came otherwise are named at once.
async fn expect(layers: &str, attempts: &[(&str, Came)]) -> Result<(), Failure> {
    let mut odd = Vec::new();
    for (attempt, expected) in attempts {
        let came = attempt_under(layers, attempt).await?;
        if came != *expected {
            odd.push(format!("{attempt}: {came:?}, not {expected:?}"));
        }
    }
    assert!(odd.is_empty(), "with {layers}: {odd:#?}");
    Ok(())
}

async fn attempt_under(layers: &str, attempt: &str) -> Result<Came, Failure> {
    let output = attempt_output(layers, attempt).await?;
    judge(&output).ok_or_else(|| format!("{attempt} under {layers}: {output:?}").into())
}

async fn attempt_output(layers: &str, attempt: &str) -> Result<Output, Failure> {
    let folder = folder_for_all()?;
    Ok(Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["worker", "--prove", layers, "--attempt", attempt])
        .args(["--memory", MEMORY_BYTES, "--file-size", FILE_BYTES])
        .arg("--folder")
        .arg(folder.path())
        .kill_on_drop(true)
        .output()
        .await?)
}

fn judge(output: &Output) -> Option<Came> {
    use std::os::unix::process::ExitStatusExt;
    if let Some(signal) = output.status.signal() {
        return Signal::from_named_raw(signal).map(Killed);
    }
    let outcome: Value = serde_json::from_slice(&output.stdout).ok()?;
    match outcome["done"].as_bool()? {
        true => Some(Done),
        false => Some(Refused),
    }
}

/// Creates a folder in which ordinary permissions allow everything, so that rejections come from the layer.
fn folder_for_all() -> Result<TempDir, Failure> {
    let folder = TempDir::new()?;
    let there = folder.path().join("there");
    fs::write(&there, "a secret")?;
    fs::set_permissions(&there, fs::Permissions::from_mode(0o666))?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777))?;
    Ok(folder)
}
