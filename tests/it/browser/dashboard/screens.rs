//! Every screen: hostile names, axe, help, and what a viewer is offered.

use serde_json::json;

use super::{scene, walk, welcome};
use crate::{
    browser::Turn,
    support::{Failure, clips::clip, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_screen_holds_what_is_asked_of_all() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    let server = Settings::new()
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .start()
        .await?;
    let more = json!({
        "clip": clip("plain.mp4", "VIDEO AUDIO H264 -c:a aac")?,
        "viewer": welcome(&server, "vera", "viewer").await?,
    });
    walk("screens", &scene(&server, &more)).await
}
