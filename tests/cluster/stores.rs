//! The same short way through the service on each S3 server: on one that has everything (`undisturbed.rs`), a fake, and one without
//! conditions.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::Method;
use serde_json::Value;

use crate::{
    soak::load::image,
    support::{
        Failure,
        api::{Api, fetch},
        dice::Dice,
        installation::Installation,
        json::{each, text},
        objects::Kind,
    },
};

const SOON: Duration = Duration::from_secs(60);
/// More than one piece of an object store.
const LARGE_BYTES: usize = 9_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moto_keeps_the_bytes() -> Result<(), Failure> {
    let installation = Installation::of(2, Kind::Moto, &[]).await?;
    store_and_read(&installation).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rclone_keeps_the_bytes() -> Result<(), Failure> {
    let installation = Installation::of(2, Kind::Rclone, &[]).await?;
    store_and_read(&installation).await
}

/// Stores by one node and reads by another one; nothing is left.
pub async fn store_and_read(installation: &Installation) -> Result<(), Failure> {
    let [storing, reading] = [0, 1].map(|number: usize| installation.nodes[number].api());
    let mut dice = Dice::new(12);
    let large: Vec<u8> = (0..LARGE_BYTES / 8)
        .flat_map(|_| dice.next().to_le_bytes())
        .collect();
    let stored = text(&storing.upload("large.bin", &large).await?["id"])?;
    check_bytes(&reading, &stored, &large).await?;

    // Begun on one node and ended on the other.
    let half = LARGE_BYTES / 2;
    let resumable = begin(&storing, &large, half).await?;
    let path = resumable
        .find("/api/")
        .map(|at| &resumable[at..])
        .ok_or("no path")?;
    let rest = tus(&reading, Method::PATCH, path)
        .header("content-type", "application/offset+octet-stream")
        .header("upload-offset", half)
        .body(large[half..].to_vec());
    let ended = fetch(rest).await?.expect(204)?;
    let resumed = ended.header("service-file-id").to_owned();
    check_bytes(&storing, &resumed, &large).await?;

    let job = storing.convert("picture.svg", &image(0, &mut dice)).await?;
    let is_done = |job: &Value| (job["status"] == "completed").then_some(());
    let path = format!("/api/jobs/{job}");
    reading
        .wait(&path, "the job has completed", SOON, is_done)
        .await?;
    for id in [&stored, &resumed] {
        let deleted = reading.delete(&format!("/api/files/{id}")).await?;
        assert!(deleted.status.is_success(), "{}", deleted.text());
    }
    let listed = each(&storing.get("/api/files").await?["files"], "id")?;
    assert!(listed.is_empty(), "{listed:?}");
    Ok(())
}

async fn check_bytes(api: &Api, id: &str, expected: &[u8]) -> Result<(), Failure> {
    let record = api.get(&format!("/api/files/{id}")).await?;
    let url = text(&record["file"]["download_url"])?;
    assert!(
        api.look(&url).await?.expect(200)?.bytes == expected,
        "other bytes"
    );
    let (from, to) = (expected.len() / 2 - 5, expected.len() / 2 + 5);
    let range = api
        .anonymous(Method::GET, &url)
        .header("range", format!("bytes={from}-{to}"));
    let part = fetch(range).await?.expect(206)?;
    assert!(part.bytes == expected[from..=to], "another range");
    Ok(())
}

/// Makes a resumable upload and sends its beginning; its address.
async fn begin(api: &Api, bytes: &[u8], sent: usize) -> Result<String, Failure> {
    let made = tus(api, Method::POST, "/api/uploads/tus")
        .header("upload-length", bytes.len())
        .header(
            "upload-metadata",
            format!("filename {}", STANDARD.encode("resumable.bin")),
        );
    let made = fetch(made).await?.expect(201)?;
    let url = made.header("location").to_owned();
    let first = tus(api, Method::PATCH, &url)
        .header("content-type", "application/offset+octet-stream")
        .header("upload-offset", 0)
        .body(bytes[..sent].to_vec());
    fetch(first).await?.expect(204)?;
    Ok(url)
}

fn tus(api: &Api, method: Method, path: &str) -> reqwest::RequestBuilder {
    api.request(method, path).header("tus-resumable", "1.0.0")
}
