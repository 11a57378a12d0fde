//! The main use in one scenario: ffmpeg publishes, a strict viewer follows, every frame arrives once and in order.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    Failure,
    encoder::Publish,
    media::{Recipe, check_contiguous},
    server::Server,
    viewer::Viewer,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_encoder_sends_a_viewer_sees() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(10).make()?;
    let server = Server::start().await?;
    let input = server.api().create(json!({"name": "smoke"})).await?;
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    let mut viewing = Viewer::new(&input.hls_url).start();

    viewing.until_frames(1, Duration::from_secs(10)).await?;
    let api = server.api();
    api.wait_status(&input.id, "live", Duration::from_secs(10))
        .await?;
    let status = encoder.wait(Duration::from_secs(30)).await?;
    assert!(status.success(), "{}", encoder.complaints());
    let collection = viewing.until_ended(Duration::from_secs(10)).await?;
    api.wait_status(&input.id, "idle", Duration::from_secs(10))
        .await?;

    let numbers = collection.numbers()?;
    assert_eq!(numbers.len(), 1, "one session is one range");
    assert_eq!(numbers[0].len(), 300, "{}", collection.summary());
    check_contiguous(&numbers[0], 0)?;
    assert!(collection.hinted_parts > 0, "{}", collection.summary());
    let multivariant = collection
        .multivariant
        .as_ref()
        .expect("the viewer began with it");
    assert_eq!(multivariant.resolution, Some((160, 96)));
    assert_eq!(multivariant.frame_rate, Some(30.0));
    Ok(())
}
