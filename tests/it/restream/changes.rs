//! Outputs are added, changed and taken away while a stream is on air.

use serde_json::json;

use super::{Output, PLAYED, SOON, check_cut, sender};
use crate::support::{
    Failure,
    encoder::Publish,
    media::{Recipe, check_contiguous_to_a_cut},
    viewer::Viewer,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_take_effect_at_once() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = sender().start().await?;
    let api = server.api();
    let source = api.create(json!({})).await?;
    let (one, other) = (api.create(json!({})).await?, api.create(json!({})).await?);
    let mut watching = Viewer::new(&source.hls_url).start();
    let mut encoder = Publish::new(&clip, &source.rtmp_url())?.start()?;
    watching.until_frames(30, PLAYED).await?;

    // Added in mid-stream.
    let mut first = Viewer::new(&one.hls_url).start();
    let output = Output::add(&server, &source.id, &one.rtmp_url()).await?;
    first.until_frames(30, PLAYED).await?;

    // Another address ends the one target's stream and begins the other's.
    let mut second = Viewer::new(&other.hls_url).start();
    output.patch(json!({"url": other.rtmp_url()})).await?;
    check_cut(&*first.until_ended(SOON).await?)?;
    second.until_frames(30, PLAYED).await?;

    // A PATCH without a change does not interrupt the output.
    let shown = output.get().await?;
    assert!(
        !shown["url"]
            .as_str()
            .unwrap_or_default()
            .contains(&other.obs_stream_key)
    );
    let same = output.patch(shown).await?;
    assert_eq!(same["status"], "live", "{same}");

    // Turned off, and on again.
    output.patch(json!({"enabled": false})).await?;
    check_cut(&*second.until_ended(SOON).await?)?;
    output.wait_status("idle").await?;
    api.wait_status(&other.id, "idle", SOON).await?;
    output.patch(json!({"enabled": true})).await?;
    api.wait_status(&other.id, "live", PLAYED).await?;

    // Taken away.
    output.delete().await?;
    api.wait_status(&other.id, "idle", SOON).await?;
    assert!(output.get().await.is_err());

    // Anyone who watches the input has noticed nothing.
    encoder.stop().await?;
    let seen = watching.until_ended(SOON).await?;
    let ranges = seen.numbers()?;
    assert_eq!(ranges.len(), 1, "{}", seen.summary());
    check_contiguous_to_a_cut(&ranges[0], clip.first())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_input_ends_its_outputs() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = sender().start().await?;
    let api = server.api();
    let (source, target) = (api.create(json!({})).await?, api.create(json!({})).await?);
    Output::add(&server, &source.id, &target.rtmp_url()).await?;
    let _encoder = Publish::new(&clip, &source.rtmp_url())?.start()?;
    api.wait_status(&target.id, "live", PLAYED).await?;
    api.delete(&source.id).await?;
    api.wait_status(&target.id, "idle", SOON).await?;
    Ok(())
}
