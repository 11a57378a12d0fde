//! `kill -9` in the middle of a ladder: the next start continues at the last boundary that all renditions share.

use serde_json::json;

use super::{check_numbers, create, events_of, service, wait, wait_ready};
use crate::support::{Failure, asset::Asset, json::text, media::Recipe};

/// Long enough that a kill right behind the first three segments meets it at work.
const SECONDS: u32 = 18;
/// Repetitions by which the clip is too large to be done at once.
const TIMES: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_continues_where_its_segments_end() -> Result<(), Failure> {
    let recipe = Recipe::numbered(0).lasting(SECONDS);
    let clip = recipe.enlarged(TIMES)?;
    let mut server = service().await?;
    let api = server.api();
    let fields = json!({
        "profile": "custom", "segmentDuration": 2,
        "renditions": [{"height": 96, "bitrate": 200_000}, {"height": 576, "bitrate": 900_000}],
    });
    let stream = create(&api, &clip, fields).await?;
    let (id, url) = (text(&stream["id"])?, text(&stream["manifestUrl"])?);
    wait(&api, &id, "the stream is playable", |record| {
        record["playable"] == true
    })
    .await?;
    let before = Asset::fetch(&api, &url).await?;
    server.kill().await?;
    assert!(
        before
            .video_frames
            .iter()
            .all(|each| !each.playlist.is_ended),
        "the kill came too late to say anything"
    );

    server.restart().await?;
    let api = server.api();
    wait_ready(&api, &id).await?;
    let after = Asset::fetch(&api, &url).await?;
    after.check(&api).await?;
    check_numbers(&after, recipe.frames())?;
    assert_eq!(after.video_frames[0].segments.len() as u32, SECONDS / 2);
    let kept = before.video_frames[0].segments.iter();
    let same = kept
        .zip(&after.video_frames[0].segments)
        .take_while(|(before, after)| before == after);
    assert!(same.count() >= 2, "what was stored was made again");
    assert_eq!(
        events_of(&api, &id).await?,
        ["video.stream.ready", "video.stream.started"]
    );
    assert_eq!(api.operations_used().await?, 1);
    Ok(())
}
