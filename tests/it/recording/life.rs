//! Broadcasts that are interrupted, watched from their beginning, and cut into clips while they are on air.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{
    PLAYED, SOON, events, fetch, file, playlist, ranges, recorded, recordings, stream, wait_ready,
};
use crate::support::{
    Failure,
    encoder::Publish,
    ffprobe::probe,
    media::{Recipe, check_contiguous_to_a_cut, modern_ffmpeg, numbered, read_numbers},
    publisher::{Pace, Publisher},
    server::{Server, Settings},
    skip,
    viewer::Viewer,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_twice_interrupted_broadcast_is_one_clean_asset() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let input = recorded(&api).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    for (session, first) in [0, 20_000, 40_000].into_iter().enumerate() {
        let mut encoder = Publish::new(&numbered(first), &input.rtmp_url())?.start()?;
        let so_far = viewing.collected().video_frames();
        viewing.until_frames(so_far + 120, PLAYED).await?;
        if session < 2 {
            encoder.kill().await?;
            api.wait_status(&input.id, "reconnecting", SOON).await?;
        } else {
            encoder.stop().await?;
        }
    }
    let seen = viewing.until_ended(SOON).await?.numbers()?;
    let recording = wait_ready(&api, &input).await?;
    assert_eq!(recordings(&api, &input).await?.len(), 1);
    assert_eq!(
        recording["files"].as_array().map(Vec::len),
        Some(1),
        "{recording}"
    );

    // The three sessions are one broadcast of the input's history.
    let path = format!("/api/live/inputs/{}/broadcasts", input.id);
    let history = api.expect(StatusCode::OK, Method::GET, &path, None).await?;
    let broadcast = &history["broadcasts"][0];
    assert_eq!(history["pagination"]["total"], 1, "{history}");
    assert_eq!(
        (&broadcast["id"], &broadcast["recordingId"]),
        (&recording["broadcastId"], &recording["id"])
    );
    assert!(broadcast["endedAt"].is_string() && broadcast["duration"].as_f64() > Some(0.0));
    assert!(broadcast["bytes"].as_u64() > Some(10_000), "{broadcast}");
    assert_eq!(broadcast["peakViewers"], 1, "{broadcast}");

    // The file holds exactly what viewers saw.
    let (bytes, streams) = file(&api, &recording, 0).await?;
    let codecs: Vec<_> = streams.iter().map(|it| it.codec.as_str()).collect();
    assert_eq!(codecs, ["h264", "aac"]);
    let numbers = read_numbers(&bytes)?;
    assert_eq!(ranges(&numbers), seen);
    let lasts = recording["files"][0]["duration"].as_f64().unwrap_or(0.0);
    let expected = numbers.len() as f64 / 30.0;
    assert!((lasts - expected).abs() < 0.5, "{lasts} s of {expected} s");

    // The stream is its frames as they are.
    let made = stream(&api, &recording, 0).await?;
    assert_eq!(made["status"], "ready");
    assert_eq!(made["height"], 96);
    let master = made["manifestUrl"].as_str().ok_or("no manifest")?;
    let played = probe(master).await?;
    let video_frames = played.iter().find(|stream| stream.codec == "h264");
    let played = video_frames.map_or(0, |it| it.packets());
    assert_eq!(played, numbers.len());
    let poster = made["posterUrl"].as_str().ok_or("no poster")?;
    assert_eq!(reqwest::get(poster).await?.status(), StatusCode::OK);

    let ready = events(&api, "live.input.recording.ready").await?;
    assert_eq!(ready.len(), 1);
    assert_eq!(ready[0]["data"]["fileId"], recording["files"][0]["fileId"]);
    assert_eq!(
        ready[0]["data"]["streamId"],
        recording["files"][0]["streamId"]
    );
    assert_eq!(
        events(&api, "file.uploaded").await?[0]["data"]["role"],
        "recording"
    );

    // Deleting the input keeps the recording.
    api.delete(&input.id).await?;
    assert_eq!(file(&api, &recording, 0).await?.0.len(), bytes.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_broadcast_is_listed_and_clips_are_cut_of_it() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_LIVE__WINDOW", "18s")
        .env("SLUICE_LIVE__WINDOW_MIN_SEGMENTS", "3")
        .start()
        .await?;
    let api = server.api();
    let input = recorded(&api).await?;
    let material = Recipe::numbered(0).lasting(60).make()?;
    let mut encoder = Publisher::open(&input.target(), &material).await?;
    encoder.send_frames(1_350, Pace::RealTime).await?;
    let window = server.playlist(&input).await?.ok_or("no playlist")?;
    assert!(window.media_sequence > 1, "segments have left the list");

    let multivariant = playlist(&server, &input, "index.m3u8?dvr=1").await?;
    assert!(multivariant.contains("dvr=1\n"), "{multivariant}");
    let whole = playlist(&server, &input, "media.m3u8?dvr=1").await?;
    assert!(whole.contains("#EXT-X-PLAYLIST-TYPE:EVENT\n"), "{whole}");
    assert!(!whole.contains("ENDLIST"));
    let uris: Vec<&str> = whole
        .lines()
        .filter(|line| line.ends_with(".m4s"))
        .collect();
    assert!(uris.len() >= 20, "{whole}");
    let (_, mut bytes) = server
        .get(&input.playback_path(&format!("{}/init0.mp4", broadcast(uris[0]))))
        .await?;
    for uri in &uris {
        let (status, segment) = server.get(&input.playback_path(uri)).await?;
        assert_eq!(status, StatusCode::OK, "{uri}");
        bytes = [bytes, segment].concat().into();
    }
    check_contiguous_to_a_cut(&read_numbers(&bytes)?, 0)?;

    let path = format!("/api/live/inputs/{}/clips", input.id);
    // Media that has left the playlist: from the key frame at 4 s on.
    let asked = json!({"start": 5, "end": 9.1, "filename": "goal"});
    let answer = api
        .expect(StatusCode::CREATED, Method::POST, &path, Some(&asked))
        .await?;
    assert_eq!(answer["file"]["filename"], "goal.mp4");
    assert_eq!(answer["file"]["role"], "recording");
    assert_eq!(answer["start"], 4.0);
    let id = answer["file"]["id"].as_str().ok_or("no id")?;
    let clip = fetch(&api, id).await?;
    crate::support::ffprobe::probe_bytes(&clip).await?;
    let numbers = read_numbers(&clip)?;
    assert_eq!(numbers[0], 120);
    check_contiguous_to_a_cut(&numbers, 120)?;
    assert!(
        (273..=280).contains(&(numbers[0] + numbers.len() as u32)),
        "{numbers:?}"
    );

    // The live edge, by time back from it.
    let asked = json!({"start": -4});
    let answer = api
        .expect(StatusCode::CREATED, Method::POST, &path, Some(&asked))
        .await?;
    let id = answer["file"]["id"].as_str().ok_or("no id")?;
    let clip = fetch(&api, id).await?;
    let numbers = read_numbers(&clip)?;
    check_contiguous_to_a_cut(&numbers, numbers[0])?;
    assert!(numbers.last() > Some(&1_300), "{numbers:?}");

    for (asked, expected) in [
        (json!({"start": 9, "end": 5}), StatusCode::BAD_REQUEST),
        (json!({"start": 3_000}), StatusCode::BAD_REQUEST),
        (json!({"start": "yesterday"}), StatusCode::BAD_REQUEST),
        (json!({}), StatusCode::BAD_REQUEST),
    ] {
        let (status, answer) = api.call(Method::POST, &path, Some(&asked)).await?;
        assert_eq!(status, expected, "{asked} {answer}");
    }
    encoder.end().await?;
    api.wait_status(&input.id, "idle", SOON).await?;
    let whole = playlist(&server, &input, "media.m3u8?dvr=1").await?;
    assert!(whole.ends_with("#EXT-X-ENDLIST\n"));
    Ok(())
}

fn broadcast(uri: &str) -> &str {
    uri.split('/').next().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_recorded_has_clips_of_its_window_only() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let path = format!("/api/live/inputs/{}/clips", input.id);
    let asked = json!({"start": 0});
    let (status, answer) = api.call(Method::POST, &path, Some(&asked)).await?;
    assert_eq!(status, StatusCode::CONFLICT, "{answer}");
    let mut encoder = Publisher::open(&input.target(), &numbered(0)).await?;
    encoder.send_frames(150, Pace::RealTime).await?;
    let (status, _) = server.get(&input.playback_path("media.m3u8?dvr=1")).await?;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let answer = api
        .expect(StatusCode::CREATED, Method::POST, &path, Some(&asked))
        .await?;
    let id = answer["file"]["id"].as_str().ok_or("no id")?;
    let clip = fetch(&api, id).await?;
    check_contiguous_to_a_cut(&read_numbers(&clip)?, 0)?;
    encoder.end().await?;
    assert!(recordings(&api, &input).await?.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_codec_begins_another_file_of_the_same_recording() -> Result<(), Failure> {
    if modern_ffmpeg().is_none() {
        skip("a codec change in a recording", "no current ffmpeg");
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    let input = recorded(&api).await?;
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publish::new(&numbered(0), &input.rtmp_url())?.start()?;
    viewing.until_frames(100, PLAYED).await?;
    encoder.kill().await?;
    api.wait_status(&input.id, "reconnecting", SOON).await?;
    let clip = Recipe::hevc_aac().make()?;
    let mut encoder = Publish::new(&clip, &input.rtmp_url())?.start()?;
    viewing.until_frames(200, PLAYED).await?;
    encoder.stop().await?;
    let recording = wait_ready(&api, &input).await?;
    assert_eq!(
        recording["files"].as_array().map(Vec::len),
        Some(2),
        "{recording}"
    );
    for (number, codec) in ["h264", "hevc"].into_iter().enumerate() {
        let (bytes, streams) = file(&api, &recording, number).await?;
        let codecs: Vec<_> = streams.iter().map(|it| it.codec.as_str()).collect();
        assert_eq!(codecs, [codec, "aac"]);
        check_contiguous_to_a_cut(&read_numbers(&bytes)?, 0)?;
        assert_eq!(stream(&api, &recording, number).await?["status"], "ready");
    }
    assert_eq!(events(&api, "live.input.recording.ready").await?.len(), 2);
    Ok(())
}
