//! The commands of the README and of the guides, run in a shell in a folder with the files that they need.
//!
//! Webhooks, workflows, agents, playback tokens and the first section about video have tests beside those of their
//! features. Not run: commands that need an encoder's window, a certificate, a container engine, systemd or another
//! machine.

mod live;

use std::{path::Path, time::Duration};

use serde_json::Value;

use crate::support::{
    Failure,
    document::{blocks, section},
    http::free_port,
    images::photographs,
    media::Recipe,
    server::{API_KEY, Server, Settings},
    shell::Shell,
};

/// Longest time of all commands of a guide, in a debug build on a busy machine.
const DEADLINE: Duration = Duration::from_secs(300);
/// Ends the script at the first answer that is an error; the documents leave `-f` out so that readers see the message.
const STRICT_CURL: &str = "curl() { command curl -fS \"$@\"; }\n";
/// Lines that set what the test sets: the key and the address of its own service.
const SET_BY_THE_READER: [&str; 3] = [
    "export KEY=svc_...\n",
    "export SLUICE=http://localhost:8080\n",
    "SLUICE=http://127.0.0.1:8080   # as the service prints it at its start\n",
];

/// A document of the repository.
fn document(path: &str) -> Result<String, Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    Ok(std::fs::read_to_string(path)?)
}

/// The shell commands of a text as one script, without those that fetch from a host of the internet.
fn script(text: &str) -> Result<String, Failure> {
    let commands: String = blocks(text, "sh")
        .into_iter()
        .filter(|block| !block.contains("sourceUrl=https://example.com"))
        .collect();
    if commands.is_empty() {
        return Err("no commands".into());
    }
    let commands = SET_BY_THE_READER
        .iter()
        .fold(commands, |commands, line| commands.replace(line, ""));
    Ok(format!("{STRICT_CURL}{commands}"))
}

/// Runs a script to its end.
async fn run(server: &Server, files: &[(&str, &[u8])], script: &str) -> Result<Shell, Failure> {
    let environment = [("KEY", API_KEY), ("SLUICE", &server.base_url())];
    let mut shell = Shell::start_beside(files, script, &environment)?;
    shell.succeed(DEADLINE).await?;
    Ok(shell)
}

fn photograph() -> Result<Vec<u8>, Failure> {
    let path = photographs(1)?.pop().ok_or("no photograph")?;
    Ok(std::fs::read(path)?)
}

fn clip() -> Result<Vec<u8>, Failure> {
    Ok(std::fs::read(Recipe::numbered(0).lasting(6).make()?.mp4)?)
}

/// An answer that a command wrote.
fn written(shell: &Shell, name: &str) -> Result<Value, Failure> {
    let text = shell.read(name);
    serde_json::from_str(&text).map_err(|error| format!("{name}: {error} in {text}").into())
}

/// Returns whether a file that a command wrote has these bytes at this offset.
fn has_at(shell: &Shell, name: &str, offset: usize, magic: &[u8]) -> Result<(), Failure> {
    let bytes = std::fs::read(shell.folder().join(name))
        .map_err(|error| format!("{name}: {error}; output: {}", shell.read("output")))?;
    match bytes.get(offset..).is_some_and(|it| it.starts_with(magic)) {
        true => Ok(()),
        false => Err(format!("{name} has {} bytes of another kind", bytes.len()).into()),
    }
}

/// A service that answers with results and not with a later address, however busy the machine.
fn patient() -> Settings {
    Settings::new()
        .env("SLUICE_CONVERT__INLINE_WAIT", "80s")
        .env("SLUICE_CDN__RENDER_WAIT", "80s")
        .env("SLUICE_WORKFLOWS__INLINE_WAIT", "80s")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_readmes_examples_run() -> Result<(), Failure> {
    let readme = document("README.md")?;
    let examples = section(&readme, "Examples").ok_or("no examples")?;
    let port = free_port()?;
    let receiver = format!("http://127.0.0.1:{port}/");
    let script = script(examples)?.replace("https://shop.example.com/hooks", &receiver);
    let server = patient().reaching_this_machine().start().await?;
    let files: [(&str, &[u8]); 2] = [("photo.jpg", &photograph()?), ("clip.mp4", &clip()?)];
    let shell = run(&server, &files, &script).await?;

    has_at(&shell, "small.avif", 4, b"ftypavif")?;
    let run = &written(&shell, "run.json")?["run"];
    assert_eq!(run["status"], "completed", "{run}");
    has_at(&shell, "resized.webp", 8, b"WEBP")?;
    let deliveries = &written(&shell, "deliveries.json")?["deliveries"];
    assert_eq!(deliveries[0]["eventType"], "webhook.test", "{deliveries}");
    let said = shell.read("output");
    for ending in ["\"ready\"", "watch at http://"] {
        assert!(said.contains(ending), "{said}");
    }
    let link = written(&shell, "share.json")?["share"]["url"].clone();
    assert_eq!(said.lines().last(), link.as_str(), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guides_about_images_and_shares_run() -> Result<(), Failure> {
    let (images, share) = (
        document("docs/guide/images.md")?,
        document("docs/guide/share.md")?,
    );
    let images = section(&images, "Images in five minutes").ok_or("no section")?;
    let script = format!("{}{}", script(images)?, script(&share)?);
    let server = patient().start().await?;
    let shell = run(&server, &[("photo.jpg", &photograph()?)], &script).await?;

    has_at(&shell, "small.jpg", 0, b"\xff\xd8\xff")?;
    has_at(&shell, "small.avif", 4, b"ftypavif")?;
    has_at(&shell, "square.webp", 8, b"WEBP")?;
    has_at(&shell, "drawing.png", 0, b"\x89PNG")?;
    has_at(&shell, "for-you.zip", 0, b"PK")?;
    let page = shell.read("page.html");
    assert!(
        page.contains(&format!("{}/cdn/v1/", server.base_url())),
        "{page}"
    );
    let said = shell.read("output");
    assert!(said.contains("\"status\":\"completed\""), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_about_conversions_runs() -> Result<(), Failure> {
    let guide = document("docs/guide/conversions.md")?;
    let script = script(&guide)?.replace("photo.heic", "photo.jpg");
    let server = patient().start().await?;
    let shell = run(&server, &[("photo.jpg", &photograph()?)], &script).await?;
    let answer = written(&shell, "output")?;
    assert_eq!(answer["files"][0]["filename"], "photo.webp", "{answer}");
    assert_eq!(answer["files"][0]["width"], 1920, "{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_about_files_runs() -> Result<(), Failure> {
    let guide = document("docs/guide/files.md")?;
    // The download of the folder is cut off before it is resumed.
    let resumed = "curl -H \"Authorization: Bearer $KEY\" -H \"If-Range";
    let script = script(&guide)?;
    assert_eq!(script.matches(resumed).count(), 1, "{script}");
    let script = script.replace(
        resumed,
        &format!("truncate -s 100000 photos.zip\n{resumed}"),
    );
    let script = format!("{script}python3 -m zipfile -t photos.zip\n");
    let server = Server::start().await?;
    let files: [(&str, &[u8]); 2] = [("photo.jpg", &photograph()?), ("film.mov", &clip()?)];
    let shell = run(&server, &files, &script).await?;

    let direct = &written(&shell, "completed.json")?["file"];
    assert_eq!(direct["filename"], "photo.jpg", "{direct}");
    let said = shell.read("output").to_ascii_lowercase();
    assert!(said.contains("service-file-id: "), "{said}");
    assert!(said.contains("done testing"), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_about_video_runs() -> Result<(), Failure> {
    let guide = document("docs/guide/video.md")?;
    let first = section(&guide, "Video in five minutes").ok_or("no first section")?;
    let script = script(&guide.replace(first, "\n"))?.replace("640x360", "320x180");
    let server = patient().start().await?;
    let shell = run(&server, &[], &script).await?;
    for (name, offset, magic) in [
        ("clip.webm", 0, &b"\x1a\x45\xdf\xa3"[..]),
        ("small.mp4", 4, b"ftyp"),
        ("smaller.mp4", 4, b"ftyp"),
        ("thumb.jpg", 0, b"\xff\xd8\xff"),
        ("poster.webp", 8, b"WEBP"),
        ("clip.gif", 0, b"GIF8"),
        ("board.jpg", 0, b"\xff\xd8\xff"),
        ("cut.mp4", 4, b"ftyp"),
        ("fast.mp4", 4, b"ftyp"),
        ("wave.png", 0, b"\x89PNG"),
        ("marked.mp4", 4, b"ftyp"),
        ("logo.mp4", 4, b"ftyp"),
        ("bare.mp4", 4, b"ftyp"),
    ] {
        has_at(&shell, name, offset, magic)?;
    }
    for name in ["clip.mp3", "even.mp3", "joined.mp3", "audio.m4a"] {
        assert!(
            std::fs::metadata(shell.folder().join(name))?.len() > 1_000,
            "{name}"
        );
    }
    assert!(shell.read("output").contains("WEBVTT"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_about_video_streams_runs() -> Result<(), Failure> {
    let guide = document("docs/guide/video-streams.md")?;
    let server = Server::start().await?;
    let shell = run(&server, &[("clip.mp4", &clip()?)], &script(&guide)?).await?;
    has_at(&shell, "poster.jpg", 0, b"\xff\xd8\xff")?;
    let token = written(&shell, "token.json")?;
    assert!(token["token"].is_string(), "{token}");
    let said = shell.read("output");
    assert!(said.contains("h264") && said.contains("#EXTM3U"), "{said}");

    let id = written(&shell, "stream.json")?["stream"]["id"].clone();
    let path = format!("/api/video/streams/{}", id.as_str().unwrap_or_default());
    let api = server.api();
    let (method, gone) = (reqwest::Method::GET, reqwest::StatusCode::NOT_FOUND);
    api.expect(gone, method, &path, None).await?;
    Ok(())
}

/// Names and kinds in a scrape are those of the reference, and the reference has no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metrics_are_those_of_the_reference() -> Result<(), Failure> {
    let page = document("docs/reference/metrics.md")?;
    let server = Server::start().await?;
    let (status, scraped) = server.get("/metrics").await?;
    assert_eq!(status, reqwest::StatusCode::OK);
    let scraped = String::from_utf8(scraped.to_vec())?;
    let mut declared: Vec<String> = scraped
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, kind)| format!("{name} {kind}"))
        .collect();
    let mut described: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `sluice_")?.split_once("` | "))
        .map(|(name, rest)| format!("sluice_{name} {}", rest.split(' ').next().unwrap_or("")))
        .collect();
    declared.sort();
    described.sort();
    assert!(declared.len() > 30, "{scraped}");
    assert_eq!(described, declared);
    Ok(())
}
