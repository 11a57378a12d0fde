//! Previews of stored files for their owner, and what the record of one file says of its bytes.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Failure,
    images::{drawn, look, svg},
    json::text,
    media::Recipe,
    server::{API_KEY, Api, Fetched, Server, Settings},
    shell::Shell,
};

/// A song with a cover of 300 by 200 pixels, and one without.
const SONGS: &str = "
ffmpeg -nostdin -v error -f lavfi -i color=red:s=300x200:d=1 -frames:v 1 cover.png
ffmpeg -nostdin -v error -f lavfi -i sine=d=1 -i cover.png -map 0 -map 1 -c:v copy -disposition:v attached_pic cover.mp3
ffmpeg -nostdin -v error -f lavfi -i sine=d=1 bare.mp3
";
const PATIENCE: Duration = Duration::from_secs(120);

/// Requests an address with the key and these headers.
async fn fetch(api: &Api, address: &str, headers: &[(&str, &str)]) -> Result<Fetched, Failure> {
    let key = format!("Bearer {API_KEY}");
    let mut all = vec![("authorization", key.as_str())];
    all.extend(headers);
    api.fetch_with(address, &all).await
}

async fn detail(api: &Api, file: &Value) -> Result<Value, Failure> {
    let path = format!("/api/files/{}", text(&file["id"])?);
    let shown = fetch(api, &path, &[("accept", "application/json")]).await?;
    Ok(shown.expect(200)?.json()?["file"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_see_their_files_and_nothing_is_charged() -> Result<(), Failure> {
    let cap = ("SLUICE_PLANS__UNLIMITED__DELIVERIES_PER_MONTH", "1");
    let server = Settings::new().env(cap.0, cap.1).start().await?;
    let api = server.api();
    let mut shell = Shell::start(SONGS, &[])?;
    shell.succeed(PATIENCE).await?;
    let song = std::fs::read(shell.folder().join("cover.mp3"))?;
    let clip = Recipe::video_only().make()?;
    for (name, bytes) in [
        ("a.png", drawn("hole.png")?),
        ("b.pdf", drawn("pages.pdf")?),
        ("c.mp4", std::fs::read(&clip.mp4)?),
        ("d.mp3", song),
        ("e.svg", svg("blue")),
    ] {
        let file = api.upload(name, &bytes).await?;
        let url = text(&file["preview_url"])?;
        let answer = fetch(&api, &url, &[]).await?.expect(200)?;
        let (width, height) = look(&answer.bytes).await?.size();
        assert!(width.max(height) <= 640 && width.min(height) > 1, "{name}");
        assert!(answer.header("content-type").starts_with("image/"));
        assert_ne!(answer.header("content-type"), "image/svg+xml");
        for (header, expected) in [
            ("cache-control", "private, max-age=86400, immutable"),
            ("access-control-allow-origin", ""),
            ("x-service-cdn-used-month", ""),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(answer.header(header), expected, "{name} {header}");
        }
        let tag = answer.header("etag").to_owned();
        let known = fetch(&api, &url, &[("if-none-match", &tag)]).await?;
        assert_eq!((known.status.as_u16(), known.bytes.len()), (304, 0));
        assert_eq!(
            known.header("cache-control"),
            answer.header("cache-control")
        );
        let anonymous = api.fetch(&url).await?;
        assert_eq!(anonymous.status, StatusCode::UNAUTHORIZED);
    }
    let stats = api.expect(StatusCode::OK, Method::GET, "/api/cdn/stats", None);
    let stats = stats.await?;
    let counted = (&stats["hits"], &stats["misses"], &stats["bytes"]);
    assert_eq!(counted, (&json!(0), &json!(0), &json!(0)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn widths_are_few_and_formats_follow_the_client() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let file = api.upload("a.png", &drawn("hole.png")?).await?;
    let url = text(&file["preview_url"])?;
    let narrow = fetch(&api, &url.replace("w=640", "w=100"), &[])
        .await?
        .expect(200)?;
    let same = fetch(&api, &url.replace("w=640", "w=320"), &[])
        .await?
        .expect(200)?;
    assert_eq!(narrow.header("etag"), same.header("etag"));
    let webp = [("accept", "image/webp,*/*")];
    let answer = fetch(&api, &url, &webp).await?.expect(200)?;
    assert_eq!(
        (answer.header("content-type"), answer.header("vary")),
        ("image/webp", "Accept")
    );
    for odd in ["w=0", "w=", "w=-1", "w=2561", "w=x"] {
        let refused = fetch(&api, &url.replace("w=640", odd), &[])
            .await?
            .expect(400)?;
        assert!(refused.text().contains("1 to 2560"), "{odd}");
    }
    // A deleted file has no preview any more, also when its image is in the caches.
    let path = format!("/api/files/{}", text(&file["id"])?);
    api.expect(StatusCode::OK, Method::DELETE, &path, None)
        .await?;
    fetch(&api, &url, &[]).await?.expect(404)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_previews_at_once_is_answered_whole() -> Result<(), Failure> {
    let settings = Settings::new().env("SLUICE_FILES__PREVIEWS_PER_ACCOUNT", "1");
    let server = settings.start().await?;
    let api = server.api();
    let mut urls = Vec::new();
    for number in 0..24_u32 {
        let drawing = svg(&format!("#{number:02x}8040"));
        let file = api.upload(&format!("{number}.svg"), &drawing).await?;
        urls.push(text(&file["preview_url"])?);
    }
    let fetched = urls.iter().map(|url| fetch(&api, url, &[]));
    for answer in futures_util::future::try_join_all(fetched).await? {
        answer.expect(200)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_no_picture_says_so() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let mut shell = Shell::start(SONGS, &[])?;
    shell.succeed(PATIENCE).await?;
    let bare = std::fs::read(shell.folder().join("bare.mp3"))?;
    let file = api.upload("bare.mp3", &bare).await?;
    assert_eq!(file["preview_url"], Value::Null);
    let path = format!("/api/files/{}/preview", text(&file["id"])?);
    let refused = fetch(&api, &path, &[]).await?.expect(415)?;
    assert!(refused.text().contains("no cover"), "{}", refused.text());

    let mut damaged = drawn("hole.png")?;
    damaged.truncate(60);
    let file = api.upload("damaged.png", &damaged).await?;
    let path = format!("/api/files/{}/preview", text(&file["id"])?);
    let refused = fetch(&api, &path, &[]).await?;
    assert!(
        matches!(refused.status.as_u16(), 415 | 422),
        "{}",
        refused.text()
    );
    assert!(refused.json()?["error"].is_string());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_says_what_its_bytes_hold() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let clip = Recipe::numbered(0).make()?;
    let video = api.upload("clip.mp4", &std::fs::read(&clip.mp4)?).await?;
    let shown = detail(&api, &video).await?;
    assert_eq!(shown["media"]["video"][0]["codec"], "h264", "{shown}");
    assert_eq!(shown["media"]["video"][0]["width"], shown["width"]);
    assert!(shown["media"]["audio"][0]["sampleRate"].is_u64(), "{shown}");
    let image = api.upload("a.png", &drawn("hole.png")?).await?;
    let shown = detail(&api, &image).await?;
    assert_eq!(shown["media"]["format"], "png", "{shown}");
    assert_eq!(shown["sha256"].as_str().map(str::len), Some(64));

    // A file that a tool made was not inspected when it was stored; its first record says so all the same.
    let path = format!("/api/files/{}/tools", text(&image["id"])?);
    let tool = json!({"tool": "resize", "params": {"resizeWidth": 40}});
    let (status, made) = api.call(Method::POST, &path, Some(&tool)).await?;
    assert!(status.is_success(), "{made}");
    let all = super::all_files(&api).await?;
    let made = all.first().ok_or("no files")?;
    assert_eq!(made["role"], "converted", "{made}");
    for _ in 0..2 {
        let shown = detail(&api, made).await?;
        assert_eq!(shown["media"]["width"], 40, "{shown}");
    }
    Ok(())
}
