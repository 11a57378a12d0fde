//! Requests that end too early, one way or another: the received bytes are kept, and the next one continues.

use super::*;
use crate::{files, support::server::Settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_may_be_cut_at_every_byte() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let bytes = b"a line that breaks";
    for cut in 0..=bytes.len() {
        for in_chunks in [false, true] {
            let upload = Upload::make(&api, bytes.len(), &[]).await?;
            let (length, body) = match in_chunks {
                false => (
                    format!("Content-Length: {}", bytes.len()),
                    bytes[..cut].to_vec(),
                ),
                true => {
                    let head = format!("{:x}\r\n", bytes.len());
                    let body = [head.as_bytes(), &bytes[..cut]].concat();
                    ("Transfer-Encoding: chunked".to_owned(), body)
                }
            };
            let mut socket = upload.begin_with(&server, 0, &length, &body).await?;
            socket.shutdown().await?;
            read_to_end(&mut socket).await?;
            let upload_state = upload.head().await?;
            assert_eq!(upload_state.offset, cut, "in chunks: {in_chunks}");
            assert_eq!(
                upload_state.file_id.is_some(),
                cut == bytes.len(),
                "{upload_state:?}"
            );
            let file_id = upload.resume(bytes).await?;
            assert_eq!(stored(&api, &file_id).await?, bytes);
        }
    }
    assert_eq!(partial_bytes(server.data_dir())?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_ends_a_request_that_only_seems_to_be_alive() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let bytes = files::noise(5, 700_000);
    let upload = Upload::make(&api, bytes.len(), &[("filename", "train.bin")]).await?;
    let mut lingering = upload.begin(&server, 0, &bytes[..300_000]).await?;
    until_written(&server, PIECE).await?;

    let offset = upload.head().await?.offset;
    assert!((PIECE as usize..=300_000).contains(&offset), "{offset}");
    let answer = read_to_end(&mut lingering).await?;
    assert!(answer.starts_with("HTTP/1.1 423"), "{answer}");

    // A request that asks nothing before ends the one before it, too, and gets the upload's offset.
    let mut lingering = upload
        .begin(&server, offset, &bytes[offset..offset + 300_000])
        .await?;
    until_written(&server, offset as u64 + PIECE).await?;
    let refused = upload.patch(offset, bytes[offset..].to_vec()).await?;
    assert_eq!(refused.status(), StatusCode::CONFLICT);
    assert!(
        read_to_end(&mut lingering)
            .await?
            .starts_with("HTTP/1.1 423")
    );
    let file_id = upload.resume(&bytes).await?;
    assert!(stored(&api, &file_id).await? == bytes);
    assert_eq!(files::all_files(&api).await?.len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_client_and_a_service_that_stops_lose_nothing() -> Result<(), Failure> {
    let mut server = Settings::new()
        // More than a busy machine takes to begin the stop.
        .env("SLUICE_UPLOADS__IDLE_TIMEOUT", "5s")
        .start()
        .await?;
    let bytes = files::noise(6, 900_000);
    let upload = Upload::make(&server.api(), bytes.len(), &[]).await?;
    let mut silent = upload.begin(&server, 0, &bytes[..300_000]).await?;
    let answer = read_to_end(&mut silent).await?;
    let is_explained =
        answer.starts_with("HTTP/1.1 409") && answer.contains("uploads.idle_timeout");
    assert!(is_explained, "{answer}");
    assert_eq!(upload.head().await?.offset, 300_000);

    let mut stopped = upload
        .begin(&server, 300_000, &bytes[300_000..600_000])
        .await?;
    until_written(&server, 300_000 + PIECE).await?;
    assert!(server.terminate().await?.success());
    let answer = read_to_end(&mut stopped).await?;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 503"),
        "{answer}"
    );
    server.restart().await?;
    let offset = upload_at(&server, &upload).head().await?.offset;
    assert!(
        (300_000 + PIECE as usize..=600_000).contains(&offset),
        "{offset}"
    );
    let file_id = upload_at(&server, &upload).resume(&bytes).await?;
    assert!(stored(&server.api(), &file_id).await? == bytes);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_bytes_than_declared_make_no_file() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let upload = Upload::make(&api, 10, &[]).await?;
    let refused = upload.patch(0, vec![0; 11]).await?;
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let body = b"6\r\n012345\r\n5\r\n6789A\r\n0\r\n\r\n";
    let chunked = "Transfer-Encoding: chunked";
    let mut socket = upload.begin_with(&server, 0, chunked, body).await?;
    let answer = read_to_end(&mut socket).await?;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert_eq!(upload.head().await?.file_id, None);
    assert_eq!(files::all_files(&api).await?.len(), 0);
    assert_eq!(partial_bytes(server.data_dir())?, 0);
    Ok(())
}

/// A digest of nothing that is ever sent.
const WRONG: &str = "Upload-Checksum: sha1 AAAAAAAAAAAAAAAAAAAAAAAAAAA=";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_kept_leaves_the_disk() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let bytes = files::noise(9, 700_000);
    let upload = Upload::make(&api, bytes.len(), &[]).await?;
    let kept = upload.patch(0, bytes[..1000].to_vec()).await?;
    assert_eq!(kept.status(), StatusCode::NO_CONTENT);

    // The connection breaks before the bytes of a checksum are whole.
    let length = format!("{WRONG}\r\nContent-Length: {}", bytes.len() - 1000);
    let mut socket = upload
        .begin_with(&server, 1000, &length, &bytes[1000..600_000])
        .await?;
    until_written(&server, 1000 + PIECE).await?;
    socket.shutdown().await?;
    read_to_end(&mut socket).await?;
    assert_eq!(upload.head().await?.offset, 1000);
    assert_eq!(partial_bytes(server.data_dir())?, 1000);

    // A complete body whose bytes do not match the checksum.
    let mut socket = upload
        .begin_with(&server, 1000, &length, &bytes[1000..])
        .await?;
    let answer = read_to_end(&mut socket).await?;
    assert!(answer.starts_with("HTTP/1.1 460"), "{answer}");
    assert_eq!(partial_bytes(server.data_dir())?, 1000);

    // Anyone who takes over such a request keeps what it brings itself.
    let mut socket = upload
        .begin_with(&server, 1000, &length, &bytes[1000..600_000])
        .await?;
    until_written(&server, 1000 + PIECE).await?;
    let later = upload.patch(1000, bytes[1000..400_000].to_vec()).await?;
    assert_eq!(later.status(), StatusCode::NO_CONTENT);
    let answer = read_to_end(&mut socket).await?;
    assert!(answer.starts_with("HTTP/1.1 423"), "{answer}");
    assert_eq!(partial_bytes(server.data_dir())?, 400_000);
    let file_id = upload.resume(&bytes).await?;
    assert!(stored(&api, &file_id).await? == bytes);
    assert_eq!(partial_bytes(server.data_dir())?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_being_received_counts_with_and_without_a_checksum() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_PLANS__UNLIMITED__STORAGE", "1 MB")
        .start()
        .await?;
    let api = server.api();
    let bytes = files::noise(10, 700_000);
    let first = Upload::make(&api, bytes.len(), &[]).await?;
    let (known, unknown) = ("Content-Length: 700000", "Transfer-Encoding: chunked");
    let in_chunks = [b"AAE60\r\n", &bytes[..]].concat();
    for (length, body) in [(known, &bytes), (unknown, &in_chunks)] {
        let second = Upload::make(&api, bytes.len(), &[]).await?;
        let length = format!("{WRONG}\r\n{length}");
        let mut socket = first
            .begin_with(&server, 0, &length, &body[..600_000])
            .await?;
        until_written(&server, 2 * PIECE).await?;
        let refused = second.patch(0, bytes.clone()).await?;
        assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let error: Value = refused.json().await?;
        assert_eq!(error["code"], "storage_used_up", "{error}");
        let mut other = second
            .begin_with(&server, 0, unknown, &in_chunks[..400_000])
            .await?;
        let answer = read_to_end(&mut other).await?;
        assert!(answer.contains("storage_used_up"), "{answer}");
        second.head().await?;
        assert!(partial_bytes(server.data_dir())? <= 1_000_000);

        // Once it has ended it holds what counts of it, which is nothing.
        socket.shutdown().await?;
        read_to_end(&mut socket).await?;
        assert_eq!(first.head().await?.offset, 0);
        let offset = second.head().await?.offset;
        let again = second
            .patch(offset, bytes[offset..699_999].to_vec())
            .await?;
        assert_eq!(again.status(), StatusCode::NO_CONTENT);
        request(Method::DELETE, &second.url).send().await?;
    }
    Ok(())
}

/// The same upload at a service that was started again, at another port.
pub(super) fn upload_at(server: &Server, upload: &Upload) -> Upload {
    let (_, path) = upload
        .url
        .split_once("/api/")
        .expect("an address of the API");
    Upload {
        url: format!("{}/api/{path}", server.base_url()),
        length: upload.length,
    }
}
