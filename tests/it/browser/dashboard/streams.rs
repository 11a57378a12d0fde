//! Video streams: made of an upload, watched before they are ready, captions, tokens, code for other pages.

use serde_json::json;

use super::{scene, walk, welcome};
use crate::{
    browser::Turn,
    support::{Failure, clips::clip, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn video_streams_are_made_watched_and_embedded() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    let server = Settings::new()
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .start()
        .await?;
    // Key frames that are far apart: its frames are encoded again, which lasts longer than its first segments.
    let long = "-f lavfi -i testsrc2=size=160x90:rate=25:duration=720 AUDIO -c:v libx264 -preset ultrafast -g 1000 -pix_fmt yuv420p -c:a aac";
    let more = json!({
        "clip": clip("plain.mp4", "VIDEO AUDIO H264 -c:a aac")?,
        "long": clip("twelve-minutes.mp4", long)?,
        "viewer": welcome(&server, "vera", "viewer").await?,
    });
    walk("streams", &scene(&server, &more)).await
}
