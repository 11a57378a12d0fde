//! Recovery of broadcasts from disk after a crash or power loss: journals are replayed, unsynced segments left out, leftover
//! folders deleted.
//!
//! Every broadcast that was on air is served again before the service is ready. A journal counts line by line, and a part
//! only if its segment's file holds it whole. After a power loss (another boot id) only whole segments whose bytes have the
//! journal's checksums are listed, and the media sequence skips ahead of all that had been published and not synced.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use sluice_media::hls::{
    Segment, Window, WindowLimits,
    journal::{self, Recovered},
    names::{self, MediaName},
};
use tracing::{info, warn};
use uuid::Uuid;

use super::{
    LiveServices, LiveSettings, Phase, View,
    disk::{Disk, JOURNAL},
    playback::Directory,
    recording_folders::folders,
    recording_writer::RecordingWriter,
    segment_store::SegmentStore,
    unix_ms,
};

/// Media sequence numbers left out after a power loss: more segments than a sync can be late.
const SKIP_AFTER_POWER_LOSS: u64 = 32;

/// Publishes every broadcast found below `services.folder`, and deletes folders that belong to nothing.
pub(super) fn recover(services: &LiveServices, directory: &Directory) -> io::Result<()> {
    fs::create_dir_all(&services.folder)?;
    for folder in folders(&services.folder)? {
        let input_id = folder
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| Uuid::parse_str(name).ok());
        let Some(playback) = input_id.and_then(|input_id| directory.by_input(input_id)) else {
            // Its input was deleted while the service was stopped.
            remove(&folder);
            continue;
        };
        let Some((recovered, folder)) = newest_broadcast(&folder)? else {
            continue;
        };
        let phase = if recovered.ended {
            Phase::Ended
        } else {
            Phase::Reconnecting
        };
        if recovered.ended
            && unix_ms() - recovered.last_ms > services.settings.linger.as_millis() as i64
        {
            remove(&folder);
            continue;
        }
        let last_ms = recovered.last_ms;
        match view(recovered, &folder, services, playback.input_id) {
            Ok(Some(view)) => {
                info!(input = %playback.input_id, broadcast = view.window.header().broadcast, ?phase, "broadcast recovered");
                playback.set_started(view.window.header().started_ms);
                if phase == Phase::Ended {
                    playback.set_ended(last_ms);
                }
                playback.publish(phase, None, Some(Arc::new(view)));
            }
            Ok(None) => {
                warn!(folder = %folder.display(), "a broadcast is not recovered: none of its segments is whole");
                remove(&folder);
            }
            Err(error) => {
                warn!(folder = %folder.display(), %error, "a broadcast is left alone: it could not be read");
            }
        }
    }
    Ok(())
}

/// Returns the newest broadcast of an input; older ones are deleted.
fn newest_broadcast(input: &Path) -> io::Result<Option<(Recovered, PathBuf)>> {
    let mut newest: Option<(Recovered, PathBuf)> = None;
    for folder in folders(input)? {
        let recovered = match fs::read(folder.join(JOURNAL)).map(|bytes| journal::replay(&bytes)) {
            Ok(Ok(recovered)) => recovered,
            Ok(Err(error)) => {
                warn!(folder = %folder.display(), %error, "a broadcast is not recovered");
                remove(&folder);
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                remove(&folder);
                continue;
            }
            Err(error) => {
                warn!(folder = %folder.display(), %error, "a broadcast is left alone: its journal cannot be read");
                continue;
            }
        };
        let started_ms = |it: &Recovered| it.window.header().started_ms;
        if newest
            .as_ref()
            .is_some_and(|(other, _)| started_ms(other) > started_ms(&recovered))
        {
            remove(&folder);
        } else if let Some((_, older)) = newest.replace((recovered, folder)) {
            remove(&older);
        }
    }
    Ok(newest)
}

/// Removes from the list the segments that the predecessor had removed, which is not journalled, and those without a file.
fn list_what_is_there(window: &mut Window, folder: &Path, settings: &LiveSettings) {
    window.retire(WindowLimits {
        list_for: window.header().list_for(settings.window),
        min_segments: settings.window_min_segments,
    });
    let is_there = |segment: &&Segment| folder.join(names::segment_name(segment.msn)).exists();
    let there = window.segments().rev().take_while(is_there).count();
    if there > 0 && there < window.segments().count() {
        window.retire(WindowLimits {
            list_for: Duration::ZERO,
            min_segments: there,
        });
    }
}

/// Makes a view of a journal; `None` when the broadcast is over and nothing is left. One that was on air continues even
/// when nothing was listed yet.
fn view(
    mut recovered: Recovered,
    folder: &Path,
    services: &LiveServices,
    input_id: Uuid,
) -> io::Result<Option<View>> {
    list_what_is_there(&mut recovered.window, folder, &services.settings);
    let lost_power = recovered.window.header().boot_id != services.boot_id;
    let first_lost = if lost_power {
        let read = |name: MediaName| fs::read(folder.join(name.to_string())).ok();
        let first_lost = recovered.after_power_loss(SKIP_AFTER_POWER_LOSS, &services.boot_id, read);
        warn!(folder = %folder.display(), first_lost, "the machine was restarted in mid-broadcast: unsynced segments are left out");
        Some(first_lost)
    } else {
        recovered.truncate_to(|msn| {
            fs::metadata(folder.join(names::segment_name(msn)))
                .ok()
                .map(|file| file.len())
        });
        None
    };
    let window = recovered.window;
    if recovered.ended && window.segments().next().is_none() {
        return Ok(None);
    }
    let segment_store = SegmentStore::new(folder.to_owned(), Disk::start(folder.to_owned())?);
    if let Some(recording_writer) = RecordingWriter::load(
        services.writer_context.clone(),
        input_id,
        window.header(),
        first_lost,
    ) {
        segment_store.set_recording_writer(recording_writer);
    }
    for init in window.inits() {
        segment_store.put_init(
            init.number,
            fs::read(folder.join(names::init_name(init.number)))?.into(),
        );
    }
    window
        .segments()
        .for_each(|segment| segment_store.put_recovered(segment));
    Ok(Some(View::new(window, Arc::new(segment_store))))
}

fn remove(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder) {
        warn!(folder = %folder.display(), %error, "a leftover folder could not be deleted");
    }
}
