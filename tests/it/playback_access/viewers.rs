//! Viewer counts: in health, in the record and in the metrics, without cookies.

use std::time::Duration;

use serde_json::{Value, json};

use super::{PATIENCE, on_air};
use crate::support::{
    Failure, eventually,
    server::{Server, Settings},
    viewer::Viewer,
};

/// Three target durations of 4 s, and what a busy machine adds.
const GONE_AFTER: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_watches_is_counted_once_and_no_longer_than_it_watches() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let (input, mut encoder) = on_air(&api, json!({})).await?;
    let watching: Vec<_> = (0..3)
        .map(|_| Viewer::new(&input.hls_url).start())
        .collect();
    // A playlist that is fetched without playing is no viewer, nor are ids that were never given out.
    for odd in ["", "?play=", "?play=x", "?play=ffffffffffffffffff"] {
        server
            .get(&input.playback_path(&format!("media.m3u8{odd}")))
            .await?;
    }
    api.wait_health(&input.id, "three viewers", PATIENCE, |health| {
        health["viewers"] == 3
    })
    .await?;
    let (_, first) = server.get(&input.playback_path("index.m3u8")).await?;
    let (_, second) = server.get(&input.playback_path("index.m3u8")).await?;
    assert_ne!(first, second, "each playing has an id of its own");
    assert_eq!(api.get(&input.id).await?["viewers"], 3);
    let (_, metrics) = server.get("/metrics").await?;
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    assert!(metrics.contains("sluice_live_viewers 3"), "{metrics}");
    let publishers = r#"sluice_live_publishers{protocol="rtmp"} 1"#;
    assert!(metrics.contains(publishers), "{metrics}");

    drop(watching);
    eventually("no one watches", GONE_AFTER, async || {
        let record = api.get(&input.id).await.ok()?;
        (record["viewers"] == 0).then_some(())
    })
    .await?;
    encoder.kill().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_counting_a_cache_may_fold_a_crowd() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_LIVE__COUNT_VIEWERS", "false")
        .start()
        .await?;
    let api = server.api();
    let (input, mut encoder) = on_air(&api, json!({})).await?;
    let answer = reqwest::get(&input.hls_url).await?;
    assert_eq!(answer.headers()["cache-control"], "public, max-age=1");
    let playlist = answer.text().await?;
    assert!(playlist.ends_with("\nmedia.m3u8\n"), "{playlist}");
    assert_eq!(api.get(&input.id).await?["viewers"], Value::Null);
    assert_eq!(api.health(&input.id).await?["viewers"], Value::Null);
    encoder.kill().await
}
