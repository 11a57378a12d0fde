//! A ladder and a conversion beside a live stream cost the stream nothing: live comes first.

use std::time::Duration;

use serde_json::json;

use super::{
    patient,
    streams::{create, wait_ready},
};
use crate::support::{
    Failure,
    encoder::Publish,
    json::text,
    media::{Recipe, check_contiguous},
    viewer::Viewer,
};

/// Of the live stream: longer than the work beside it on an idle machine.
const SECONDS: u32 = 14;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ladder_and_a_conversion_cost_a_stream_no_part() -> Result<(), Failure> {
    let film = Recipe::numbered(0).lasting(10).enlarged(4)?;
    let film_bytes = std::fs::read(&film)?;
    let clip = Recipe::numbered(0).lasting(SECONDS).make()?;
    let server = patient().await?;
    let api = server.api();
    let input = api.create(json!({"name": "on air"})).await?;
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    viewing.until_pictures(30, Duration::from_secs(10)).await?;

    let stream = create(&api, &film, json!({"profile": "basic"})).await?;
    let fields = [("format", "mp4"), ("resizeWidth", "480")];
    let (record, _) = api.convert("film.mp4", &film_bytes, &fields).await?;
    assert_eq!(record["width"], json!(480), "{record}");
    wait_ready(&api, &text(&stream["id"])?).await?;

    let status = encoder.wait(Duration::from_secs(40)).await?;
    assert!(status.success(), "{}", encoder.complaints());
    let collection = viewing.until_ended(Duration::from_secs(10)).await?;
    let numbers = collection.numbers()?;
    assert_eq!(numbers.len(), 1, "one session is one range");
    assert_eq!(
        numbers[0].len(),
        clip.frames() as usize,
        "{}",
        collection.summary()
    );
    check_contiguous(&numbers[0], 0)
}
