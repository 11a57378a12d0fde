//! Tests of recorded media in an object store, here a folder: rows, fences, reads, deletion.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::*;
use crate::{
    StoreSettings, accounts,
    blob::Source,
    broadcasts,
    live_inputs::{self, NewLiveInput},
    now_ms,
    objects::PIECE,
    stray_objects,
};

const HOUR_MS: i64 = 60 * 60 * 1000;

struct Site {
    store: Store,
    dir: tempfile::TempDir,
}

impl Site {
    async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bucket = dir.path().join("bucket");
        let data = dir.path().join("data");
        for folder in [&bucket, &data] {
            fs::create_dir(folder).unwrap();
        }
        let settings = StoreSettings {
            objects_url: format!("file://{}", bucket.display()),
            ..StoreSettings::without_reserve(&data)
        };
        let store = Store::open(&settings).await.unwrap();
        Self { store, dir }
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join("file");
        fs::write(&path, bytes).unwrap();
        path
    }

    async fn uploaded(&self, name: &str, bytes: &[u8]) -> NewLiveSegment {
        let path = self.file(bytes);
        let blobs = self.store.blobs();
        let file = blobs.upload_file(&path, bytes.len() as u64).await.unwrap();
        NewLiveSegment {
            name: name.to_owned(),
            entry: format!("{{\"name\":\"{name}\"}}"),
            file,
        }
    }

    async fn record(
        &self,
        broadcast: &'static str,
        fence: i64,
        media: Vec<NewLiveSegment>,
    ) -> Result<(), Error> {
        let media = Arc::new(media);
        self.store
            .write_beside(move |tx| {
                Box::pin(async move { record(tx, broadcast, fence, &media, now_ms()).await })
            })
            .await
    }

    async fn names(&self, broadcast: &str) -> Vec<String> {
        let mut reader = self.store.read().await.unwrap();
        let rows = list(&mut reader, broadcast).await.unwrap();
        rows.into_iter().map(|row| row.name).collect()
    }

    async fn read(&self, broadcast: &str, name: &str) -> Result<Vec<u8>, Error> {
        let source = self.store.blobs().recorded(broadcast, name).await?;
        let size = source.size().unwrap();
        let Source::Pieces(mut reader) = source else {
            panic!("there is no local file")
        };
        let mut read = Vec::new();
        while (read.len() as u64) < size {
            let bytes = reader.read(read.len() as u64, usize::MAX).await?;
            read.extend_from_slice(&bytes);
        }
        Ok(read)
    }

    fn objects(&self) -> usize {
        count_files(&self.dir.path().join("bucket/b"))
    }
}

fn count_files(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    entries
        .map(|entry| entry.unwrap().path())
        .map(|path| if path.is_dir() { count_files(&path) } else { 1 })
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_media_are_read_and_deleted_by_their_rows() {
    let site = Site::open().await;
    assert!(are_kept(&site.store));
    let large: Vec<u8> = (0..PIECE as u32 + 5).map(|n| (n / 251 + n) as u8).collect();
    let media = vec![
        site.uploaded("init0.mp4", b"init").await,
        site.uploaded("10.m4s", &large).await,
    ];
    site.record("b1", 1, media).await.unwrap();
    let other = vec![site.uploaded("9.m4s", b"other").await];
    site.record("b2", 1, other).await.unwrap();
    assert_eq!(site.objects(), 4);

    assert_eq!(site.names("b1").await, ["10.m4s", "init0.mp4"]);
    assert_eq!(site.read("b1", "init0.mp4").await.unwrap(), b"init");
    assert!(site.read("b1", "10.m4s").await.unwrap() == large);
    let missing = site.read("b1", "9.m4s").await;
    assert!(matches!(missing, Err(Error::NotFound(_))), "{missing:?}");

    // A file that begins with the media is a copy of them; zeros of the same length and a shorter one are none.
    let longer = [&large[..], b"more"].concat();
    for (bytes, is_copy) in [
        (large.clone(), true),
        (longer, true),
        (vec![0; large.len()], false),
        (large[..PIECE].to_vec(), false),
        (Vec::new(), false),
    ] {
        let file = Arc::new(fs::File::open(site.file(&bytes)).unwrap());
        let compared = site.store.blobs().is_as_recorded("b1", "10.m4s", file);
        assert_eq!(compared.await.unwrap(), Some(is_copy), "{}", bytes.len());
    }
    let file = Arc::new(fs::File::open(site.file(b"other")).unwrap());
    let unknown = site.store.blobs().is_as_recorded("b1", "9.m4s", file);
    assert_eq!(unknown.await.unwrap(), None);

    // Media of rows are no strays, however old.
    stray_objects::sweep(&site.store, now_ms() + HOUR_MS)
        .await
        .unwrap();
    assert_eq!(site.objects(), 4);

    let mut reader = site.store.read().await.unwrap();
    let first = next_broadcast(&mut reader, "").await.unwrap();
    let second = next_broadcast(&mut reader, "b1").await.unwrap();
    let third = next_broadcast(&mut reader, "b2").await.unwrap();
    assert_eq!(
        (first.as_deref(), second.as_deref(), third),
        (Some("b1"), Some("b2"), None)
    );
    assert!(newest_at(&mut reader, "b1").await.unwrap() > Some(now_ms() - HOUR_MS));
    assert_eq!(newest_at(&mut reader, "b0").await.unwrap(), None);
    drop(reader);

    assert_eq!(delete(&site.store, "b1").await.unwrap(), 2);
    assert_eq!(delete(&site.store, "b1").await.unwrap(), 0);
    assert_eq!(site.objects(), 1);
    assert_eq!(site.read("b2", "9.m4s").await.unwrap(), b"other");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_newest_owner_of_a_broadcast_records() {
    let site = Site::open().await;
    let made = site.store.write(|tx| {
        Box::pin(async move {
            let account = accounts::create(tx, "here", 1).await?;
            let (input, _) =
                live_inputs::create(tx, account.id, NewLiveInput::default(), 1).await?;
            broadcasts::begin(tx, "b1", input.id, 7, 1).await
        })
    });
    made.await.unwrap();
    let late = vec![site.uploaded("1.m4s", b"late").await];
    let rejected = site.record("b1", 6, late).await;
    assert!(matches!(rejected, Err(Error::Conflict(_))), "{rejected:?}");
    let first = vec![site.uploaded("1.m4s", b"first").await];
    site.record("b1", 7, first).await.unwrap();
    // A commit that was not answered is repeated by the same owner.
    let again = vec![site.uploaded("1.m4s", b"again").await];
    site.record("b1", 7, again).await.unwrap();
    assert_eq!(site.read("b1", "1.m4s").await.unwrap(), b"again");

    let newer = vec![site.uploaded("1.m4s", b"newer").await];
    site.record("b1", 8, newer).await.unwrap();
    let older = vec![site.uploaded("1.m4s", b"older").await];
    let rejected = site.record("b1", 7, older).await;
    assert!(matches!(rejected, Err(Error::Conflict(_))), "{rejected:?}");
    assert_eq!(site.read("b1", "1.m4s").await.unwrap(), b"newer");
}

#[tokio::test]
async fn nothing_is_kept_without_an_object_store() {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreSettings::without_reserve(dir.path());
    let store = Store::open(&settings).await.unwrap();
    assert!(!are_kept(&store));
    let file = dir.path().join("file");
    fs::write(&file, b"bytes").unwrap();
    let uploaded = store.blobs().upload_file(&file, 5).await;
    assert!(
        matches!(uploaded, Err(Error::Unsupported(_))),
        "{uploaded:?}"
    );
    let read = store.blobs().recorded("b1", "1.m4s").await;
    assert!(matches!(read, Err(Error::NotFound(_))), "{read:?}");
}
