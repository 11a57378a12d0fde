//! Sync of the live folder's file system once a second while an input is on air, against power loss.
//!
//! Nothing waits for it: the page cache already survives `kill -9`.

use std::{fs::File, io, path::PathBuf, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{InputStatus, playback::Directory};

/// Interval between two syncs.
const EVERY: Duration = Duration::from_secs(1);

/// Syncs until `stop`, and once more then.
pub(super) async fn run(folder: PathBuf, directory: Arc<Directory>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = stop.cancelled() => {}
        }
        if directory
            .playbacks()
            .iter()
            .any(|playback| playback.status() != InputStatus::Idle)
        {
            let folder = folder.clone();
            let synced = tokio::task::spawn_blocking(move || sync(&folder)).await;
            if let Ok(Err(error)) = synced {
                debug!(%error, "the live folder could not be synced");
            }
        }
    }
}

fn sync(folder: &PathBuf) -> io::Result<()> {
    rustix::fs::syncfs(File::open(folder)?)?;
    Ok(())
}
