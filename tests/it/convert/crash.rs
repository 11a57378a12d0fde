//! kill -9 in mid-batch: nothing acknowledged is lost, nothing is charged or made twice, nothing half is left.

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
async fn a_killed_batch_goes_on_where_it_was() -> Result<(), Failure> {
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
    // Two spools at most are at work right after the start; what the killed process had spooled is gone.
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
