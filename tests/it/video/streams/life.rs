//! One stream from its creation to its deletion, as its viewers see it.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{PATH, check_numbers, create, events_of, service, show, wait, wait_ready};
use crate::support::{
    Failure,
    asset::Asset,
    json::{each, list, text},
    media::Recipe,
    server::Api,
};

const SECONDS: u32 = 8;
const SRT: &str = "1\n00:00:01,000 --> 00:00:02,000\n<b>Hello</b>\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clip_becomes_a_stream_for_those_who_may_play_it() -> Result<(), Failure> {
    let recipe = Recipe::numbered(0).lasting(SECONDS);
    let clip = recipe.enlarged(2)?;
    let server = service().await?;
    let api = server.api();
    let fields = json!({
        "title": "Numbers", "profile": "custom", "segmentDuration": 2,
        "renditions": [{"height": 96, "bitrate": 200_000}, {"height": 192, "bitrate": 400_000}, {"height": 360}],
    });
    let stream = create(&api, &clip, fields).await?;
    let (id, url) = (text(&stream["id"])?, text(&stream["manifestUrl"])?);
    assert_eq!(stream["status"], "pending", "{stream}");
    let early = api.fetch(&url).await?;
    if early.status != StatusCode::OK {
        let early = early.expect(404)?;
        assert_eq!(early.json()?["code"], "not_ready");
    }
    wait(&api, &id, "the stream is playable", |record| {
        record["playable"] == true
    })
    .await?;
    api.fetch(&url).await?.expect(200)?;
    let ready = wait_ready(&api, &id).await?;
    check_record(&ready)?;

    let captions = json!({"language": "en", "label": "English", "fileId": api.upload_id("a.srt", SRT.as_bytes()).await?});
    let path = format!("{PATH}/{id}/captions");
    api.expect(StatusCode::CREATED, Method::POST, &path, Some(&captions))
        .await?;
    let asset = Asset::fetch(&api, &url).await?;
    asset.check(&api).await?;
    check_numbers(&asset, recipe.frames())?;
    assert_eq!(asset.video_frames.len(), 2, "none above the source");
    assert_eq!(asset.video_frames[0].segments.len() as u32, SECONDS / 2);
    assert_eq!(asset.master.captions.len(), 1);
    for name in ["posterUrl", "storyboardUrl"] {
        api.fetch(&text(&ready[name])?).await?.expect(200)?;
    }
    assert_eq!(
        events_of(&api, &id).await?,
        ["video.stream.ready", "video.stream.started"]
    );

    let addresses = addresses(&asset);
    domains_bind_every_address(&api, &id, &url, &addresses).await?;
    a_token_opens_every_address(&api, &id, &url, &addresses).await?;
    a_deletion_ends_every_address(&api, &id, &url, &addresses).await?;
    assert!(!server.data_dir().join("video").join(&id).exists());
    Ok(())
}

fn check_record(ready: &Value) -> Result<(), Failure> {
    assert_eq!(each(&ready["renditions"], "height")?, [96, 192], "{ready}");
    assert_eq!(
        each(&ready["renditions"], "segmentCount")?,
        [SECONDS / 2, SECONDS / 2]
    );
    for rendition in list(&ready["renditions"])? {
        assert!(
            text(&rendition["codec"])?.starts_with("avc1."),
            "{rendition}"
        );
        assert_eq!(rendition["audioCodec"], "mp4a.40.2");
        assert!(
            rendition["averageBitrate"]
                .as_u64()
                .is_some_and(|rate| rate > 0)
        );
    }
    let duration = ready["duration"].as_f64().ok_or("no duration")?;
    assert!((duration - f64::from(SECONDS)).abs() < 0.1, "{duration}");
    assert_eq!(
        (&ready["width"], &ready["height"]),
        (&json!(320), &json!(192))
    );
    assert_eq!(
        (&ready["progress"], &ready["error"]),
        (&json!(100), &Value::Null)
    );
    Ok(())
}

/// All that a viewer may fetch, below the playback id.
fn addresses(asset: &Asset) -> Vec<String> {
    let mut addresses = asset.addresses.clone();
    let video_frames = ["poster.jpg", "storyboard.vtt", "storyboard.jpg"];
    addresses.extend(video_frames.map(str::to_owned));
    addresses.extend(
        asset
            .video_frames
            .iter()
            .map(|each| format!("{}/iframes.m3u8", each.name)),
    );
    addresses
}

/// Returns the common prefix of the addresses.
fn base(manifest_url: &str) -> Result<&str, Failure> {
    Ok(manifest_url.rsplit_once('/').ok_or("no path")?.0)
}

async fn change(api: &Api, id: &str, fields: Value) -> Result<(), Failure> {
    let path = format!("{PATH}/{id}");
    let changed = api
        .expect(StatusCode::OK, Method::PATCH, &path, Some(&fields))
        .await?;
    assert_eq!(changed["stream"], show(api, id).await?);
    Ok(())
}

async fn domains_bind_every_address(
    api: &Api,
    id: &str,
    url: &str,
    addresses: &[String],
) -> Result<(), Failure> {
    change(api, id, json!({"allowedDomains": ["*.example.org"]})).await?;
    for address in addresses {
        let url = format!("{}/{address}", base(url)?);
        for (headers, status) in [
            (&[][..], 403),
            (&[("origin", "https://example.org")][..], 403),
            (&[("origin", "https://www.example.org")][..], 200),
            (&[("referer", "https://www.example.org/page")][..], 200),
        ] {
            api.fetch_with(&url, headers).await?.expect(status)?;
        }
    }
    change(api, id, json!({"allowedDomains": []})).await
}

async fn a_token_opens_every_address(
    api: &Api,
    id: &str,
    url: &str,
    addresses: &[String],
) -> Result<(), Failure> {
    change(api, id, json!({"access": "signed"})).await?;
    let path = format!("{PATH}/{id}/playback-token");
    let body = json!({"expiresIn": 60});
    let made = api
        .expect(StatusCode::OK, Method::POST, &path, Some(&body))
        .await?;
    let signed = text(&made["manifestUrl"])?;
    let token = text(&made["token"])?;
    let (head, signature) = token.rsplit_once('.').ok_or("no signature")?;
    let claims = head.split('.').nth(1).ok_or("no claims")?;
    let swapped: String = signature.chars().rev().collect();
    let bad = [
        format!("{head}.{swapped}"),
        format!("{head}."),
        format!("eyJhbGciOiJub25lIn0.{claims}."),
        format!("eyJhbGciOiJub25lIn0.{claims}.{signature}"),
        format!("{token}A"),
        format!("{token}="),
    ];
    let playback_id = text(&show(api, id).await?["playbackId"])?;
    for address in addresses {
        api.fetch(&format!("{}/{address}", base(url)?))
            .await?
            .expect(403)?;
        let opened = api
            .fetch(&format!("{}/{address}", base(&signed)?))
            .await?
            .expect(200)?;
        assert!(
            opened.header("cache-control").starts_with("private"),
            "{address}"
        );
        for token in &bad {
            let url = format!("{}/{address}", base(url)?.replace(&playback_id, token));
            api.fetch(&url).await?.expect(403)?;
        }
    }
    Asset::fetch(api, &signed).await?;
    change(api, id, json!({"access": "public"})).await
}

async fn a_deletion_ends_every_address(
    api: &Api,
    id: &str,
    url: &str,
    addresses: &[String],
) -> Result<(), Failure> {
    let path = format!("{PATH}/{id}");
    let gone = api
        .expect(StatusCode::OK, Method::DELETE, &path, None)
        .await?;
    assert_eq!(gone, json!({"success": true}));
    for address in addresses {
        let answer = api
            .fetch(&format!("{}/{address}", base(url)?))
            .await?
            .expect(404)?;
        assert_eq!(answer.header("cache-control"), "no-store", "{address}");
    }
    api.expect(StatusCode::NOT_FOUND, Method::GET, &path, None)
        .await?;
    Ok(())
}
