//! Video streams in a backup: as much of their files as rows name, and never a file that others share.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, time::Duration};

use bytes::Bytes;
use sluice_store::{
    Store,
    backup::{self, Transfer},
    blobs,
    jobs::Allowance,
    video::{
        self, Access, Folder, Group, Init, MediaFile, NewStream, Plan, PlannedRendition,
        RenditionKind, Segment, StreamSource, Submitted,
    },
    work::{self, Lease, Room},
};
use uuid::Uuid;

use crate::support::{NOW, add_account, sqlite_settings, sqlite_store};

fn rendition() -> MediaFile {
    MediaFile::Rendition("360p".into())
}

/// A stream that is being made, with an init section of 10 bytes and no segment yet.
async fn begun(store: &Store, account_id: Uuid) -> Lease {
    let mut spool = store.blobs().spool().await.unwrap();
    spool.write(Bytes::from_static(b"a clip")).await.unwrap();
    let clip = spool.seal().await.unwrap();
    let new = NewStream {
        account_id,
        source: StreamSource {
            blob: clip.blob().hash,
            filename: "clip.mp4".into(),
            file_id: None,
        },
        title: "A clip".into(),
        profile: "basic".into(),
        custom_renditions: Vec::new(),
        segment_duration_s: 6,
        access: Access::Public,
        token_ttl_s: None,
        allowed_domains: Vec::new(),
        allowance: Allowance::default(),
        idempotency: None,
    };
    let plan = Plan {
        duration_ms: None,
        size: Some((640, 360)),
        renditions: vec![PlannedRendition {
            name: "360p".into(),
            kind: RenditionKind::Video,
            width: Some(640),
            height: Some(360),
            bitrate: 1,
            max_bitrate: 1,
            is_copy: false,
        }],
    };
    let begun = store.write(move |tx| {
        Box::pin(async move {
            blobs::record(tx, &clip, NOW).await?;
            let Submitted::New(stream) = video::create(tx, &new, NOW).await? else {
                panic!("there is no bound");
            };
            let (room, lease) = (Room::for_any(9), Duration::from_secs(15));
            let claimed = work::claim(tx, video::KIND, Uuid::now_v7(), room, lease, NOW).await?;
            let lease = claimed.leases.into_iter().find(|it| it.id == stream.id);
            let lease = lease.unwrap();
            video::begin(tx, lease.id, NOW).await?;
            video::plan(tx, &lease, &plan, NOW).await?;
            let init = Init {
                rendition: 0,
                length: 10,
                codecs: "avc1.64001f".into(),
                frame_rate: None,
                is_copy: false,
            };
            let group = Group {
                inits: vec![init],
                ..Group::default()
            };
            video::record(tx, &lease, &group, NOW).await?;
            Ok(lease)
        })
    });
    begun.await.unwrap()
}

async fn add_segment(store: &Store, lease: &Lease, number: u32) {
    let lease = lease.clone();
    let segment = Segment {
        rendition: 0,
        number,
        offset: 10 + 10 * u64::from(number),
        length: 10,
        start_90k: 540_000 * i64::from(number),
        duration_90k: 540_000,
        key_length: 4,
    };
    let group = Group {
        segments: vec![segment],
        ..Group::default()
    };
    store
        .write(move |tx| Box::pin(async move { video::record(tx, &lease, &group, NOW).await }))
        .await
        .unwrap();
}

/// Returns the path of the stream's file in a backup.
fn in_backup(dir: &Path, id: Uuid) -> std::path::PathBuf {
    dir.join("video").join(id.to_string()).join("360p.mp4")
}

async fn backed_up(store: &Store, dir: &Path) -> backup::Backup {
    backup::backup(store, dir, Transfer::default(), NOW)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_stream_comes_back_as_far_as_it_was() {
    let (store, _folder) = sqlite_store().await;
    let account = add_account(&store, "someone").await.unwrap();
    let lease = begun(&store, account).await;
    let folder = Folder::of(&store, lease.id);
    folder.make().unwrap();
    let live = folder.path(&rendition());
    // More than rows name: the segment that is just being written.
    fs::write(&live, "init......segment 0.segm").unwrap();
    add_segment(&store, &lease, 0).await;
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("backup");
    let made = backed_up(&store, &dir).await;
    assert_eq!((made.streams.count, made.streams.bytes), (1, 20));
    assert_eq!(made.streams.lost, [""; 0]);
    let copied = in_backup(&dir, lease.id);
    assert_eq!(fs::read(&copied).unwrap(), b"init......segment 0.");
    // It is a copy: the service continues with its own.
    assert_ne!(inode(&copied), inode(&live));

    // An older backup may be a link to this file.
    let dated = place.path().join("dated.mp4");
    fs::hard_link(&copied, &dated).unwrap();
    fs::write(&live, "init......segment 0.segment 1.").unwrap();
    add_segment(&store, &lease, 1).await;
    backed_up(&store, &dir).await;
    assert_eq!(fs::read(&copied).unwrap(), fs::read(&live).unwrap());
    assert_eq!(fs::read(&dated).unwrap(), b"init......segment 0.");

    let data_dir = place.path().join("restored");
    let restored = backup::restore(&dir, &data_dir, false, Transfer::default(), NOW).await;
    assert_eq!(restored.unwrap().streams.count, 1);
    let again = Store::open(&sqlite_settings(&data_dir)).await.unwrap();
    let found = video::segments(&mut again.read().await.unwrap(), lease.id).await;
    assert_eq!(found.unwrap().len(), 2);
    let put_back = Folder::of(&again, lease.id).path(&rendition());
    assert_eq!(fs::read(&put_back).unwrap(), fs::read(&live).unwrap());
    assert_ne!(inode(&put_back), inode(&copied));
    again.close().await;
    store.close().await;
}

#[tokio::test]
async fn what_is_gone_leaves_the_backup_and_what_is_lost_is_reported() {
    let (store, _folder) = sqlite_store().await;
    let account = add_account(&store, "someone").await.unwrap();
    let lease = begun(&store, account).await;
    let folder = Folder::of(&store, lease.id);
    folder.make().unwrap();
    fs::write(folder.path(&rendition()), "init......").unwrap();
    let finished = lease.clone();
    store
        .write(move |tx| Box::pin(async move { video::finish(tx, &finished, NOW).await }))
        .await
        .unwrap();
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("backup");
    assert_eq!(backed_up(&store, &dir).await.streams.count, 1);
    // Files that never change take no room.
    let copied = in_backup(&dir, lease.id);
    assert_eq!(inode(&copied), inode(&folder.path(&rendition())));

    fs::remove_file(folder.path(&rendition())).unwrap();
    let made = backed_up(&store, &dir).await;
    let lost = format!(
        "360p.mp4 of the video stream \"A clip\" ({}) is missing",
        lease.id
    );
    assert_eq!(made.streams.lost, [lost]);
    assert!(copied.exists(), "what an earlier backup has stays");

    let id = lease.id;
    store
        .write(move |tx| Box::pin(video::delete(tx, account, id)))
        .await
        .unwrap();
    assert_eq!(backed_up(&store, &dir).await.streams.count, 0);
    assert!(!copied.exists());
    store.close().await;
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}
