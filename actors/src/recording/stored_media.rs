//! Media of a recording that has ended: those in its folder, and those that are in the object store only, because another node
//! recorded them or the disk had little room.

use std::{collections::BTreeMap, io, path::Path, sync::Arc};

use sluice_media::hls::{
    names::MediaName,
    record::{Entry, SegmentEntry},
};
use sluice_store::{Error as StoreError, Store, live_segments};
use tracing::warn;

use super::segment_list::{InitBytes, Medium, SegmentList, StoredSegment};
use crate::live::recorded_media::{RecordedFolder, blocking};

/// Returns the segments of a recording whose folder is, or was, below `recordings`; `None` when neither a folder nor the object
/// store has anything of it.
pub(crate) async fn segments(
    store: &Store,
    recordings: &Path,
    broadcast: &str,
) -> Result<Option<SegmentList>, StoreError> {
    let path = recordings.join(broadcast);
    let folder = path.clone();
    let opening = blocking(move || match SegmentList::open(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    });
    let local = opening.await?;
    if !live_segments::are_kept(store) {
        return Ok(local);
    }
    let rows = live_segments::list(&mut store.read().await?, broadcast).await?;
    if rows.is_empty() {
        return Ok(local);
    }
    let mut list = local.unwrap_or_default();
    let recorded = Arc::new(RecordedFolder::new(store, &path, broadcast));
    let mut segments: BTreeMap<u64, SegmentEntry> = list
        .takes
        .iter()
        .map(|take| (take.segment.msn, take.segment))
        .collect();
    for row in rows {
        match serde_json::from_str(&row.entry) {
            Ok(Entry::Init { number, info }) => {
                let media = recorded.compared_media(MediaName::Init(number), 0);
                match media.bytes().await {
                    Ok(bytes) => {
                        let info = Arc::new(info);
                        list.inits.insert(number, InitBytes { info, bytes });
                    }
                    Err(StoreError::Lost(what)) => {
                        warn!(broadcast, number, what, "an init section is lost");
                        list.inits.remove(&number);
                        list.lost_inits.insert(number);
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(Entry::Segment(stored)) => {
                let known = segments.entry(stored.msn).or_insert(stored);
                // The folder may be of an owner that another one replaced in the middle of it.
                if !known.is_closed() {
                    *known = stored;
                }
            }
            Ok(_) => {}
            Err(error) => {
                warn!(broadcast, name = row.name, %error, "media in the object store are left out");
            }
        }
    }
    let take = |segment: SegmentEntry| {
        let name = MediaName::Segment(segment.msn);
        let media = recorded.compared_media(name, segment.len);
        StoredSegment {
            segment,
            medium: Medium::Recorded(media),
        }
    };
    list.takes = segments.into_values().map(take).collect();
    Ok(Some(list))
}
