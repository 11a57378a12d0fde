//! `conversion.*`: one beginning, every file, one end.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{BROKEN_PNG, CONVERTED, events_of, svg, text, types};
use crate::support::{
    Failure, eventually,
    server::{Form, Server, Settings},
};

/// Each file once among the progress, counted up to all of them.
fn check_progress(events: &[(String, Value)], total: usize) {
    let progress: Vec<&Value> = events
        .iter()
        .filter(|(kind, _)| kind == "conversion.progress")
        .map(|(_, data)| data)
        .collect();
    assert_eq!(progress.len(), total);
    let mut indexes: Vec<u64> = Vec::new();
    for (number, data) in progress.iter().enumerate() {
        assert_eq!(
            (&data["completed"], &data["total"]),
            (&json!(number + 1), &json!(total))
        );
        indexes.extend(data["index"].as_u64());
    }
    indexes.sort_unstable();
    assert_eq!(indexes, (0..total as u64).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_one_bad_file_fails_and_tells_what_came_out() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let form = Form::new()
        .file("files", "red.svg", &svg("red"))
        .file("files", "broken.png", BROKEN_PNG)
        .file("files", "blue.svg", &svg("blue"))
        .field("format", "webp");
    let id = api.submit(form).await?;
    api.wait_job(&id, CONVERTED).await?;
    let events = events_of(&api, &id).await?;
    let progress = "conversion.progress";
    assert_eq!(
        types(&events),
        [
            "conversion.started",
            progress,
            progress,
            progress,
            "conversion.failed"
        ]
    );
    check_progress(&events, 3);
    assert!(
        events
            .iter()
            .all(|(kind, data)| data["filename"] == "red.svg" || kind == progress)
    );
    let bad: Vec<_> = events
        .iter()
        .filter(|it| it.1["status"] == "failed")
        .collect();
    assert_eq!(bad.len(), 1);
    assert_eq!(
        (&bad[0].1["filename"], &bad[0].1["index"]),
        (&json!("broken.png"), &json!(1))
    );
    let end = &events[4].1;
    assert_eq!(
        (&end["code"], &end["filesTotal"], &end["errorsTotal"]),
        (&json!("undecodable"), &json!(2), &json!(1))
    );
    let names = |list: &Value| -> Vec<Value> {
        let entries = list.as_array().cloned().unwrap_or_default();
        entries
            .iter()
            .map(|entry| entry["filename"].clone())
            .collect()
    };
    assert_eq!(names(&end["files"]), ["red.webp", "blue.webp"]);
    assert_eq!(names(&end["errors"]), ["broken.png"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversion_that_is_waited_for_is_reported_too() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let mut image = svg("red");
    for (path, name, fields, job_type) in [
        ("/api/convert", "a.svg", ("format", "png"), "convert"),
        ("/api/compress", "a.png", ("quality", "70"), "compress"),
    ] {
        let form = Form::new().file("file", name, &image).fields(&[fields]);
        let answer = api.post_form(path, form).await?.expect(200)?.json()?;
        let events = events_of(&api, &text(&answer["jobId"])?).await?;
        assert_eq!(
            types(&events),
            [
                "conversion.started",
                "conversion.progress",
                "conversion.completed"
            ]
        );
        let (end, file) = (&events[2].1, &answer["files"][0]);
        assert_eq!(
            (&end["jobType"], &end["filename"]),
            (&json!(job_type), &json!(name))
        );
        assert_eq!(
            end["files"],
            json!([{
                "filename": file["filename"], "mimeType": file["mimeType"], "sizeBytes": file["finalSize"],
                "width": file["width"], "height": file["height"], "storedFileId": null,
            }])
        );
        image = api
            .fetch(&text(&file["downloadUrl"])?)
            .await?
            .expect(200)?
            .bytes
            .to_vec();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_job_fails_once() -> Result<(), Failure> {
    let server = Settings::new().start().await?;
    let api = server.api();
    let mut form = Form::new()
        .field("format", "avif")
        .field("resizeWidth", "4000");
    for number in 0..8 {
        form = form.file("files", &format!("{number}.svg"), &svg("green"));
    }
    let id = api.submit(form).await?;
    let path = format!("/api/jobs/{id}");
    eventually("it is worked on", CONVERTED, async || {
        let (_, job) = api.call(Method::GET, &path, None).await.ok()?;
        (job["status"] == "processing").then_some(())
    })
    .await?;
    let (status, cancelled) = api.call(Method::DELETE, &path, None).await?;
    assert_eq!(status, StatusCode::OK, "{cancelled}");
    let (status, _) = api.call(Method::DELETE, &path, None).await?;
    assert_eq!(status, StatusCode::CONFLICT);
    let events = events_of(&api, &id).await?;
    assert_eq!(events[0].0, "conversion.started");
    let (kind, end) = events.last().ok_or("no event")?;
    assert_eq!(
        (kind.as_str(), &end["error"], &end["code"]),
        (
            "conversion.failed",
            &json!("the job was cancelled"),
            &json!("cancelled")
        )
    );
    let ends = events
        .iter()
        .filter(|(kind, _)| kind == "conversion.failed");
    assert_eq!(ends.count(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_killed_tells_everything_once() -> Result<(), Failure> {
    const FILES: usize = 8;
    let mut server = Server::start().await?;
    let api = server.api();
    let mut form = Form::new()
        .field("format", "avif")
        .field("resizeWidth", "2400")
        .field("saveToStorage", "true");
    for number in 0..FILES {
        form = form.file("files", &format!("{number}.svg"), &svg("navy"));
    }
    let id = api.submit(form).await?;
    let path = format!("/api/jobs/{id}");
    let mut seen = 0;
    for _ in 0..2 {
        let api = server.api();
        seen = eventually("one more file is done", CONVERTED, async || {
            let (_, job) = api.call(Method::GET, &path, None).await.ok()?;
            job["completedFiles"].as_u64().filter(|done| *done > seen)
        })
        .await?;
        assert!(seen < FILES as u64, "killed too late");
        server.kill().await?;
        server.restart().await?;
    }
    let api = server.api();
    let job = api.wait_job(&id, CONVERTED).await?;
    assert_eq!(job["status"], "completed", "{job}");
    let events = events_of(&api, &id).await?;
    assert_eq!(events.len(), FILES + 2, "{:?}", types(&events));
    check_progress(&events, FILES);
    assert_eq!(
        (events[0].0.as_str(), events[FILES + 1].0.as_str()),
        ("conversion.started", "conversion.completed")
    );
    let all = super::all_events(&api).await?;
    let mut files: Vec<String> = all
        .iter()
        .filter(|(kind, _)| kind == "file.uploaded")
        .map(|(_, data)| text(&data["fileId"]))
        .collect::<Result<_, _>>()?;
    files.sort();
    files.dedup();
    assert_eq!(files.len(), FILES);
    Ok(())
}
