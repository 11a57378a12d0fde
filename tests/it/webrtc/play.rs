//! Stock encoders in Chromium: video and audio without a setting, and what it costs.

use serde_json::{Value, json};
use sluice_testkit::webrtc::{Crowd, Seat};

use super::{
    PLAYED, SOON, branches,
    chromium::{Chromium, HEARD, check_played, number},
    until_branches, until_viewers,
};
use crate::support::{
    Failure,
    encoder::Publish,
    eventually,
    media::Recipe,
    server::{Server, Settings},
};

/// Longer than any scenario here.
const SECONDS: u32 = 240;
/// Frames that are watched: ten seconds.
const WATCHED: u32 = 300;
/// Viewers of one input beside the browser.
const CROWD: u64 = 20;
/// Frames from key frame to key frame of the clip with long groups.
const GROUP: u32 = 300;
/// Groups in which a busy machine may fail to open a page.
const GROUPS: usize = 5;

/// H.264 with B-frames and AAC, as OBS sends it unless it is changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_obs_sends_is_seen_and_heard() -> Result<(), Failure> {
    let Some(mut chromium) = Chromium::open().await? else {
        return Ok(());
    };
    let clip = Recipe::numbered(0).lasting(SECONDS).make()?;
    let server = Settings::new()
        .env("SLUICE_WEBRTC__MAX_BRANCHES", "3")
        .env("SLUICE_WEBRTC__MAX_PENDING_PER_ADDRESS", "64")
        .start()
        .await?;
    let api = server.api();
    let names = ["rtmp", "rtmp44", "srt"];
    let (mut inputs, mut encoders) = (Vec::new(), Vec::new());
    for name in names {
        let input = api.create(json!({"name": name})).await?;
        let publish = match name {
            "srt" => Publish::new(&clip, &input.srt_url()?)?,
            "rtmp44" => Publish::new(&clip, &input.rtmp_url())?.with_audio_rate(44_100),
            _ => Publish::new(&clip, &input.rtmp_url())?,
        };
        encoders.push(publish.start()?);
        inputs.push(input);
    }
    for input in &inputs {
        api.wait_status(&input.id, "live", SOON).await?;
    }
    assert_eq!(branches(&server)?, [0; 0], "no one watches");

    let mut from = Vec::new();
    for (name, input) in names.iter().zip(&inputs) {
        chromium.view(name, &input.whep_url()?).await?;
        chromium.expect(name, "audioEnergy", HEARD).await?;
        chromium.played(name, 30).await?;
        from.push(chromium.report(name).await?);
    }
    chromium.played(names[2], WATCHED).await?;
    for (name, from) in names.iter().zip(&from) {
        let to = chromium.report(name).await?;
        check_played(name, from, &to);
        assert_eq!(to["videoCodec"], "video/H264", "{to}");
        assert_eq!(to["connections"], 1, "{to}");
    }

    // Each input has one process, however many watch.
    until_branches(&server, names.len()).await?;
    let crowd = Crowd::new();
    for _ in 0..CROWD {
        crowd.join(&inputs[0].whep_url()?).await?;
    }
    let health = until_viewers(&api, &inputs[0].id, CROWD + 1).await?;
    eventually("all of them have frames", SOON, async || {
        let has_played = |seat: &Seat| seat.frames >= 30;
        crowd.seats().iter().all(has_played).then_some(())
    })
    .await?;
    // One that a busy machine held up is replaced, and for a moment there is one less.
    until_branches(&server, names.len()).await?;
    assert_eq!(health["webrtc"]["branch"]["video"], "reencoded", "{health}");
    assert_eq!(health["webrtc"]["branch"]["reason"], "b-frames", "{health}");
    let advice = health["advice"].to_string();
    assert!(advice.contains("B-frames"), "{health}");
    let watched = api.get(&inputs[0].id).await?;
    assert_eq!(watched["viewers"], CROWD + 1, "{watched}");
    // The last viewer of an input takes its process along.
    chromium.leave(names[1]).await?;
    until_viewers(&api, &inputs[1].id, 0).await?;
    until_branches(&server, names.len() - 1).await?;
    Ok(())
}

/// Frames that a viewer can take go out as they are, from the group that is open, and over a lost encoder in the same session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_joins_in_the_open_group_and_stays_over_a_lost_encoder() -> Result<(), Failure> {
    let Some(mut chromium) = Chromium::open().await? else {
        return Ok(());
    };
    let clip = Recipe::long_groups().in_order().lasting(SECONDS).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;

    chromium.view("early", &input.whep_url()?).await?;
    let (early, late) = join_within_a_group(&mut chromium, &input.whep_url()?).await?;
    assert_eq!(
        group(&late, "first"),
        group(&early, "last"),
        "the first frame is of the open group: {late}"
    );
    let health = until_viewers(&api, &input.id, 2).await?;
    assert_eq!(health["webrtc"]["branch"]["video"], "copied", "{health}");

    encoder.kill().await?;
    api.wait_status(&input.id, "reconnecting", SOON).await?;
    let _returned = Publish::new(&clip, &input.rtmp_url())?
        .starting_at(100.0)
        .start()?;
    let returned = chromium.expect("early", "last", 3_000.0).await?;
    // Audio begins later: it is re-encoded.
    chromium.expect("early", "audioEnergy", HEARD).await?;
    let from = chromium.played("early", 30).await?;
    let to = chromium.played("early", 90).await?;
    check_played("after the return", &from, &to);
    assert_eq!(to["connections"], 1, "the same session: {returned} {to}");
    let health = api.wait_status(&input.id, "live", PLAYED).await?;
    assert_eq!(health["status"], "live");
    Ok(())
}

/// Opens a page beside the early one, which has shown a frame before the next key frame: what both have shown.
async fn join_within_a_group(
    chromium: &mut Chromium,
    url: &str,
) -> Result<(Value, Value), Failure> {
    for _ in 0..GROUPS {
        let mut early = chromium.played("early", 1).await?;
        // Several seconds before the next key frame, and after the last one.
        while !(60.0..180.0).contains(&(number(&early, "last") % f64::from(GROUP))) {
            early = chromium.played("early", 1).await?;
        }
        chromium.view("late", url).await?;
        let late = chromium.played("late", 1).await?;
        let now = chromium.report("early").await?;
        // Otherwise the page, or the machine, has waited for the next group.
        if group(&now, "last") == group(&early, "last") {
            return Ok((early, late));
        }
    }
    Err(format!("no first frame before the next key frame in {GROUPS} groups").into())
}

/// The group of the frame in a field of a report.
fn group(report: &Value, field: &str) -> f64 {
    (number(report, field) / f64::from(GROUP)).floor()
}
