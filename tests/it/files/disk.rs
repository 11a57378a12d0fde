//! A full disk: uploads are refused with 507, leave nothing, and go on once there is room.

use tempfile::TempDir;

use super::{SOON, all_files, noise};
use crate::support::{
    Failure, eventually,
    server::{Form, Settings},
    skip,
    small_disk::SmallDisk,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_uploads_and_keeps_what_is_there() -> Result<(), Failure> {
    let folder = TempDir::new()?;
    let Some(disk) = SmallDisk::mount(folder.path().join("data"), 64).await? else {
        skip("a full disk", "no right to mount a small file system");
        return Ok(());
    };
    let server = Settings::new()
        .data_dir(disk.path())
        .env("SLUICE_STORE__MIN_FREE", "8 MB")
        .start()
        .await?;
    let api = server.api();
    let kept = api.upload("kept.bin", &noise(1, 100_000)).await?;

    // It runs full on the way: the disk is looked at again and again.
    let form = Form::new().file("file", "large.bin", &noise(2, 70_000_000));
    let refused = api.post_form("/api/files", form).await?.expect(507)?;
    assert!(
        refused.json()?["error"]
            .as_str()
            .is_some_and(|error| error.contains("full"))
    );
    server.nothing_temporary_is_left(SOON).await?;

    let ballast = disk.path().join("ballast");
    // A file that is gone by name frees its blocks a moment later.
    eventually("there is room again", SOON, async || {
        std::fs::write(&ballast, vec![0; 60_000_000]).ok()
    })
    .await?;
    let form = Form::new().file("file", "small.bin", b"small");
    api.post_form("/api/files", form).await?.expect(507)?;
    server.nothing_temporary_is_left(SOON).await?;
    // What is stored can be fetched while nothing can be added.
    let url = kept["download_url"].as_str().ok_or("no download_url")?;
    assert!(api.fetch(url).await?.expect(200)?.bytes == noise(1, 100_000));

    std::fs::remove_file(&ballast)?;
    api.upload("small.bin", b"small").await?;
    assert_eq!(all_files(&api).await?.len(), 2);
    Ok(())
}
