//! Work on clips: progress while it lasts, and results of two files.

use super::*;

fn mp4(text: &str) -> Vec<u8> {
    [MP4, text.as_bytes()].concat()
}

fn storyboards(new: &mut NewJob) {
    let operation = operation::parse("storyboard", &Params::from_form([("frames", "4")])).unwrap();
    for item in &mut new.items {
        item.operation = serde_json::to_value(&operation).unwrap();
        item.inputs[0].filename = "clip.mp4".into();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_file_is_stored_and_packed_with_the_first() {
    let site = Site::open().await;
    let kept = |new: &mut NewJob| {
        (new.saves, new.archives) = (true, true);
        storyboards(new);
    };
    let job = site.submit(kept, &[&mp4("scenes")]).await;
    let job = site.end_of(&job).await;
    assert_eq!(job.state, JobState::Completed, "{job:?}");
    let [item] = &site.items(&job).await[..] else {
        panic!("one file was asked for");
    };
    assert_eq!(site.bytes_of(item).await, "made of scenes");
    let attachment = item.attachment().unwrap();
    assert_eq!(
        (&*attachment.filename, &*attachment.mime_type),
        ("clip.vtt", "text/vtt")
    );
    let mut reader = site.store.read().await.unwrap();
    for (id, text) in [
        (item.stored_file_id, "made of scenes"),
        (attachment.stored_file_id, "beside scenes"),
    ] {
        let file = files::get(&mut reader, site.account, id.unwrap()).await;
        let bytes = site.store.blobs().open(&file.unwrap().blob).await.unwrap();
        assert_eq!(std::io::read_to_string(bytes).unwrap(), text);
    }
    let archive = site.store.blobs().open(&job.archive_blob.unwrap()).await;
    let archive = zip::ZipArchive::new(archive.unwrap()).unwrap();
    let names: Vec<&str> = archive.file_names().collect();
    assert_eq!(names, [item.result_name.as_deref().unwrap(), "clip.vtt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_file_counts_with_what_is_done_of_it() {
    let site = Site::open().await;
    let job = site.submit(|_| {}, &[&png("half"), &png("one")]).await;
    let mut follower = site.conversions.follow(job.id).unwrap();
    let mut until = async |what: &str, holds: fn(&super::super::JobProgress) -> bool| {
        let seen = async {
            loop {
                let progress = follower.next().await.unwrap();
                if holds(&progress) {
                    return progress;
                }
            }
        };
        tokio::time::timeout(PATIENCE, seen).await.expect(what)
    };
    until("it waits, and the other is done", |progress| {
        progress.completed_files == 1 && progress.queue_place == Some(2)
    })
    .await;
    site.workers.permits.add_permits(1);
    let half = until("it works", |progress| progress.percent() > 50).await;
    assert_eq!((half.percent(), half.queue_place), (75, None));
    let row = jobs::by_id(&mut site.store.read().await.unwrap(), job.id).await;
    let row = row.unwrap();
    assert_eq!(site.conversions.progress(&row).percent(), 75);
    site.workers.permits.add_permits(1);
    let end = until("it has ended", |progress| progress.state.has_ended()).await;
    assert_eq!((end.percent(), end.queue_place), (100, None));
}
