//! Blobs on a real disk: sealed ones are kept, unreferenced ones are deleted, without races between both.

use std::{
    fs::File,
    io::{Read, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use sha2::Digest as _;
use sluice_store::{
    Error, Store, StoreSettings,
    blob::{BlobHash, Sealed},
    blobs,
    files::{self, NewFile, Role},
};
use uuid::Uuid;

use crate::support::{NOW, add_account, settings, store, until};

const HOUR: i64 = 60 * 60 * 1000;
const DAY: i64 = 24 * HOUR;
/// Sweeps that read every prefix once.
const ROUND: usize = 32;

pub(crate) async fn seal(store: &Store, bytes: &[u8]) -> Sealed {
    let mut spool = store.blobs().spool().await.unwrap();
    spool.write(Bytes::copy_from_slice(bytes)).await.unwrap();
    spool.seal().await.unwrap()
}

pub(crate) fn file_of(sealed: &Sealed, name: &str) -> NewFile {
    NewFile {
        folder_id: None,
        filename: name.into(),
        mime_type: "text/plain".into(),
        size_bytes: sealed.blob().size,
        blob: sealed.blob().hash,
        role: Role::Uploaded,
        width: None,
        height: None,
        duration_ms: None,
        generation: 0,
    }
}

pub(crate) async fn add_file(
    store: &Store,
    account_id: Uuid,
    bytes: &[u8],
    name: &str,
) -> files::File {
    let sealed = seal(store, bytes).await;
    let new = file_of(&sealed, name);
    let made = store.write(move |tx| {
        Box::pin(async move {
            blobs::record(tx, &sealed, NOW).await?;
            files::create(tx, account_id, new, NOW).await
        })
    });
    made.await.unwrap()
}

async fn record(store: &Store, sealed: Sealed, now_ms: i64) {
    let recorded =
        store.write(move |tx| Box::pin(async move { blobs::record(tx, &sealed, now_ms).await }));
    recorded.await.unwrap();
}

async fn delete_file(store: &Store, account_id: Uuid, id: Uuid) {
    let deleted =
        store.write(move |tx| Box::pin(async move { files::delete(tx, account_id, id).await }));
    deleted.await.unwrap();
}

async fn is_recorded(store: &Store, hash: BlobHash) -> bool {
    blobs::get(&mut store.read().await.unwrap(), &hash)
        .await
        .is_ok()
}

async fn read(store: &Store, hash: &BlobHash) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    store
        .blobs()
        .open(hash)
        .await?
        .read_to_end(&mut bytes)
        .unwrap();
    Ok(bytes)
}

fn place(data_dir: &Path, hash: &BlobHash) -> PathBuf {
    let name = hash.to_string();
    data_dir.join("blobs").join(&name[..2]).join(&name[2..])
}

fn temporary_files(data_dir: &Path) -> usize {
    std::fs::read_dir(data_dir.join("tmp")).unwrap().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_become_a_blob_with_their_sums() {
    let (store, folder) = store().await;
    // Over several pieces, and ending inside one.
    let long: Vec<u8> = (0..700_001_u32)
        .map(|n| (n.wrapping_mul(7919) >> 3) as u8)
        .collect();
    for bytes in [
        &b""[..],
        b"The quick brown fox jumps over the lazy dog",
        &long,
    ] {
        let mut spool = store.blobs().spool().await.unwrap();
        for piece in bytes.chunks(100_003) {
            spool.write(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        assert_eq!(spool.len(), bytes.len() as u64);
        assert_eq!(spool.head(), &bytes[..bytes.len().min(4096)]);
        let sealed = spool.seal().await.unwrap();
        let blob = *sealed.blob();
        assert_eq!(blob.size, bytes.len() as u64);
        assert_eq!(blob.crc32, crc32fast::hash(bytes));
        assert_eq!(blob.hash.as_bytes()[..], sha2::Sha256::digest(bytes)[..]);
        assert_eq!(read(&store, &blob.hash).await.unwrap(), bytes);
        record(&store, sealed, NOW).await;
        let row = blobs::get(&mut store.read().await.unwrap(), &blob.hash)
            .await
            .unwrap();
        assert_eq!(
            (row.size_bytes, row.crc32),
            (bytes.len() as i64, blob.crc32)
        );
    }
    until("no temporary file is left", async || {
        temporary_files(folder.path()) == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_wrote_is_sealed_out_of_its_reach() {
    let (store, _folder) = store().await;
    let mut spool = store.blobs().spool().await.unwrap();
    let worker = spool.file().unwrap();
    worker.write_all_at(b" by a worker", 7).unwrap();
    worker.write_all_at(b"written", 0).unwrap();
    let sealed = spool.seal().await.unwrap();
    assert_eq!(sealed.head(), b"written by a worker");
    // The worker kept its descriptor, and tries to change the sealed blob.
    worker.write_all_at(b"altered", 0).unwrap();
    let bytes = read(&store, &sealed.blob().hash).await.unwrap();
    assert_eq!(bytes, b"written by a worker");
    let expected = seal(&store, b"written by a worker").await;
    assert_eq!(sealed.blob(), expected.blob());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spool_is_read_while_it_is_written_and_gone_when_dropped() {
    let (store, folder) = store().await;
    let mut spool = store.blobs().spool().await.unwrap();
    spool.write(Bytes::from_static(b"first")).await.unwrap();
    let mut text = String::new();
    spool
        .reader()
        .await
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, "first");
    spool.write(Bytes::from_static(b" second")).await.unwrap();
    spool
        .reader()
        .await
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, "firstfirst second");
    drop(spool);
    until("the temporary file is gone", async || {
        temporary_files(folder.path()) == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_are_one_blob() {
    let (store, folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let first = add_file(&store, account, b"same", "one.txt").await;
    let second = add_file(&store, account, b"same", "two.txt").await;
    assert_eq!(first.blob, second.blob);
    assert_eq!(
        blobs::count(&mut store.read().await.unwrap())
            .await
            .unwrap(),
        1
    );
    // Bytes that were hashed just now repair a file that the disk has damaged.
    for spoiled in [b"sam".as_slice(), b"s4me"] {
        std::fs::write(place(folder.path(), &first.blob), spoiled).unwrap();
        add_file(&store, account, b"same", "three.txt").await;
        assert_eq!(read(&store, &first.blob).await.unwrap(), b"same");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_goes_a_day_after_its_last_name() {
    let (store, folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let first = add_file(&store, account, b"shared", "one.txt").await;
    let second = add_file(&store, account, b"shared", "two.txt").await;
    let (hash, place) = (first.blob, place(folder.path(), &first.blob));

    delete_file(&store, account, first.id).await;
    for days in 1..4 {
        store.sweep(NOW + days * DAY).await.unwrap();
    }
    assert!(
        is_recorded(&store, hash).await && place.exists(),
        "a file names it"
    );

    delete_file(&store, account, second.id).await;
    let marked_at = NOW + 10 * DAY;
    store.sweep(marked_at).await.unwrap();
    store.sweep(marked_at + DAY - 1).await.unwrap();
    assert!(
        is_recorded(&store, hash).await && place.exists(),
        "not yet a day"
    );
    assert_eq!(store.sweep(marked_at + DAY + 1).await.unwrap(), 1);
    assert!(!is_recorded(&store, hash).await && !place.exists());
    until("nothing is left of it", async || {
        temporary_files(folder.path()) == 0
    })
    .await;
    assert!(matches!(
        read(&store, &hash).await,
        Err(Error::NotFound("blob"))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_revives_a_marked_blob_and_brings_back_a_swept_one() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let file = add_file(&store, account, b"again", "one.txt").await;
    delete_file(&store, account, file.id).await;
    store.sweep(NOW).await.unwrap();
    // Revived while it is marked: a day later it is still there.
    let file = add_file(&store, account, b"again", "two.txt").await;
    store.sweep(NOW + 2 * DAY).await.unwrap();
    assert_eq!(read(&store, &file.blob).await.unwrap(), b"again");

    // Sealed before the sweep that deletes it, recorded after.
    delete_file(&store, account, file.id).await;
    store.sweep(NOW + 3 * DAY).await.unwrap();
    let sealed = seal(&store, b"again").await;
    store.sweep(NOW + 5 * DAY).await.unwrap();
    assert!(!is_recorded(&store, file.blob).await);
    record(&store, sealed, NOW + 5 * DAY).await;
    assert_eq!(read(&store, &file.blob).await.unwrap(), b"again");
}

/// Checks uploads of the same few bytes against sweeps that delete at once: a blob that a row names can be read.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sweeps_and_uploads_of_the_same_bytes_do_not_pass_each_other() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let uploads = (0..4_u8).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            for round in 0..40_u8 {
                let bytes = [round % 3];
                let file = add_file(&store, account, &bytes, "same.bin").await;
                let found = read(&store, &file.blob).await;
                assert_eq!(found.unwrap(), bytes, "task {task}, round {round}");
                delete_file(&store, account, file.id).await;
            }
        })
    });
    let uploads: Vec<_> = uploads.collect();
    let mut now_ms = NOW;
    while !uploads.iter().all(tokio::task::JoinHandle::is_finished) {
        now_ms += 2 * DAY;
        store.sweep(now_ms).await.unwrap();
    }
    for upload in uploads {
        upload.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_without_a_row_are_found_and_others_left_alone() {
    let (store, folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let kept = add_file(&store, account, b"kept", "kept.txt").await;
    let orphan = seal(&store, b"orphan").await.blob().hash;
    let stranger = folder.path().join("blobs/00/README");
    std::fs::write(&stranger, "not a blob").unwrap();
    let now_ms = sluice_store::now_ms();
    for _ in 0..ROUND {
        store.sweep(now_ms + 23 * HOUR).await.unwrap();
    }
    assert!(place(folder.path(), &orphan).exists(), "younger than a day");
    for _ in 0..ROUND {
        store.sweep(now_ms + 25 * HOUR).await.unwrap();
    }
    assert!(!place(folder.path(), &orphan).exists());
    assert!(place(folder.path(), &kept.blob).exists() && stranger.exists());
}

/// Checks files sealed before the kill, and not recorded: eight sweeps, one a minute, are enough. Blobs that this
/// process has sealed meanwhile may still be recorded.
#[tokio::test(flavor = "multi_thread")]
async fn files_without_a_row_of_a_killed_process_go_soon_after_the_start() {
    let (store, folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let kept = add_file(&store, account, b"kept", "kept.txt").await;
    let orphan = seal(&store, b"orphan").await.blob().hash;
    let reclaimed = seal(&store, b"reclaimed").await.blob().hash;
    store.close().await;
    let sealed_ms = sluice_store::now_ms();
    while sluice_store::now_ms() < sealed_ms + 100 {
        tokio::task::yield_now().await;
    }
    let store = Store::open(&settings(folder.path())).await.unwrap();
    let new = seal(&store, b"new").await;
    let again = seal(&store, b"reclaimed").await;
    let now_ms = sluice_store::now_ms();
    for _ in 0..8 {
        store.sweep(now_ms).await.unwrap();
    }
    assert!(!place(folder.path(), &orphan).exists());
    assert!(place(folder.path(), &kept.blob).exists());
    assert!(place(folder.path(), &new.blob().hash).exists());
    assert!(place(folder.path(), &reclaimed).exists());
    drop(again);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_empties_the_folder_of_temporary_files() {
    let (store, folder) = store().await;
    let file = add_file(&store, add_account(&store, "a").await.unwrap(), b"x", "x").await;
    store.close().await;
    let mut left = File::create(folder.path().join("tmp/left")).unwrap();
    left.write_all(b"half").unwrap();
    let store = Store::open(&settings(folder.path())).await.unwrap();
    assert_eq!(temporary_files(folder.path()), 0);
    assert_eq!(read(&store, &file.blob).await.unwrap(), b"x");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_low_disk_takes_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings {
        min_free: "99%".into(),
        ..settings(folder.path())
    };
    let store = Store::open(&settings).await.unwrap();
    assert!(matches!(store.blobs().spool().await, Err(Error::Full)));
    assert_eq!(temporary_files(folder.path()), 0);
}
