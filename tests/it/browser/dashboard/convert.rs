//! Conversions: every tool of the catalogue on dropped and stored files, progress, cancelling, results.

use serde_json::json;

use super::{scene, walk, welcome};
use crate::{
    browser::Turn,
    support::{Failure, clips::clip, server::Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_converted_compared_and_stored() -> Result<(), Failure> {
    let Some(_turn) = Turn::beside_another().await? else {
        return Ok(());
    };
    let server = Settings::new()
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        .start()
        .await?;
    // Long enough to be cancelled: VP9 of two minutes.
    let long = "-f lavfi -i testsrc2=size=640x360:rate=25:duration=120 H264";
    let more = json!({
        "clip": clip("plain.mp4", "VIDEO AUDIO H264 -c:a aac")?,
        "long": clip("two-minutes.mp4", long)?,
        "viewer": welcome(&server, "vera", "viewer").await?,
    });
    walk("convert", &scene(&server, &more)).await
}
