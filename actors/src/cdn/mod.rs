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
//!
//! In a cluster a miss goes to the node on which the file is placed (`forward.rs`), and a purge to all.

mod directory;
mod disk;
mod entry;
mod forward;
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
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, ready};
use sluice_store::{
    Store,
    delivery_keys::DeliveryKey,
    files::{self, File},
    now_ms,
    presets::Preset,
};
use tokio::sync::oneshot;
use tracing::{debug, info, warn};
use uuid::Uuid;

pub use entry::Entry;
pub use forward::{PEER_PURGE, PEER_VARIANTS};
pub use key::Key;
pub use live_frame::NoFrame;
pub use render::{Problem, VariantJob};
pub use settings::CdnSettings;
pub use shard::Fetched;
pub use source::ImageSource;

use self::{
    directory::Directory,
    disk::Disk,
    forward::ForwardedVariant,
    live_frame::LiveFrames,
    memory::Memory,
    shard::{CdnCache, Fetch},
    source::Sources,
};
use crate::{
    Error,
    cluster::{PeerAnswer, Peers},
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
/// Files whose rows are compared by one statement.
const FILES_PER_READ: usize = 500;
/// Time without a renewal after which a node serves only what it has compared with its rows: purges do not reach it.
const CUT_OFF_AFTER: Duration = Duration::from_secs(60);
/// Interval of the look at the renewals.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Longest time for the comparison with a row in a node that is cut off.
const COMPARE_WITHIN: Duration = Duration::from_secs(1);
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
    peers: Peers,
    /// True in a node that has not renewed itself for [`CUT_OFF_AFTER`].
    is_cut_off: AtomicBool,
}

#[derive(Debug, Default)]
struct Counters {
    renders: AtomicU64,
    mezzanines: AtomicU64,
    disk_hits: AtomicU64,
    from_nodes: AtomicU64,
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
    /// Variants that came from other nodes.
    pub from_nodes: u64,
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
    /// `caps`: deliveries a month by plan; `still_every`: least age at which a live input's frame is made again; `peers`: the
    /// other nodes.
    pub fn new(
        settings: CdnSettings,
        store: Store,
        workers: impl Workers + 'static,
        caps: Caps,
        still_every: Duration,
        peers: Peers,
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
            peers,
            is_cut_off: AtomicBool::new(false),
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

    /// Takes up a key whose creation or change is committed: requests that begin from here on see it.
    pub fn key_changed(&self, key: &DeliveryKey) {
        self.directory.put_key(key, &self.meter);
    }

    /// Forgets a key whose revocation is committed.
    pub fn key_revoked(&self, key_id: Uuid) {
        self.directory.remove_key(key_id);
    }

    /// Returns the parameters of a preset of the account.
    pub fn preset(&self, account_id: Uuid, name: &str) -> Option<Arc<str>> {
        self.directory.preset(account_id, name)
    }

    /// Takes up a preset whose creation or change is committed.
    pub fn preset_changed(&self, preset: &Preset) {
        self.directory.put_preset(preset);
    }

    /// Forgets a preset of the account whose deletion is committed.
    pub fn preset_deleted(&self, account_id: Uuid, preset_id: Uuid) {
        self.directory.remove_preset(account_id, preset_id);
    }

    /// Reads all keys and presets again.
    pub async fn reload_directory(&self) -> Result<(), Error> {
        let store = &self.services.store;
        Ok(self.directory.load(store, &self.meter).await?)
    }

    /// Returns the meter that counts deliveries.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns a variant that is published in memory; none while this node is cut off from the others. Costs no message.
    pub fn lookup(&self, file_id: Uuid, cache_key: &str) -> Option<Arc<Entry>> {
        if self.services.is_cut_off.load(Relaxed) {
            return None;
        }
        self.services.memory.get(file_id, cache_key)
    }

    /// Returns the facts of a file; `None` when there is none. The caller checks its account. In a node that is cut off from the
    /// others the row is read each time, and [`Error::Busy`] when that is not possible.
    pub async fn source(&self, file_id: Uuid) -> Result<Option<Arc<ImageSource>>, Error> {
        if self.services.is_cut_off.load(Relaxed) {
            let files = [file_id];
            let compared = tokio::time::timeout(COMPARE_WITHIN, self.files_changed(&files));
            let is_compared = matches!(compared.await, Ok(Ok(())));
            if !is_compared {
                return Err(Error::Busy("the database"));
            }
        }
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
        self.ask(wanted, Some(key), false).await
    }

    /// [`Self::fetch`] for images that the service itself offers, without a key's limit of new variants.
    pub async fn fetch_own(&self, wanted: VariantJob) -> Result<Fetched, Problem> {
        self.ask(wanted, None, false).await
    }

    /// Answers the miss of another node for a file that is placed on this one; `asked` is what follows [`PEER_VARIANTS`].
    pub async fn answer_node(&self, asked: &str) -> PeerAnswer {
        let Some(asked) = ForwardedVariant::parse(asked) else {
            return forward::malformed();
        };
        let source = match self.source_as(asked.file_id, &asked.stamp).await {
            Ok(Some(source)) => source,
            Ok(None) => return forward::stale(),
            Err(error) => {
                debug!(%error, file = %asked.file_id, "a file's facts cannot be read for another node");
                return forward::unread();
            }
        };
        let may_render = asked.may_render;
        let wanted = asked.job(source);
        if !may_render && !self.keeps(&wanted) {
            return forward::not_kept();
        }
        let outcome = self.ask(wanted.clone(), None, true).await;
        forward::answer(&wanted, outcome)
    }

    /// Returns the facts of a file in that state, looking again when those that are known are others; `None` when it is in another.
    async fn source_as(
        &self,
        file_id: Uuid,
        stamp: &str,
    ) -> Result<Option<Arc<ImageSource>>, Error> {
        let is_so = |source: &Arc<ImageSource>| source.stamp() == stamp;
        if let Some(source) = self.source(file_id).await?.filter(is_so) {
            return Ok(Some(source));
        }
        self.files_changed(&[file_id]).await?;
        Ok(self.source(file_id).await?.filter(is_so))
    }

    /// Returns whether a variant need not be rendered.
    fn keeps(&self, wanted: &VariantJob) -> bool {
        let (file_id, cache_key) = (wanted.source.id, &wanted.cache_key);
        let services = &self.services;
        services.memory.get(file_id, cache_key).is_some()
            || services.disk.holds(&disk::name_of(file_id, cache_key))
    }

    async fn ask(
        &self,
        wanted: VariantJob,
        key: Option<Arc<Key>>,
        is_for_node: bool,
    ) -> Result<Fetched, Problem> {
        let (answer, outcome) = oneshot::channel();
        let shard = self.shard(wanted.source.id).get().ok_or(Problem::Busy)?;
        let fetch = Fetch {
            wanted,
            key,
            is_for_node,
            answer,
        };
        shard.tell(fetch).try_send().map_err(|_| Problem::Busy)?;
        match tokio::time::timeout(self.services.settings.render_wait, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(Problem::Busy),
        }
    }

    /// Removes the variants of a file after a committed change or deletion: when this returns they are gone from memory and
    /// disk, and those being rendered are answered to no one; so on all nodes that answer at once. Returns how many were here.
    pub async fn purge_file(&self, file_id: Uuid) -> usize {
        self.purge_files(&[file_id]).await
    }

    /// [`Self::purge_file`] for several files, which other nodes are asked for together.
    pub async fn purge_files(&self, file_ids: &[Uuid]) -> usize {
        let mut count = 0;
        for file_id in file_ids {
            count += self.purge_here(*file_id).await;
        }
        forward::purge_others(&self.services, file_ids).await;
        count
    }

    /// Carries out the purge of another node.
    pub async fn purge_for_node(&self, body: &[u8]) -> PeerAnswer {
        let Some(file_ids) = forward::purged_files(body) else {
            return forward::malformed();
        };
        for file_id in file_ids {
            self.purge_here(file_id).await;
        }
        forward::purged()
    }

    /// Removes what this node has of a file, see [`Self::purge_file`].
    pub async fn purge_here(&self, file_id: Uuid) -> usize {
        self.services.sources.invalidate(file_id);
        let in_memory = self.services.memory.purge(file_id);
        let on_disk = disk::blocking(&self.services.disk, move |disk| disk.purge(file_id)).await;
        in_memory.max(on_disk.unwrap_or(0))
    }

    /// Compares what this node knows of files with their rows, which were made or changed by a commit of any node. Images of a
    /// file that is seen otherwise now are purged; another name, folder or tag changes none.
    pub async fn files_changed(&self, file_ids: &[Uuid]) -> Result<(), Error> {
        let services = &self.services;
        let mut known = Vec::new();
        for file_id in file_ids {
            if services.sources.is_known(*file_id) {
                known.push(*file_id);
                continue;
            }
            // It may be remembered as missing. On disk a variant of another state is not used.
            services.sources.invalidate(*file_id);
            services.memory.purge(*file_id);
        }
        for some in known.chunks(FILES_PER_READ) {
            let rows = files::by_ids(&mut services.store.read().await?, some).await?;
            let mut rows: HashMap<Uuid, File> = rows.into_iter().map(|row| (row.id, row)).collect();
            for file_id in some {
                if !services.sources.is_as(*file_id, rows.remove(file_id)) {
                    self.purge_here(*file_id).await;
                }
            }
        }
        Ok(())
    }

    /// Forgets what is in memory of all files of an account, or of all accounts: any of them may have changed or be gone.
    /// Variants on disk stay, and are used for a file that is unchanged.
    pub fn forget_files(&self, account_id: Option<Uuid>) {
        self.services.sources.forget(account_id);
        self.services.memory.forget(account_id);
    }

    /// Returns counts and cache sizes. Costs no message.
    pub fn statistics(&self) -> CdnStatistics {
        let counters = &self.services.counters;
        CdnStatistics {
            renders: counters.renders.load(Relaxed),
            mezzanines: counters.mezzanines.load(Relaxed),
            disk_hits: counters.disk_hits.load(Relaxed),
            from_nodes: counters.from_nodes.load(Relaxed),
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
        let services = self.services.clone();
        let looking = Component::of_task("image cache cut-off", move || {
            follow_renewals(services.clone())
        });
        let is_node = !self.services.peers.cluster().is_solo();
        std::iter::once(self.meter.component())
            .chain(shards)
            .chain(is_node.then_some(looking))
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
                    ("from_node", statistics.from_nodes),
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

/// Notes whether this node is cut off from the others.
async fn follow_renewals(services: Arc<ImageServices>) {
    loop {
        let since = services.peers.cluster().since_renewal();
        let is_cut_off = since.is_some_and(|since| since > CUT_OFF_AFTER);
        if services.is_cut_off.swap(is_cut_off, Relaxed) != is_cut_off {
            match is_cut_off {
                true => warn!("this node cannot renew itself: images are compared with their rows"),
                false => info!("this node has renewed itself: images are served from memory again"),
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
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
            files::by_id(&mut db, file_id).await
        };
        if let Ok(None) = known.await {
            disk::blocking(&services.disk, move |disk| disk.purge(file_id)).await;
        }
    }
}
