//! Lines that lose packets: what is lost is sent again, and a line that loses too much is thinned without harm to the others.

use std::time::Duration;

use serde_json::{Value, json};
use sluice_testkit::webrtc::{Link, Viewer, ViewerOptions, ViewerReport};

use super::SOON;
use crate::support::{Failure, encoder::Publish, media::Recipe, server::Server};

const SECONDS: u32 = 240;
/// Ten seconds.
const WATCHED: u64 = 300;
/// Share of the packets, each way.
const LOSSY: f64 = 0.05;
const BAD: f64 = 0.30;
/// Half of the round trip.
const DELAY: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losses_are_repaired_and_a_bad_line_is_thinned() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).in_order().lasting(SECONDS).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let _encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;
    let url = input.whep_url()?;
    let join = async |loss| {
        let link = Link { loss, delay: DELAY };
        let options = ViewerOptions {
            link,
            ..ViewerOptions::default()
        };
        Viewer::join(&url, &options).await
    };
    let (clean, lossy, bad) = (join(0.0).await?, join(LOSSY).await?, join(BAD).await?);
    // First: a line that stays bad is given up after a while.
    // On a busy machine the lossy line may be thin for a while too; below it has to be whole.
    let is_thin = |health: &Value| {
        let webrtc = &health["webrtc"];
        webrtc["thin"].as_u64() >= Some(1) && webrtc["viewers"] == 3
    };
    // What arrives of the receiver's reports decides.
    let waited = api.wait_health(&input.id, "the bad line is thin", SOON * 4, is_thin);
    if let Err(failure) = waited.await {
        let health = api.health(&input.id).await?;
        return Err(format!("{failure}: {}, {:?}", health["webrtc"], bad.report()).into());
    }
    let thin = bad.report();
    let more = bad.until("audio continues", SOON, |report| {
        report.audio_packets > thin.audio_packets + 100
    });
    more.await?;

    // Audio begins later: it is re-encoded.
    let has_played =
        |report: &ViewerReport| report.frames >= WATCHED && report.audio_packets > WATCHED;
    let repaired = lossy.until("ten seconds", SOON * 2, has_played).await?;
    check_whole("5 % loss", &repaired, 2);
    let beside = clean.until("ten seconds", SOON, has_played).await?;
    check_whole("beside them", &beside, 1);
    Ok(())
}

/// Checks that at most so many frames of a hundred miss something.
fn check_whole(what: &str, report: &ViewerReport, percent: u64) {
    let is_whole = report.broken_frames * 100 <= report.frames * percent;
    assert!(is_whole && report.ended.is_none(), "{what}: {report:?}");
}
