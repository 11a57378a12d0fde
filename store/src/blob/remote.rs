//! The object store as blobs use it: requests with their outcomes, deletions in the background, the cache of what was fetched,
//! counters.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::Semaphore};
use uuid::Uuid;

use super::{
    Blob, BlobHash, Blobs,
    cache::Cache,
    flights::Flights,
    pieces::{Piece, Place, piece_hash},
    spool::Temporary,
    turns::Turns,
};
use crate::{
    Error, Reader, StoreSettings,
    blobs::{self, BlobRow},
    objects::Objects,
    store::Readers,
};

/// Batches of objects that are deleted in the background at a time; what is beyond them is left to the search for objects
/// without a row.
const DELETIONS: usize = 32;
/// Times that a piece is fetched before its bytes count as damaged.
const FETCHES: u32 = 2;

/// Bases with damaged objects that are remembered.
const MOST_DAMAGED: usize = 10_000;

/// Time for which a failure is shown that no other request has followed.
const FAILURE_SHOWN: Duration = Duration::from_secs(120);

/// Counters of the object store and of the cache since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectStatistics {
    /// Files and pieces that were found in the cache.
    pub hits: u64,
    /// Files and pieces that were fetched into it.
    pub fills: u64,
    /// Requests for objects, with those that failed.
    pub fetches: u64,
    pub failed_fetches: u64,
    pub fetched_bytes: u64,
    /// Requests that bring objects, with those that failed.
    pub sends: u64,
    pub failed_sends: u64,
    pub sent_bytes: u64,
    /// Objects that were missing or had other bytes than were stored.
    pub damaged: u64,
    /// Bytes that the cache takes on the disk now.
    pub cached_bytes: u64,
    /// The most bytes that it may take (`store.cache`).
    pub cache_bound_bytes: u64,
    /// Bytes of files that were removed from it to make room.
    pub removed_bytes: u64,
    /// The last search for strays; `None` before the first one, and on nodes that do not search.
    pub last_search: Option<StraySearch>,
}

impl ObjectStatistics {
    /// Returns how many objects could not be fetched or sent, or were damaged.
    pub fn failures(&self) -> u64 {
        self.failed_fetches + self.failed_sends + self.damaged
    }
}

/// Search for strays, a bounded part of the object store, that ended without a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StraySearch {
    pub at_ms: i64,
    /// Objects that were deleted.
    pub deleted: u64,
}

#[derive(Debug, Default)]
struct Counters {
    hits: AtomicU64,
    fills: AtomicU64,
    fetches: AtomicU64,
    failed_fetches: AtomicU64,
    fetched_bytes: AtomicU64,
    sends: AtomicU64,
    failed_sends: AtomicU64,
    sent_bytes: AtomicU64,
    damaged: AtomicU64,
}

/// Keys after which the searches for objects without a row continue, by the beginning of the keys.
pub(crate) type SearchPositions = BTreeMap<&'static str, String>;

/// Object store, and the local files of its blobs.
pub(super) struct Remote {
    objects: Objects,
    at_once: usize,
    uploads: Turns,
    downloads: Turns,
    deletions: Arc<Semaphore>,
    /// One permit: files are removed from the cache by one at a time.
    removal: Semaphore,
    cache: Cache,
    flights: Flights,
    counters: Counters,
    searched: Mutex<SearchPositions>,
    last_search: Mutex<Option<StraySearch>>,
    /// Bases whose objects had other bytes than were stored.
    damaged: Mutex<BTreeSet<Uuid>>,
    /// The last failure since a request succeeded.
    failure: Mutex<Option<(Instant, String)>>,
}

impl Remote {
    pub(super) fn new(objects: Objects, settings: &StoreSettings) -> Self {
        Self {
            objects,
            at_once: settings.objects_at_once,
            uploads: Turns::new("upload", settings),
            downloads: Turns::new("download", settings),
            deletions: Arc::new(Semaphore::new(DELETIONS)),
            removal: Semaphore::new(1),
            cache: Cache::new(&settings.data_dir, settings.cache.as_u64()),
            flights: Flights::default(),
            counters: Counters::default(),
            searched: Mutex::default(),
            last_search: Mutex::default(),
            damaged: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }

    pub(super) fn flights(&self) -> &Flights {
        &self.flights
    }

    /// Returns how many pieces are sent, and how many fetched, at a time.
    pub(super) fn at_once(&self) -> usize {
        self.at_once
    }

    pub(super) fn uploads(&self) -> &Turns {
        &self.uploads
    }

    pub(super) fn downloads(&self) -> &Turns {
        &self.downloads
    }

    /// Writes an object. Call it with a turn of [`Remote::uploads`].
    pub(super) async fn put(&self, key: &str, bytes: Bytes) -> Result<(), Error> {
        let count = bytes.len() as u64;
        self.counters.sends.fetch_add(1, Relaxed);
        let sent = self.objects.put(key, bytes).await;
        match &sent {
            Ok(()) => {
                self.counters.sent_bytes.fetch_add(count, Relaxed);
                *self.failure.lock() = None;
                self.uploads.note_success();
            }
            Err(error) => {
                self.note_failure(&self.counters.failed_sends, key, error);
                self.uploads.note_failure();
            }
        }
        sent
    }

    /// Reads an object. `Error::Lost` when it is missing. Call it with a turn of [`Remote::downloads`].
    pub(super) async fn get(&self, key: &str) -> Result<Bytes, Error> {
        self.find(key).await?
    }

    /// Reads an object that may be lost for good; the inner error, which is logged, is for one that the object store does not
    /// have.
    pub(super) async fn find(&self, key: &str) -> Result<Result<Bytes, Error>, Error> {
        self.counters.fetches.fetch_add(1, Relaxed);
        let bytes = match self.objects.get(key).await {
            Err(Error::NotFound(_)) => {
                self.downloads.note_success();
                return Ok(Err(self.damaged(format!("the object {key} is missing"))));
            }
            Err(error) => {
                self.note_failure(&self.counters.failed_fetches, key, &error);
                self.downloads.note_failure();
                return Err(error);
            }
            Ok(bytes) => bytes,
        };
        let count = bytes.len() as u64;
        self.counters.fetched_bytes.fetch_add(count, Relaxed);
        *self.failure.lock() = None;
        self.downloads.note_success();
        Ok(Ok(bytes))
    }

    fn note_failure(&self, counter: &AtomicU64, key: &str, error: &Error) {
        counter.fetch_add(1, Relaxed);
        tracing::warn!(%error, key, "a request to the object store failed");
        *self.failure.lock() = Some((Instant::now(), error.to_string()));
    }

    /// Returns the last failure, unless a request succeeded since, or none was made for a while.
    fn failure(&self) -> Option<String> {
        let failure = self.failure.lock();
        let (at, reason) = failure.as_ref()?;
        (at.elapsed() < FAILURE_SHOWN).then(|| reason.clone())
    }

    /// Logs and counts bytes that are not those that were stored; returns the error.
    pub(super) fn damaged(&self, what: String) -> Error {
        self.counters.damaged.fetch_add(1, Relaxed);
        tracing::error!(what, "stored bytes are lost or damaged");
        Error::Lost(format!("stored bytes are lost or damaged: {what}"))
    }

    /// Notes that objects of a base have other bytes than were stored.
    pub(super) fn note_damaged(&self, base: Uuid) {
        let mut damaged = self.damaged.lock();
        if damaged.len() < MOST_DAMAGED {
            damaged.insert(base);
        }
    }

    pub(super) fn is_damaged(&self, base: Uuid) -> bool {
        self.damaged.lock().contains(&base)
    }

    pub(super) fn count_hit(&self) {
        self.counters.hits.fetch_add(1, Relaxed);
    }

    pub(super) fn count_fill(&self) {
        self.counters.fills.fetch_add(1, Relaxed);
    }

    fn statistics(&self) -> ObjectStatistics {
        let (cached_bytes, removed_bytes) = self.cache.bytes();
        ObjectStatistics {
            hits: self.counters.hits.load(Relaxed),
            fills: self.counters.fills.load(Relaxed),
            fetches: self.counters.fetches.load(Relaxed),
            failed_fetches: self.counters.failed_fetches.load(Relaxed),
            fetched_bytes: self.counters.fetched_bytes.load(Relaxed),
            sends: self.counters.sends.load(Relaxed),
            failed_sends: self.counters.failed_sends.load(Relaxed),
            sent_bytes: self.counters.sent_bytes.load(Relaxed),
            damaged: self.counters.damaged.load(Relaxed),
            cached_bytes,
            cache_bound_bytes: self.cache.bound(),
            removed_bytes,
            last_search: *self.last_search.lock(),
        }
    }
}

/// A blob's row, as far as reading needs it.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) size: u64,
    pub(super) place: Place,
}

impl Blobs {
    /// Returns the object store and its cache. `Error::Unsupported` without `store.objects_url`.
    pub(super) fn remote(&self) -> Result<&Remote, Error> {
        self.shared.remote.as_ref().ok_or_else(|| {
            Error::Unsupported(
                "the bytes of this file are in an object store: set store.objects_url".into(),
            )
        })
    }

    /// Returns whether the bytes of new blobs are kept in an object store.
    pub fn has_objects(&self) -> bool {
        self.shared.remote.is_some()
    }

    /// Returns the object store, if there is one.
    pub(crate) fn objects(&self) -> Option<&Objects> {
        Some(&self.shared.remote.as_ref()?.objects)
    }

    /// Returns why requests to the object store fail now; `None` when they do not, or without one.
    pub(crate) fn object_failure(&self) -> Option<String> {
        self.shared.remote.as_ref()?.failure()
    }

    pub(crate) fn object_statistics(&self) -> Option<ObjectStatistics> {
        Some(self.shared.remote.as_ref()?.statistics())
    }

    /// Returns the positions of the searches for objects without a row.
    pub(crate) fn searched(&self) -> Option<&Mutex<SearchPositions>> {
        Some(&self.shared.remote.as_ref()?.searched)
    }

    /// Notes a search for strays that ended without a failure.
    pub(crate) fn note_search(&self, search: StraySearch) {
        if let Some(remote) = &self.shared.remote {
            *remote.last_search.lock() = Some(search);
        }
    }

    /// Lets blobs find their rows. The readers are not kept open by this.
    pub(crate) fn set_readers(&self, readers: &Arc<Readers>) {
        // Set once, when the store is made.
        let _ = self.shared.readers.set(Arc::downgrade(readers));
    }

    /// Reads where a blob's bytes lie in the object store. `Error::NotFound` for a blob without a row, and for one whose bytes
    /// are only in the folder.
    pub(super) async fn stored(&self, hash: &BlobHash) -> Result<Stored, Error> {
        let Some(readers) = self.shared.readers.get() else {
            return Err(Error::NotFound("blob"));
        };
        let readers = Weak::upgrade(readers)
            .ok_or_else(|| Error::Busy("the store is shutting down".into()))?;
        let row: BlobRow = {
            let mut reader = Reader::new(readers.acquire().await?);
            blobs::get(&mut reader, hash).await?
        };
        let size = row.size_bytes.unsigned_abs();
        let place = row.place().ok_or(Error::NotFound("blob"))?;
        Ok(Stored { size, place })
    }

    /// Fetches a piece and compares its hash. `Error::Lost` when it is missing or has other bytes than were stored.
    pub(super) async fn fetch(&self, piece: &Piece) -> Result<Bytes, Error> {
        let remote = self.remote()?;
        // A second time: bytes that were damaged on the way are not damaged in the object store.
        for _ in 0..FETCHES {
            let bytes = remote.get(&piece.key).await?;
            let hashed = bytes.clone();
            let hash = self.blocking(move || Ok(piece_hash(&hashed))).await?;
            if hash == piece.hash && bytes.len() as u64 == piece.len {
                return Ok(bytes);
            }
        }
        remote.note_damaged(piece.base);
        Err(self.wrong_object(&piece.key))
    }

    /// Logs and counts an object with other bytes than were stored; returns the error.
    pub(super) fn wrong_object(&self, key: &str) -> Error {
        let what = format!("the object {key} has other bytes than were stored");
        match self.remote() {
            Ok(remote) => remote.damaged(what),
            Err(error) => error,
        }
    }

    /// Deletes objects in the background, in their order until one cannot be deleted; that and those after it are left to the
    /// search for objects without a row. Only for objects that no row names.
    pub(crate) fn delete_later(&self, keys: impl Iterator<Item = String> + Send + 'static) {
        self.in_background(|objects| async move {
            for key in keys {
                objects.delete(&key).await?;
            }
            Ok(())
        });
    }

    /// Deletes all objects whose keys begin so, as [`Blobs::delete_later`] does. They are listed: requests that failed may have
    /// left more than are known.
    pub(crate) fn delete_below(&self, prefix: String) {
        self.in_background(|objects| async move {
            let mut after = None;
            loop {
                let page = objects.list(&prefix, after.as_deref()).await?;
                let Some(last) = page.last() else {
                    return Ok(());
                };
                after = Some(last.key.clone());
                for entry in &page {
                    objects.delete(&entry.key).await?;
                }
            }
        });
    }

    fn in_background<F>(&self, delete: impl FnOnce(Objects) -> F)
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let (Some(remote), Ok(runtime)) = (&self.shared.remote, Handle::try_current()) else {
            return;
        };
        let Ok(turn) = remote.deletions.clone().try_acquire_owned() else {
            tracing::debug!("objects are deleted by a later sweep");
            return;
        };
        let deleting = delete(remote.objects.clone());
        runtime.spawn(async move {
            let _turn = turn;
            if let Err(error) = deleting.await {
                tracing::warn!(%error, "objects are deleted by a later sweep");
            }
        });
    }

    /// Removes files from the cache until so many bytes more are within `store.cache`, and fewer when the disk is low. Returns
    /// whether a file of so many bytes may be kept: not one that is larger than the cache, and none while the disk is low.
    pub(super) async fn make_room(&self, more: u64) -> Result<bool, Error> {
        let remote = self.remote()?;
        if !remote.cache.can_hold(more) {
            return Ok(false);
        }
        // Known without a look at all the files.
        let known = |is_low: bool| match is_low {
            true => remote.cache.is_exhausted().then_some(false),
            false => remote.cache.has_room(more).then_some(true),
        };
        if let Some(may_be_kept) = known(self.is_low().await?) {
            return Ok(may_be_kept);
        }
        let turn = remote.removal.acquire().await;
        let _turn = turn.expect("the semaphore is never closed");
        let is_low = self.is_low().await?;
        if let Some(may_be_kept) = known(is_low) {
            return Ok(may_be_kept);
        }
        let at = self.clone();
        self.blocking(move || at.remote()?.cache.make_room(more, is_low))
            .await?;
        Ok(!is_low || !self.is_low().await?)
    }

    /// Keeps the cache within its bound; without an object store there is none.
    pub(crate) async fn sweep_cache(&self) -> Result<(), Error> {
        match self.has_objects() {
            true => self.make_room(0).await.map(drop),
            false => Ok(()),
        }
    }

    async fn is_low(&self) -> Result<bool, Error> {
        let at = self.clone();
        self.blocking(move || match at.check_space() {
            Err(Error::Full) => Ok(true),
            checked => checked.map(|()| false),
        })
        .await
    }

    /// Takes a finished file into the cache. The bytes are in the object store: a failure is only a slower read later.
    pub(super) async fn keep(&self, finished: Temporary, blob: Blob) {
        let kept = async {
            if !self.make_room(blob.size).await? {
                return Ok(());
            }
            let at = self.clone();
            self.blocking(move || {
                let cache = at.remote()?.cache();
                cache.take(finished, blob.size, &cache.blob_path(&blob.hash))
            })
            .await
        };
        if let Err(error) = kept.await {
            tracing::warn!(%error, hash = %blob.hash, "a blob is not in the cache");
        }
    }

    /// Removes the local files of a blob that was deleted; blocks.
    pub(crate) fn forget(&self, hash: &BlobHash, place: &Place) {
        let Some(remote) = &self.shared.remote else {
            return;
        };
        remote.cache.remove(&remote.cache.blob_path(hash));
        for number in 0..place.pieces() {
            remote
                .cache
                .remove(&remote.cache.piece_path(place.base, number));
        }
    }
}
