//! Facts of delivered files (format, blob, focal point) and whether they are stale: read once, kept in a bounded cache
//! (`cdn.known_files`).
//!
//! A [`ImageSource`] that was dropped is *stale* for ever. Whatever is rendered from it may be answered to no one and kept
//! nowhere: the tiers ask [`ImageSource::is_current`] under their own locks, and a purge marks the source first and empties
//! the tiers after that.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use sluice_media::{
    format::{Class, Format},
    task::ImageFacts,
    variant::FRAME,
};
use sluice_store::{
    Error, Store,
    blob::BlobHash,
    files::{self, File},
};
use tokio::sync::OnceCell;
use uuid::Uuid;

/// Place of the bytes of a source.
#[derive(Clone, Debug)]
pub(super) enum Material {
    Stored(BlobHash),
    /// A frame of a live input. Its variants are kept in memory alone, until the next one comes.
    Live(Arc<LiveFrame>),
}

/// The newest frame of a live input.
#[derive(Debug)]
pub(super) struct LiveFrame {
    pub(super) video_frame: Bytes,
    pub(super) known_variants: Arc<KnownLiveVariants>,
}

/// Variants of a live input that were asked for before: the same of a newer frame are not new.
#[derive(Debug, Default)]
pub(super) struct KnownLiveVariants(Mutex<HashSet<Arc<str>>>);

impl KnownLiveVariants {
    /// Most that are known of an input; further ones count as new each time.
    const MOST: usize = 64;

    /// Returns whether it was requested before; from now on it counts as known.
    pub(super) fn knows(&self, request: &Arc<str>) -> bool {
        let mut known = self.0.lock();
        if known.contains(request) {
            return true;
        }
        if known.len() < Self::MOST {
            known.insert(request.clone());
        }
        false
    }
}

/// A stored file, or the frame of a live input, as delivery sees it.
#[derive(Debug)]
pub struct ImageSource {
    pub id: Uuid,
    pub account_id: Uuid,
    pub(super) material: Material,
    /// `None`: of an unknown format.
    pub(super) format: Option<Format>,
    pub(super) mime_type: String,
    pub(super) size_bytes: u64,
    pub(super) focal_point: Option<(f64, f64)>,
    /// Unix milliseconds.
    pub(super) changed_at: i64,
    /// Facts that a worker found in the bytes; inspected once, for the first request that needs it.
    pub(super) inspected: OnceCell<ImageFacts>,
    /// Held by the request that makes a mezzanine.
    pub(super) mezzanine_turn: tokio::sync::Mutex<()>,
    stale: AtomicBool,
}

impl ImageSource {
    fn new(file: File) -> Self {
        Self {
            focal_point: file.focal_point(),
            format: Format::from_mime(&file.mime_type)
                .or_else(|| Format::from_filename(&file.filename)),
            id: file.id,
            account_id: file.account_id,
            material: Material::Stored(file.blob),
            size_bytes: file.size_bytes.unsigned_abs(),
            changed_at: file.updated_at,
            mime_type: file.mime_type,
            inspected: OnceCell::new(),
            mezzanine_turn: tokio::sync::Mutex::default(),
            stale: AtomicBool::new(false),
        }
    }

    /// Makes a source of a live input's frame, in the format of all frames.
    pub(super) fn of_frame(
        input_id: Uuid,
        account_id: Uuid,
        frame: LiveFrame,
        taken_ms: i64,
    ) -> Self {
        Self {
            id: input_id,
            account_id,
            size_bytes: frame.video_frame.len() as u64,
            material: Material::Live(Arc::new(frame)),
            format: Some(FRAME),
            mime_type: FRAME.mime().to_owned(),
            focal_point: None,
            changed_at: taken_ms,
            inspected: OnceCell::new(),
            mezzanine_turn: tokio::sync::Mutex::default(),
            stale: AtomicBool::new(false),
        }
    }

    /// Returns whether its variants are kept in memory alone.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.material, Material::Live(_))
    }

    /// Marks the source as stale.
    pub(super) fn expire(&self) {
        self.stale.store(true, SeqCst);
    }

    /// Returns whether the file is unchanged.
    pub fn is_current(&self) -> bool {
        !self.stale.load(SeqCst)
    }

    /// Returns whether it has frames over time, so that a request's time matters.
    pub fn is_video(&self) -> bool {
        self.format.map(Format::class) == Some(Class::Video)
    }

    /// Returns a text that changes with all that changes variants: a variant on disk with another stamp is not used.
    pub(super) fn stamp(&self) -> String {
        let (x, y) = self.focal_point.unwrap_or((-1.0, -1.0));
        match &self.material {
            Material::Stored(blob) => format!("{blob}@{x},{y}"),
            Material::Live(_) => format!("live@{x},{y}"),
        }
    }
}

/// Bounded cache of sources; missing files are remembered, too.
#[derive(Debug)]
pub(super) struct Sources {
    most: usize,
    known: Mutex<Known>,
    /// Counts invalidations: what was read before one is not kept after it.
    epoch: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    by_id: HashMap<Uuid, Option<Arc<ImageSource>>>,
    /// Oldest first.
    order: VecDeque<Uuid>,
}

impl Sources {
    /// Makes a cache of at most `most` files.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            known: Mutex::default(),
            epoch: AtomicU64::new(0),
        }
    }

    /// Returns whether the facts of a file are kept; false for a missing one.
    pub(super) fn is_known(&self, id: Uuid) -> bool {
        matches!(self.known.lock().by_id.get(&id), Some(Some(_)))
    }

    /// Returns whether the facts that are kept of a file are those of its row; false for a row that is gone, and when none are
    /// kept.
    pub(super) fn is_as(&self, id: Uuid, row: Option<File>) -> bool {
        let row = row.map(ImageSource::new);
        let known = self.known.lock();
        let Some(Some(source)) = known.by_id.get(&id) else {
            return false;
        };
        row.is_some_and(|row| {
            source.account_id == row.account_id
                && source.stamp() == row.stamp()
                && source.mime_type == row.mime_type
                && source.format == row.format
        })
    }

    /// Returns the file's facts; `None` when there is no such file.
    pub(super) async fn get(
        &self,
        store: &Store,
        id: Uuid,
    ) -> Result<Option<Arc<ImageSource>>, Error> {
        loop {
            if let Some(known) = self.known.lock().by_id.get(&id) {
                return Ok(known.clone());
            }
            let epoch = self.epoch.load(SeqCst);
            let file = files::by_id(&mut store.read().await?, id).await?;
            let source = file.map(|file| Arc::new(ImageSource::new(file)));
            if let Some(kept) = self.keep(id, source, epoch) {
                return Ok(kept);
            }
        }
    }

    /// Keeps what was read; `None` when something was invalidated since `epoch`: then it must be read again.
    fn keep(
        &self,
        id: Uuid,
        source: Option<Arc<ImageSource>>,
        epoch: u64,
    ) -> Option<Option<Arc<ImageSource>>> {
        let mut known = self.known.lock();
        if self.epoch.load(SeqCst) != epoch {
            return None;
        }
        if let Some(earlier) = known.by_id.get(&id) {
            return Some(earlier.clone());
        }
        if known.by_id.len() >= self.most
            && let Some(oldest) = known.order.pop_front()
        {
            expire(known.by_id.remove(&oldest).flatten());
        }
        known.by_id.insert(id, source.clone());
        known.order.push_back(id);
        Some(source)
    }

    /// Forgets the files of an account, or all files, and marks their sources as stale.
    pub(super) fn forget(&self, account_id: Option<Uuid>) {
        let mut known = self.known.lock();
        self.epoch.fetch_add(1, SeqCst);
        let Known { by_id, order } = &mut *known;
        by_id.retain(|_, source| {
            // Of whose files a missing one was, is not known.
            let is_other = source
                .as_ref()
                .is_some_and(|it| account_id.is_some_and(|id| it.account_id != id));
            if !is_other {
                expire(source.take());
            }
            is_other
        });
        order.retain(|id| by_id.contains_key(id));
    }

    /// Forgets a file after its committed change or deletion, and marks its source as stale.
    pub(super) fn invalidate(&self, id: Uuid) {
        let mut known = self.known.lock();
        self.epoch.fetch_add(1, SeqCst);
        if let Some(source) = known.by_id.remove(&id) {
            known.order.retain(|known| *known != id);
            expire(source);
        }
    }
}

fn expire(source: Option<Arc<ImageSource>>) {
    if let Some(source) = source {
        source.expire();
    }
}
