//! Image delivery (`/cdn/v1`): memory and disk cache, one render for equal requests, purge of changed files; metrics
//! `cdn_variants`, `cdn_cache`.
//!
//! A variant that is in memory is answered without any message. Else one message goes to the shard of the file, which takes
//! the variant from disk or renders it once for all who ask. A change of the file marks its [`ImageSource`] as stale and
//! then empties the tiers; what is rendered from a stale source is neither kept nor answered.
//!
//! ```text
//! façade ── lookup ──▶ Memory (published)
//!    └───── fetch ───▶ CdnCache shard ── one flight ──▶ Disk, else compute pool ──▶ publish, answer everyone
//! ```

mod directory;
mod disk;
mod entry;
mod key;
mod live_frame;
mod memory;
mod mezzanine;
mod render;
mod settings;
mod shard;
mod source;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, ready};
use sluice_store::{Store, delivery_keys::DeliveryKey, now_ms, presets::Preset};
use tokio::sync::oneshot;
use tracing::warn;
use uuid::Uuid;

pub use entry::Entry;
pub use key::Key;
pub use live_frame::NoFrame;
pub use render::{Problem, VariantJob};
pub use settings::CdnSettings;
pub use shard::Fetched;
pub use source::ImageSource;

use self::{
    directory::Directory,
    disk::Disk,
    live_frame::LiveFrames,
    memory::Memory,
    shard::{CdnCache, Fetch},
    source::Sources,
};
use crate::{
    Error,
    component::{ActorHandle, Component},
    durable::workers::Workers,
    live::Playback,
    meter::{Caps, Meter},
    metric::{Metric, MetricUnit},
    subsystem::Subsystem,
};

/// Names of the shards, each of which restarts without the others.
const SHARDS: [&str; 8] = [
    "image cache 1",
    "image cache 2",
    "image cache 3",
    "image cache 4",
    "image cache 5",
    "image cache 6",
    "image cache 7",
    "image cache 8",
];
/// Longest time that the start waits for the scan of the disk tier, which then continues beside the service.
const SCAN_PATIENCE: Duration = Duration::from_secs(2);

/// The handle of image delivery for the façade. Clones share it; it exists before the actors run.
#[derive(Clone)]
pub struct Images {
    services: Arc<ImageServices>,
    directory: Arc<Directory>,
    meter: Meter,
    shards: Arc<Vec<ActorHandle<CdnCache>>>,
}

/// State that the shards share, and that survives them.
pub(crate) struct ImageServices {
    settings: CdnSettings,
    store: Store,
    workers: Arc<dyn Workers>,
    sources: Sources,
    frames: LiveFrames,
    memory: Memory,
    disk: Arc<Disk>,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    renders: AtomicU64,
    mezzanines: AtomicU64,
    disk_hits: AtomicU64,
    failures: AtomicU64,
}

/// Counts of image delivery since the start, and the size of its caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CdnStatistics {
    /// Variants that were rendered.
    pub renders: u64,
    pub mezzanines: u64,
    /// Variants that came from the disk tier.
    pub disk_hits: u64,
    pub failures: u64,
    pub memory_bytes: u64,
    pub disk_bytes: u64,
}

impl ImageServices {
    fn count(&self, which: impl FnOnce(&Counters) -> &AtomicU64) {
        which(&self.counters).fetch_add(1, Relaxed);
    }
}

impl Images {
    /// `caps`: deliveries a month by plan; `still_every`: least age at which a live input's frame is made again.
    pub fn new(
        settings: CdnSettings,
        store: Store,
        workers: impl Workers + 'static,
        caps: Caps,
        still_every: Duration,
    ) -> Self {
        let services = ImageServices {
            sources: Sources::new(settings.known_files),
            frames: LiveFrames::new(still_every),
            memory: Memory::new(settings.memory.as_u64()),
            disk: Arc::new(Disk::new(
                store.data_dir().join("cache"),
                settings.disk.as_u64(),
            )),
            counters: Counters::default(),
            workers: Arc::new(workers),
            store: store.clone(),
            settings,
        };
        Self {
            services: Arc::new(services),
            directory: Arc::default(),
            meter: Meter::new(store, caps),
            shards: Arc::new(SHARDS.iter().map(|_| ActorHandle::default()).collect()),
        }
    }

    /// Finds a delivery key by its text or its alias, and notes the use; `None` when there is none or it is revoked.
    pub fn key(&self, text: &str) -> Option<Arc<Key>> {
        let key = self.directory.key(text)?;
        let now = now_ms();
        if key.is_due_to_note(now) {
            self.meter.note_use(key.id, now);
        }
        Some(key)
    }

    /// Takes up a key whose creation is committed.
    pub fn key_made(&self, key: &DeliveryKey) {
        self.directory.put_key(key, &self.meter);
    }

    /// Takes up a committed change of a key: requests that begin from here on see it.
    pub fn key_changed(&self, key: &DeliveryKey) {
        self.directory.replace_key(key, &self.meter);
    }

    /// Forgets a key whose revocation is committed.
    pub fn key_revoked(&self, key_id: Uuid) {
        self.directory.remove_key(key_id);
    }

    /// Returns the parameters of a preset of the account.
    pub fn preset(&self, account_id: Uuid, name: &str) -> Option<Arc<str>> {
        self.directory.preset(account_id, name)
    }

    /// Takes up a preset whose creation or change is committed; `earlier` is the name it had.
    pub fn preset_changed(&self, preset: &Preset, earlier: Option<&str>) {
        if let Some(earlier) = earlier {
            self.directory.remove_preset(preset.account_id, earlier);
        }
        self.directory.put_preset(preset);
    }

    pub fn preset_deleted(&self, preset: &Preset) {
        self.directory
            .remove_preset(preset.account_id, &preset.name);
    }

    /// Returns the meter that counts deliveries.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns a variant that is published in memory. Costs no message.
    pub fn lookup(&self, file_id: Uuid, cache_key: &str) -> Option<Arc<Entry>> {
        self.services.memory.get(file_id, cache_key)
    }

    /// Returns the facts of a file; `None` when there is none. The caller checks its account.
    pub async fn source(&self, file_id: Uuid) -> Result<Option<Arc<ImageSource>>, Error> {
        Ok(self
            .services
            .sources
            .get(&self.services.store, file_id)
            .await?)
    }

    /// Returns the newest frame of a live input, decoded at most once in `live.still_every`, as a source of variants.
    pub async fn live_frame(&self, playback: &Playback) -> Result<Arc<ImageSource>, NoFrame> {
        live_frame::newest(&self.services, playback).await
    }

    /// Returns the variant, from disk or rendered once for all who ask; waits at most `cdn.render_wait`.
    pub async fn fetch(&self, wanted: VariantJob, key: Arc<Key>) -> Result<Fetched, Problem> {
        self.ask(wanted, Some(key)).await
    }

    /// [`Self::fetch`] for images that the service itself offers, without a key's limit of new variants.
    pub async fn fetch_own(&self, wanted: VariantJob) -> Result<Fetched, Problem> {
        self.ask(wanted, None).await
    }

    async fn ask(&self, wanted: VariantJob, key: Option<Arc<Key>>) -> Result<Fetched, Problem> {
        let (answer, outcome) = oneshot::channel();
        let shard = self.shard(wanted.source.id).get().ok_or(Problem::Busy)?;
        let fetch = Fetch {
            wanted,
            key,
            answer,
        };
        shard.tell(fetch).try_send().map_err(|_| Problem::Busy)?;
        match tokio::time::timeout(self.services.settings.render_wait, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(Problem::Busy),
        }
    }

    /// Removes the variants of a file after a committed change or deletion: when this returns they are gone from memory and
    /// disk, and those being rendered are answered to no one. Returns how many there were.
    pub async fn purge_file(&self, file_id: Uuid) -> usize {
        self.services.sources.invalidate(file_id);
        let in_memory = self.services.memory.purge(file_id);
        let on_disk = disk::blocking(&self.services.disk, move |disk| disk.purge(file_id)).await;
        in_memory.max(on_disk.unwrap_or(0))
    }

    /// Returns counts and cache sizes. Costs no message.
    pub fn statistics(&self) -> CdnStatistics {
        let counters = &self.services.counters;
        CdnStatistics {
            renders: counters.renders.load(Relaxed),
            mezzanines: counters.mezzanines.load(Relaxed),
            disk_hits: counters.disk_hits.load(Relaxed),
            failures: counters.failures.load(Relaxed),
            memory_bytes: self.services.memory.size().1 as u64,
            disk_bytes: self.services.disk.size().1,
        }
    }

    fn shard(&self, file_id: Uuid) -> &ActorHandle<CdnCache> {
        // The last bytes of a UUID of version 7 are random.
        &self.shards[usize::from(file_id.as_bytes()[14]) % SHARDS.len()]
    }
}

impl Subsystem for Images {
    fn name(&self) -> &'static str {
        "image delivery"
    }

    /// Reads keys and presets, and what an earlier process left on disk.
    fn load(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async {
            self.directory
                .load(&self.services.store, &self.meter)
                .await?;
            disk::blocking(&self.services.disk, Disk::prepare)
                .await
                .unwrap_or(Ok(()))
                .map_err(Error::io("preparing the cache folder"))?;
            let services = self.services.clone();
            let scan = tokio::spawn(async move { scan(&services).await });
            let _ = tokio::time::timeout(SCAN_PATIENCE, scan).await;
            Ok(())
        })
    }

    fn components(&self) -> Vec<Component> {
        let shards = SHARDS.iter().zip(self.shards.iter()).map(|(name, handle)| {
            Component::new(name, self.services.clone(), shard::MAILBOX, handle.clone())
        });
        std::iter::once(self.meter.component())
            .chain(shards)
            .collect()
    }

    /// Writes what is only noted in memory.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.meter.close())
    }

    fn metrics(&self) -> BoxFuture<'_, Result<Vec<Metric>, Error>> {
        let statistics = self.statistics();
        let metrics = vec![
            Metric::by_label(
                "cdn_variants",
                "Delivered variants since the start, by how they were made; failures are those that are remembered",
                "made",
                [
                    ("rendered", statistics.renders),
                    ("mezzanine", statistics.mezzanines),
                    ("from_disk", statistics.disk_hits),
                    ("failed", statistics.failures),
                ],
            ),
            Metric::by_label(
                "cdn_cache",
                "Variants that are kept",
                "tier",
                [
                    ("memory", statistics.memory_bytes),
                    ("disk", statistics.disk_bytes),
                ],
            )
            .with_unit(MetricUnit::Bytes),
        ];
        Box::pin(ready(Ok(metrics)))
    }
}

/// Indexes the disk tier, and removes variants of files that are gone: a crash may have interrupted their purge.
async fn scan(services: &ImageServices) {
    let files = match disk::blocking(&services.disk, Disk::scan).await {
        Some(Ok(files)) => files,
        Some(Err(error)) => {
            warn!(%error, "variants of an earlier start are not used");
            return;
        }
        None => return,
    };
    for file_id in files {
        let known = async {
            let mut db = services.store.read().await?;
            sluice_store::files::by_id(&mut db, file_id).await
        };
        if let Ok(None) = known.await {
            disk::blocking(&services.disk, move |disk| disk.purge(file_id)).await;
        }
    }
}
