//! Streams in an object store: another node goes on with them, and plays them.

use sluice_media::task::FailureCode;
use sluice_store::blob::Source;

use super::*;

impl Site {
    async fn with_objects() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bucket")).unwrap();
        Self::at(folder, SEGMENTS).await
    }

    /// Removes what another node does not have.
    fn forget_files(&self) {
        for name in ["video", "cached"] {
            std::fs::remove_dir_all(self.folder.path().join(name)).unwrap();
        }
    }

    /// Reads a file of a stream as players do.
    async fn read(&self, stream: &Stream, file: &MediaFile) -> Vec<u8> {
        let playback = self.playback(stream).await;
        let objects = &playback.objects;
        let opened = video::source(&self.store, stream.id, file, objects, None).await;
        let Source::Pieces(mut reader) = opened.unwrap() else {
            panic!("it is local");
        };
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < objects.covered(file) {
            let read = reader.read(bytes.len() as u64, 1_000).await;
            bytes.extend_from_slice(&read.unwrap());
        }
        bytes
    }

    /// Checks that objects have all bytes of a stream.
    async fn check_objects(&self, stream: &Stream) {
        for (number, name) in ["90p", "180p", "audio"].into_iter().enumerate() {
            let mut expected = vec![b'i'; INIT_BYTES as usize];
            for segment in 0..SEGMENTS {
                expected.extend(content(number, segment));
            }
            let file = MediaFile::Rendition(name.into());
            assert!(self.read(stream, &file).await == expected, "{name}");
        }
        let images = [
            MediaFile::Poster,
            MediaFile::StoryboardImage,
            MediaFile::StoryboardMap,
        ];
        for file in images {
            assert_eq!(self.read(stream, &file).await, IMAGE, "{file:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_continues_behind_the_last_group() {
    let mut site = Site::with_objects().await;
    let stream = site.create().await;
    site.workers.play(2);
    site.until_recorded(stream.id, 2).await;
    site.kill().await;
    site.forget_files();
    site.start().await;
    site.until_running(2).await;
    let file = std::fs::read(site.file(stream.id, "180p")).unwrap();
    assert_eq!(file.len() as u64, INIT_BYTES + 2 * SEGMENT_BYTES);
    assert!(file.starts_with(&[b'i'; INIT_BYTES as usize]));
    site.workers.play(SEGMENTS as usize);
    let ready = site.until_status(stream.id, StreamStatus::Ready).await;
    assert_eq!(*site.workers.began.lock(), [0, 2]);
    let bytes = 3 * (INIT_BYTES + u64::from(SEGMENTS) * SEGMENT_BYTES) + 3 * IMAGE.len() as u64;
    assert_eq!(ready.size_bytes.unsigned_abs(), bytes);
    site.check_objects(&ready).await;

    // The folder is not needed any more.
    site.store.sweep(now_ms()).await.unwrap();
    assert!(!site.place(stream.id).exists());
    site.check_objects(&ready).await;
}

/// This node was the owner before another one, whose bytes count.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_an_earlier_owner_are_not_believed() {
    let mut site = Site::with_objects().await;
    let stream = site.create().await;
    site.workers.play(3);
    site.until_recorded(stream.id, 3).await;
    site.kill().await;
    for name in ["90p", "180p"] {
        std::fs::write(site.file(stream.id, name), vec![b'x'; 2_000]).unwrap();
    }
    site.start().await;
    site.workers.play(100);
    let ready = site.until_status(stream.id, StreamStatus::Ready).await;
    assert_eq!(*site.workers.began.lock(), [0, 3]);
    site.check_objects(&ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_leaves_objects_that_another_one_continues() {
    let site = Site::with_objects().await;
    site.workers.fail(3, FailureCode::DecodeFailed);
    site.workers.play(100);
    let stream = site.create().await;
    let ready = site.until_status(stream.id, StreamStatus::Ready).await;
    assert_eq!(*site.workers.began.lock(), [0, 3]);
    site.check_objects(&ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_objects_of_a_deleted_stream_are_deleted() {
    let site = Site::with_objects().await;
    site.workers.play(100);
    let stream = site.create().await;
    site.until_status(stream.id, StreamStatus::Ready).await;
    let id = stream.id.simple().to_string();
    let objects = site.folder.path().join("bucket/v").join(id);
    assert!(objects.exists());
    site.streams.delete(site.account, stream.id).await.unwrap();
    until("its objects are gone", async || !objects.exists()).await;
}
