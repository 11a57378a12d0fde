//! The gateway's process: sandboxed, replaced when it dies, and ended with the service.

use std::{fs, path::Path, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{
    Failure, encoder::Publish, eventually, media::Recipe, server::Server, viewer::Viewer,
};

const SOON: Duration = Duration::from_secs(15);

/// The process that the service speaks SRT by.
pub(super) fn gateway_of(service: u32) -> Option<u32> {
    let children = format!("/proc/{service}/task");
    fs::read_dir(children).ok()?.flatten().find_map(|task| {
        let children = fs::read_to_string(task.path().join("children")).ok()?;
        children.split_whitespace().find_map(|child| {
            let command = fs::read(Path::new("/proc").join(child).join("cmdline")).ok()?;
            let is_gateway = command
                .split(|byte| *byte == 0)
                .any(|it| it == b"srt-gateway");
            is_gateway.then(|| child.parse().ok())?
        })
    })
}

async fn wait_gateway(server: &Server, other_than: Option<u32>) -> Result<u32, Failure> {
    let service = server.process_id().ok_or("the service does not run")?;
    eventually("the gateway runs", SOON, async || {
        gateway_of(service).filter(|gateway| Some(*gateway) != other_than)
    })
    .await
}

fn kill(process: u32) -> Result<(), Failure> {
    let pid = Pid::from_raw(i32::try_from(process)?).ok_or("no process id")?;
    Ok(kill_process(pid, Signal::KILL)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_shut_in() -> Result<(), Failure> {
    let server = Server::start().await?;
    let gateway = wait_gateway(&server, None).await?;
    let is_shut_in = eventually("the sandbox is on", SOON, async || {
        let status = fs::read_to_string(format!("/proc/{gateway}/status")).ok()?;
        let has = |line: &str| {
            status
                .lines()
                .any(|it| it.split_whitespace().eq(line.split(' ')))
        };
        (has("Seccomp: 2") && has("NoNewPrivs: 1") && has("CapEff: 0000000000000000")).then_some(())
    });
    is_shut_in.await?;
    // Neither environment nor arguments of the service give it a secret.
    let command_line = fs::read(format!("/proc/{gateway}/cmdline"))?;
    assert!(!String::from_utf8_lossy(&command_line).contains("svc_"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_gateway_is_replaced_and_encoders_come_back() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let url = input.srt_url()?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let _encoder = Publish::new(&clip, &url)?.start()?;
    viewing.until_frames(60, SOON).await?;
    let gateway = wait_gateway(&server, None).await?;
    kill(gateway)?;
    api.wait_status(&input.id, "reconnecting", SOON).await?;
    wait_gateway(&server, Some(gateway)).await?;
    let _again = Publish::new(&clip, &url)?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;
    viewing.until_frames(150, SOON * 2).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_takes_it_along_and_gets_its_port_again() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let mut server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let (url, port) = (input.srt_url()?, server.addresses().srt);
    let mut first = Publish::new(&clip, &url)?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;
    let gateway = wait_gateway(&server, None).await?;
    server.kill().await?;
    eventually("the gateway is gone", SOON, async || {
        (!Path::new(&format!("/proc/{gateway}")).exists()).then_some(())
    })
    .await?;
    // The gateway's last word: the encoder knows that its connection is over.
    first.wait(SOON).await?;
    server.restart().await?;
    assert_eq!(server.addresses().srt, port);
    api.wait_status(&input.id, "reconnecting", SOON).await?;
    let _second = Publish::new(&clip, &url)?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;
    server.terminate().await?;
    Ok(())
}

/// Starts a gateway by hand with these layers of the sandbox: whether it served, how it ended, and what it printed.
#[cfg(debug_assertions)]
async fn started_with(
    layers: &str,
    arguments: &[&str],
) -> Result<(bool, Option<i32>, String), Failure> {
    use std::{
        net::UdpSocket,
        os::{fd::OwnedFd, unix::net::UnixStream},
        process::Stdio,
    };
    use tokio::io::AsyncReadExt as _;

    let (service, theirs) = UnixStream::pair()?;
    service.set_nonblocking(true)?;
    let mut service = tokio::net::UnixStream::from_std(service)?;
    let udp = UdpSocket::bind(("127.0.0.1", 0))?;
    let child = tokio::process::Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["srt-gateway", "--layers", layers])
        .args(arguments)
        .stdin(OwnedFd::from(theirs))
        .stdout(OwnedFd::from(udp))
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    // Its first message, or its end.
    let served = service.read(&mut [0]).await? > 0;
    // The gateway exits when the service's end of the socket pair is closed.
    drop(service);
    let ended = child.wait_with_output().await?;
    let printed = String::from_utf8_lossy(&ended.stderr).into_owned();
    Ok((served, ended.status.code(), printed))
}

#[cfg(debug_assertions)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_does_not_start_without_a_sandbox_that_is_required() -> Result<(), Failure> {
    for layers in ["none", "limits,privileges,calls", "limits,privileges,files"] {
        let (served, code, printed) = started_with(layers, &["--require-sandbox"]).await?;
        assert_eq!((served, code), (false, Some(78)), "{layers}: {printed}");
        assert!(
            printed.contains("image_workers.sandbox"),
            "{layers}: {printed}"
        );
    }
    for (layers, arguments) in [("all", &["--require-sandbox"][..]), ("none", &[])] {
        let (served, code, printed) = started_with(layers, arguments).await?;
        assert!(served, "{layers}: {code:?}: {printed}");
    }
    Ok(())
}
