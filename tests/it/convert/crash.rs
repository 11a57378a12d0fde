//! `kill -9` in mid-batch: no acknowledged file is lost, none is charged or made twice, none is half written.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::{number, svg, text};
use crate::support::{
    Failure, eventually,
    server::{Form, Server},
};

const SOON: Duration = Duration::from_secs(120);
const FILES: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_batch_continues_where_it_was() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let mut form = Form::new()
        .field("format", "avif")
        .field("resizeWidth", "2400")
        .field("saveToStorage", "true");
    for number in 0..FILES {
        let source = svg(&format!("rgb({},90,40)", 40 * number));
        form = form.file("files", &format!("{number}.svg"), &source);
    }
    let id = api.submit(form).await?;
    let path = format!("/api/jobs/{id}");
    let before = eventually("one file is done, and not all", SOON, async || {
        let (_, job) = api.call(Method::GET, &path, None).await.ok()?;
        (job["completedFiles"].as_u64()? > 0).then_some(job)
    })
    .await?;
    server.kill().await?;
    let done_before = number(&before["completedFiles"])?;
    assert!(done_before < FILES as u64, "killed too late: {before}");

    server.restart().await?;
    let temporary = server.temporary_files()?;
    let api = server.api();
    let job = api.wait_job(&id, SOON).await?;
    assert_eq!(
        (&job["status"], &job["completedFiles"], &job["failedFiles"]),
        (&json!("completed"), &json!(FILES), &json!(0)),
        "{job}"
    );
    // Two spools at most are in use right after the start; those of the killed process have been removed.
    assert!(temporary <= 6, "{temporary} temporary files");
    let ids = |job: &serde_json::Value| -> Vec<String> {
        let results = job["results"].as_array().cloned().unwrap_or_default();
        results
            .iter()
            .filter_map(|result| text(&result["storedFileId"]).ok())
            .collect()
    };
    let after = ids(&job);
    assert!(
        ids(&before).iter().all(|id| after.contains(id)),
        "results stay what they were"
    );
    assert_eq!(api.operations_used().await?, FILES as u64);
    let (_, files) = api.call(Method::GET, "/api/files", None).await?;
    assert_eq!(files["pagination"]["total"], json!(FILES), "{files}");
    for result in job["results"].as_array().ok_or("no results")? {
        let bytes = api
            .fetch(&text(&result["downloadUrl"])?)
            .await?
            .expect(200)?
            .bytes;
        assert_eq!(json!(bytes.len()), result["finalSize"]);
    }
    Ok(())
}

const JOBS: usize = 30;
/// One more than the begins after which a job fails.
const KILLS: usize = 4;

/// All are claimed at each start, and few of them run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_wait_while_the_service_is_killed_again_and_again_are_done() -> Result<(), Failure>
{
    let mut server = Server::start().await?;
    let mut jobs = Vec::new();
    for number in 0..JOBS {
        let source = svg(&format!("rgb({},90,40)", 8 * number));
        let form = Form::new()
            .field("format", "avif")
            .field("resizeWidth", "1600")
            .file("files", &format!("{number}.svg"), &source);
        jobs.push(server.api().submit(form).await?);
    }
    let mut done = 0;
    for kill in 0..KILLS {
        let api = server.api();
        let more = eventually("one more job is done", SOON, async || {
            let mut completed = 0;
            for id in &jobs {
                let (_, job) = api
                    .call(Method::GET, &format!("/api/jobs/{id}"), None)
                    .await
                    .ok()?;
                completed += usize::from(job["status"] == "completed");
            }
            (completed > done).then_some(completed)
        })
        .await?;
        assert!(more < JOBS, "kill {kill} comes too late");
        done = more;
        server.kill().await?;
        server.restart().await?;
    }
    let api = server.api();
    for id in &jobs {
        let job = api.wait_job(id, SOON).await?;
        assert_eq!(job["status"], "completed", "{job}");
    }
    assert_eq!(api.operations_used().await?, JOBS as u64);
    Ok(())
}
