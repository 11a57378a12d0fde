//! Folders of recordings (`{data_dir}/recordings`), and their media in the object store: noted at the start after a crash,
//! removed when nothing needs them; failed recordings are kept 7 days.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use sluice_media::hls::{
    Header,
    record::{self, Entry},
};
use sluice_store::{
    Error as StoreError, Store,
    broadcasts::{self, BroadcastState},
    live_segments,
    recordings::{self, Recording, RecordingStatus},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use super::{
    ledger,
    playback::Directory,
    recorded_media::{RECORDING_INDEX, RecordedFolder, blocking},
    recording_upload::Uploads,
    recording_writer::WriterContext,
    unix_ms,
};

/// Interval at which folders that nothing needs are removed.
const EVERY: Duration = Duration::from_secs(30);
/// Time after the end of a playlist in which its last viewers may still ask for segments.
const LAST_VIEWERS: Duration = Duration::from_secs(60);
/// Time for which the media of a failed recording are kept, to be rescued.
const FAILED_KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Time for which a folder without a row is kept: it may have been made just now.
const UNKNOWN_KEPT: Duration = Duration::from_secs(3_600);
/// Time for which the data folder of a dead node may come back with what it had not uploaded of its recordings.
const RETURN_WITHIN: Duration = Duration::from_secs(10 * 60);

/// Notes every recording on the disk in the store, and which of them are over: a crash may have come between a folder and its
/// row. Blocks.
pub(super) fn recover(site: &WriterContext, on_air: &[String]) -> io::Result<()> {
    for folder in folders(&site.folder)? {
        let Some((input_id, header)) = begun(&folder) else {
            continue;
        };
        let (broadcast, started_ms) = (header.broadcast, header.started_ms);
        let last_ms = fs::metadata(folder.join(RECORDING_INDEX))
            .and_then(|index| index.modified())
            .map_or(started_ms, unix_ms_of);
        site.ledger.note(ledger::Entry::RecordingBegun {
            input_id,
            broadcast: broadcast.clone(),
            at_ms: started_ms,
        });
        if on_air.contains(&broadcast) {
            continue;
        }
        info!(broadcast, "a recording that was cut short is stored");
        match &site.uploads {
            // It ends once all of it is in the object store.
            Some(uploads) => {
                let recorded = RecordedFolder::new(&site.store, &folder, &broadcast);
                uploads.add(recorded, header.fence).end(last_ms);
            }
            None => site.ledger.note(ledger::Entry::RecordingEnded {
                broadcast,
                at_ms: last_ms,
            }),
        }
    }
    Ok(())
}

/// Returns the input and the broadcast of the recording in a folder.
fn begun(folder: &Path) -> Option<(Uuid, Header)> {
    let index = fs::read(folder.join(RECORDING_INDEX)).ok()?;
    let Some(Entry::Begun { input, header }) = record::decode(&index).next() else {
        return None;
    };
    let is_own = folder.file_name()?.to_str()? == header.broadcast;
    let input_id = Uuid::try_parse(&input).ok()?;
    is_own.then_some((input_id, header))
}

/// Removes folders that nothing needs, and their media in the object store, until `stop`. Of a cluster's nodes the janitor removes
/// media, and each the folders that it has.
pub(super) async fn run(
    site: WriterContext,
    directory: Arc<Directory>,
    linger: Duration,
    stop: CancellationToken,
) {
    let began_ms = unix_ms();
    loop {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = stop.cancelled() => return,
        }
        if let Err(error) = end_lost(&site, &directory, began_ms).await {
            warn!(%error, "recordings that were lost stay noted as on air");
        }
        if let Err(error) = sweep(&site, &directory, linger).await {
            warn!(%error, "folders of recordings are removed later");
        }
        let Some(uploads) = &site.uploads else {
            continue;
        };
        if !site.store.cluster().is_janitor() {
            continue;
        }
        if let Err(error) = end_abandoned(&site.store).await {
            warn!(%error, "recordings of dead nodes stay noted as on air");
        }
        if let Err(error) = sweep_objects(&site.store, uploads, &directory, linger).await {
            warn!(%error, "recorded media in the object store are removed later");
        }
    }
}

/// Ends the rows of recordings that an earlier process left and that have no folder: those of a backup, for instance.
async fn end_lost(
    site: &WriterContext,
    directory: &Directory,
    began_ms: i64,
) -> Result<(), StoreError> {
    let mut keep: Vec<String> = directory
        .playbacks()
        .iter()
        .filter_map(|playback| playback.now().view.clone())
        .map(|view| view.window.header().broadcast.clone())
        .collect();
    if let Some(uploads) = &site.uploads {
        keep.extend(uploads.pending());
    }
    let of = ledger::lost_at_start(&site.store);
    loop {
        let keep = keep.clone();
        let ended = site.store.write(move |tx| {
            Box::pin(async move { recordings::end_lost(tx, of, &keep, began_ms, unix_ms()).await })
        });
        if ended.await? == 0 {
            return Ok(());
        }
    }
}

/// Ends the recordings of nodes that are dead for long, so that another node stores them. Does nothing when solo.
async fn end_abandoned(store: &Store) -> Result<(), StoreError> {
    if store.cluster().is_solo() {
        return Ok(());
    }
    loop {
        let ended = store.write(|tx| {
            Box::pin(async move {
                let now_ms = unix_ms();
                let before_ms = now_ms - sluice_store::duration_ms(RETURN_WITHIN);
                recordings::end_abandoned(tx, before_ms, now_ms).await
            })
        });
        if ended.await? == 0 {
            return Ok(());
        }
    }
}

async fn sweep(
    site: &WriterContext,
    directory: &Directory,
    linger: Duration,
) -> Result<(), StoreError> {
    let at = site.folder.clone();
    let found = blocking(move || folders(&at)).await?;
    for folder in found {
        let Some(broadcast) = folder.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if !is_shown(directory, broadcast)
            && !is_needed(&site.store, &folder, broadcast, linger).await?
        {
            blocking(move || fs::remove_dir_all(folder)).await?;
        }
    }
    Ok(())
}

/// Removes recorded media from the object store that nothing needs.
async fn sweep_objects(
    store: &Store,
    uploads: &Uploads,
    directory: &Directory,
    linger: Duration,
) -> Result<(), StoreError> {
    let mut after = String::new();
    loop {
        let mut reader = store.read().await?;
        let Some(broadcast) = live_segments::next_broadcast(&mut reader, &after).await? else {
            return Ok(());
        };
        let needed_until_ms = match recordings::by_broadcast(&mut reader, &broadcast).await? {
            Some(recording) => needed_until_ms(&recording, linger),
            // Its row may come later.
            None => live_segments::newest_at(&mut reader, &broadcast)
                .await?
                .unwrap_or_default()
                .saturating_add(sluice_store::duration_ms(UNKNOWN_KEPT)),
        };
        // Also on another node.
        let is_on_air = match broadcasts::get(&mut reader, &broadcast).await {
            Ok(row) => row.state == BroadcastState::Live,
            Err(StoreError::NotFound(_)) => false,
            Err(error) => return Err(error),
        };
        drop(reader);
        let is_needed = unix_ms() < needed_until_ms
            || is_on_air
            || is_shown(directory, &broadcast)
            || uploads.pending().contains(&broadcast);
        if !is_needed {
            let count = live_segments::delete(store, &broadcast).await?;
            info!(
                broadcast,
                count, "recorded media are removed from the object store"
            );
        }
        after = broadcast;
    }
}

/// Returns whether viewers may still play it as a broadcast.
fn is_shown(directory: &Directory, broadcast: &str) -> bool {
    directory.playbacks().iter().any(|playback| {
        let now = playback.now();
        let view = now.view.as_ref();
        view.is_some_and(|view| view.window.header().broadcast == broadcast)
    })
}

async fn is_needed(
    store: &Store,
    folder: &Path,
    broadcast: &str,
    linger: Duration,
) -> Result<bool, StoreError> {
    let row = recordings::by_broadcast(&mut store.read().await?, broadcast).await?;
    Ok(match row {
        Some(recording) => unix_ms() < needed_until_ms(&recording, linger),
        None => age(folder) < UNKNOWN_KEPT,
    })
}

/// Returns the end of the time for which its folder is needed, in Unix milliseconds.
fn needed_until_ms(recording: &Recording, linger: Duration) -> i64 {
    let after = |span: Duration| {
        recording
            .updated_at
            .saturating_add(sluice_store::duration_ms(span))
    };
    match recording.status {
        RecordingStatus::Failed => after(FAILED_KEPT),
        _ if recording.is_stored => after(linger + LAST_VIEWERS),
        _ => i64::MAX,
    }
}

fn age(folder: &Path) -> Duration {
    fs::metadata(folder)
        .and_then(|folder| folder.modified())
        .ok()
        .and_then(|modified| modified.elapsed().ok())
        .unwrap_or_default()
}

fn unix_ms_of(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, sluice_store::duration_ms)
}

/// Lists the folders below `parent`; none when it is missing.
pub(super) fn folders(parent: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(parent) {
        Ok(entries) => Ok(entries
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
