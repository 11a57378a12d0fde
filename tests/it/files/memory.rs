//! Large files pass through the service without ever being in its memory.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use reqwest::{Body, Method, StatusCode};
use serde_json::json;

use super::SOON;
use crate::support::{Failure, http::client, server::Server};

const MIB: usize = 1 << 20;
/// Length of the upload, in MiB.
const LENGTH_MIB: usize = 1024;
/// Bound on the growth of the service's memory, in KiB: much less than the file.
const ALLOWANCE_KIB: u64 = 64 * 1024;
/// A debug build hashes slowly.
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gibibyte_passes_through_a_few_mebibytes() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    api.upload("warm.bin", &[0; 100_000]).await?;
    let before_kib = server.peak_resident_kib()?;

    let new = json!({"filename": "large.bin", "sizeBytes": LENGTH_MIB * MIB});
    let (_, made) = api.call(Method::POST, "/api/uploads", Some(&new)).await?;
    let signed_url = made["upload"]["signedUrl"].as_str().ok_or("no signedUrl")?;
    let piece = Bytes::from(vec![7; MIB]);
    let pieces = stream::repeat(piece)
        .take(LENGTH_MIB)
        .map(Ok::<_, std::io::Error>);
    let put = client()
        .put(signed_url)
        .timeout(PATIENCE)
        .body(Body::wrap_stream(pieces));
    assert_eq!(put.send().await?.status(), StatusCode::OK);
    let complete = &made["complete"]["body"];
    let (status, completed) = api
        .call(Method::POST, "/api/uploads/complete", Some(complete))
        .await?;
    assert_eq!(status, StatusCode::OK, "{completed}");

    let url = completed["file"]["download_url"]
        .as_str()
        .ok_or("no download_url")?;
    let mut answer = client().get(url).timeout(PATIENCE).send().await?;
    let mut length = 0;
    while let Some(piece) = answer.chunk().await? {
        assert!(piece.iter().all(|byte| *byte == 7));
        length += piece.len();
    }
    assert_eq!(length, LENGTH_MIB * MIB);
    let more_kib = server.peak_resident_kib()? - before_kib;
    assert!(
        more_kib < ALLOWANCE_KIB,
        "{more_kib} KiB more for {LENGTH_MIB} MiB"
    );
    server.nothing_temporary_is_left(SOON).await
}
