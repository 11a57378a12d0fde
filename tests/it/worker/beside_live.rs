//! Work beside a live stream costs the stream nothing: live comes first.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{
    Failure,
    encoder::Publish,
    images::{available, photographs},
    media::{Recipe, check_contiguous},
    server::Server,
    viewer::Viewer,
};

const SECONDS: u32 = 14;
const ENCODES: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_avif_encodes_cost_a_stream_no_part() -> Result<(), Failure> {
    if !available("four_avif_encodes_cost_a_stream_no_part")? {
        return Ok(());
    }
    let photograph = std::fs::read(photographs(1)?.first().ok_or("no photograph")?)?;
    let clip = Recipe::numbered(0).lasting(SECONDS).make()?;
    let server = Server::start().await?;
    let input = server.api().create(json!({"name": "on air"})).await?;
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    viewing.until_pictures(30, Duration::from_secs(10)).await?;

    let mut encodes = JoinSet::new();
    for _ in 0..ENCODES {
        let (api, photograph) = (server.api(), photograph.clone());
        encodes.spawn(async move {
            let fields = [("format", "avif"), ("compression", "60")];
            api.convert("photograph.jpg", &photograph, &fields).await
        });
    }
    while let Some(encoded) = encodes.join_next().await {
        let (record, bytes) = encoded??;
        assert_eq!(&bytes[4..12], b"ftypavif", "{record}");
    }

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
