//! The machine's clock is set back and forth: what is due stays due, and nothing is given up for it.

use std::path::{Path, PathBuf};

use super::{SOON, deliveries, settings, subscribe, upload, wait_settled};
use crate::support::{
    Failure, eventually,
    media::target_folder,
    receiver::{Behaviour, Receiver},
    server::Settings,
    skip,
};

/// A clock that only the service sees (libfaketime).
struct Clock {
    library: PathBuf,
    offset: PathBuf,
    _folder: tempfile::TempDir,
}

impl Clock {
    /// `None` where the library is not installed.
    fn new() -> Result<Option<Self>, Failure> {
        let unpacked = target_folder().join("tools/faketime/usr/lib");
        let Some(library) = find(&unpacked).or_else(|| find(Path::new("/usr/lib"))) else {
            return Ok(None);
        };
        let folder = tempfile::TempDir::new()?;
        let clock = Self {
            library,
            offset: folder.path().join("offset"),
            _folder: folder,
        };
        clock.set("+0")?;
        Ok(Some(clock))
    }

    /// From the true time, such as `+2d` or `-3600`.
    fn set(&self, offset: &str) -> Result<(), Failure> {
        // Renamed into place, so that no one reads half of it.
        let new = self.offset.with_extension("new");
        std::fs::write(&new, offset)?;
        Ok(std::fs::rename(new, &self.offset)?)
    }

    fn applied_to(&self, settings: Settings) -> Settings {
        settings
            .env("LD_PRELOAD", &self.library.display().to_string())
            .env(
                "FAKETIME_TIMESTAMP_FILE",
                &self.offset.display().to_string(),
            )
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    }
}

/// In the folder of one of the architectures.
fn find(libraries: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(libraries).ok()?;
    folders
        .filter_map(|folder| Some(folder.ok()?.path().join("faketime/libfaketimeMT.so.1")))
        .find(|library| library.exists())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_continue_whatever_the_clock_says() -> Result<(), Failure> {
    let Some(clock) = Clock::new()? else {
        skip("a clock that jumps", "no libfaketime");
        return Ok(());
    };
    let settings = settings().env("SLUICE_WEBHOOKS__RETRY_AFTER_S", "2,2,2,2,2,2,2,2");
    let mut server = clock.applied_to(settings).start().await?;
    let receiver = Receiver::start(Behaviour::status(200)).await?;
    let api = server.api();
    subscribe(&api, &receiver.url("/hook"), &["file.uploaded"]).await?;

    let mut files = 0;
    for (turn, offset) in ["-3600", "+2d", "-30d", "+0"].into_iter().enumerate() {
        receiver.behave(Behaviour::status(500));
        upload(&api, files).await?;
        files += 1;
        let seen = receiver.count();
        eventually("a first attempt", SOON, async || {
            (receiver.count() > seen).then_some(())
        })
        .await?;
        clock.set(offset)?;
        receiver.behave(Behaviour::status(200));
        upload(&api, files).await?;
        files += 1;
        wait_settled(&api, SOON).await?;
        let delivered = deliveries(&api, "status=delivered").await?.len();
        assert_eq!(delivered, files, "turn {turn}, after {offset}");
    }

    // A retry that was planned while the clock was days ahead is not days away for the next process.
    clock.set("+9d")?;
    receiver.behave(Behaviour::status(500));
    upload(&api, files).await?;
    files += 1;
    eventually("a retry is planned", SOON, async || {
        let planned = deliveries(&api, "status=retrying").await.ok()?;
        (!planned.is_empty()).then_some(())
    })
    .await?;
    server.kill().await?;
    clock.set("+0")?;
    receiver.behave(Behaviour::status(200));
    server.restart().await?;
    let api = server.api();
    wait_settled(&api, SOON).await?;
    assert_eq!(deliveries(&api, "status=delivered").await?.len(), files);
    Ok(())
}
