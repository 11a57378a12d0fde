//! Snapshots of video streams for playlists (renditions, segments, captions): published by the owner or read from the rows,
//! cached (`vod.max_cached`).
//!
//! A snapshot is valid until the stream changes; a change publishes the next one, or has it forgotten. Snapshots are kept for
//! the streams that were played last, and concurrent requests for a missing one read it once. In a cluster a stream may grow on
//! another node, which the change log does not say of each group: there a snapshot of an unfinished one is valid for a second.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sluice_store::{
    Error, Store, video,
    video::{Caption, Group, Rendition, Segment, Stream, StreamObjects},
};
use tokio::sync::OnceCell;
use uuid::Uuid;

/// Time for which a snapshot of a stream that may grow on another node is valid.
const GROWING_FOR: Duration = Duration::from_secs(1);
/// Most segments, and objects of such, of all snapshots that are kept: some 60 MiB. One stream has at most a fifth of it.
pub(super) const MOST_SEGMENTS: usize = 1 << 20;

/// A stream with all facts of its playlists.
#[derive(Clone, Debug, PartialEq)]
pub struct Playback {
    pub stream: Stream,
    /// Video first.
    pub tracks: Vec<Track>,
    pub captions: Vec<Caption>,
    /// Objects that have bytes of its files; none without an object store.
    pub objects: StreamObjects,
}

/// A rendition with its segments so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    pub rendition: Rendition,
    /// In order, from number 0 on.
    pub segments: Vec<Segment>,
}

impl Playback {
    /// Loads it from the rows.
    pub(super) async fn load(store: &Store, stream: Stream) -> Result<Self, Error> {
        let mut reader = store.read().await?;
        let renditions = video::renditions(&mut reader, stream.id).await?;
        let mut segments = video::segments(&mut reader, stream.id).await?;
        let captions = video::captions(&mut reader, stream.id).await?;
        let objects = video::objects(&mut reader, stream.id).await?;
        let mut tracks = Vec::with_capacity(renditions.len());
        for rendition in renditions {
            let end = segments.partition_point(|segment| segment.rendition <= rendition.number);
            let rest = segments.split_off(end);
            let segments = std::mem::replace(&mut segments, rest);
            tracks.push(Track {
                rendition,
                segments,
            });
        }
        Ok(Self {
            stream,
            tracks,
            captions,
            objects,
        })
    }

    /// Adds a recorded group.
    pub(super) fn grow(&mut self, group: &Group) {
        for init in &group.inits {
            if let Some(Track { rendition, .. }) = self.tracks.get_mut(usize::from(init.rendition))
            {
                rendition.init_length = Some(signed(init.length));
                rendition.codecs = Some(init.codecs.clone());
                rendition.frame_rate = init.frame_rate;
                rendition.is_copy = init.is_copy;
                rendition.size_bytes += signed(init.length);
            }
        }
        for segment in &group.segments {
            if let Some(track) = self.tracks.get_mut(usize::from(segment.rendition)) {
                track.segments.push(*segment);
                track.rendition.segment_count += 1;
                track.rendition.size_bytes += signed(segment.length);
                track.rendition.duration_90k += i64::from(segment.duration_90k);
            }
        }
    }

    /// Returns the number of segments of all renditions, and of objects.
    fn segment_count(&self) -> usize {
        let segments = self.tracks.iter().map(|track| track.segments.len());
        segments.sum::<usize>() + self.objects.count()
    }

    /// Returns the rendition with that name.
    pub fn track(&self, name: &str) -> Option<&Track> {
        self.tracks
            .iter()
            .find(|track| track.rendition.name == name)
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A snapshot that is there, or on its way.
type Slot = Arc<OnceCell<Arc<Playback>>>;

/// The snapshots that are kept.
pub(super) struct Playbacks {
    store: Store,
    /// Most snapshots.
    most: usize,
    cache: Mutex<SnapshotCache>,
}

/// A snapshot that is kept.
struct Kept {
    playback: Arc<Playback>,
    /// Number of the last request for it.
    used: u64,
    since: Instant,
}

#[derive(Default)]
struct SnapshotCache {
    /// True in a cluster.
    may_grow_elsewhere: bool,
    /// By playback id.
    kept: HashMap<String, Kept>,
    /// Snapshots that are being read; each has a waiting caller. An unknown id never takes the place of a snapshot.
    arriving: HashMap<String, Slot>,
    /// Counts requests.
    now: u64,
    /// Counts forgotten snapshots.
    changes: u64,
}

/// Entry of a playback id.
enum Known {
    Kept(Arc<Playback>),
    Arriving(Slot),
}

impl SnapshotCache {
    fn look(&mut self, playback_id: &str) -> Known {
        self.now += 1;
        if let Some(kept) = self.kept.get_mut(playback_id) {
            let is_over = self.may_grow_elsewhere
                && !kept.playback.stream.status.has_ended()
                && kept.since.elapsed() >= GROWING_FOR;
            if !is_over {
                kept.used = self.now;
                return Known::Kept(kept.playback.clone());
            }
        }
        let slot = self.arriving.entry(playback_id.to_owned()).or_default();
        Known::Arriving(slot.clone())
    }

    /// Keeps a snapshot, in place of the least recently requested ones when there are `most` or too many segments.
    fn keep(&mut self, playback: Arc<Playback>, most: usize) {
        let playback_id = playback.stream.playback_id.clone();
        self.kept.remove(&playback_id);
        let others = self.kept.values();
        let mut segments: usize = others.map(|other| other.playback.segment_count()).sum();
        segments += playback.segment_count();
        while self.kept.len() >= most || segments > MOST_SEGMENTS {
            let Some(oldest) = self.take_oldest() else {
                break;
            };
            segments -= oldest.segment_count();
        }
        self.now += 1;
        let kept = Kept {
            playback,
            used: self.now,
            since: Instant::now(),
        };
        self.kept.insert(playback_id, kept);
    }

    fn take_oldest(&mut self) -> Option<Arc<Playback>> {
        let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used);
        let id = oldest.map(|(id, _)| id.clone())?;
        self.kept.remove(&id).map(|kept| kept.playback)
    }

    /// Takes the result of a read; it counts unless the stream has changed since.
    fn arrived(&mut self, playback_id: &str, slot: &Slot, most: usize) {
        let is_same = |arriving: &Slot| Arc::ptr_eq(arriving, slot);
        if self.arriving.get(playback_id).is_some_and(is_same) {
            self.arriving.remove(playback_id);
            if let Some(playback) = slot.get() {
                self.keep(playback.clone(), most);
            }
        }
    }

    fn forget(&mut self, playback_id: &str) {
        self.kept.remove(playback_id);
        self.arriving.remove(playback_id);
    }
}

impl Playbacks {
    pub(super) fn new(store: Store, most: usize) -> Self {
        let cache = SnapshotCache {
            may_grow_elsewhere: !store.cluster().is_solo(),
            ..SnapshotCache::default()
        };
        Self {
            store,
            most,
            cache: Mutex::new(cache),
        }
    }

    /// Returns a snapshot; `Error::NotFound` for an unknown playback id.
    pub(super) async fn get(&self, playback_id: &str) -> Result<Arc<Playback>, Error> {
        let known = self.cache.lock().look(playback_id);
        let slot = match known {
            Known::Kept(playback) => return Ok(playback),
            Known::Arriving(slot) => slot,
        };
        let arrival = SnapshotWait {
            playbacks: self,
            playback_id,
            slot,
        };
        let read = arrival.slot.get_or_try_init(|| self.read(playback_id));
        read.await.cloned()
    }

    async fn read(&self, playback_id: &str) -> Result<Arc<Playback>, Error> {
        let stream = video::by_playback_id(&mut self.store.read().await?, playback_id).await?;
        Ok(Arc::new(Playback::load(&self.store, stream).await?))
    }

    /// Returns the count of changes, for a [`publish`](Self::publish) that begins now.
    pub(super) fn changes(&self) -> u64 {
        self.cache.lock().changes
    }

    /// Publishes a stream as it was read after [`changes`](Self::changes) returned `seen`; if something was forgotten
    /// since, this may be older than that, and the next caller reads the rows.
    pub(super) fn publish(&self, playback: Playback, seen: u64) {
        let mut cache = self.cache.lock();
        let is_newest = cache.changes == seen;
        cache.forget(&playback.stream.playback_id);
        if is_newest {
            cache.keep(Arc::new(playback), self.most);
        }
    }

    /// Forgets the snapshot of a stream that has changed: the next request reads the rows.
    pub(super) fn forget(&self, playback_id: &str) {
        let mut cache = self.cache.lock();
        cache.changes += 1;
        cache.forget(playback_id);
    }

    /// Forgets the snapshots of streams by their ids, or all of them (`None`). Those that are being read may be among them: they
    /// are answered to those who wait, and not kept.
    pub(super) fn forget_streams(&self, ids: Option<&[Uuid]>) {
        let mut cache = self.cache.lock();
        cache.changes += 1;
        cache.arriving.clear();
        cache
            .kept
            .retain(|_, kept| ids.is_some_and(|ids| !ids.contains(&kept.playback.stream.id)));
    }
}

/// A request that waits for a snapshot. When it ends, also early, it puts the snapshot into the cache.
struct SnapshotWait<'a> {
    playbacks: &'a Playbacks,
    playback_id: &'a str,
    slot: Slot,
}

impl Drop for SnapshotWait<'_> {
    fn drop(&mut self) {
        let mut cache = self.playbacks.cache.lock();
        cache.arrived(self.playback_id, &self.slot, self.playbacks.most);
    }
}
