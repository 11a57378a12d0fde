//! A full or read-only disk: uploads are rejected with 507 or 503, leave nothing, and work again once the disk can be
//! written.

use tempfile::TempDir;

use super::{SOON, all_files, noise};
use crate::support::{
    Failure, eventually,
    images::{available, drawn},
    server::{Form, Settings},
    skip,
    small_disk::{ReadOnly, SmallDisk},
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

    // The disk fills up during the upload: free space is checked repeatedly.
    let form = Form::new().file("file", "large.bin", &noise(2, 70_000_000));
    let refused = api.post_form("/api/files", form).await?.expect(507)?;
    assert!(
        refused.json()?["error"]
            .as_str()
            .is_some_and(|error| error.contains("full"))
    );
    server.nothing_temporary_is_left(SOON).await?;

    let ballast = disk.path().join("ballast");
    // The blocks of an unlinked file are freed a moment later.
    eventually("there is room again", SOON, async || {
        std::fs::write(&ballast, vec![0; 60_000_000]).ok()
    })
    .await?;
    let form = Form::new().file("file", "small.bin", b"small");
    api.post_form("/api/files", form).await?.expect(507)?;
    server.nothing_temporary_is_left(SOON).await?;
    // Stored files can be fetched while none can be added.
    let url = kept["download_url"].as_str().ok_or("no download_url")?;
    assert!(api.fetch(url).await?.expect(200)?.bytes == noise(1, 100_000));

    std::fs::remove_file(&ballast)?;
    api.upload("small.bin", b"small").await?;
    assert_eq!(all_files(&api).await?.len(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_disk_refuses_uploads_and_serves_what_is_there() -> Result<(), Failure> {
    if !available("a_read_only_disk_refuses_uploads_and_serves_what_is_there")? {
        return Ok(());
    }
    let server = Settings::new().start().await?;
    let api = server.api();
    let image = drawn("plain.jpg")?;
    let kept = api.upload("kept.jpg", &image).await?;
    let id = kept["id"].as_str().ok_or("no id")?;
    let key = api.delivery_key().await?;
    api.deliver(&key, id, "w=80").await?.expect(200)?;
    let Some(read_only) = ReadOnly::mount(server.data_dir()).await? else {
        skip("a read-only disk", "no right to mount");
        return Ok(());
    };

    for (path, field) in [("/api/files", "file"), ("/api/convert", "files")] {
        let form = Form::new().file(field, "a.jpg", &image);
        let form = form.field("format", "png");
        let refused = api.post_form(path, form).await?.expect(503)?;
        assert_eq!(refused.header("retry-after"), "10", "{path}");
        let error = refused.json()?;
        let text = error["error"].as_str().unwrap_or_default();
        assert!(text.contains("storage"), "{path}: {error}");
        let data_dir = server.data_dir().display().to_string();
        assert!(!text.contains(&data_dir), "{error}");
    }
    // A variant that is new cannot be kept, and is delivered all the same.
    for query in ["w=80", "w=81"] {
        api.deliver(&key, id, query).await?.expect(200)?;
    }
    let url = kept["download_url"].as_str().ok_or("no download_url")?;
    assert!(api.fetch(url).await?.expect(200)?.bytes == image);
    assert!(
        server.log().contains("Read-only file system"),
        "the log names the reason"
    );

    drop(read_only);
    api.upload("again.jpg", &image).await?;
    api.deliver(&key, id, "w=82").await?.expect(200)?;
    Ok(())
}
