//! The element `<sluice-player>` in a page of another site.

use serde_json::json;

use super::{SOON, chromium::Chromium};
use crate::support::{Failure, encoder::Publish, media::Recipe, server::Server};

const SECONDS: u32 = 240;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_element_plays_on_another_site_by_webrtc_and_by_hls() -> Result<(), Failure> {
    let Some(mut chromium) = Chromium::open().await? else {
        return Ok(());
    };
    let clip = Recipe::numbered(0).in_order().lasting(SECONDS).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let _encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;
    for transport in ["webrtc", "hls"] {
        chromium
            .embed(transport, &server.base_url(), &input.playback_id, transport)
            .await?;
        chromium.expect_player(transport, "state", "live").await?;
        chromium
            .expect_player(transport, "transport", transport)
            .await?;
    }
    Ok(())
}
