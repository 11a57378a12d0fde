//! Failures beside the stream cost viewers nothing: health reports them, and they are repaired.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    Failure,
    database_lock::DatabaseLock,
    media::{check_contiguous_to_a_cut, numbered},
    publisher::{Pace, Publisher},
    server::{Server, Settings},
    skip,
    small_disk::SmallDisk,
    viewer::Viewer,
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(20);
const MENDED: Duration = Duration::from_secs(15);

fn issue<'a>(health: &'a Value, of: &str) -> Option<&'a str> {
    health["trouble"][of].as_str()
}

fn advises(health: &Value, words: &str) -> bool {
    health["advice"].to_string().contains(words)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_database_is_no_business_of_viewers() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(60, Pace::RealTime).await?;

    let database = server.data_dir().join("sluice.db");
    let Some(lock) = DatabaseLock::take(&database).await? else {
        skip("a locked database", "no python3");
        return Ok(());
    };
    // 6 s of a stream, then another encoder's 6 s, all inside the lock.
    encoder.send_frames(240, Pace::RealTime).await?;
    let first = encoder.reset().await?;
    api.wait_status(&input.id, "reconnecting", SOON).await?;
    let mut encoder = Publisher::open(&input.target(), &numbered(20_000)).await?;
    encoder.send_frames(180, Pace::RealTime).await?;
    let is_reported =
        |health: &Value| issue(health, "database").is_some() && advises(health, "database");
    let health = api
        .wait_health(&input.id, "the locked database", SOON, is_reported)
        .await?;
    assert_eq!(health["status"], "live");
    assert_eq!(issue(&health, "disk"), None);
    viewing.check()?;

    lock.release().await?;
    let mended = |health: &Value| issue(health, "database").is_none();
    let (health, sent) = tokio::join!(
        api.wait_health(&input.id, "the database again", MENDED, mended),
        encoder.send_frames(270, Pace::RealTime)
    );
    assert!(!advises(&health?, "database"));
    sent?;
    api.patch(&input.id, json!({"name": "stored again"}))
        .await?;
    let second = encoder.end().await?;
    let seen = viewing.until_ended(SOON).await?;
    assert_eq!(seen.numbers()?, [first.video_frames, second.video_frames]);
    assert!(seen.outages.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_no_business_of_viewers_and_the_folder_is_made_good() -> Result<(), Failure>
{
    let folder = TempDir::new()?;
    let Some(disk) = SmallDisk::mount(folder.path().join("live"), 4).await? else {
        skip("a full disk", "no right to mount a small file system");
        return Ok(());
    };
    let mut server = Settings::new().data_dir(folder.path()).start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).tolerate_outages().start();
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(75, Pace::RealTime).await?;

    let ballast = disk.fill()?;
    encoder.send_frames(240, Pace::RealTime).await?;
    let is_reported = |health: &Value| issue(health, "disk").is_some() && advises(health, "disk");
    api.wait_health(&input.id, "the full disk", SOON, is_reported)
        .await?;
    assert!(viewing.collected().outages.is_empty());

    std::fs::remove_file(ballast)?;
    let mended = |health: &Value| issue(health, "disk").is_none();
    let (mended, sent) = tokio::join!(
        api.wait_health(&input.id, "the disk again", MENDED, mended),
        encoder.send_frames(330, Pace::RealTime)
    );
    mended?;
    let sent = sent?.video_frames.len();
    // Parts that are still on their way come within their persist wait; the last is not whole without the next frame.
    viewing.until_frames(sent - 15, SOON).await?;
    assert!(
        viewing.collected().outages.is_empty(),
        "viewers noticed nothing"
    );
    let before = server.playlist(&input).await?.ok_or("no playlist")?;

    server.kill().await?;
    server.restart().await?;
    let after = server.playlist(&input).await?.ok_or("no playlist")?;
    assert!(
        after.next() >= before.next(),
        "{:?} < {:?}",
        after.next(),
        before.next()
    );
    let mut newcomer = Viewer::new(&input.hls_url).start();
    let mut encoder = Publisher::open(&input.target(), &numbered(20_000)).await?;
    encoder.send_frames(60, Pace::RealTime).await?;
    let second = encoder.end().await?;
    let ranges = viewing.until_ended(SOON).await?.numbers()?;
    assert_eq!(ranges.len(), 2);
    check_contiguous_to_a_cut(&ranges[0], 0)?;
    assert_eq!(ranges[1], second.video_frames);

    // Media that could not be written at its time is served from the disk now.
    let ranges = newcomer.until_ended(SOON).await?.numbers()?;
    check_contiguous_to_a_cut(&ranges[0], ranges[0][0])?;
    assert!(ranges[0].len() >= 240, "{ranges:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_begins_and_ends_on_a_full_disk() -> Result<(), Failure> {
    let folder = TempDir::new()?;
    let Some(disk) = SmallDisk::mount(folder.path().join("live"), 4).await? else {
        skip("a full disk", "no right to mount a small file system");
        return Ok(());
    };
    let server = Settings::new().data_dir(folder.path()).start().await?;
    let input = server.api().create(json!({})).await?;
    disk.fill()?;

    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut sent = Vec::new();
    for first in [0, 20_000] {
        let mut encoder = Publisher::open(&input.target(), &numbered(first)).await?;
        encoder.send_frames(75, Pace::RealTime).await?;
        sent.push(encoder.reset().await?.video_frames);
        server
            .api()
            .wait_status(&input.id, "reconnecting", SOON)
            .await?;
    }
    let mut encoder = Publisher::open(&input.target(), &numbered(40_000)).await?;
    encoder.send_frames(75, Pace::RealTime).await?;
    sent.push(encoder.end().await?.video_frames);
    assert_eq!(viewing.until_ended(SOON).await?.numbers()?, sent);
    Ok(())
}
