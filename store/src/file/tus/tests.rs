//! Tests on a real database: progress of an upload, its claims, and its end.

mod objects;

use std::path::Path;

use bytes::Bytes;

use super::*;
use crate::{
    Listed as _, Page, StoreSettings, accounts, blobs,
    unfinished_uploads::{self, UploadKind},
    uploads::{self, NewUpload},
};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

struct Site {
    store: Store,
    account: Uuid,
    folder: tempfile::TempDir,
}

const BOUNDS: Bounds = Bounds {
    unfinished: 3,
    storage_bytes: 100,
};

impl Site {
    async fn open() -> Self {
        Self::open_with(StoreSettings::without_reserve).await
    }

    async fn open_with(settings: fn(&Path) -> StoreSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&settings(folder.path())).await.unwrap();
        let account = store
            .write(|tx| Box::pin(async move { accounts::create(tx, "Default", 0).await }))
            .await
            .unwrap()
            .id;
        Self {
            store,
            account,
            folder,
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
        self.claim_for(id, offset, length, None).await
    }

    async fn claim_for(
        &self,
        id: Uuid,
        offset: u64,
        length: Option<u64>,
        brings: Option<u64>,
    ) -> Result<TusUpload, Error> {
        let account = self.account;
        let wanted = Claim {
            offset,
            brings_bytes: brings,
            length_bytes: length,
            most_bytes: 1000,
            expires_at: DAY_MS,
            storage_bytes: BOUNDS.storage_bytes,
            owner: self.store.owner(),
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
        let progress = PartialState {
            length,
            crc32: u32::MAX,
            sha256: vec![7],
            objects: None,
        };
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let step = Step {
                        is_last: false,
                        expires_at: DAY_MS,
                        storage_bytes: BOUNDS.storage_bytes,
                    };
                    advance(tx, &upload, &progress, step, now_ms).await
                })
            })
            .await
    }

    async fn hold(&self, upload: &TusUpload, needed: u64, wanted: u64) -> Result<u64, Error> {
        let upload = upload.clone();
        let limit = BOUNDS.storage_bytes;
        self.store
            .write(move |tx| {
                Box::pin(async move { hold(tx, &upload, needed, wanted, limit, 0).await })
            })
            .await
    }

    async fn release(&self, upload: &TusUpload) {
        let upload = upload.clone();
        self.store
            .write(move |tx| Box::pin(async move { release(tx, &upload).await }))
            .await
            .unwrap();
    }

    /// Makes a direct upload whose bytes have arrived.
    async fn receive_directly(&self, bytes: Vec<u8>) -> Uuid {
        let account = self.account;
        let new = NewUpload {
            folder_id: None,
            filename: "b.bin".to_owned(),
            content_type: String::new(),
            size_bytes: bytes.len() as u64,
            expires_at: DAY_MS,
        };
        let mut spool = self.store.blobs().spool().await.unwrap();
        spool.write(Bytes::from(bytes)).await.unwrap();
        let sealed = spool.seal().await.unwrap();
        let received = self.store.write(move |tx| {
            Box::pin(async move {
                let id = uploads::create(tx, account, new, 0).await?.id;
                let attempt = uploads::claim(tx, id).await?.attempt;
                blobs::record(tx, &sealed, 0).await?;
                let hash = sealed.blob().hash;
                uploads::receive(tx, id, attempt, hash, "text/plain").await
            })
        });
        received.await.unwrap().id
    }

    async fn complete(&self, upload: &TusUpload, length: u64) -> Result<File, Error> {
        let upload = upload.clone();
        let mut spool = self.store.blobs().spool().await.unwrap();
        spool
            .write(Bytes::from(vec![1; length as usize]))
            .await
            .unwrap();
        let sealed = spool.seal().await.unwrap();
        let arrived = Completion {
            blob: sealed.blob().hash,
            size_bytes: length,
            mime_type: "application/octet-stream".to_owned(),
            facts: Facts::default(),
        };
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    blobs::record(tx, &sealed, 0).await?;
                    let completed = complete(tx, &upload, arrived, BOUNDS.storage_bytes, 0);
                    completed.await.map(|(file, _)| file)
                })
            })
            .await
    }

    async fn get(&self, id: Uuid, now_ms: i64) -> Result<TusUpload, Error> {
        let mut db = self.store.read().await.unwrap();
        get(&mut db, self.account, id, now_ms).await
    }
}

fn used_up<T: std::fmt::Debug>(result: Result<T, Error>) -> u64 {
    match result {
        Err(Error::OverQuota { used_bytes, .. }) => used_bytes,
        other => panic!("{other:?}"),
    }
}

fn is_conflict<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Conflict(message)) => message,
        other => panic!("{other:?}"),
    }
}

async fn sweep(store: &Store, now_ms: i64) -> Result<u64, Error> {
    let rows = super::sweep(store, now_ms).await?;
    Ok(rows + sweep_partials(store, now_ms).await?)
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
    // The length is recorded with the file only.
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
async fn what_a_request_may_bring_counts_before_it_comes() {
    let site = Site::open().await;
    let (first, second) = (
        site.create(Some(90), 0).await.unwrap().id,
        site.create(None, 0).await.unwrap().id,
    );
    let known = site.claim_for(first, 0, None, Some(60)).await.unwrap();
    assert_eq!(known.held(), 60);
    assert_eq!(used_up(site.create(Some(41), 0).await), 60);
    assert_eq!(used_up(site.claim_for(second, 0, None, Some(41)).await), 60);
    // More than the upload's length is not held; that is rejected elsewhere.
    let known = site
        .claim_for(first, 0, None, Some(u64::MAX))
        .await
        .unwrap();
    assert_eq!(known.held(), 90);
    // A later request holds its own bytes.
    let known = site.claim_for(first, 0, None, Some(60)).await.unwrap();

    // A body of unknown length gets the room that is left.
    let unknown = site.claim(second, 0, None).await.unwrap();
    assert_eq!(unknown.held(), 0);
    assert_eq!(site.hold(&unknown, 10, 20).await.unwrap(), 20);
    assert_eq!(site.hold(&unknown, 25, 70).await.unwrap(), 40);
    assert_eq!(used_up(site.hold(&unknown, 41, 70).await), 60);
    site.advance(&unknown, 30).await.unwrap();
    assert_eq!(site.get(second, 0).await.unwrap().held(), 40);
    site.release(&unknown).await;
    assert_eq!(site.get(second, 0).await.unwrap().held(), 30);

    // A request that was superseded holds nothing, and frees nothing.
    let later = site.claim_for(first, 0, None, Some(70)).await.unwrap();
    site.release(&known).await;
    assert_eq!(site.get(first, 0).await.unwrap().held(), 70);
    is_conflict(site.hold(&known, 1, 1).await);
    site.complete(&later, 70).await.unwrap();
    assert_eq!(used_up(site.hold(&unknown, 31, 40).await), 70);
}

#[tokio::test]
async fn direct_uploads_that_have_arrived_count_until_they_are_files() {
    let site = Site::open().await;
    let id = site.receive_directly(vec![1; 60]).await;
    assert_eq!(used_up(site.create(Some(41), 0).await), 60);
    let made = site.create(Some(40), 0).await.unwrap();
    site.claim_for(made.id, 0, None, Some(40)).await.unwrap();
    let (account, limit) = (site.account, BOUNDS.storage_bytes);
    let check = async |but, more| {
        let mut db = site.store.read().await.unwrap();
        storage::check_beside_uploads(&mut db, account, but, more, limit, 0)
            .await
            .map(drop)
    };
    assert_eq!(used_up(check(None, 1).await), 100);
    check(Some(id), 60).await.unwrap();
    assert_eq!(used_up(check(Some(id), 61).await), 40);
    // A file counts once.
    site.store
        .write(move |tx| {
            Box::pin(
                async move { uploads::complete(tx, account, id, Facts::default(), limit, 0).await },
            )
        })
        .await
        .unwrap();
    check(None, 0).await.unwrap();
    assert_eq!(used_up(check(None, 1).await), 100);
}

#[tokio::test]
async fn a_start_cuts_off_what_died_with_its_request() {
    let site = Site::open().await;
    let made = site.create(Some(90), 0).await.unwrap();
    let claimed = site.claim_for(made.id, 0, None, Some(90)).await.unwrap();
    let blobs = site.store.blobs();
    let mut partial = blobs
        .partial(made.id, PartialState::default())
        .await
        .unwrap();
    partial
        .write(&Bytes::from_static(b"kept and not"))
        .await
        .unwrap();
    partial.sync().await.unwrap();
    site.advance(&claimed, 4).await.unwrap();
    site.store.close().await;

    let settings = StoreSettings::without_reserve(site.folder.path());
    let store = Store::open(&settings).await.unwrap();
    assert!(store.blobs().has_partial(made.id, 4).await.unwrap());
    assert!(!store.blobs().has_partial(made.id, 5).await.unwrap());
    let mut db = store.read().await.unwrap();
    let found = get(&mut db, site.account, made.id, 0).await.unwrap();
    assert_eq!((found.offset(), found.held()), (4, 4));
}

#[tokio::test]
async fn expired_uploads_lose_their_bytes_soon_and_are_forgotten_a_day_later() {
    let site = Site::open().await;
    let upload = site.create(Some(10), 0).await.unwrap();
    let blobs = site.store.blobs();
    let mut partial = blobs
        .partial(upload.id, PartialState::default())
        .await
        .unwrap();
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

#[tokio::test]
async fn unfinished_uploads_of_both_kinds_are_listed_newest_first() {
    let site = Site::open().await;
    let old = site.create(Some(10), 5).await.unwrap();
    let new = site.create(None, 9).await.unwrap();
    let direct = site.receive_directly(vec![1; 4]).await;
    let completed = site.create(Some(3), 7).await.unwrap();
    site.complete(&completed, 3).await.unwrap();
    let list = async |page: Page, now_ms: i64| {
        let mut db = site.store.read().await.unwrap();
        unfinished_uploads::list(&mut db, site.account, page, now_ms)
            .await
            .unwrap()
    };

    let all = list(Page::first(9), 10).await;
    let seen: Vec<_> = all
        .iter()
        .map(|row| (row.id, row.kind, row.size_bytes, row.is_received))
        .collect();
    assert_eq!(
        seen,
        [
            (new.id, UploadKind::Tus, None, false),
            (old.id, UploadKind::Tus, Some(10), false),
            (direct, UploadKind::Direct, Some(4), true),
        ]
    );
    let mut page = Page::first(1);
    for expected in &all {
        let rows = list(page, 10).await;
        assert_eq!(rows, std::slice::from_ref(expected));
        page.after = Some(rows[0].cursor());
    }
    assert_eq!(list(page, 10).await, []);
    assert_eq!(list(Page::first(9), DAY_MS).await.len(), 2);

    let account = site.account;
    let cancel = async |account: Uuid| {
        site.store
            .write(move |tx| Box::pin(async move { uploads::cancel(tx, account, direct).await }))
            .await
    };
    assert!(matches!(cancel(Uuid::nil()).await, Err(Error::NotFound(_))));
    cancel(account).await.unwrap();
    assert!(matches!(cancel(account).await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn the_list_of_unfinished_uploads_reads_indices_in_their_order() {
    let site = Site::open_with(StoreSettings::on_sqlite).await;
    let mut db = site.store.read().await.unwrap();
    let explained = format!("EXPLAIN QUERY PLAN {}", unfinished_uploads::LIST);
    let plan: Vec<(i64, i64, i64, String)> = query_as(explained).fetch_all(&mut db).await.unwrap();
    let plan: Vec<_> = plan.into_iter().map(|(.., step)| step).collect();
    for index in ["uploads_unfinished", "tus_uploads_by_time"] {
        let search = format!("USING INDEX {index} (account_id=? AND (created_at,id)<(?,?))");
        assert!(plan.iter().any(|step| step.contains(&search)), "{plan:?}");
    }
}
