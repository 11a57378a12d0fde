//! `kill -9` in mid-upload: acknowledged bytes remain, and the upload continues.

use super::{cuts::upload_at, *};
use crate::{files, support::server::Settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_mid_upload_the_next_request_continues_where_the_service_was()
-> Result<(), Failure> {
    let mut server = Settings::new()
        .env("SLUICE_UPLOADS__CHECKPOINT", "256 KiB")
        .start()
        .await?;
    let bytes = files::noise(7, 4_000_000);
    let upload = Upload::make(&server.api(), bytes.len(), &[("filename", "train.bin")]).await?;
    let mut reached = 0;
    for sent in [1_000_000, 2_500_000] {
        let upload = upload_at(&server, &upload);
        let _socket = upload
            .begin(&server, reached, &bytes[reached..sent])
            .await?;
        // Within a checkpoint of what was sent.
        let wanted = sent as u64 - 2 * PIECE;
        let confirmed = eventually("the offset grows", SOON, async || {
            let offset = upload.shown().await.ok()?["offsetBytes"].as_u64()?;
            (offset >= wanted).then_some(offset)
        })
        .await?;
        server.kill().await?;
        server.restart().await?;
        let offset = upload_at(&server, &upload).head().await?.offset;
        assert!(
            (confirmed as usize..=sent).contains(&offset),
            "{confirmed}: {offset}"
        );
        reached = offset;
    }
    let file_id = upload_at(&server, &upload).resume(&bytes).await?;
    assert!(stored(&server.api(), &file_id).await? == bytes);
    assert_eq!(files::all_files(&server.api()).await?.len(), 1);
    assert_eq!(partial_bytes(server.data_dir())?, 0);
    Ok(())
}
