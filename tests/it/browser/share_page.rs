//! Page of a shared folder in a browser: starts the service for the steps in `tests/browser/share.test.mjs`.

use std::{process::Stdio, time::Duration};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Turn, streams};
use crate::{
    share::{make_folder, put, share},
    support::{
        Failure,
        images::svg,
        json::text,
        media::Recipe,
        server::{API_KEY, Api},
    },
};

/// Deadline for all steps, in a debug build on a machine with other work.
const STEPS: Duration = Duration::from_secs(600);
/// Behind the first page of 50.
const NOTES: usize = 70;
/// More than a page, and higher than what browsers load beforehand.
const FADING: usize = 60;
const PASSWORD: &str = "correct horse";
const HOSTILE_SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"30\">\
    <script>window.top.pwned = true</script><rect width=\"40\" height=\"30\"/></svg>";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_folder_is_looked_through_played_and_downloaded() -> Result<(), Failure> {
    let Some(_turn) = Turn::alone().await? else {
        return Ok(());
    };
    let server = streams::service().await?;
    let api = server.api();
    let folder = make_folder(&api, "Spring campaign", None).await?;
    fill(&api, &folder).await?;
    let locked = folder_with_password(&api).await?;
    let looking = make_folder(&api, "Proofs", None).await?;
    put(&api, &looking, "proof.jpg", &image(&api, "plum").await?).await?;
    let withdrawn = make_folder(&api, "Withdrawn", None).await?;
    let fading = make_folder(&api, "Fading", None).await?;
    make_folder(&api, "Below", Some(&fading)).await?;
    let fades = image(&api, "tomato").await?;
    for number in 0..FADING {
        put(&api, &fading, &format!("{number:02}.jpg"), &fades).await?;
    }
    let limited = make_folder(&api, "Limited", None).await?;
    put(&api, &limited, "proof.jpg", &fades).await?;
    let scene = json!({
        "url": share(&api, &folder, json!({})).await?["url"],
        "locked": locked,
        "password": PASSWORD,
        "looking": share(&api, &looking, json!({"allowDownload": false})).await?["url"],
        "withdrawn": share(&api, &withdrawn, json!({})).await?["url"],
        "fading": {
            "share": format!("{}/api/folders/{fading}/share", api.base()),
            "key": API_KEY,
        },
        "limited": share(&api, &limited, json!({"downloadLimit": 1})).await?["url"],
        "files": NOTES + 9,
    });
    let path = format!("/api/folders/{withdrawn}/share");
    api.expect(StatusCode::OK, Method::DELETE, &path, None)
        .await?;
    walk(&scene).await
}

/// Something of every kind, the notes behind the first page.
async fn fill(api: &Api, folder: &str) -> Result<(), Failure> {
    for number in 0..NOTES {
        let name = format!("note {number:03}.txt");
        put(api, folder, &name, name.as_bytes()).await?;
    }
    let below = make_folder(api, "Behind the scenes", Some(folder)).await?;
    put(api, &below, "inside.jpg", &image(api, "navy").await?).await?;

    let clip = std::fs::read(Recipe::numbered(0).make()?.mp4)?;
    let (tone, audio) = api.tool("extract-audio", "clip.mp4", &clip, &[]).await?;
    assert_eq!(tone["mimeType"], "audio/mpeg", "{tone}");
    let (_, pdf) = api
        .tool("image-to-pdf", "a.jpg", &image(api, "olive").await?, &[])
        .await?;
    put(
        api,
        folder,
        "page.html",
        b"<script>window.pwned = true</script>",
    )
    .await?;
    put(api, folder, "drawing.svg", HOSTILE_SVG.as_bytes()).await?;
    put(api, folder, "sheet.pdf", &pdf).await?;
    put(api, folder, "tone.mp3", &audio).await?;
    let streamed = put(api, folder, "streamed.mp4", &clip).await?;
    put(api, folder, "clip.mp4", &clip).await?;
    put(api, folder, "<i>third.jpg", &image(api, "teal").await?).await?;
    put(api, folder, "צילום.jpg", &image(api, "gold").await?).await?;
    put(api, folder, "first.jpg", &image(api, "crimson").await?).await?;

    let fields = json!({
        "sourceFileId": streamed, "profile": "custom", "segmentDuration": 2, "renditions": [{"height": 96}],
    });
    let answer = api.expect(
        StatusCode::ACCEPTED,
        Method::POST,
        "/api/video/streams",
        Some(&fields),
    );
    let stream = text(&answer.await?["stream"]["id"])?;
    streams::wait_ready(api, &stream).await?;
    Ok(())
}

async fn folder_with_password(api: &Api) -> Result<Value, Failure> {
    let folder = make_folder(api, "Confidential", None).await?;
    put(api, &folder, "secret.txt", b"secret").await?;
    let share = share(api, &folder, json!({"password": PASSWORD})).await?;
    Ok(share["url"].clone())
}

async fn image(api: &Api, colour: &str) -> Result<Vec<u8>, Failure> {
    let (_, jpeg) = api
        .convert("a.svg", &svg(colour), &[("format", "jpg")])
        .await?;
    Ok(jpeg.to_vec())
}

/// Takes the steps; their report is part of the failure.
async fn walk(scene: &Value) -> Result<(), Failure> {
    let child = Command::new("node")
        .args(["--test", "share.test.mjs"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser"))
        .env("SLUICE_SHARED", scene.to_string())
        .env_remove("NODE_TEST_CONTEXT")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(STEPS, child).await??;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stdout).into()),
    }
}
