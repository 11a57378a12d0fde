//! Events of jobs: each change once, in order, whatever is interrupted.

use serde_json::{Value, json};

use super::*;
use crate::events::tests::{feed, sequence};

impl Site {
    async fn events(&self) -> Vec<(String, Value)> {
        feed(&self.store, self.account).await
    }

    /// Returns the types of a job's events, after a check of its numbers.
    async fn events_of(&self, job: &Job) -> Vec<(String, Value)> {
        let mut events = self.events().await;
        events.retain(|(_, data)| data["jobId"] == json!(job.id));
        for (number, (kind, data)) in events.iter().enumerate() {
            assert_eq!(sequence(data), number as u64 + 1, "{kind} {data}");
        }
        events
    }
}

fn types(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(kind, _)| kind.as_str()).collect()
}

/// The progress events among them: every file once, counted up to `total`.
fn check_progress(events: &[(String, Value)], total: u64) {
    let progress: Vec<&Value> = events
        .iter()
        .filter(|(kind, _)| kind == "conversion.progress")
        .map(|(_, data)| data)
        .collect();
    let counted: Vec<u64> = progress
        .iter()
        .map(|data| data["completed"].as_u64().unwrap())
        .collect();
    assert_eq!(counted, (1..=total).collect::<Vec<_>>());
    let mut indexes: Vec<u64> = progress
        .iter()
        .map(|data| data["index"].as_u64().unwrap())
        .collect();
    indexes.sort_unstable();
    assert_eq!(indexes, (0..total).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_tells_its_beginning_each_file_and_its_end() {
    let site = Site::open().await;
    let cases: [(&[&str], &str, usize); 3] = [
        (&["one", "two", "three"], "conversion.completed", 3),
        (&["one", "broken", "two"], "conversion.failed", 2),
        (&["broken", "broken", "broken"], "conversion.failed", 0),
    ];
    for (contents, end, made) in cases {
        let contents: Vec<Vec<u8>> = contents.iter().map(|text| png(text)).collect();
        let contents: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
        let job = site.submit(|_| {}, &contents).await;
        let job = site.end_of(&job).await;
        let events = site.events_of(&job).await;
        let progress = "conversion.progress";
        assert_eq!(
            types(&events),
            ["conversion.started", progress, progress, progress, end]
        );
        check_progress(&events, 3);
        let started = &events[0].1;
        assert_eq!(
            (
                &started["filename"],
                &started["fileCount"],
                &started["jobType"]
            ),
            (&json!("0.png"), &json!(3), &json!("convert"))
        );
        let last = &events[4].1;
        assert_eq!(last["files"].as_array().unwrap().len(), made);
        assert_eq!(last["filesTotal"], made);
        if end == "conversion.failed" {
            assert_eq!(last["error"], "it does not decode");
            assert_eq!(last["code"], "undecodable");
            assert_eq!(last["errorsTotal"], 3 - made);
            assert_eq!(last["errors"][0]["code"], "undecodable");
        }
        let failed = events.iter().filter(|(_, data)| data["status"] == "failed");
        assert_eq!(failed.count(), 3 - made);
    }
    let none_is_stored = types(&site.events().await).contains(&"file.uploaded");
    assert!(!none_is_stored, "results that are not saved are no files");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_tells_its_end_alone() {
    let site = Site::open().await;
    let tool = |new: &mut NewJob| {
        new.job_type = JobType::Tool;
        new.tool = "thumbnail".into();
        new.lane = Turn::Interactive;
    };
    for (content, expected) in [
        ("one", "media.tool.completed"),
        ("broken", "media.tool.failed"),
    ] {
        let job = site.submit(tool, &[&png(content)]).await;
        let job = site.end_of(&job).await;
        let events = site.events_of(&job).await;
        assert_eq!(types(&events), [expected]);
        let data = &events[0].1;
        assert_eq!(
            (&data["tool"], &data["filename"]),
            (&json!("thumbnail"), &json!("0.png"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_job_tells_nothing_twice() {
    let mut site = Site::open().await;
    let job = site
        .submit(
            |new| new.saves = true,
            &[&png("one"), &png("wait"), &png("two"), &png("wait")],
        )
        .await;
    site.until("the free files are done", |site| {
        site.done() == ["one", "two"]
    })
    .await;
    site.kill_and_start().await;
    site.workers.permits.add_permits(1);
    site.until("one more is done", |site| site.done().len() >= 3)
        .await;
    site.kill_and_start().await;
    site.workers.permits.add_permits(2);
    let job = site.end_of(&job).await;
    let events = site.events_of(&job).await;
    assert_eq!(events.len(), 6, "{events:?}");
    assert_eq!(events[0].0, "conversion.started");
    check_progress(&events, 4);
    assert_eq!(events[5].0, "conversion.completed");
    let files: Vec<_> = site
        .events()
        .await
        .into_iter()
        .filter(|(kind, _)| kind == "file.uploaded")
        .map(|(_, data)| data["fileId"].clone())
        .collect();
    let stored: Vec<Value> = site
        .items(&job)
        .await
        .iter()
        .map(|item| json!(item.stored_file_id.unwrap()))
        .collect();
    assert_eq!(files.len(), 4);
    assert!(stored.iter().all(|id| files.contains(id)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_tells_its_end_once() {
    let site = Site::open().await;
    for is_tool in [false, true] {
        let as_tool = |new: &mut NewJob| {
            if is_tool {
                new.job_type = JobType::Tool;
            }
        };
        let job = site.submit(as_tool, &[&png("wait"), &png("wait")]).await;
        site.until("both run", |site| site.workers.running.load(SeqCst) == 2)
            .await;
        site.conversions.cancel(site.account, job.id).await.unwrap();
        site.workers.permits.add_permits(2);
        site.until("nothing runs", |site| {
            site.workers.running.load(SeqCst) == 0
        })
        .await;
        site.conversions
            .cancel(site.account, job.id)
            .await
            .unwrap_err();
        let events = site.events_of(&job).await;
        let expected: &[&str] = match is_tool {
            false => &["conversion.started", "conversion.failed"],
            true => &["media.tool.failed"],
        };
        assert_eq!(types(&events), expected);
        let last = &events.last().unwrap().1;
        assert_eq!(
            (&last["error"], &last["code"]),
            (&json!("the job was cancelled"), &json!("cancelled"))
        );
        site.workers.permits.forget_permits(2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_given_up_tells_its_end_once() {
    let site = Site::open().await;
    let job = site.submit(|_| {}, &[&png("die")]).await;
    let job = site.end_of(&job).await;
    let events = site.events_of(&job).await;
    assert_eq!(types(&events), ["conversion.started", "conversion.failed"]);
    assert_eq!(events[1].1["code"], "crashed");
    assert_eq!(events[1].1["errorsTotal"], 1);
}

/// The first try to record a result that the storage has no room for is undone with its events.
#[tokio::test(flavor = "multi_thread")]
async fn stored_results_are_reported_and_those_without_room_are_not() {
    let site = Site::open().await;
    let room = |new: &mut NewJob| {
        new.saves = true;
        new.allowance.storage_bytes = 15;
    };
    let job = site.submit(room, &[&png("one"), &png("two")]).await;
    let job = site.end_of(&job).await;
    let events = site.events().await;
    let files: Vec<_> = events.iter().filter(|it| it.0 == "file.uploaded").collect();
    assert_eq!(files.len(), 1);
    let file = &files[0].1;
    assert_eq!(
        (&file["role"], &file["mimeType"], &file["folderId"]),
        (&json!("converted"), &json!("image/webp"), &Value::Null)
    );
    let of_job = site.events_of(&job).await;
    check_progress(&of_job, 2);
    let last = &of_job.last().unwrap().1;
    assert_eq!(last["code"], "storage_used_up");
    assert_eq!(last["files"][0]["storedFileId"], file["fileId"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_gives_the_job_its_name_and_its_members_to_the_count() {
    let site = Site::open().await;
    let job = site
        .submit(
            |new| new.archives = true,
            &[&[ZIP, b"one two"].concat(), &png("three")],
        )
        .await;
    let job = site.end_of(&job).await;
    let events = site.events_of(&job).await;
    assert_eq!(events.len(), 5, "{events:?}");
    assert_eq!(events[0].1["fileCount"], 2);
    check_progress(&events, 3);
    assert_eq!(events[4].0, "conversion.completed");
    assert_eq!(events[4].1["filename"], "0.png");
    let names: Vec<&Value> = events[4].1["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| &file["filename"])
        .collect();
    assert_eq!(names, ["one.webp", "two.webp", "1.webp"]);
}
