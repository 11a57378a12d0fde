//! The node `hls`: a video stream of the buffer, made with its step, and the buffer passed on.

use sluice_store::{
    Page,
    lineage::{self, Derived, DerivedKind},
    video::{self, Stream, StreamFilter, StreamStatus},
};

use super::*;

fn casting() -> Value {
    flow(
        &[
            ("in", "upload", json!({})),
            ("cast", "hls", json!({"profile": "basic"})),
            ("keep", "storage", json!({})),
        ],
        "in>cast cast>keep",
    )
}

impl Site {
    async fn streams(&self) -> Vec<Stream> {
        let mut reader = self.store.read().await.unwrap();
        let (filter, page) = (StreamFilter::default(), Page::first(10));
        video::list(&mut reader, self.account, filter, page)
            .await
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_makes_a_stream_once_and_passes_the_file_on() {
    let mut site = Site::open().await;
    let workflow = site.save(casting()).await;
    let run = site.completed(&workflow, "a.mp4", "film").await;
    let streams = site.streams().await;
    let [stream] = streams.as_slice() else {
        panic!("{streams:?}");
    };
    assert_eq!(stream.status, StreamStatus::Pending);
    assert_eq!(
        (stream.profile.as_str(), stream.source_filename.as_str()),
        ("basic", "a.mp4")
    );
    let blob = stream.source_blob.unwrap();
    assert_eq!(site.text_of(&blob).await, "film");
    let stored = site.stored(&run).await;
    assert_eq!(stored, [("a.mp4".to_owned(), "film".to_owned())]);
    let steps = site.steps(&run).await;
    assert_eq!(
        steps[1].message,
        format!("made the video stream {}", stream.id)
    );
    let facts = steps[1].facts.as_ref().unwrap();
    assert_eq!(facts["playbackId"], stream.playback_id);
    // One for the run, one for the stream.
    assert_eq!(site.used().await, 2);
    let derived = Derived {
        kind: DerivedKind::Rendition,
        id: stream.id.to_string(),
    };
    let made = lineage::of(&mut site.store.read().await.unwrap(), &derived).await;
    assert_eq!(made.unwrap().len(), 1);
    site.kill_and_start().await;
    assert_eq!(site.streams().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_video_and_what_cannot_be_paid_fails_at_the_node() {
    let site = Site::open().await;
    let workflow = site.save(casting()).await;
    let run = site.submit(&workflow, "a.png", "w=1").await;
    let run = site.end_of(&run).await;
    assert_eq!(run.error_code.as_deref(), Some("unsupported_type"));
    assert_eq!(run.error_node.as_deref(), Some("cast"));
    let paid = site.offer(&workflow, "a.mp4", "film", |request| {
        request.allowance.operations = 1;
    });
    let Submitted::New(run) = paid.await else {
        panic!("the run itself is paid for");
    };
    let run = site.end_of(&run).await;
    assert_eq!(run.error_code.as_deref(), Some("operations_used_up"));
    assert_eq!(run.error_node.as_deref(), Some("cast"));
    assert!(site.streams().await.is_empty());
    assert_eq!((site.all_files().await, site.used().await), (0, 0));
}
