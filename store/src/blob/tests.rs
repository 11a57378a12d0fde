//! Blobs in an object store, here a folder: uploaded while they are written, cached, fetched by pieces, checked, deleted.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use tempfile::TempDir;
use tokio::sync::OwnedSemaphorePermit;

use super::*;
use crate::{Store, blobs, now_ms, objects::PIECE};

const HOUR: i64 = 60 * 60 * 1000;
/// Short wait for a turn.
const SOON: Duration = Duration::from_secs(1);

/// A store with its folders.
struct Site {
    store: Store,
    settings: StoreSettings,
    _dir: TempDir,
}

impl Site {
    async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = dir.path().join("data");
        let bucket = dir.path().join("bucket");
        for folder in [&data_dir, &bucket] {
            fs::create_dir(folder).unwrap();
        }
        let settings = StoreSettings {
            objects_url: format!("file://{}", bucket.display()),
            ..StoreSettings::without_reserve(&data_dir)
        };
        Self {
            store: Store::open(&settings).await.unwrap(),
            settings,
            _dir: dir,
        }
    }

    /// Opens the store again with other settings.
    async fn again(&mut self, change: impl FnOnce(&mut StoreSettings)) {
        self.store.close().await;
        change(&mut self.settings);
        self.store = Store::open(&self.settings).await.unwrap();
    }

    fn data(&self, name: &str) -> PathBuf {
        self.settings.data_dir.join(name)
    }

    /// Files of all objects of blobs.
    fn objects(&self) -> Vec<PathBuf> {
        let bucket = self.settings.data_dir.parent().unwrap().join("bucket/b");
        files_in(&bucket)
    }

    /// Removes what is cached, as another node does not have it.
    fn forget(&self) {
        fs::remove_dir_all(self.data("cached")).unwrap();
    }

    async fn seal(&self, bytes: &[u8]) -> Sealed {
        let mut spool = self.store.blobs().spool().await.unwrap();
        for piece in bytes.chunks(1_000_003) {
            spool.write(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        spool.seal().await.unwrap()
    }

    async fn record(&self, sealed: Sealed) -> BlobHash {
        let hash = sealed.blob().hash;
        let recorded = self
            .store
            .write(move |tx| Box::pin(async move { blobs::record(tx, &sealed, now_ms()).await }));
        recorded.await.unwrap();
        hash
    }

    async fn add(&self, bytes: &[u8]) -> BlobHash {
        self.record(self.seal(bytes).await).await
    }

    async fn read(&self, hash: &BlobHash) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let mut file = self.store.blobs().open(hash).await?;
        file.read_to_end(&mut bytes).unwrap();
        Ok(bytes)
    }

    async fn place(&self, hash: &BlobHash) -> pieces::Place {
        let mut reader = self.store.read().await.unwrap();
        blobs::get(&mut reader, hash)
            .await
            .unwrap()
            .place()
            .unwrap()
    }

    async fn has_base(&self, hash: &BlobHash) -> bool {
        let mut reader = self.store.read().await.unwrap();
        blobs::get(&mut reader, hash).await.unwrap().base.is_some()
    }

    async fn until_objects(&self, count: usize) {
        for _ in 0..1000 {
            if self.objects().len() == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{count} objects expected: {:?}", self.objects());
    }

    fn fetched(&self) -> u64 {
        self.store.objects().unwrap().fetched_bytes
    }
}

/// Files at any depth; a folder that is missing has none.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// Bytes without a period.
fn noise(len: usize) -> Vec<u8> {
    let mut state: u32 = 1;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_is_kept_in_pieces_and_fetched_again() {
    let site = Site::open().await;
    for bytes in [
        Vec::new(),
        b"short".to_vec(),
        noise(PIECE),
        noise(2 * PIECE + 7),
    ] {
        let before = site.objects().len();
        let hash = site.add(&bytes).await;
        let pieces = bytes.len().div_ceil(PIECE);
        assert_eq!(site.objects().len() - before, pieces);
        assert!(
            !site.store.blobs().path(&hash).exists(),
            "not in the folder"
        );
        assert!(site.has_base(&hash).await);

        let fetched = site.fetched();
        assert_eq!(site.read(&hash).await.unwrap(), bytes);
        assert_eq!(site.fetched(), fetched, "it is cached");
        site.forget();
        let (one, other) = tokio::join!(site.read(&hash), site.read(&hash));
        assert_eq!(
            (one.unwrap(), other.unwrap()),
            (bytes.clone(), bytes.clone())
        );
        assert_eq!(site.fetched() - fetched, bytes.len() as u64, "fetched once");
        assert_eq!(site.read(&hash).await.unwrap(), bytes);
    }
    assert!(files_in(&site.data("tmp")).is_empty());
    let unknown = BlobHash([7; 32]);
    let missing = site.read(&unknown).await.unwrap_err();
    assert!(matches!(missing, Error::NotFound("blob")), "{missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_pieces_that_are_read_are_fetched() {
    let site = Site::open().await;
    let bytes = noise(4 * PIECE + 100);
    let hash = site.add(&bytes).await;
    site.forget();
    let read = async |from: usize, to: usize| {
        let mut source = site.store.blobs().source(&hash).await.unwrap();
        assert_eq!(source.size().unwrap(), bytes.len() as u64);
        source.read_until(to as u64);
        let Source::Pieces(mut pieces) = source else {
            panic!("it is local");
        };
        let mut read = Vec::new();
        while from + read.len() < to {
            let at = from + read.len();
            let next = pieces.read(at as u64, (to - at).min(3_000_000)).await;
            read.extend_from_slice(&next.unwrap());
        }
        assert!(read == bytes[from..to], "{from} {to}");
    };
    let piece = PIECE as u64;
    read(PIECE + 5, PIECE + 105).await;
    assert_eq!(site.fetched(), piece);
    read(PIECE - 5, PIECE + 5).await;
    assert_eq!(site.fetched(), 2 * piece);
    read(4 * PIECE + 99, 4 * PIECE + 100).await;
    assert_eq!(site.fetched(), 2 * piece + 100);
    read(0, bytes.len()).await;
    assert_eq!(site.fetched(), 4 * piece + 100);
    // The whole is made of the pieces that are cached.
    assert!(site.read(&hash).await.unwrap() == bytes);
    assert_eq!(site.fetched(), 4 * piece + 100);
    let source = site.store.blobs().source(&hash).await.unwrap();
    assert!(matches!(source, Source::File(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_and_damaged_objects_give_no_wrong_bytes() {
    let site = Site::open().await;
    for (bytes, is_whole) in [(noise(1000), true), (noise(3 * PIECE), false)] {
        let hash = site.add(&bytes).await;
        site.forget();
        let objects = site.objects();
        let object = objects.last().unwrap();
        let original = fs::read(object).unwrap();
        let mut other = original.clone();
        other[500] ^= 1;
        for damaged in [Some(other), Some(original[..999].to_vec()), None] {
            match damaged {
                Some(damaged) => fs::write(object, damaged).unwrap(),
                None => fs::remove_file(object).unwrap(),
            }
            let failures = site.store.objects().unwrap().failures();
            let error = site.read(&hash).await.unwrap_err();
            assert!(matches!(error, Error::Lost(_)), "{error:?}");
            assert!(error.is_retryable());
            assert_eq!(site.store.objects().unwrap().failures(), failures + 1);
            if !is_whole {
                let Source::Pieces(mut pieces) = site.store.blobs().source(&hash).await.unwrap()
                else {
                    panic!("it is local");
                };
                let error = pieces.read(2 * PIECE as u64, 10).await.unwrap_err();
                assert!(matches!(error, Error::Lost(_)), "{error:?}");
            }
        }
        fs::write(object, original).unwrap();
        assert!(site.read(&hash).await.unwrap() == bytes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_again_replace_lost_objects() {
    let site = Site::open().await;
    let bytes = noise(PIECE + 5);
    let hash = site.add(&bytes).await;
    for damaged in [None, Some("1234"), Some("wrong")] {
        let before = site.place(&hash).await;
        // As long as nothing is lost the row keeps its objects.
        site.add(&bytes).await;
        assert_eq!(site.place(&hash).await, before);

        let key = before.keys().nth(1).unwrap();
        let object = site.settings.data_dir.parent().unwrap();
        let object = object.join("bucket").join(key);
        match damaged {
            Some(damaged) => fs::write(&object, damaged).unwrap(),
            None => fs::remove_file(&object).unwrap(),
        }
        site.forget();
        let error = site.read(&hash).await.unwrap_err();
        assert!(matches!(error, Error::Lost(_)), "{error:?}");
        assert_eq!(site.add(&bytes).await, hash);
        let after = site.place(&hash).await;
        assert_ne!(after.base, before.base, "{damaged:?}");
        site.forget();
        assert!(site.read(&hash).await.unwrap() == bytes);
    }
    // What is left of the others is found as strays.
    let now = now_ms();
    crate::stray_objects::sweep(&site.store, now + HOUR)
        .await
        .unwrap();
    assert_eq!(site.objects().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_no_row_needs_are_deleted() {
    let site = Site::open().await;
    let bytes = noise(PIECE + 1);
    let hash = site.add(&bytes).await;
    let first = site.objects();
    assert_eq!(first.len(), 2);

    // The same bytes again: the row keeps its objects.
    assert_eq!(site.add(&bytes).await, hash);
    site.until_objects(2).await;
    assert_eq!(site.objects(), first);

    // Neither recorded nor sealed.
    drop(site.seal(&noise(PIECE + 2)).await);
    site.until_objects(2).await;
    let mut spool = site.store.blobs().spool().await.unwrap();
    spool.write(noise(PIECE + 3).into()).await.unwrap();
    site.until_objects(3).await;
    drop(spool);
    site.until_objects(2).await;

    // Nothing names the blob.
    let now = now_ms();
    blobs::sweep(&site.store, now).await.unwrap();
    assert_eq!(site.objects(), first);
    let swept = blobs::sweep(&site.store, now + 24 * HOUR + 1).await;
    assert_eq!(swept.unwrap(), 1);
    site.until_objects(0).await;
    let name = &hash.to_string()[2..];
    let cached = files_in(&site.data("cached"));
    assert!(
        !cached.iter().any(|path| path.ends_with(name)),
        "{cached:?}"
    );
    let gone = site.read(&hash).await.unwrap_err();
    assert!(matches!(gone, Error::NotFound("blob")), "{gone:?}");
}

/// Sends one piece twice, like a request that stalled and another one of the same upload.
#[tokio::test(flavor = "multi_thread")]
async fn other_bytes_of_one_piece_have_another_key() {
    let site = Site::open().await;
    let blobs = site.store.blobs();
    let base = uuid::Uuid::now_v7();
    let send = async |bytes: &'static str| {
        let file = site.data("sent");
        fs::write(&file, bytes).unwrap();
        let mut upload = pieces::PieceUpload::new(blobs, base, Vec::new());
        let place = upload.finish_all(&file, bytes.len() as u64).await;
        place.unwrap()
    };
    let newer = send("newer").await;
    let stalled = send("older").await;
    assert_eq!(send("newer").await, newer, "a repetition");
    assert_eq!(site.objects().len(), 2);
    for (place, expected) in [(newer, "newer"), (stalled, "older")] {
        let piece = place.piece(0, 5).unwrap();
        let read = blobs.fetch(&piece).await.unwrap();
        assert_eq!(read, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strays_are_found_once_they_are_old() {
    let site = Site::open().await;
    // A commit that fails after the row was written.
    let sealed = site.seal(b"rolled back").await;
    let failed: Result<(), Error> = site
        .store
        .write(move |tx| {
            Box::pin(async move {
                blobs::record(tx, &sealed, now_ms()).await?;
                Err(Error::Conflict("no".into()))
            })
        })
        .await;
    failed.unwrap_err();
    let kept = site.add(b"kept").await;
    // Of requests that were superseded.
    let base = site.place(&kept).await.base.simple();
    for name in ["0-0123456789abcdef", "1-0123456789abcdef", "t5"] {
        let key = format!("b/{base}/{name}");
        let objects = site.store.blobs().objects().unwrap();
        objects.put(&key, "stray".into()).await.unwrap();
    }
    assert_eq!(site.objects().len(), 5);
    let now = now_ms();
    for (later, expected) in [(0, 5), (23 * HOUR, 5), (24 * HOUR + HOUR, 1)] {
        crate::stray_objects::sweep(&site.store, now + later - 24 * HOUR)
            .await
            .unwrap();
        assert_eq!(site.objects().len(), expected, "{later}");
        let search = site.store.objects().unwrap().last_search.unwrap();
        assert_eq!(search.deleted, 5 - expected as u64, "{later}");
        assert!(search.at_ms >= now);
    }
    site.forget();
    assert_eq!(site.read(&kept).await.unwrap(), b"kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_failures_are_counted_by_kind() {
    let site = Site::open().await;
    let counted = || site.store.objects().unwrap();
    let hash = site.add(b"counted").await;
    site.forget();
    site.read(&hash).await.unwrap();
    let well = counted();
    assert_eq!((well.sends, well.fetches, well.failures()), (1, 1, 0));
    assert_eq!(well.cache_bound_bytes, site.settings.cache.as_u64());

    let folder = site.settings.data_dir.parent().unwrap().join("bucket/b");
    fs::remove_dir_all(&folder).unwrap();
    site.forget();
    site.read(&hash).await.unwrap_err();
    let lost = counted();
    assert!(lost.damaged > 0 && lost.failed_fetches == 0, "{lost:?}");
    assert_eq!(site.store.object_failure(), None);

    // A file in the place of the folder: requests fail.
    fs::write(&folder, "").unwrap();
    site.read(&hash).await.unwrap_err();
    let mut spool = site.store.blobs().spool().await.unwrap();
    spool.write("more".into()).await.unwrap();
    spool.seal().await.unwrap_err();
    let failed = counted();
    assert!(
        failed.failed_fetches > 0 && failed.failed_sends > 0,
        "{failed:?}"
    );
    assert_eq!(failed.damaged, lost.damaged);
    assert_eq!(failed.sent_bytes, well.sent_bytes);
    let failure = site.store.object_failure().unwrap();
    assert!(failure.starts_with("the object store"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_object_store_than_that_of_the_rows_is_rejected() {
    let mut site = Site::open().await;
    let hash = site.add(b"ours").await;
    let folder = site.settings.data_dir.parent().unwrap().to_owned();
    let other = folder.join("other");
    fs::create_dir(&other).unwrap();
    let wrong = StoreSettings {
        objects_url: format!("file://{}", other.display()),
        ..site.settings.clone()
    };
    site.store.close().await;
    let error = Store::open(&wrong)
        .await
        .err()
        .expect("it has no such file");
    assert!(matches!(error, Error::Unsupported(_)), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("store.objects_url") && text.contains("the rows name"),
        "{text}"
    );
    assert!(!other.join("owner").exists(), "it left nothing");

    // A copy without the owner is known by its objects.
    fs::rename(folder.join("bucket/b"), other.join("b")).unwrap();
    site.store = Store::open(&wrong).await.unwrap();
    site.forget();
    assert_eq!(site.read(&hash).await.unwrap(), b"ours");
    assert!(other.join("owner").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_folder_stay_there() {
    let mut site = Site::open().await;
    let url = std::mem::take(&mut site.settings.objects_url);
    site.again(|_| ()).await;
    assert_eq!(site.store.objects(), None);
    let hash = site.add(b"from before").await;
    site.again(|settings| settings.objects_url = url.clone())
        .await;
    assert_eq!(site.read(&hash).await.unwrap(), b"from before");
    assert_eq!(site.add(b"from before").await, hash);
    assert!(!site.has_base(&hash).await);
    site.until_objects(0).await;

    // A file that is lost is stored again with objects.
    fs::remove_file(site.store.blobs().path(&hash)).unwrap();
    site.forget();
    assert!(matches!(
        site.read(&hash).await,
        Err(Error::NotFound("blob"))
    ));
    site.add(b"from before").await;
    assert!(site.has_base(&hash).await);
    site.forget();
    assert_eq!(site.read(&hash).await.unwrap(), b"from before");

    // Without the setting the error says what to change.
    site.forget();
    site.again(|settings| settings.objects_url = String::new())
        .await;
    let error = site.read(&hash).await.unwrap_err();
    assert!(error.to_string().contains("store.objects_url"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cache_keeps_its_bound() {
    let site = Site::open().await;
    let bound = 3 * PIECE as u64;
    // Smaller than a service accepts.
    let settings = StoreSettings {
        cache: bytesize::ByteSize(bound),
        ..site.settings.clone()
    };
    let blobs = Blobs::new(&settings, Objects::of(&settings).unwrap());
    for number in 0..5 {
        let mut spool = blobs.spool().await.unwrap();
        spool.write(noise(PIECE - number).into()).await.unwrap();
        drop(spool.seal().await.unwrap());
        let lengths = files_in(&site.data("cached"))
            .into_iter()
            .map(|path| fs::metadata(path).unwrap().len());
        let cached: u64 = lengths.sum();
        assert!((1..=bound).contains(&cached), "{cached}");
    }
    let statistics = blobs.object_statistics().unwrap();
    assert!(statistics.removed_bytes > 0, "{statistics:?}");
    assert!(statistics.cached_bytes <= bound, "{statistics:?}");
}

/// Makes blobs with other settings beside those of a site, with its rows.
fn beside(site: &Site, settings: &StoreSettings) -> Blobs {
    let blobs = Blobs::new(settings, Objects::of(settings).unwrap());
    let readers = site.store.blobs().shared.readers.get().unwrap();
    assert!(blobs.shared.readers.set(readers.clone()).is_ok());
    blobs
}

async fn read_of(blobs: &Blobs, hash: &BlobHash) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = blobs.open(hash).await.unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_read_while_the_disk_is_low() {
    let site = Site::open().await;
    let (small, large) = (noise(1000), noise(3 * PIECE));
    let hashes = [site.add(&small).await, site.add(&large).await];
    site.forget();
    // The disk has two thirds of what is to be free.
    let free = site.store.disk_space().unwrap().free_bytes;
    let settings = StoreSettings {
        min_free: format!("{} B", free / 2 * 3),
        ..site.settings.clone()
    };
    let blobs = beside(&site, &settings);
    let stored = blobs.spool().await.map(drop).unwrap_err();
    assert!(matches!(stored, Error::Full), "{stored:?}");
    for (hash, expected) in hashes.iter().zip([&small, &large]) {
        assert!(read_of(&blobs, hash).await == *expected);
    }
    let Source::Pieces(mut pieces) = blobs.source(&hashes[1]).await.unwrap() else {
        panic!("it is local");
    };
    let read = pieces.read(PIECE as u64 + 5, 100).await.unwrap();
    assert_eq!(read[..], large[PIECE + 5..PIECE + 105]);
    // They would take what is left.
    let cached = files_in(&site.data("cached"));
    assert!(cached.is_empty(), "{cached:?}");

    // Nothing could be removed: not each read looks through the cache, in which another one has put a file since.
    site.add(b"later").await;
    assert!(read_of(&blobs, &hashes[0]).await == small);
    assert_eq!(files_in(&site.data("cached")).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_that_is_larger_than_the_cache_leaves_it_as_it_is() {
    let site = Site::open().await;
    let (small, large) = (noise(1000), noise(PIECE));
    let hashes = [site.add(&small).await, site.add(&large).await];
    site.forget();
    let settings = StoreSettings {
        cache: bytesize::ByteSize(PIECE as u64 / 2),
        ..site.settings.clone()
    };
    let blobs = beside(&site, &settings);
    for (hash, expected) in hashes.iter().zip([&small, &large]) {
        assert!(read_of(&blobs, hash).await == *expected);
    }
    let mut spool = blobs.spool().await.unwrap();
    spool.write(noise(PIECE - 1).into()).await.unwrap();
    drop(spool.seal().await.unwrap());
    let cached = files_in(&site.data("cached"));
    assert_eq!(cached.len(), 1, "{cached:?}");
}

/// Makes blobs that wait for a turn for so long, and takes all turns for downloads.
async fn with_all_turns_taken(
    site: &Site,
    objects_timeout: Duration,
) -> (Blobs, Vec<OwnedSemaphorePermit>) {
    let settings = StoreSettings {
        objects_timeout,
        ..site.settings.clone()
    };
    let blobs = beside(site, &settings);
    let turns = all_turns(&blobs).await;
    (blobs, turns)
}

async fn all_turns(blobs: &Blobs) -> Vec<OwnedSemaphorePermit> {
    let remote = blobs.remote().unwrap();
    let mut turns = Vec::new();
    for _ in 0..remote.at_once() {
        turns.push(remote.downloads().turn().await.unwrap());
    }
    turns
}

async fn until_flights(blobs: &Blobs, count: usize) {
    for _ in 0..1000 {
        if blobs.remote().unwrap().flights().count() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{count} flights expected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_waits_for_no_turn_while_the_object_store_is_away() {
    let site = Site::open().await;
    let (small, large) = (noise(1000), noise(3 * PIECE));
    let hashes = [site.add(&small).await, site.add(&large).await];
    site.forget();
    let (blobs, turns) = with_all_turns_taken(&site, SOON).await;
    for hash in hashes {
        let opening = tokio::spawn({
            let blobs = blobs.clone();
            async move { blobs.open(&hash).await.map(drop) }
        });
        until_flights(&blobs, 1).await;
        while !opening.is_finished() {
            // As those note that have the turns.
            blobs.remote().unwrap().downloads().note_failure();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let error = opening.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Objects(_)), "{error:?}");
        assert!(
            error.to_string().contains("store.objects_timeout"),
            "{error}"
        );
    }
    // Their work has ended with them.
    until_flights(&blobs, 0).await;
    assert_eq!(blobs.object_statistics().unwrap().fetches, 0);

    drop(turns);
    for (hash, expected) in hashes.iter().zip([&small, &large]) {
        assert!(read_of(&blobs, hash).await == *expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_fetched_ahead_waits_for_its_turn_without_a_caller() {
    let site = Site::open().await;
    let hash = site.add(&noise(1000)).await;
    site.forget();
    let (blobs, turns) = with_all_turns_taken(&site, Duration::from_secs(60)).await;
    let leaves = tokio::spawn({
        let blobs = blobs.clone();
        async move { blobs.open(&hash).await.map(drop) }
    });
    until_flights(&blobs, 1).await;
    leaves.abort();
    blobs.prefetch(&hash).await.unwrap();
    until_flights(&blobs, 1).await;
    drop(turns);
    until_flights(&blobs, 0).await;
    assert_eq!(blobs.object_statistics().unwrap().fills, 1);
    read_of(&blobs, &hash).await;
    assert_eq!(blobs.object_statistics().unwrap().fetches, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_begun_waits_while_others_have_turns() {
    let site = Site::open().await;
    let large = noise(3 * PIECE);
    let hash = site.add(&large).await;
    site.forget();
    let (blobs, turns) = with_all_turns_taken(&site, SOON).await;
    drop(turns);
    let mut source = blobs.source(&hash).await.unwrap();
    // Nothing is fetched ahead.
    source.read_until(1);
    let Source::Pieces(mut pieces) = source else {
        panic!("it is local");
    };
    pieces.read(0, 100).await.unwrap();
    let turns = all_turns(&blobs).await;
    let behind = PIECE as u64 + 5;
    {
        let mut reading = std::pin::pin!(pieces.read(behind, 100));
        let waiting = tokio::time::timeout(2 * SOON, &mut reading).await;
        assert!(waiting.is_err(), "{waiting:?}");
        drop(turns);
        assert_eq!(reading.await.unwrap()[..], large[PIECE + 5..PIECE + 105]);
    }
}
