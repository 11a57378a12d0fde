//! Continuity of a live input: encoders drop, return, take over and end, and viewers see one playlist without holes.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Failure,
    checker::MediaPlaylist,
    encoder::Publish,
    eventually,
    media::{Recipe, check_contiguous_to_a_cut, numbered},
    publisher::{Pace, Publisher, Sent},
    server::{Input, Server, Settings},
    viewer::{Collection, Viewer},
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(20);

/// Each session is one range, and shows what its encoder had sent whole, once and in order.
fn check_sessions(seen: &Collection, sessions: &[Sent]) -> Result<(), Failure> {
    let ranges = seen.numbers()?;
    assert_eq!(ranges.len(), sessions.len(), "{}", seen.summary());
    for (range, sent) in ranges.iter().zip(sessions) {
        assert_eq!(*range, sent.video_frames);
    }
    Ok(())
}

/// A time of the record in Unix milliseconds; `None` for null.
fn time_ms(record: &Value, field: &str) -> Option<i64> {
    let text = record[field].as_str()?;
    let time: jiff::Timestamp = text.parse().expect("ISO 8601");
    Some(time.as_millisecond())
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// A session of one second that ends as its encoder's user wants.
async fn short_session(input: &Input, first: u32) -> Result<Sent, Failure> {
    let mut encoder = Publisher::open(&input.target(), &numbered(first)).await?;
    encoder.send_frames(30, Pace::RealTime).await?;
    encoder.end().await
}

async fn drop_and_return(latency: &str) -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({"latency": latency})).await?;
    let mut viewing = Viewer::new(&input.hls_url).with_delta_updates().start();

    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(100, Pace::RealTime).await?;
    encoder.send_half_a_frame().await?;
    let first = encoder.reset().await?;
    let record = api.wait_status(&input.id, "reconnecting", SOON).await?;
    assert_eq!(record["lastEndedAt"], Value::Null, "it has not ended");

    let mut encoder = Publisher::open(&input.target(), &numbered(20_000)).await?;
    encoder.send_frames(80, Pace::RealTime).await?;
    let second = encoder.end().await?;
    let seen = viewing.until_ended(SOON).await?;
    check_sessions(&seen, &[first, second])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encoder_that_drops_in_mid_message_returns_to_the_same_playlist() -> Result<(), Failure>
{
    drop_and_return("low").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_playlist_continues_as_well() -> Result<(), Failure> {
    drop_and_return("standard").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_connection_without_goodbye_is_a_drop_too() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut sessions = Vec::new();
    for first in [0, 20_000, 40_000] {
        let mut encoder = Publisher::open(&input.target(), &numbered(first)).await?;
        encoder.send_frames(40, Pace::RealTime).await?;
        sessions.push(encoder.cut().await?);
        api.wait_status(&input.id, "reconnecting", SOON).await?;
    }
    sessions.push(short_session(&input, 7).await?);
    let seen = viewing.until_ended(SOON).await?;
    check_sessions(&seen, &sessions)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_encoder_takes_over() -> Result<(), Failure> {
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();

    let mut old = Publisher::open(&input.target(), &numbered(0)).await?;
    old.send_frames(95, Pace::RealTime).await?;
    let first = old.sent().clone();
    let mut new = Publisher::open(&input.target(), &numbered(20_000)).await?;
    old.wait_closed(SOON).await?;
    new.send_frames(80, Pace::RealTime).await?;
    let second = new.end().await?;

    let seen = viewing.until_ended(SOON).await?;
    check_sessions(&seen, &[first, second])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_encoders_on_one_key_do_not_flap() -> Result<(), Failure> {
    // An encoder counts as sending also where a busy machine lets it pause.
    let server = Settings::new()
        .env("SLUICE_LIVE__FRESH_FOR", "60s")
        .start()
        .await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let clip = numbered(0);
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut displaced = Publish::new(&clip, &input.rtmp_url())?.start()?;
    viewing.until_frames(30, Duration::from_secs(20)).await?;

    let mut encoder = Publisher::open(&input.target(), &numbered(20_000)).await?;
    assert!(!displaced.wait(SOON).await?.success(), "it was sent away");
    encoder.send_frames(30, Pace::RealTime).await?;

    // Encoders reconnect by themselves, so the displaced one tries again and again.
    let returning = async {
        for _ in 0..2 {
            let mut returned = Publish::new(&clip, &input.rtmp_url())?.start()?;
            assert!(!returned.wait(SOON).await?.success(), "it was refused");
            let complaints = returned.complaints();
            assert!(
                complaints.contains("another encoder uses this key"),
                "{complaints}"
            );
        }
        Ok::<_, Failure>(())
    };
    let (returned, sent) = tokio::join!(returning, encoder.send_frames(120, Pace::RealTime));
    returned?;
    sent?;
    let noticed = |health: &Value| health["conflicts"] == 2;
    let health = api
        .wait_health(&input.id, "both rejections", SOON, noticed)
        .await?;
    let advice = health["advice"].to_string();
    assert!(
        advice.contains("127.0.0.1") && advice.contains("stream key"),
        "{advice}"
    );

    let sent = encoder.end().await?;
    let ranges = viewing.until_ended(SOON).await?.numbers()?;
    assert_eq!(ranges.len(), 2, "no one has come back");
    check_contiguous_to_a_cut(&ranges[0], 0)?;
    assert_eq!(
        ranges[1], sent.video_frames,
        "and the stream was not affected"
    );

    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    api.wait_status(&input.id, "live", SOON).await?;
    encoder.kill().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encoder_that_hangs_gives_way_to_its_restart() -> Result<(), Failure> {
    let server = Server::start().await?;
    let input = server.api().create(json!({})).await?;
    let clip = numbered(0);
    let mut viewing = Viewer::new(&input.hls_url).start();
    let hung = Publish::new(&clip, &input.rtmp_url())?.start()?;
    viewing.until_frames(30, Duration::from_secs(20)).await?;
    hung.freeze()?;

    let sent = short_session(&input, 20_000).await?;
    let ranges = viewing.until_ended(SOON).await?.numbers()?;
    assert_eq!(ranges.len(), 2);
    check_contiguous_to_a_cut(&ranges[0], 0)?;
    assert_eq!(ranges[1], sent.video_frames);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_end_closes_the_playlist_which_stays_for_a_while() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_LIVE__LINGER", "6s")
        .start()
        .await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let sent = short_session(&input, 0).await?;
    let seen = viewing.until_ended(SOON).await?;
    check_sessions(&seen, &[sent])?;
    let first = server
        .playlist(&input)
        .await?
        .ok_or("the playlist has gone")?;
    assert!(first.ended);

    // A new broadcast replaces it at once, under names of its own.
    let mut encoder = Publisher::open(&input.target(), &numbered(20_000)).await?;
    encoder.send_frames(30, Pace::RealTime).await?;
    let second = eventually("the next broadcast", SOON, async || {
        let list = server.playlist(&input).await.ok().flatten()?;
        (!list.ended).then_some(list)
    })
    .await?;
    let map = |list: &MediaPlaylist| list.segments.iter().find_map(|segment| segment.map.clone());
    assert_ne!(map(&first), map(&second));
    encoder.end().await?;

    // Then the playlist is removed, with its files.
    eventually("no playlist", SOON, async || {
        matches!(server.playlist(&input).await, Ok(None)).then_some(())
    })
    .await?;
    let folder = server.data_dir().join("live").join(&input.id);
    eventually("no files", SOON, async || {
        let left = std::fs::read_dir(&folder).map_or(0, Iterator::count);
        (left == 0).then_some(())
    })
    .await
}

/// Half a second of video is over before playback has stopped waiting for audio.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shortest_broadcast_has_its_playlist_too() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_LIVE__LINGER", "6s")
        .start()
        .await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let clip = Recipe::video_only().lasting(8).make()?;
    let mut encoder = Publisher::open(&input.target(), &clip).await?;
    encoder.send_frames(15, Pace::Unbounded).await?;
    let sent = encoder.end().await?;
    let ended_ms = now_ms();
    let seen = Viewer::new(&input.hls_url)
        .start()
        .until_ended(SOON)
        .await?;
    check_sessions(&seen, &[sent])?;
    eventually("no playlist", SOON, async || {
        matches!(server.playlist(&input).await, Ok(None)).then_some(())
    })
    .await?;
    assert!(now_ms() - ended_ms > 2_000, "it stayed for a while");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_one_returns_and_the_window_elapses() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({"reconnectWindowSeconds": 2})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(60, Pace::RealTime).await?;
    let cut_ms = now_ms();
    let sent = encoder.reset().await?;

    let record = api.wait_status(&input.id, "reconnecting", SOON).await?;
    let until_ms = time_ms(&record, "reconnectUntil").ok_or("no window")?;
    let seen = viewing.until_ended(SOON).await?;
    check_sessions(&seen, &[sent])?;
    assert!(
        now_ms() - cut_ms >= 2_000,
        "the whole window was waited for"
    );
    let record = api.wait_status(&input.id, "idle", SOON).await?;
    let ended_ms = time_ms(&record, "lastEndedAt").ok_or("no end")?;
    // The window begins when the service sees the cut: on a busy machine that is a while after it.
    assert!(
        ended_ms <= until_ms - 2_000,
        "the end is the time of the last media"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_window_a_drop_is_the_end() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({"reconnectWindowSeconds": 0})).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(60, Pace::RealTime).await?;
    let sent = encoder.reset().await?;
    let seen = viewing.until_ended(SOON).await?;
    check_sessions(&seen, &[sent])?;
    assert_eq!(api.get(&input.id).await?["status"], "idle");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_tells_when_broadcasts_began_and_ended() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let record = api.get(&input.id).await?;
    assert_eq!(record["status"], "idle");
    assert_eq!(
        (
            time_ms(&record, "lastStartedAt"),
            time_ms(&record, "lastEndedAt")
        ),
        (None, None)
    );

    let created_ms = now_ms();
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(15, Pace::RealTime).await?;
    let record = api.wait_status(&input.id, "live", SOON).await?;
    let started_ms = time_ms(&record, "lastStartedAt").ok_or("no start")?;
    assert!((created_ms..=now_ms()).contains(&started_ms));
    assert_eq!(time_ms(&record, "lastEndedAt"), None);

    encoder.cut().await?;
    let record = api.wait_status(&input.id, "reconnecting", SOON).await?;
    assert_eq!(time_ms(&record, "lastEndedAt"), None);

    short_session(&input, 20_000).await?;
    let record = api.wait_status(&input.id, "idle", SOON).await?;
    assert_eq!(
        time_ms(&record, "lastStartedAt"),
        Some(started_ms),
        "it was one broadcast"
    );
    let ended_ms = time_ms(&record, "lastEndedAt").ok_or("no end")?;
    assert!((started_ms..=now_ms()).contains(&ended_ms));

    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(15, Pace::RealTime).await?;
    let record = api.wait_status(&input.id, "live", SOON).await?;
    assert!(
        time_ms(&record, "lastStartedAt") > Some(ended_ms),
        "the next one began later"
    );
    assert_eq!(time_ms(&record, "lastEndedAt"), None);
    Ok(())
}
