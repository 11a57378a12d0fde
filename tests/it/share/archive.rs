//! The whole folder as one download, for anyone with its link.

use futures_util::StreamExt as _;
use reqwest::StatusCode;
use serde_json::json;

use super::{Shared, make_folder, put};
use crate::support::{Failure, eventually, http::client, server::API_KEY};

const MIB: usize = 1 << 20;
/// More than sockets and what is opened ahead can hold, in MiB.
const FILES: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_gets_what_the_owner_gets() -> Result<(), Failure> {
    let shared = Shared::open(json!({})).await?;
    let inner = make_folder(&shared.api, "inner", Some(&shared.folder)).await?;
    shared.put("photo.jpg", &[1; 100_000]).await?;
    put(&shared.api, &inner, "deep.jpg", &[2; 50_000]).await?;
    let beside = make_folder(&shared.api, "beside", None).await?;
    put(&shared.api, &beside, "secret.jpg", &[3; 1000]).await?;

    let archive = shared.api.fetch(&shared.path("/zip")).await?.expect(200)?;
    let key = format!("Bearer {API_KEY}");
    let owners = format!("/api/folders/{}/zip", shared.folder);
    let headers = [("authorization", key.as_str())];
    let owners = shared.api.fetch_with(&owners, &headers).await?;
    let owners = owners.expect(200)?;
    assert!(archive.bytes == owners.bytes && archive.bytes.len() > 150_000);
    assert_eq!(archive.header("etag"), owners.header("etag"));
    for (header, expected) in [
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox"),
        ("cache-control", "private, no-cache"),
    ] {
        assert_eq!(archive.header(header), expected, "{header}");
    }
    let headers = [
        ("range", "bytes=100000-"),
        ("if-range", archive.header("etag")),
    ];
    let rest = shared
        .api
        .fetch_with(&shared.path("/zip"), &headers)
        .await?;
    assert!(rest.expect(206)?.bytes == archive.bytes[100_000..]);
    eventually("one download is counted", super::SOON, async || {
        let record = shared.record().await.ok()?;
        (record["downloadCount"] == 1).then_some(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_link_ends_its_archive_short() -> Result<(), Failure> {
    let shared = Shared::open(json!({})).await?;
    for number in 0..FILES {
        shared.put(&format!("{number}.bin"), &[7; MIB]).await?;
    }
    let address = format!("{}{}", shared.server.base_url(), shared.path("/zip"));
    let answer = client().get(address).send().await?;
    let promised = answer.content_length().ok_or("no length")?;
    let mut body = answer.bytes_stream();
    let mut received = body.next().await.ok_or("nothing")??.len() as u64;
    shared.revoke().await?;
    let mut failure = None;
    while let Some(piece) = body.next().await {
        match piece {
            Ok(piece) => received += piece.len() as u64,
            Err(error) => failure = Some(error),
        }
    }
    assert!(failure.is_some(), "the client sees the failure");
    assert!(received < promised, "{received} of {promised}");
    let after = shared.api.fetch(&shared.path("/zip")).await?;
    assert_eq!(after.status, StatusCode::NOT_FOUND);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terms_hold_for_archives_too() -> Result<(), Failure> {
    let looking = Shared::open(json!({"allowDownload": false})).await?;
    looking.put("photo.jpg", b"x").await?;
    let refused = looking
        .api
        .fetch(&looking.path("/zip"))
        .await?
        .expect(403)?;
    assert_eq!(refused.json()?["code"], "downloads_off");

    let bounded = Shared::open(json!({"downloadLimit": 1})).await?;
    bounded.put("photo.jpg", &[7; 1000]).await?;
    let zip = bounded.path("/zip");
    let whole = bounded.api.fetch(&zip).await?.expect(200)?;
    let again = bounded.api.fetch(&zip).await?.expect(410)?;
    assert_eq!(again.json()?["code"], "download_limit_reached");
    let rest = bounded
        .api
        .fetch_with(&zip, &[("range", "bytes=500-")])
        .await?;
    assert!(rest.expect(206)?.bytes == whole.bytes[500..]);

    let locked = Shared::open(json!({"password": "open sesame"})).await?;
    let refused = locked.api.fetch(&locked.path("/zip")).await?.expect(403)?;
    assert_eq!(refused.json()?["code"], "password_required");
    Ok(())
}
