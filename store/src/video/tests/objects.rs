//! Streams in an object store, here a folder: files read without the stream's folder, cut, deleted, and searched for strays.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use super::*;
use crate::{blob::Source, now_ms};

const HOUR: i64 = 60 * 60 * 1000;
/// Renditions of [`a_plan`], with the length of a file of five segments.
const NAMES: [&str; 3] = ["180p", "360p", "audio"];
const LENGTH: u64 = 510;

fn settings(folder: &Path) -> StoreSettings {
    let bucket = folder.join("bucket");
    fs::create_dir_all(&bucket).unwrap();
    StoreSettings {
        objects_url: format!("file://{}", bucket.display()),
        ..StoreSettings::without_reserve(folder)
    }
}

fn rendition(name: &str) -> MediaFile {
    MediaFile::Rendition(name.into())
}

/// Bytes of a file, which differ from place to place.
fn content(range: Range<u64>) -> Vec<u8> {
    range.map(|at| (at % 251) as u8).collect()
}

/// Parts of a file: the init section and five segments.
fn parts(file: &MediaFile) -> Vec<(MediaFile, Range<u64>)> {
    let ends = (0..5).map(|number| 110 + 100 * number);
    let segments = ends.map(|end| (file.clone(), end - 100..end));
    [(file.clone(), 0..10)]
        .into_iter()
        .chain(segments)
        .collect()
}

impl Bench {
    async fn with_objects() -> Self {
        Self::on(World::open(settings).await).await
    }

    fn folder(&self, id: Uuid) -> Folder {
        Folder::of(&self.world.store, id)
    }

    /// Files of the objects of a stream.
    fn stored_objects(&self, id: Uuid) -> Vec<PathBuf> {
        let bucket = self.world.store.data_dir().join("bucket/v");
        let found = fs::read_dir(bucket.join(id.simple().to_string()));
        let mut found: Vec<PathBuf> = found
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect();
        found.sort();
        found
    }

    /// A stream with five segments of each rendition, all uploaded and recorded.
    async fn in_objects(&self) -> Lease {
        let lease = self.begun(self.new_stream()).await;
        let folder = self.folder(lease.id);
        folder.make().unwrap();
        let mut wanted = Vec::new();
        for name in NAMES {
            let file = rendition(name);
            fs::write(folder.path(&file), content(0..LENGTH)).unwrap();
            wanted.extend(parts(&file));
        }
        let store = &self.world.store;
        let new = upload(store, lease.id, wanted).await.unwrap();
        let held = lease.clone();
        let recorded = self.write(move |tx| {
            Box::pin(async move {
                record(tx, &held, &group(0..5), NOW).await?;
                add_objects(tx, held.id, &new, now_ms()).await
            })
        });
        recorded.await.unwrap();
        lease
    }

    async fn objects(&self, id: Uuid) -> StreamObjects {
        super::super::objects(&mut self.world.read().await, id)
            .await
            .unwrap()
    }

    /// Reads a range through objects.
    async fn read(&self, id: Uuid, name: &str, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let (store, objects) = (&self.world.store, self.objects(id).await);
        let file = rendition(name);
        let opened = source(store, id, &file, &objects, Some(range.clone())).await?;
        let Source::Pieces(mut reader) = opened else {
            panic!("it is local");
        };
        let mut offset = range.start;
        let mut bytes = Vec::new();
        while offset < range.end {
            let most = (range.end - offset) as usize;
            let read = reader.read(offset, most).await?;
            offset += read.len() as u64;
            bytes.extend_from_slice(&read);
        }
        Ok(bytes)
    }

    async fn until_objects(&self, id: Uuid, count: usize) {
        for _ in 0..1_000 {
            if self.stored_objects(id).len() == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{count} objects expected: {:?}", self.stored_objects(id));
    }

    /// Adds a poster in an object, or only in the folder.
    async fn add_poster(&self, lease: &Lease, is_uploaded: bool) {
        let (store, folder) = (&self.world.store, self.folder(lease.id));
        folder.make().unwrap();
        fs::write(folder.path(&MediaFile::Poster), b"a poster").unwrap();
        let new = match is_uploaded {
            true => upload(store, lease.id, vec![(MediaFile::Poster, 0..8)]).await,
            false => Ok(Vec::new()),
        };
        let (new, lease) = (new.unwrap(), lease.clone());
        let images = MadeImages {
            poster_bytes: Some(8),
            storyboard_bytes: None,
        };
        let noted = self.write(move |tx| {
            Box::pin(async move {
                images_made(tx, &lease, images, NOW).await?;
                add_objects(tx, lease.id, &new, now_ms()).await
            })
        });
        noted.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_from_their_objects() {
    let bench = Bench::with_objects().await;
    let id = bench.in_objects().await.id;
    assert_eq!(bench.stored_objects(id).len(), 18);
    // This node has other bytes, as after another owner.
    let file = rendition("360p");
    fs::write(bench.folder(id).path(&file), vec![0; 400]).unwrap();
    for range in [0..10, 10..110, 110..310, 95..120, 0..LENGTH, 509..LENGTH] {
        let read = bench.read(id, "360p", range.clone()).await.unwrap();
        assert_eq!(read, content(range.clone()), "{range:?}");
    }
    let fetched = bench.world.store.objects().unwrap().fetched_bytes;
    assert_eq!(fetched, LENGTH, "each object once");
    let objects = bench.objects(id).await;
    let store = &bench.world.store;
    let whole = source(store, id, &file, &objects, None).await.unwrap();
    assert_eq!(whole.size().unwrap(), LENGTH);
    // A range that no object has is that of the file.
    let missing = source(store, id, &file, &objects, Some(0..LENGTH + 1)).await;
    assert!(matches!(missing.unwrap(), Source::File(_)));
    bench.folder(id).remove().unwrap();
    let missing = source(store, id, &MediaFile::Poster, &objects, None).await;
    assert!(matches!(missing, Err(Error::NotFound(_))));

    // The next owner has the beginning that its worker compares.
    let folder = bench.folder(id);
    folder.make().unwrap();
    let target = folder.open_at(&file, LENGTH).unwrap();
    copy_beginning(store, id, &file, &objects, 10, &target)
        .await
        .unwrap();
    let copied = fs::read(folder.path(&file)).unwrap();
    assert_eq!(copied.len() as u64, LENGTH);
    assert_eq!(copied[..10], content(0..10));
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_and_damaged_objects_give_an_error() {
    let bench = Bench::with_objects().await;
    let id = bench.in_objects().await.id;
    let objects = bench.stored_objects(id);
    fs::write(&objects[0], b"other").unwrap();
    fs::remove_file(&objects[1]).unwrap();
    let mut failed = 0;
    for name in NAMES {
        match bench.read(id, name, 0..LENGTH).await {
            Ok(read) => assert_eq!(read, content(0..LENGTH)),
            Err(error) => {
                assert!(matches!(error, Error::Lost(_)), "{error:?}");
                failed += 1;
            }
        }
    }
    assert!((1..=2).contains(&failed), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_again_begins_at_an_object() {
    let bench = Bench::with_objects().await;
    let lease = bench.in_objects().await;
    let covered = async || {
        let objects = bench.objects(lease.id).await;
        NAMES.map(|name| objects.covered(&rendition(name)))
    };
    assert_eq!(covered().await, [LENGTH; 3]);
    bench.step_back(&lease, 3).await.unwrap();
    assert_eq!(covered().await, [310, 310, 0]);
    assert_eq!(
        bench.read(lease.id, "180p", 0..310).await.unwrap(),
        content(0..310)
    );

    // Other bytes from there on.
    let (folder, file) = (bench.folder(lease.id), rendition("180p"));
    let again = [content(0..310), vec![7; 100]].concat();
    fs::write(folder.path(&file), &again).unwrap();
    let new = upload(&bench.world.store, lease.id, vec![(file, 310..410)]);
    let new = new.await.unwrap();
    let held = lease.clone();
    let added = bench
        .write(move |tx| Box::pin(async move { add_objects(tx, held.id, &new, now_ms()).await }));
    added.await.unwrap();
    assert_eq!(covered().await, [410, 310, 0]);
    assert_eq!(bench.read(lease.id, "180p", 0..410).await.unwrap(), again);
    bench.step_back(&lease, 0).await.unwrap();
    assert_eq!(covered().await, [0; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_of_a_stream_goes_once_all_is_in_objects() {
    let bench = Bench::with_objects().await;
    let store = &bench.world.store;
    let whole = bench.in_objects().await;
    bench.add_poster(&whole, true).await;
    sweep_folders(store).await.unwrap();
    let is_there = |lease: &Lease| bench.folder(lease.id).path(&MediaFile::Poster).exists();
    assert!(is_there(&whole), "it is being made");
    bench.finish(&whole).await.unwrap();
    // From before there was an object store, and a little of it since.
    let local = bench.begun(bench.new_stream()).await;
    bench.record(&local, group(0..5)).await.unwrap();
    bench.add_poster(&local, true).await;
    bench.finish(&local).await.unwrap();
    let half = bench.in_objects().await;
    bench.add_poster(&half, false).await;
    bench.finish(&half).await.unwrap();
    sweep_folders(store).await.unwrap();
    let found = [&whole, &local, &half].map(is_there);
    assert_eq!(found, [false, true, true]);
    let read = bench.read(whole.id, "audio", 0..LENGTH).await.unwrap();
    assert_eq!(read, content(0..LENGTH));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_gone_leaves_no_objects() {
    let bench = Bench::with_objects().await;
    let (account, store) = (bench.account, &bench.world.store);
    let kept = bench.in_objects().await.id;
    let deleted = bench.in_objects().await.id;
    bench
        .write(move |tx| Box::pin(delete(tx, account, deleted)))
        .await
        .unwrap();
    assert_eq!(bench.objects(deleted).await, StreamObjects::default());
    delete_objects(store, deleted);
    bench.until_objects(deleted, 0).await;
    assert_eq!(bench.stored_objects(kept).len(), 18);
    // Segments, objects and the note.
    assert_eq!(sweep_segments(store).await.unwrap(), 15 + 18 + 1);
    assert_eq!(bench.objects(kept).await.count(), 18);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_without_a_row_are_deleted_once_they_are_old() {
    let bench = Bench::with_objects().await;
    let store = &bench.world.store;
    let lease = bench.in_objects().await;
    let id = lease.id;
    let lost = vec![(rendition("360p"), 410..LENGTH)];
    let new = upload(store, id, lost).await.unwrap();
    assert_eq!(bench.stored_objects(id).len(), 19);
    let now = now_ms();
    for (later, expected) in [(0, 19), (23 * HOUR, 19), (25 * HOUR, 18)] {
        crate::stray_objects::sweep(store, now + later - 24 * HOUR)
            .await
            .unwrap();
        assert_eq!(bench.stored_objects(id).len(), expected, "{later}");
    }
    // Rows never name what a sweep may have deleted.
    let late = bench
        .write(move |tx| Box::pin(async move { add_objects(tx, id, &new, now + 17 * HOUR).await }));
    let late = late.await.unwrap_err();
    assert!(matches!(late, Error::Objects(_)), "{late:?}");
    let read = bench.read(id, "360p", 0..LENGTH).await.unwrap();
    assert_eq!(read, content(0..LENGTH));
}
