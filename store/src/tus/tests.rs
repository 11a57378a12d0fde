//! On a real database: how far an upload is, who may move it, and when it goes.

use bytes::Bytes;

use super::*;
use crate::{StoreSettings, accounts, blobs};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

struct Site {
    store: Store,
    account: Uuid,
    _folder: tempfile::TempDir,
}

const BOUNDS: Bounds = Bounds {
    unfinished: 3,
    storage_bytes: 100,
};

impl Site {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings {
            data_dir: folder.path().to_owned(),
            ..StoreSettings::default()
        };
        let store = Store::open(&settings).await.unwrap();
        let account = store
            .write(|tx| Box::pin(async move { accounts::create(tx, "Default", 0).await }))
            .await
            .unwrap()
            .id;
        Self {
            store,
            account,
            _folder: folder,
        }
    }

    async fn create(&self, length_bytes: Option<u64>, now_ms: i64) -> Result<TusUpload, Error> {
        let account = self.account;
        let new = NewTusUpload {
            folder_id: None,
            filename: "a.bin".to_owned(),
            metadata: String::new(),
            length_bytes,
            expires_at: now_ms + DAY_MS,
        };
        self.store
            .write(move |tx| {
                Box::pin(async move { create(tx, account, new, BOUNDS, now_ms).await })
            })
            .await
    }

    async fn claim(&self, id: Uuid, offset: u64, length: Option<u64>) -> Result<TusUpload, Error> {
        let account = self.account;
        let wanted = Claim {
            offset,
            length_bytes: length,
            expires_at: DAY_MS,
            storage_bytes: BOUNDS.storage_bytes,
        };
        self.store
            .write(move |tx| Box::pin(async move { claim(tx, account, id, wanted, 0).await }))
            .await
    }

    async fn advance(&self, upload: &TusUpload, length: u64) -> Result<(), Error> {
        self.advance_at(upload, length, 0).await
    }

    async fn advance_at(&self, upload: &TusUpload, length: u64, now_ms: i64) -> Result<(), Error> {
        let upload = upload.clone();
        let progress = Progress {
            length,
            crc32: u32::MAX,
            sha256: vec![7],
        };
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let storage = BOUNDS.storage_bytes;
                    advance(tx, &upload, &progress, DAY_MS, storage, now_ms).await
                })
            })
            .await
    }

    async fn complete(&self, upload: &TusUpload, length: u64) -> Result<File, Error> {
        let upload = upload.clone();
        let mut spool = self.store.blobs().spool().await.unwrap();
        spool
            .write(Bytes::from(vec![1; length as usize]))
            .await
            .unwrap();
        let sealed = spool.seal().await.unwrap();
        let arrived = Arrived {
            blob: sealed.blob().hash,
            size_bytes: length,
            mime_type: "application/octet-stream".to_owned(),
            facts: Facts::default(),
        };
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    blobs::record(tx, &sealed, 0).await?;
                    complete(tx, &upload, arrived, BOUNDS.storage_bytes, 0).await
                })
            })
            .await
    }

    async fn get(&self, id: Uuid, now_ms: i64) -> Result<TusUpload, Error> {
        let mut db = self.store.read().await.unwrap();
        get(&mut db, self.account, id, now_ms).await
    }
}

fn is_conflict<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Conflict(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_later_request_wins_and_the_whole_offset_means_a_file() {
    let site = Site::open().await;
    let made = site.create(Some(10), 0).await.unwrap();
    assert_eq!((made.offset(), made.length()), (0, Some(10)));
    let first = site.claim(made.id, 0, None).await.unwrap();
    let second = site.claim(made.id, 0, Some(10)).await.unwrap();
    is_conflict(site.advance(&first, 4).await);
    site.advance(&second, 4).await.unwrap();
    is_conflict(site.claim(made.id, 0, None).await);
    is_conflict(site.claim(made.id, 4, Some(11)).await);
    let third = site.claim(made.id, 4, None).await.unwrap();
    assert_eq!(third.progress().crc32, u32::MAX);
    // All bytes are no offset, they are a file.
    is_conflict(site.advance(&third, 10).await);
    is_conflict(site.complete(&second, 10).await);
    let file = site.complete(&third, 10).await.unwrap();
    is_conflict(site.complete(&third, 10).await);
    let done = site.get(made.id, 0).await.unwrap();
    assert!(done.is_completed());
    assert_eq!((done.offset(), done.file_id), (10, Some(file.id)));
    // Asking again changes nothing.
    assert_eq!(site.claim(made.id, 10, None).await.unwrap(), done);
}

#[tokio::test]
async fn a_length_may_be_declared_once_and_not_below_what_is_there() {
    let site = Site::open().await;
    let made = site.create(None, 0).await.unwrap();
    let claimed = site.claim(made.id, 0, None).await.unwrap();
    site.advance(&claimed, 6).await.unwrap();
    is_conflict(site.claim(made.id, 6, Some(5)).await);
    // The length is told with the file only.
    let exact = site.claim(made.id, 6, Some(6)).await.unwrap();
    assert_eq!(exact.length(), None);
    let longer = site.claim(made.id, 6, Some(9)).await.unwrap();
    assert_eq!(longer.length(), Some(9));
    is_conflict(site.claim(made.id, 6, Some(8)).await);
    let other = site.create(None, 0).await.unwrap();
    assert!(matches!(
        site.claim(other.id, 0, Some(95)).await,
        Err(Error::OverQuota { .. })
    ));
    site.claim(other.id, 0, Some(94)).await.unwrap();
}

#[tokio::test]
async fn unfinished_uploads_are_counted_and_their_bytes_too() {
    let site = Site::open().await;
    assert!(matches!(
        site.create(Some(101), 0).await,
        Err(Error::OverQuota {
            used_bytes: 0,
            limit_bytes: 100
        })
    ));
    let first = site.create(Some(60), 0).await.unwrap();
    let second = site.create(Some(100), 0).await.unwrap();
    let first = site.claim(first.id, 0, None).await.unwrap();
    site.advance(&first, 50).await.unwrap();
    assert!(matches!(
        site.create(Some(51), 0).await,
        Err(Error::OverQuota { .. })
    ));
    site.create(Some(50), 0).await.unwrap();
    assert!(is_conflict(site.create(Some(1), 0).await).contains("uploads.max_unfinished"));
    let second = site.claim(second.id, 0, None).await.unwrap();
    assert!(matches!(
        site.advance(&second, 51).await,
        Err(Error::OverQuota { .. })
    ));
    assert_eq!(site.get(second.id, 0).await.unwrap().offset(), 0);
    // Expired ones count no more.
    site.create(Some(1), DAY_MS).await.unwrap();
}

#[tokio::test]
async fn expired_uploads_lose_their_bytes_soon_and_are_forgotten_a_day_later() {
    let site = Site::open().await;
    let upload = site.create(Some(10), 0).await.unwrap();
    let blobs = site.store.blobs();
    let mut partial = blobs.partial(upload.id, Progress::default()).await.unwrap();
    partial.write(&Bytes::from_static(b"five")).await.unwrap();
    partial.sync().await.unwrap();
    let claimed = site.claim(upload.id, 0, None).await.unwrap();
    assert!(matches!(
        site.advance_at(&claimed, 4, DAY_MS).await,
        Err(Error::Gone(_))
    ));
    sweep(&site.store, DAY_MS + KEPT_AFTER_MS - 1)
        .await
        .unwrap();
    assert!(blobs.has_partial(upload.id, 4).await.unwrap());
    assert_eq!(sweep(&site.store, DAY_MS + KEPT_AFTER_MS).await.unwrap(), 1);
    assert!(!blobs.has_partial(upload.id, 4).await.unwrap());
    assert!(matches!(
        site.get(upload.id, DAY_MS).await,
        Err(Error::Gone(_))
    ));
    assert_eq!(sweep(&site.store, 2 * DAY_MS).await.unwrap(), 1);
    assert!(matches!(
        site.get(upload.id, DAY_MS).await,
        Err(Error::NotFound(_))
    ));
}

#[tokio::test]
async fn another_account_has_no_part_in_it() {
    let site = Site::open().await;
    let upload = site.create(Some(10), 0).await.unwrap();
    let stranger = Uuid::new_v4();
    let mut db = site.store.read().await.unwrap();
    assert!(matches!(
        get(&mut db, stranger, upload.id, 0).await,
        Err(Error::NotFound(_))
    ));
    drop(db);
    let id = upload.id;
    let deleted = site
        .store
        .write(move |tx| Box::pin(async move { delete(tx, stranger, id).await }));
    assert!(matches!(deleted.await, Err(Error::NotFound(_))));
    let account = site.account;
    site.store
        .write(move |tx| Box::pin(async move { delete(tx, account, id).await }))
        .await
        .unwrap();
    assert!(matches!(site.get(id, 0).await, Err(Error::NotFound(_))));
}
