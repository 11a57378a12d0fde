//! Kills and stops in mid-stream: the next start serves the listed media, and the returning encoder continues the same
//! playlist.

use std::{collections::BTreeMap, time::Duration};

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{
    Failure,
    checker::MediaPlaylist,
    encoder::Publish,
    eventually,
    media::{check_contiguous_to_a_cut, numbered},
    power::{self, Loss},
    publisher::{Pace, Publisher},
    server::{Input, Server, Settings},
    viewer::{Collection, Viewer, Viewing},
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(20);
const PLAYED: Duration = Duration::from_secs(30);
/// Longest time until the service is ready again, on a machine with other work: no start waits for an encoder that returns.
const READY_WITHIN: Duration = Duration::from_secs(15);

async fn restart(server: &mut Server) -> Result<(), Failure> {
    server.restart().await?;
    let took = server.ready_after();
    assert!(took < READY_WITHIN, "ready only after {took:?}");
    Ok(())
}

/// Every segment that is listed now, and that the viewer had whole before, has the same bytes as then.
async fn check_bytes(
    server: &Server,
    input: &Input,
    before: &Collection,
) -> Result<usize, Failure> {
    let list = server.playlist(input).await?.ok_or("no playlist")?;
    let mut compared = 0;
    for segment in list.segments.iter().filter(|segment| !segment.gap) {
        let known = before.pieces.get(&segment.msn);
        let (Some(listed), Some(known)) = (&segment.whole, known.and_then(|it| it.whole.as_ref()))
        else {
            continue;
        };
        let (status, bytes) = server.get(&input.playback_path(&listed.uri)).await?;
        assert_eq!(status, StatusCode::OK, "{}", listed.uri);
        assert!(bytes == *known, "{} is another one", listed.uri);
        compared += 1;
    }
    Ok(compared)
}

fn last_msn(list: &MediaPlaylist) -> u64 {
    list.segments.last().map_or(0, |segment| segment.msn)
}

/// Starts a viewer that continues when its connections break.
fn watch(input: &Input) -> Viewing {
    Viewer::new(&input.hls_url)
        .tolerate_outages()
        .with_delta_updates()
        .start()
}

/// Every range shows its encoder's frames once and in order, from these first ones on.
fn check_ranges(seen: &Collection, firsts: &[u32]) -> Result<(), Failure> {
    let ranges = seen.numbers()?;
    assert_eq!(ranges.len(), firsts.len(), "{}", seen.summary());
    for (range, first) in ranges.iter().zip(firsts) {
        check_contiguous_to_a_cut(range, *first)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_mid_stream_everything_listed_is_played_and_the_encoder_continues()
-> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = watch(&input);
    let mut encoder = Publish::new(&numbered(0), &input.rtmp_url())?.start()?;
    viewing.until_frames(160, PLAYED).await?;
    let started = api.get(&input.id).await?["lastStartedAt"].clone();

    server.kill().await?;
    let before = viewing.collected();
    restart(&mut server).await?;
    let record = api.get(&input.id).await?;
    assert_eq!(record["status"], "reconnecting");
    assert_eq!(record["lastStartedAt"], started, "the broadcast continues");
    assert_eq!(record["lastEndedAt"], Value::Null);
    let compared = check_bytes(&server, &input, &before).await?;
    assert!(compared >= 2, "{compared} segments compared");
    assert!(!encoder.wait(SOON).await?.success(), "its connection broke");

    let mut encoder = Publish::new(&numbered(20_000), &input.rtmp_url())?.start()?;
    viewing
        .until_frames(before.video_frames() + 90, PLAYED)
        .await?;
    api.wait_status(&input.id, "live", SOON).await?;
    encoder.stop().await?;
    let seen = viewing.until_ended(SOON).await?;
    // The viewer itself checks that sequence numbers only grow, and that whole segments equal their parts.
    check_ranges(&seen, &[0, 20_000])?;
    assert!(seen.video_frames() >= before.video_frames() + 90);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_twice_in_a_row() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = watch(&input);
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(100, Pace::RealTime).await?;
    server.kill().await?;
    restart(&mut server).await?;

    let mut encoder = Publisher::open(&input.target(), &numbered(20_000)).await?;
    encoder.send_frames(75, Pace::RealTime).await?;
    server.kill().await?;
    // A second restart, with only the recovered media.
    restart(&mut server).await?;
    server.kill().await?;
    let before = viewing.collected();
    restart(&mut server).await?;
    check_bytes(&server, &input, &before).await?;

    let mut encoder = Publisher::open(&input.target(), &numbered(40_000)).await?;
    encoder.send_frames(75, Pace::RealTime).await?;
    let sent = encoder.end().await?;
    let seen = viewing.until_ended(SOON).await?;
    check_ranges(&seen, &[0, 20_000, 40_000])?;
    assert_eq!(seen.numbers()?[2], sent.video_frames);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_had_left_the_list_before_the_kill_does_not_come_back() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let mut viewing = watch(&input);
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    // Longer than the 32 s that a low-latency list holds.
    encoder.send_frames(1_170, Pace::RealTime).await?;
    let before = server.playlist(&input).await?.ok_or("no playlist")?;
    assert!(before.media_sequence > 1, "segments have left the list");
    server.kill().await?;
    restart(&mut server).await?;
    let after = server.playlist(&input).await?.ok_or("no playlist")?;
    assert!(after.media_sequence >= before.media_sequence);
    assert!(
        last_msn(&after) >= last_msn(&before),
        "and nothing else is missing"
    );
    // A newcomer can play all that is listed.
    let mut newcomer = watch(&input);

    let mut encoder = Publisher::open(&input.target(), &numbered(20_000)).await?;
    encoder.send_frames(60, Pace::RealTime).await?;
    encoder.end().await?;
    let seen = viewing.until_ended(SOON).await?;
    check_ranges(&seen, &[0, 20_000])?;
    let seen = newcomer.until_ended(SOON).await?;
    let first = seen.numbers()?[0][0];
    check_ranges(&seen, &[first, 20_000])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_politely_and_started_again_the_stream_continues() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = watch(&input);
    let mut encoder = Publish::new(&numbered(0), &input.rtmp_url())?.start()?;
    viewing.until_frames(120, PLAYED).await?;

    let status = server.terminate().await?;
    assert!(status.success(), "{status}");
    assert!(!encoder.wait(SOON).await?.success(), "it was disconnected");
    let before = viewing.collected();
    restart(&mut server).await?;
    assert_eq!(api.get(&input.id).await?["status"], "reconnecting");
    check_bytes(&server, &input, &before).await?;

    let mut encoder = Publisher::open(&input.target(), &numbered(20_000)).await?;
    encoder.send_frames(75, Pace::RealTime).await?;
    let sent = encoder.end().await?;
    let seen = viewing.until_ended(SOON).await?;
    check_ranges(&seen, &[0, 20_000])?;
    assert_eq!(seen.numbers()?[1], sent.video_frames);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_inside_the_reconnect_window_which_counts_from_readiness() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({"reconnectWindowSeconds": 6})).await?;
    let mut viewing = watch(&input);
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(90, Pace::RealTime).await?;
    let sent = encoder.reset().await?;
    api.wait_status(&input.id, "reconnecting", SOON).await?;
    viewing.until_frames(sent.video_frames.len(), SOON).await?;
    let before = server.playlist(&input).await?.ok_or("no playlist")?;
    let until = reconnect_until(&server, &input).await?;

    server.kill().await?;
    restart(&mut server).await?;
    assert_eq!(api.get(&input.id).await?["status"], "reconnecting");
    let after = server.playlist(&input).await?.ok_or("no playlist")?;
    assert!(!after.ended && last_msn(&after) == last_msn(&before));
    assert!(
        reconnect_until(&server, &input).await? > until,
        "the window begins again"
    );

    // No one returns: it ends, with all that had arrived.
    let seen = viewing.until_ended(Duration::from_secs(20)).await?;
    assert_eq!(seen.numbers()?, [sent.video_frames]);
    let record = api.wait_status(&input.id, "idle", SOON).await?;
    assert!(record["lastEndedAt"].is_string(), "{record}");
    Ok(())
}

/// Returns the end of the reconnect window in the state for pages.
async fn reconnect_until(server: &Server, input: &Input) -> Result<jiff::Timestamp, Failure> {
    let (_, body) = server.get(&input.playback_path("state")).await?;
    let state: Value = serde_json::from_slice(&body)?;
    let until = state["reconnectUntil"].as_str();
    Ok(until
        .ok_or_else(|| format!("no window in {state}"))?
        .parse()?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_right_after_the_end_the_closed_playlist_stays() -> Result<(), Failure> {
    let mut server = Settings::new()
        .env("SLUICE_LIVE__LINGER", "20s")
        .start()
        .await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = watch(&input);
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(75, Pace::RealTime).await?;
    let sent = encoder.end().await?;
    let seen = viewing.until_ended(SOON).await?;
    server.kill().await?;
    restart(&mut server).await?;

    let record = api.get(&input.id).await?;
    assert_eq!(record["status"], "idle");
    assert!(record["lastEndedAt"].is_string(), "{record}");
    let list = server
        .playlist(&input)
        .await?
        .ok_or("the playlist has gone")?;
    assert!(list.ended);
    let compared = check_bytes(&server, &input, &seen).await?;
    assert_eq!(compared, seen.pieces.len());
    let again = watch(&input).until_ended(SOON).await?;
    assert_eq!(again.numbers()?, [sent.video_frames]);

    let mut encoder = Publisher::open(&input.target(), &numbered(20_000)).await?;
    encoder.send_frames(30, Pace::RealTime).await?;
    api.wait_status(&input.id, "live", SOON).await?;
    let sent = encoder.end().await?;
    let seen = watch(&input).until_ended(SOON).await?;
    assert_eq!(
        seen.numbers()?,
        [sent.video_frames],
        "a broadcast of its own"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_its_first_second_a_stream_is_reconnecting_too() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(2, Pace::RealTime).await?;
    let started = api.wait_status(&input.id, "live", SOON).await?["lastStartedAt"].clone();
    server.kill().await?;
    restart(&mut server).await?;

    let record = api.get(&input.id).await?;
    assert_eq!(record["status"], "reconnecting");
    assert_eq!(record["lastStartedAt"], started);
    let mut viewing = watch(&input);
    let mut encoder = Publisher::open(&input.target(), &numbered(20_000)).await?;
    encoder.send_frames(60, Pace::RealTime).await?;
    let sent = encoder.end().await?;
    let seen = viewing.until_ended(SOON).await?;
    assert_eq!(seen.numbers()?.last(), Some(&sent.video_frames));
    Ok(())
}

/// Whole segments by their addresses below the playlist: what an address has answered once, it answers for ever.
type Bodies = BTreeMap<String, (u64, Vec<u8>)>;

/// Reads the playlists once: both are there, and no address that they list answers other bytes than before.
async fn look(
    server: &Server,
    input: &Input,
    known: &mut Bodies,
) -> Result<MediaPlaylist, Failure> {
    let (status, _) = server.get(&input.playback_path("index.m3u8")).await?;
    assert_eq!(
        status,
        StatusCode::OK,
        "the multivariant playlist disappeared"
    );
    let list = server
        .playlist(input)
        .await?
        .ok_or("the playlist disappeared")?;
    for segment in list.segments.iter().filter(|segment| !segment.gap) {
        let Some(whole) = &segment.whole else {
            continue;
        };
        let (status, bytes) = server.get(&input.playback_path(&whole.uri)).await?;
        // On a slow machine it may have left the playlist since, and the disk.
        if status == StatusCode::NOT_FOUND {
            continue;
        }
        assert_eq!(status, StatusCode::OK, "{}", whole.uri);
        let first = known
            .entry(whole.uri.clone())
            .or_insert((segment.msn, bytes.to_vec()));
        assert!(first.1 == bytes, "{} is another one", whole.uri);
    }
    Ok(list)
}

async fn power_is_cut(latency: &str, loss: Loss) -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let input = server.api().create(json!({"latency": latency})).await?;
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(250, Pace::RealTime).await?;
    let mut known = Bodies::new();
    let before = look(&server, &input, &mut known).await?;
    let (newest, whole) = (
        known.values().map(|(msn, _)| *msn).max().unwrap_or(0),
        known.len(),
    );
    assert!(whole >= 3, "{whole} segments are listed");
    server.kill().await?;
    power::cut(server.data_dir(), &input.id, newest, loss)?;
    restart(&mut server).await?;

    let record = server.api().get(&input.id).await?;
    assert_eq!(record["status"], "reconnecting");
    let after = look(&server, &input, &mut known).await?;
    assert_eq!(after.media_sequence, before.media_sequence);
    assert_eq!(
        last_msn(&after),
        newest - 1,
        "the damaged segment is not listed"
    );
    for (uri, (msn, bytes)) in known.clone() {
        let (status, now) = server.get(&input.playback_path(&uri)).await?;
        match status {
            StatusCode::NOT_FOUND => assert_eq!(msn, newest, "{uri} was not damaged"),
            status => assert!(status == StatusCode::OK && now == bytes, "{uri}: {status}"),
        }
    }

    // From before the encoder's return until its media are listed, and behind it.
    let mut encoder = Publisher::open(&input.target(), &numbered(20_000)).await?;
    let sending = async move {
        encoder.send_frames(240, Pace::RealTime).await?;
        encoder.end().await
    };
    let watching = async {
        eventually(
            "a closed list with the second encoder's media",
            PLAYED,
            async || {
                let list = match look(&server, &input, &mut known).await {
                    Ok(list) => list,
                    Err(failure) => return Some(Err(failure)),
                };
                (list.ended && last_msn(&list) > newest).then_some(Ok(list))
            },
        )
        .await?
    };
    let (sent, ended) = tokio::try_join!(sending, watching)?;
    let first = ended.segments.iter().find(|segment| !segment.gap);
    assert!(
        first.is_some_and(|segment| segment.msn > newest + 1),
        "numbers are skipped"
    );
    let seen = watch(&input).until_ended(SOON).await?;
    assert_eq!(seen.numbers()?.last(), Some(&sent.video_frames));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_tears_the_journal_and_the_playlist_stays() -> Result<(), Failure> {
    power_is_cut("low", Loss::TornTail).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_zeroes_the_newest_segment_and_the_playlist_stays() -> Result<(), Failure> {
    power_is_cut("standard", Loss::Zeros).await
}
