//! Lines on which UDP is blocked, and addresses that lead nowhere: TCP, HLS, and a health that says what to open.

use serde_json::{Value, json};

use super::{
    PLAYED, SOON,
    chromium::{Chromium, check_played},
};
use crate::support::{
    Failure,
    encoder::Publish,
    media::Recipe,
    server::{Server, Settings},
};

const SECONDS: u32 = 240;
/// The port of the discard service: nothing listens there.
const CLOSED_PORT: &str = "9";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_udp_it_plays_over_tcp_and_without_both_by_hls() -> Result<(), Failure> {
    let Some(mut chromium) = Chromium::open().await? else {
        return Ok(());
    };
    let clip = Recipe::numbered(0).in_order().lasting(SECONDS).make()?;
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let _encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    server.api().wait_status(&input.id, "live", SOON).await?;
    chromium.view_by_tcp("tcp", &input.whep_url()?).await?;
    let from = chromium.played("tcp", 30).await?;
    let to = chromium.played("tcp", 120).await?;
    check_played("tcp", &from, &to);
    assert_eq!(to["transport"], "tcp", "{to}");
    drop(_encoder);
    drop(server);

    let wrong = Settings::new()
        .env("SLUICE_WEBRTC__PUBLIC_PORT", CLOSED_PORT)
        .env("SLUICE_WEBRTC__HANDSHAKE_TIMEOUT", "2s")
        .start()
        .await?;
    let api = wrong.api();
    let input = api.create(json!({})).await?;
    let _encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;
    let page = format!("{}/live/{}", wrong.base_url(), input.playback_id);
    chromium.page("page", &page).await?;
    chromium.expect_player("page", "transport", "hls").await?;
    chromium.expect_player("page", "state", "live").await?;
    let is_named = |health: &Value| health["webrtc"]["unreachable"].as_u64() >= Some(1);
    // A page that asks late leaves before its time is over, and tries again a minute later.
    let health = api
        .wait_health(&input.id, "health names it", PLAYED + SOON, is_named)
        .await?;
    let advice = health["advice"].to_string();
    assert!(advice.contains("webrtc.public_addresses"), "{health}");
    Ok(())
}
