//! Posters and `frame=live`: the newest key frame, identified by the number that is drawn in it.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::{PATIENCE, on_air, text};
use crate::support::{
    Failure, eventually,
    http::client,
    images::{available, look},
    media::read_numbers,
    server::{Input, Server},
};

/// Frames of 10 s.
const OLDEST: u32 = 10 * 30;
/// The clip's frames from one key frame to the next.
const GROUP: u32 = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_input_shows_its_newest_key_frame() -> Result<(), Failure> {
    if !available("a_live_input_shows_its_newest_key_frame")? {
        return Ok(());
    }
    let server = Server::start().await?;
    let api = server.api();
    let key = api.delivery_key().await?;
    let idle = api.create(json!({})).await?;
    assert_eq!(server.get(&idle.playback_path("poster.jpg")).await?.0, 404);
    api.deliver(&key, &idle.id, "frame=live")
        .await?
        .expect(404)?;

    let (input, mut encoder) = on_air(&api, json!({})).await?;
    let first = number_of(&server, &key, &input).await?;
    eventually("a newer frame", PATIENCE, async || {
        let number = number_of(&server, &key, &input).await.ok()?;
        (number > first).then_some(())
    })
    .await?;
    for _ in 0..3 {
        let newest = newest_key_frame(&server, &input).await?;
        let shown = number_of(&server, &key, &input).await?;
        assert!(shown % GROUP == 0, "{shown} is a key frame");
        assert!(
            newest.saturating_sub(shown) < OLDEST,
            "{shown} when {newest} was there"
        );
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    sizes_and_headers(&server, &key, &input).await?;

    // A deleted input has no poster and no live image.
    encoder.kill().await?;
    api.delete(&input.id).await?;
    assert_eq!(server.get(&input.playback_path("poster.jpg")).await?.0, 404);
    api.deliver(&key, &input.id, "frame=live")
        .await?
        .expect(404)?;
    Ok(())
}

/// Returns the number drawn in the frame that is delivered now.
async fn number_of(server: &Server, key: &str, input: &Input) -> Result<u32, Failure> {
    let image = server
        .api()
        .deliver(key, &input.id, "frame=live&format=png")
        .await?
        .expect(200)?;
    let numbers = read_numbers(&image.bytes)?;
    let number = numbers.first().copied();
    number.ok_or_else(|| "no number".into())
}

/// The number in the newest part that the playlist calls independent.
async fn newest_key_frame(server: &Server, input: &Input) -> Result<u32, Failure> {
    let (_, playlist) = server.get(&input.playback_path("media.m3u8")).await?;
    let playlist = String::from_utf8(playlist.to_vec())?;
    let uri = |wanted: &dyn Fn(&str) -> bool| {
        let line = playlist.lines().rfind(|line| wanted(line))?;
        line.split("URI=\"").nth(1)?.split('"').next()
    };
    let init = uri(&|line| line.starts_with("#EXT-X-MAP")).ok_or("no init section")?;
    let part = uri(&|line| line.starts_with("#EXT-X-PART:") && line.contains("INDEPENDENT"))
        .ok_or("no key frame")?;
    let mut bytes = server.get(&input.playback_path(init)).await?.1.to_vec();
    bytes.extend(server.get(&input.playback_path(part)).await?.1);
    let numbers = read_numbers(&bytes)?;
    numbers.first().copied().ok_or_else(|| "no frame".into())
}

async fn sizes_and_headers(server: &Server, key: &str, input: &Input) -> Result<(), Failure> {
    let api = server.api();
    let small = api
        .deliver(key, &input.id, "frame=live&w=80&format=webp")
        .await?;
    let small = small.expect(200)?;
    assert_eq!(look(&small.bytes).await?.size(), (80, 48));
    assert_eq!(small.header("cache-control"), "public, max-age=5");
    assert_eq!(small.header("access-control-allow-origin"), "*");
    assert!(!small.header("x-service-cdn-used-month").is_empty());
    for (query, status) in [("frame=last", 400), ("w=80", 404), ("frame=live&w=0", 400)] {
        api.deliver(key, &input.id, query).await?.expect(status)?;
    }
    api.deliver(
        "svc_pub_00000000000000000000000000000000",
        &input.id,
        "frame=live",
    )
    .await?
    .expect(404)?;
    let file = api.upload_id("a.txt", b"a").await?;
    api.deliver(key, &file, "frame=live").await?.expect(404)?;

    let preset = json!({"name": "tile", "params": {"w": 40, "frame": "live", "format": "jpg"}});
    let (status, made) = api
        .call(Method::POST, "/api/cdn-presets", Some(&preset))
        .await?;
    assert_eq!(
        (status.as_u16(), &made["preset"]["params"]["frame"]),
        (201, &json!("live"))
    );
    let tile = server
        .get(&format!("/cdn/v1/{key}/{}/p/tile", input.id))
        .await?;
    assert_eq!(
        (tile.0.as_u16(), look(&tile.1).await?.size()),
        (200, (40, 24))
    );

    let url = text(&api.get(&input.id).await?["playback"], "posterUrl")?;
    let poster = client().get(&url).send().await?;
    assert_eq!(poster.status(), 200);
    assert_eq!(poster.headers()["content-type"], "image/jpeg");
    assert_eq!(poster.headers()["cache-control"], "public, max-age=5");
    let etag = poster.headers()["etag"].clone();
    let image = look(&poster.bytes().await?).await?;
    assert_eq!((image.format.as_str(), image.size()), ("JPEG", (160, 96)));
    let again = client()
        .get(&url)
        .header("if-none-match", etag)
        .send()
        .await?;
    assert!(
        matches!(again.status().as_u16(), 200 | 304),
        "{}",
        again.status()
    );

    // A page that may not show the stream may not show its poster either.
    let site = json!({"allowedDomains": ["example.org"]});
    api.patch(&input.id, site).await?;
    let frame_url = format!("{}/cdn/v1/{key}/{}?frame=live", server.base_url(), input.id);
    for address in [&url, &frame_url] {
        for (origin, status, named) in [
            ("https://example.org", 200, "https://example.org"),
            ("https://example.net", 403, ""),
        ] {
            let answer = client()
                .get(address)
                .header("origin", origin)
                .send()
                .await?;
            assert_eq!(answer.status(), status, "{address} {origin}");
            let allowed = answer.headers().get("access-control-allow-origin");
            let allowed = allowed
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default();
            if status == 200 {
                assert_eq!(allowed, named, "{address}");
            }
        }
    }
    Ok(())
}
