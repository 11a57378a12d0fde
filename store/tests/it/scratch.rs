//! Scratch files: a file is returned as it was journalled, or not at all.

use std::{
    fs,
    io::{Read, Write},
    os::unix::fs::{FileExt, PermissionsExt},
    path::Path,
};

use sluice_store::{
    Store,
    blob::{BlobHash, Scratched},
};
use uuid::Uuid;

use crate::support::store;

const BYTES: &[u8] = b"what a worker made";

/// Writes a scratch file as a worker does.
async fn make(store: &Store, run: Uuid, position: u32, bytes: &[u8]) -> Scratched {
    let scratch = store.blobs().scratch(run, position).await.unwrap();
    let mut worker = scratch.file().unwrap();
    worker.write_all(bytes).unwrap();
    let (scratched, mut file) = scratch.seal().await.unwrap();
    let mut found = Vec::new();
    file.read_to_end(&mut found).unwrap();
    assert_eq!(found, bytes);
    scratched
}

async fn found(store: &Store, run: Uuid, position: u32, expected: &Scratched) -> Option<Vec<u8>> {
    let opened = store.blobs().open_scratch(run, position, expected).await;
    let mut bytes = Vec::new();
    opened.unwrap()?.read_to_end(&mut bytes).unwrap();
    Some(bytes)
}

#[tokio::test]
async fn a_file_is_found_as_it_was_made() {
    let (store, folder) = store().await;
    let run = Uuid::now_v7();
    let large = vec![7; 700_000];
    for (position, bytes) in [(0, BYTES), (u32::MAX, &large), (3, b"")] {
        let scratched = make(&store, run, position, bytes).await;
        assert_eq!(scratched.length, bytes.len() as u64);
        let again = found(&store, run, position, &scratched).await;
        assert_eq!(again.as_deref(), Some(bytes));
    }
    let at = folder.path().join("scratch").join(run.to_string());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&at), mode(&at.join("0"))), (0o700, 0o600));
    store.blobs().remove_scratch(run).await.unwrap();
    store.blobs().remove_scratch(run).await.unwrap();
    assert!(!at.exists());
}

/// A power loss may leave a file without some of its bytes, or with zeros in their place, or no file.
#[tokio::test]
async fn what_a_power_loss_spoilt_counts_as_missing() {
    let (store, folder) = store().await;
    let run = Uuid::now_v7();
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 5] = [
        ("missing", |path| fs::remove_file(path).unwrap()),
        ("empty", |path| fs::write(path, b"").unwrap()),
        ("short", |path| fs::write(path, &BYTES[1..]).unwrap()),
        ("zeros", |path| {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.write_all_at(&[0; 4], 3).unwrap();
        }),
        ("long", |path| {
            let mut bytes = BYTES.to_vec();
            bytes.push(0);
            fs::write(path, bytes).unwrap();
        }),
    ];
    for (position, (name, harm)) in (0..).zip(harms) {
        let scratched = make(&store, run, position, BYTES).await;
        let folder = folder.path().join("scratch").join(run.to_string());
        harm(&folder.join(position.to_string()));
        assert_eq!(
            found(&store, run, position, &scratched).await,
            None,
            "{name}"
        );
        // It is made again in its place.
        assert_eq!(make(&store, run, position, BYTES).await, scratched);
        assert!(found(&store, run, position, &scratched).await.is_some());
    }
    let other = make(&store, run, 9, b"other").await;
    assert_eq!(found(&store, run, 8, &other).await, None);
    assert_eq!(found(&store, Uuid::now_v7(), 9, &other).await, None);
}

#[tokio::test]
async fn a_writer_from_before_does_not_reach_the_new_file() {
    let (store, _folder) = store().await;
    let run = Uuid::now_v7();
    let old = store.blobs().scratch(run, 1).await.unwrap();
    let mut late = old.file().unwrap();
    let scratched = make(&store, run, 1, BYTES).await;
    late.write_all(b"late").unwrap();
    assert!(found(&store, run, 1, &scratched).await.is_some());
    let (measured, mut file) = old.seal().await.unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!((measured.length, &*bytes), (4, &b"late"[..]));
}

/// An owner that was replaced may be about to make the file that its successor makes.
#[tokio::test(flavor = "multi_thread")]
async fn two_that_make_the_same_file_each_have_their_own() {
    let (store, _folder) = store().await;
    let run = Uuid::now_v7();
    let owners = [&b"one"[..], b"another"].map(|bytes| {
        let store = store.clone();
        tokio::spawn(async move {
            for _ in 0..500 {
                make(&store, run, 1, bytes).await;
            }
        })
    });
    for owner in owners {
        owner.await.unwrap();
    }
}

#[tokio::test]
async fn a_blob_is_a_copy_with_the_bytes_that_were_hashed() {
    let (store, _folder) = store().await;
    let scratch = store.blobs().scratch(Uuid::now_v7(), 0).await.unwrap();
    let mut worker = scratch.file().unwrap();
    worker.write_all(BYTES).unwrap();
    let (scratched, file) = scratch.seal().await.unwrap();
    let sealed = store.blobs().seal_scratch(&file, &scratched).await;
    let hash = sealed.unwrap().unwrap().blob().hash;
    assert_eq!(hash, BlobHash::from_bytes(scratched.sha256));
    worker.write_all_at(b"WHAT", 0).unwrap();
    let mut bytes = Vec::new();
    let mut blob = store.blobs().open(&hash).await.unwrap();
    blob.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, BYTES, "no one has a descriptor of it");
    let spoilt = store.blobs().seal_scratch(&file, &scratched).await;
    assert!(spoilt.unwrap().is_none());
}
