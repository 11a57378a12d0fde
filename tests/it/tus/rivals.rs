//! Two clients on one upload end each other's requests, and make one file.

use super::*;
use crate::files;

const ATTEMPTS: usize = 500;

/// Uploads as a client does that is sure to be alone: asks, sends the rest, and asks again when that failed.
async fn insist(upload: &Upload, bytes: &[u8]) -> Result<String, Failure> {
    for _ in 0..ATTEMPTS {
        let head = request(Method::HEAD, &upload.url).send().await?;
        if head.status() == StatusCode::LOCKED {
            continue;
        }
        assert_eq!(head.status(), StatusCode::OK);
        if let Some(file_id) = header(&head, "service-file-id") {
            return Ok(file_id);
        }
        let offset = header(&head, "upload-offset").ok_or("no Upload-Offset")?;
        let offset: usize = offset.parse()?;
        assert!(offset < bytes.len(), "all of the bytes are a file");
        // A request that is cut off may end its connection.
        if let Ok(answer) = upload.patch(offset, bytes[offset..].to_vec()).await {
            let is_expected = [204, 409, 423].contains(&answer.status().as_u16());
            assert!(is_expected, "{answer:?}");
        }
    }
    Err("they never came to an end".into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_clients_on_one_upload_make_one_file() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    for seed in 0..5 {
        let bytes = files::noise(seed, 3_000_000);
        let upload = Upload::make(&api, bytes.len(), &[]).await?;
        let (one, other) = tokio::join!(insist(&upload, &bytes), insist(&upload, &bytes));
        let (one, other) = (one?, other?);
        assert_eq!(one, other);
        assert!(stored(&api, &one).await? == bytes);
        assert_eq!(files::all_files(&api).await?.len() as u64, seed + 1);
    }
    assert_eq!(partial_bytes(server.data_dir())?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_is_deleted_ends_its_request() -> Result<(), Failure> {
    let server = Server::start().await?;
    let upload = Upload::make(&server.api(), 700_000, &[]).await?;
    let mut socket = upload.begin(&server, 0, &files::noise(8, 300_000)).await?;
    until_written(&server, PIECE).await?;
    let deleted = request(Method::DELETE, &upload.url).send().await?;
    assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
    assert!(read_to_end(&mut socket).await?.starts_with("HTTP/1.1 423"));
    assert_eq!(partial_bytes(server.data_dir())?, 0);
    let head = request(Method::HEAD, &upload.url).send().await?;
    assert_eq!(head.status(), StatusCode::NOT_FOUND);
    Ok(())
}
