//! Tests on a real database: an account with a stream, its records, and its end.

mod again;
mod objects;

use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use super::*;
use crate::{
    Error, Store, StoreSettings, Tx, Work,
    blob::{BlobHash, Sealed},
    blobs,
    files::{self, NewFile, Role},
    jobs::Allowance,
    lineage, operations,
    rows::hex,
    statement::query_as,
    storage,
    webhooks::tests::{NOW, World},
    work::{self, Lane, Lease, Room},
};

/// A store with an account and a blob to make streams of.
struct Bench {
    world: World,
    account: Uuid,
    blob: BlobHash,
}

impl Bench {
    async fn new() -> Self {
        Self::on(World::new().await).await
    }

    async fn on(world: World) -> Self {
        let sealed = sealed(&world, b"a clip").await;
        let blob = sealed.blob().hash;
        world
            .write(move |tx| Box::pin(async move { blobs::record(tx, &sealed, NOW).await }))
            .await
            .unwrap();
        Self {
            account: world.account,
            world,
            blob,
        }
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl for<'t> FnOnce(&'t mut Tx<'_>) -> Work<'t, T> + Send + 'static,
    ) -> Result<T, Error> {
        self.world.write(work).await
    }

    fn new_stream(&self) -> NewStream {
        NewStream {
            account_id: self.account,
            source: StreamSource {
                blob: self.blob,
                filename: "clip.mp4".into(),
                file_id: None,
            },
            title: "A clip".into(),
            profile: "basic".into(),
            custom_renditions: Vec::new(),
            segment_duration_s: 6,
            access: Access::Public,
            token_ttl_s: None,
            allowed_domains: vec!["example.com".into()],
            allowance: Allowance::default(),
            idempotency: None,
        }
    }

    async fn create(&self, new: NewStream) -> Submitted {
        let created = self.write(move |tx| Box::pin(async move { create(tx, &new, NOW).await }));
        created.await.unwrap()
    }

    async fn stream_of(&self, new: NewStream) -> Stream {
        match self.create(new).await {
            Submitted::New(stream) => *stream,
            other => panic!("{other:?}"),
        }
    }

    /// Claims the only stream that is due, and begins it.
    async fn claim(&self) -> Lease {
        let claim = self.write(|tx| {
            Box::pin(async move {
                let (room, lease) = (Room::for_any(9), Duration::from_secs(15));
                let mut claimed = work::claim(tx, KIND, Uuid::now_v7(), room, lease, NOW).await?;
                let lease = claimed.leases.remove(0);
                begin(tx, lease.id, NOW).await?;
                work::begin(tx, &lease).await?;
                Ok(lease)
            })
        });
        claim.await.unwrap()
    }

    /// A stream that is being made of two renditions of video and one of audio.
    async fn begun(&self, new: NewStream) -> Lease {
        self.stream_of(new).await;
        let lease = self.claim().await;
        let held = lease.clone();
        let planned =
            self.write(move |tx| Box::pin(async move { plan(tx, &held, &a_plan(), NOW).await }));
        let stream = planned.await.unwrap();
        assert_eq!(
            (stream.width, stream.duration_ms),
            (Some(640), Some(30_000))
        );
        lease
    }

    async fn record(&self, lease: &Lease, group: Group) -> Result<Stream, Error> {
        let lease = lease.clone();
        self.write(move |tx| Box::pin(async move { record(tx, &lease, &group, NOW).await }))
            .await
    }

    async fn step_back(&self, lease: &Lease, kept: u32) -> Result<Stream, Error> {
        let lease = lease.clone();
        self.write(move |tx| Box::pin(async move { step_back(tx, &lease, kept, NOW).await }))
            .await
    }

    async fn fail(&self, lease: &Lease) -> Result<Stream, Error> {
        let lease = lease.clone();
        let failure = Failure {
            code: "undecodable".into(),
            message: "it does not decode".into(),
        };
        self.write(move |tx| Box::pin(async move { fail(tx, &lease, &failure, NOW).await }))
            .await
    }

    async fn finish(&self, lease: &Lease) -> Result<Stream, Error> {
        let lease = lease.clone();
        self.write(move |tx| Box::pin(async move { finish(tx, &lease, NOW + 5).await }))
            .await
    }

    /// Segments and bytes of each rendition.
    async fn sums(&self, id: Uuid) -> Vec<(u32, i64)> {
        let renditions = renditions(&mut self.world.read().await, id).await.unwrap();
        let sums = renditions
            .iter()
            .map(|it| (it.segment_count, it.size_bytes));
        sums.collect()
    }

    async fn stored(&self) -> u64 {
        let totals = storage::totals(&mut self.world.read().await, self.account).await;
        totals.unwrap().bytes
    }

    async fn used(&self) -> u64 {
        let used = operations::used(&mut self.world.read().await, self.account, NOW).await;
        used.unwrap().operations
    }
}

async fn sealed(world: &World, bytes: &'static [u8]) -> Sealed {
    let mut spool = world.store.blobs().spool().await.unwrap();
    spool.write(Bytes::from_static(bytes)).await.unwrap();
    spool.seal().await.unwrap()
}

fn a_plan() -> Plan {
    let rendition = |name: &str, kind, size: Option<(u32, u32)>| PlannedRendition {
        name: name.into(),
        kind,
        width: size.map(|(width, _)| width),
        height: size.map(|(_, height)| height),
        bitrate: 800_000,
        max_bitrate: 1_200_000,
        is_copy: true,
    };
    Plan {
        duration_ms: Some(30_000),
        size: Some((640, 360)),
        renditions: vec![
            rendition("180p", RenditionKind::Video, Some((320, 180))),
            rendition("360p", RenditionKind::Video, Some((640, 360))),
            rendition("audio", RenditionKind::Audio, None),
        ],
    }
}

/// Segments of 100 bytes and six seconds, of all three renditions; with the first ones, init sections of 10 bytes.
fn group(numbers: std::ops::Range<u32>) -> Group {
    let renditions = 0..3_u8;
    let inits = renditions.clone().filter(|_| numbers.start == 0);
    let segments = renditions.flat_map(|rendition| {
        numbers.clone().map(move |number| Segment {
            rendition,
            number,
            offset: 10 + 100 * u64::from(number),
            length: 100,
            start_90k: 540_000 * i64::from(number),
            duration_90k: 540_000,
            key_length: 40,
        })
    });
    Group {
        inits: inits
            .map(|rendition| Init {
                rendition,
                length: 10,
                codecs: "avc1.64001f".into(),
                frame_rate: Some(25.0),
                is_copy: false,
            })
            .collect(),
        segments: segments.collect(),
        progress: 7,
    }
}

#[tokio::test]
async fn a_stream_is_paid_for_and_knows_its_source() {
    let bench = Bench::new().await;
    let (account, blob) = (bench.account, bench.blob);
    let file = NewFile {
        folder_id: None,
        filename: "clip.mp4".into(),
        mime_type: "video/mp4".into(),
        size_bytes: 6,
        blob,
        role: Role::Uploaded,
        width: None,
        height: None,
        duration_ms: None,
        generation: 0,
    };
    let file = bench.write(move |tx| Box::pin(files::create(tx, account, file, NOW)));
    let file = file.await.unwrap();
    let mut new = bench.new_stream();
    new.source.file_id = Some(file.id);
    new.allowance.operations = 1;
    let stream = bench.stream_of(new.clone()).await;
    assert_eq!(stream.source_file_id, Some(file.id));
    assert_eq!(
        (stream.status, stream.playable),
        (StreamStatus::Pending, false)
    );
    assert_eq!(bench.create(new).await, Submitted::UsedUp { used: 1 });
    let mut reader = bench.world.read().await;
    let made = lineage::products(&mut reader, file.id, 10, 0)
        .await
        .unwrap();
    assert_eq!(made[0].id, stream.id.to_string());
    let found = by_playback_id(&mut reader, &stream.playback_id).await;
    assert_eq!(found.unwrap().id, stream.id);
    // The stream outlives its source file.
    bench
        .write(move |tx| Box::pin(async move { files::delete(tx, account, file.id).await }))
        .await
        .unwrap();
    let kept = get(&mut reader, account, stream.id).await.unwrap();
    assert_eq!((kept.source_file_id, kept.source_blob), (None, Some(blob)));
    assert!(get(&mut reader, Uuid::now_v7(), stream.id).await.is_err());
}

#[tokio::test]
async fn groups_add_up_and_make_a_stream_playable() {
    let bench = Bench::new().await;
    let lease = bench.begun(bench.new_stream()).await;
    for (numbers, playable) in [(0..1, false), (1..2, false), (2..3, true), (3..5, true)] {
        let end = numbers.end;
        let stream = bench.record(&lease, group(numbers)).await.unwrap();
        assert_eq!((stream.playable, stream.progress), (playable, 7));
        let bytes = i64::from(end) * 100 + 10;
        assert_eq!(bench.sums(lease.id).await, [(end, bytes); 3]);
        assert_eq!(stream.size_bytes, 3 * bytes);
        assert_eq!(bench.stored().await, 3 * bytes.unsigned_abs());
    }
    let mut reader = bench.world.read().await;
    let found = segments(&mut reader, lease.id).await.unwrap();
    assert_eq!(found.len(), 15);
    assert!(found.is_sorted_by_key(|segment| (segment.rendition, segment.number)));
    let first = &renditions_of(&mut reader, &[lease.id]).await.unwrap()[&lease.id][0];
    assert_eq!(first.average_bitrate(), Some(133));
    assert!(!first.is_copy, "the copy that was asked for did not fit");
    // One that is recorded already, and one of an owner that was replaced.
    assert!(bench.record(&lease, group(4..5)).await.is_err());
    let stale = Lease {
        fence: lease.fence - 1,
        ..lease
    };
    let rejected = bench.record(&stale, group(5..6)).await;
    assert!(matches!(rejected, Err(Error::Conflict(_))), "{rejected:?}");
    assert_eq!(bench.stored().await, 1_530);
}

#[tokio::test]
async fn what_does_not_fit_the_accounts_storage_is_not_recorded() {
    let bench = Bench::new().await;
    let mut new = bench.new_stream();
    new.allowance.storage_bytes = 500;
    let lease = bench.begun(new).await;
    bench.record(&lease, group(0..1)).await.unwrap();
    let rejected = bench.record(&lease, group(1..2)).await;
    assert!(
        matches!(rejected, Err(Error::OverQuota { .. })),
        "{rejected:?}"
    );
    assert_eq!(bench.sums(lease.id).await, [(1, 110); 3]);
}

#[tokio::test]
async fn stepping_back_forgets_audio_and_what_comes_behind() {
    let bench = Bench::new().await;
    let lease = bench.begun(bench.new_stream()).await;
    bench.record(&lease, group(0..5)).await.unwrap();
    let stream = bench.step_back(&lease, 3).await.unwrap();
    assert_eq!((stream.playable, stream.size_bytes), (false, 620));
    assert_eq!(bench.sums(lease.id).await, [(3, 310), (3, 310), (0, 0)]);
    let stream = bench.step_back(&lease, 0).await.unwrap();
    assert_eq!((stream.size_bytes, bench.stored().await), (0, 0));
    let mut reader = bench.world.read().await;
    let renditions = renditions(&mut reader, lease.id).await.unwrap();
    assert!(renditions.iter().all(|it| it.init_length.is_none()));
    let stream = bench.record(&lease, group(0..5)).await.unwrap();
    assert_eq!((stream.playable, stream.size_bytes), (true, 1_530));
}

#[tokio::test]
async fn images_count_once() {
    let bench = Bench::new().await;
    let lease = bench.begun(bench.new_stream()).await;
    let poster = MadeImages {
        poster_bytes: Some(30),
        storyboard_bytes: None,
    };
    let storyboard = MadeImages {
        poster_bytes: None,
        storyboard_bytes: Some(12),
    };
    for (images, is_noted, stored) in [
        (poster, true, 30),
        (poster, false, 30),
        (storyboard, true, 42),
        (storyboard, false, 42),
        (poster, false, 42),
    ] {
        let lease = lease.clone();
        let noted = bench
            .write(move |tx| Box::pin(async move { images_made(tx, &lease, images, NOW).await }))
            .await;
        assert_eq!(noted.is_ok(), is_noted);
        assert_eq!(bench.stored().await, stored);
    }
}

#[tokio::test]
async fn each_end_comes_once_and_leaves_what_belongs_to_it() {
    let bench = Bench::new().await;
    // Ready.
    let lease = bench.begun(bench.new_stream()).await;
    bench.record(&lease, group(0..2)).await.unwrap();
    let ready = bench.finish(&lease).await.unwrap();
    assert_eq!(
        (ready.status, ready.source_blob),
        (StreamStatus::Ready, None)
    );
    assert_eq!((ready.playable, ready.ready_at), (true, Some(NOW + 5)));
    assert!(bench.finish(&lease).await.is_err() && bench.fail(&lease).await.is_err());
    assert_eq!((bench.used().await, bench.stored().await), (1, 630));
    // Failed.
    let lease = bench.begun(bench.new_stream()).await;
    bench.record(&lease, group(0..4)).await.unwrap();
    let failed = bench.fail(&lease).await.unwrap();
    assert_eq!((failed.playable, failed.size_bytes), (false, 0));
    assert_eq!(failed.error_code.as_deref(), Some("undecodable"));
    assert!(bench.fail(&lease).await.is_err());
    assert_eq!((bench.used().await, bench.stored().await), (1, 630));
    assert!(bench.sums(failed.id).await.is_empty());
    // Given up: only what has not ended.
    let lease = bench.begun(bench.new_stream()).await;
    let given_up = bench.write(move |tx| {
        Box::pin(async move {
            let first = give_up(tx, lease.id, NOW).await?;
            Ok((first, give_up(tx, lease.id, NOW).await?))
        })
    });
    let (first, again) = given_up.await.unwrap();
    assert_eq!(first.unwrap().error_code.as_deref(), Some("crashed"));
    assert_eq!((again, bench.used().await), (None, 1));
}

#[tokio::test]
async fn a_deleted_stream_leaves_nothing() {
    let bench = Bench::new().await;
    let account = bench.account;
    let lease = bench.begun(bench.new_stream()).await;
    bench.record(&lease, group(0..4)).await.unwrap();
    let content = sealed(&bench.world, b"WEBVTT\n").await;
    let caption = NewCaption {
        language: "en".into(),
        label: "English".into(),
        is_default: true,
        most: 2,
        storage_bytes: 0,
    };
    let id = lease.id;
    bench
        .write(move |tx| {
            Box::pin(async move { add_caption(tx, account, id, &caption, &content, NOW).await })
        })
        .await
        .unwrap();
    assert_eq!(bench.stored().await, 3 * 410 + 7);
    bench
        .write(move |tx| Box::pin(delete(tx, account, id)))
        .await
        .unwrap();
    assert_eq!((bench.used().await, bench.stored().await), (0, 0));
    let mut reader = bench.world.read().await;
    assert!(by_id(&mut reader, id).await.is_err());
    assert!(segments(&mut reader, id).await.unwrap().is_empty());
    assert!(captions(&mut reader, id).await.unwrap().is_empty());
    let counts = count_by_status(&mut reader).await.unwrap();
    assert_eq!(counts, StreamCounts::default());
    let rejected = bench.record(&lease, group(4..5)).await;
    assert!(matches!(rejected, Err(Error::Conflict(_))), "{rejected:?}");
    assert_eq!(lease.lane, Lane::Batch);
}

/// Segments in each rendition of a long stream.
const MANY: u32 = 20_000;

impl Bench {
    /// A stream that is being made, with many segments.
    async fn long_stream(&self) -> Lease {
        let lease = self.begun(self.new_stream()).await;
        self.record(&lease, group(0..4)).await.unwrap();
        let id = hex(lease.id);
        let more = format!(
            "WITH RECURSIVE n(number) AS (SELECT CAST(4 AS BIGINT) UNION ALL SELECT number + 1 FROM n WHERE number + 1 < {MANY})
             INSERT INTO video_segments (stream_id, rendition, number, \"offset\", length, start_90k, duration_90k, key_length)
             SELECT r.stream_id, r.number, n.number, 10 + 100 * n.number, 100, 540000 * n.number, 540000, 40
             FROM video_renditions r, n WHERE r.stream_id = unhex('{id}')"
        );
        self.world.run(more).await.unwrap();
        lease
    }
}

/// Returns the numbers of segment rows, of any stream, and of streams whose segments are to be swept.
async fn rows_left(store: &Store) -> (i64, i64) {
    let statement =
        "SELECT (SELECT count(*) FROM video_segments), (SELECT count(*) FROM video_discarded)";
    let mut reader = store.read().await.unwrap();
    query_as(statement).fetch_one(&mut reader).await.unwrap()
}

#[tokio::test]
async fn a_long_stream_is_gone_at_once_and_its_segments_go_in_turns() {
    let bench = Bench::new().await;
    let (account, store) = (bench.account, bench.world.store.clone());
    let kept = bench.begun(bench.new_stream()).await;
    bench.record(&kept, group(0..4)).await.unwrap();
    bench.finish(&kept).await.unwrap();
    let deleted = bench.long_stream().await;
    bench.finish(&deleted).await.unwrap();
    let failed = bench.long_stream().await;
    let all = 12 + 2 * 3 * i64::from(MANY);
    assert_eq!(rows_left(&store).await, (all, 0));

    bench
        .write(move |tx| Box::pin(delete(tx, account, deleted.id)))
        .await
        .unwrap();
    bench.fail(&failed).await.unwrap();
    assert_eq!(
        rows_left(&store).await,
        (all, 2),
        "neither waits for its segments"
    );
    let mut reader = bench.world.read().await;
    assert!(by_id(&mut reader, deleted.id).await.is_err());
    for id in [deleted.id, failed.id] {
        assert!(renditions(&mut reader, id).await.unwrap().is_empty());
        assert!(segments(&mut reader, id).await.unwrap().is_empty());
    }
    drop(reader);
    assert_eq!(bench.stored().await, 3 * 410, "only what is kept counts");

    // The process is killed after a turn: the next one continues from what was committed.
    let turn = bench.write(|tx| Box::pin(sweep::delete_discarded(tx, 1_000)));
    assert_eq!(turn.await.unwrap(), 1_000);
    assert_eq!(rows_left(&store).await, (all - 1_000, 2));
    store.close().await;
    let settings = StoreSettings::without_reserve(store.data_dir());
    let again = Store::open(&settings).await.unwrap();
    assert_eq!(rows_left(&again).await, (all - 1_000, 2));
    again.sweep(NOW).await.unwrap();
    assert_eq!(rows_left(&again).await, (12, 0));
    let mut reader = again.read().await.unwrap();
    assert_eq!(segments(&mut reader, kept.id).await.unwrap().len(), 12);
    let row = by_id(&mut reader, failed.id).await.unwrap();
    assert_eq!(row.status, StreamStatus::Failed);
}

/// Checks that one turn finishes a stream and begins the next, and never takes more rows than it may.
#[tokio::test]
async fn a_turn_goes_from_stream_to_stream() {
    let bench = Bench::new().await;
    let account = bench.account;
    for _ in 0..3 {
        let lease = bench.begun(bench.new_stream()).await;
        bench.record(&lease, group(0..2)).await.unwrap();
        bench
            .write(move |tx| Box::pin(delete(tx, account, lease.id)))
            .await
            .unwrap();
    }
    // Six segments and the note of each stream.
    for (rows, left) in [(8, (11, 2)), (8, (4, 1)), (5, (0, 0)), (0, (0, 0))] {
        let turn = bench.write(|tx| Box::pin(sweep::delete_discarded(tx, 8)));
        assert_eq!(turn.await.unwrap(), rows);
        assert_eq!(rows_left(&bench.world.store).await, left);
    }
}

/// Checks that the kernel counts every copy of a descriptor, also one in a process whose exit is not awaited any more.
#[tokio::test]
async fn a_file_has_one_writer() {
    let bench = Bench::new().await;
    let folder = Folder::of(&bench.world.store, Uuid::now_v7());
    folder.make().unwrap();
    let file = MediaFile::Rendition("360p".into());
    let first = folder.open_at(&file, 10).unwrap();
    let at_work = first.try_clone().unwrap();
    for held in [first, at_work] {
        let rejected = folder.open_at(&file, 0);
        assert!(matches!(rejected, Err(Error::Busy(_))), "{rejected:?}");
        assert_eq!(folder.length(&file).unwrap(), 10, "it was not cut");
        drop(held);
    }
    folder.open_at(&file, 0).unwrap();
    assert_eq!(folder.length(&file).unwrap(), 0);
}
