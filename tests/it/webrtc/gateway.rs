//! The gateway's process: sandboxed, replaced when it dies, and no stream loses a part with it.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{SOON, chromium::Chromium, gateway_of, until_viewers, wait_gateway};
use crate::support::{
    Failure,
    encoder::Publish,
    eventually,
    media::{Recipe, check_contiguous},
    server::Server,
    viewer::Viewer,
};

const SECONDS: u32 = 240;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_gateway_costs_viewers_a_reconnect_and_hls_nothing() -> Result<(), Failure> {
    let Some(mut chromium) = Chromium::open().await? else {
        return Ok(());
    };
    let clip = Recipe::numbered(0).in_order().lasting(SECONDS).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let _encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    viewing.until_frames(30, SOON).await?;
    let gateway = wait_gateway(&server, None).await?;
    check_sandbox(gateway).await?;

    let page = format!(
        "{}/live/{}?via=webrtc",
        server.base_url(),
        input.playback_id
    );
    chromium.page("page", &page).await?;
    chromium
        .expect_player("page", "transport", "webrtc")
        .await?;
    chromium.played("page", 30).await?;
    until_viewers(&api, &input.id, 1).await?;

    let pid = Pid::from_raw(i32::try_from(gateway)?).ok_or("no process id")?;
    kill_process(pid, Signal::KILL)?;
    let replaced = wait_gateway(&server, Some(gateway)).await?;
    chromium.expect("page", "connections", 2.0).await?;
    until_viewers(&api, &input.id, 1).await?;
    chromium.played("page", 60).await?;
    chromium
        .expect_player("page", "transport", "webrtc")
        .await?;

    let so_far = viewing.collected().video_frames();
    let seen = viewing.until_frames(so_far + 60, SOON).await?;
    let ranges = seen.numbers()?;
    assert_eq!(ranges.len(), 1, "no discontinuity: {}", seen.summary());
    check_contiguous(&ranges[0], clip.first())?;
    assert_eq!(gateway_of(&server), Some(replaced));
    Ok(())
}

async fn check_sandbox(gateway: u32) -> Result<(), Failure> {
    eventually("the sandbox is on", SOON, async || {
        let status = fs::read_to_string(format!("/proc/{gateway}/status")).ok()?;
        let has = |line: &str| {
            status
                .lines()
                .any(|it| it.split_whitespace().eq(line.split(' ')))
        };
        (has("Seccomp: 2") && has("NoNewPrivs: 1") && has("CapEff: 0000000000000000")).then_some(())
    })
    .await?;
    // Neither environment nor arguments of the service give it a secret.
    for file in ["cmdline", "environ"] {
        let bytes = fs::read(format!("/proc/{gateway}/{file}")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains("svc_"), "{file}");
    }
    Ok(())
}
