//! `sluice backup` and `sluice restore` with stored files: what was acknowledged before is there afterwards.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;

use super::{all_files, blobs, download, noise};
use crate::support::{
    Failure,
    command::sluice,
    eventually,
    server::{Api, Server, Settings},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Records that the service acknowledged.
type Acknowledged = Arc<Mutex<Vec<Value>>>;

fn bytes_of(seed: u64) -> Vec<u8> {
    noise(seed, (seed as usize).wrapping_mul(40_503) % 300_000)
}

async fn upload_for_ever(api: Api, acknowledged: Acknowledged) {
    for seed in 1.. {
        let Ok(file) = api.upload(&format!("{seed}.bin"), &bytes_of(seed)).await else {
            return;
        };
        if let Ok(mut acknowledged) = acknowledged.lock() {
            acknowledged.push(file);
        }
    }
}

async fn until_acknowledged(count: usize, of: &Acknowledged) -> Result<Vec<Value>, Failure> {
    eventually("uploads are acknowledged", PATIENCE, async || {
        let list = of.lock().ok()?;
        (list.len() >= count).then(|| list.clone())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_amid_uploads_brings_every_file_back() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let acknowledged = Acknowledged::default();
    let uploads = tokio::spawn(upload_for_ever(server.api(), acknowledged.clone()));
    let folder = tempfile::tempdir()?;
    let (dir, data) = (folder.path().join("backup"), folder.path().join("data"));
    let dir = dir.display().to_string();
    let back_up = || sluice(&["backup", &dir, "--verify"]).data_dir(server.data_dir());

    let first = until_acknowledged(5, &acknowledged).await?;
    back_up().succeed().await?;
    let second = until_acknowledged(first.len() + 5, &acknowledged).await?;
    back_up().succeed().await?;
    assert!(!uploads.is_finished(), "uploads continue beside a backup");
    server.kill().await?;
    uploads.await?;
    drop(server);

    let restored = sluice(&["restore", &dir, "--verify"]).data_dir(&data);
    restored.succeed().await?;
    let server = restored_server(&data).await?;
    let api = server.api();
    let files = all_files(&api).await?;
    for record in &second {
        let kept = files.iter().any(|file| file["id"] == record["id"]);
        assert!(kept, "{record} was acknowledged before the backup");
    }
    for file in &files {
        let name = file["filename"].as_str().ok_or("no name")?;
        let seed = name.trim_end_matches(".bin").parse()?;
        let whole = download(&api, file).await? == bytes_of(seed);
        assert!(whole, "{name} has other bytes");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_file_is_named_and_the_others_are_backed_up() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    api.upload("lost\n.bin", &noise(1, 1000)).await?;
    let [lost] = blob_paths(server.data_dir())?
        .try_into()
        .map_err(|_| "more than one blob")?;
    api.upload("kept.bin", &noise(2, 1000)).await?;
    fs::remove_file(lost)?;

    let folder = tempfile::tempdir()?;
    let (dir, data) = (folder.path().join("backup"), folder.path().join("data"));
    let path = dir.display().to_string();
    let message = sluice(&["backup", &path]).data_dir(server.data_dir());
    let message = message.fail().await?;
    assert!(message.contains("1 of 2 files are lost"), "{message}");
    let line = message.lines().find(|line| line.contains("is missing"));
    let line = line.ok_or_else(|| format!("no file named: {message}"))?;
    assert!(line.contains("lost") && line.contains(".bin"), "{message}");
    assert_eq!(blobs(&dir)?, 1);

    let message = sluice(&["restore", &path]).data_dir(&data).fail().await?;
    assert!(message.contains("1 of 2 files are lost"), "{message}");
    let server = restored_server(&data).await?;
    let files = all_files(&server.api()).await?;
    assert_eq!(files.len(), 2);
    let kept = files.iter().find(|file| file["filename"] == "kept.bin");
    let bytes = download(&server.api(), kept.ok_or("kept.bin is gone")?).await?;
    assert_eq!(bytes, noise(2, 1000));
    Ok(())
}

/// A service on restored data, whose credentials are the old ones.
async fn restored_server(data: &Path) -> Result<Server, Failure> {
    let settings = Settings::new().data_dir(data);
    settings.env("SLUICE_BOOTSTRAP__API_KEY", "").start().await
}

fn blob_paths(data_dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::new();
    for folder in fs::read_dir(data_dir.join("blobs"))? {
        for blob in fs::read_dir(folder?.path())? {
            paths.push(blob?.path());
        }
    }
    Ok(paths)
}
