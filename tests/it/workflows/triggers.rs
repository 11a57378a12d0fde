//! Folders that run workflows: by every way in which a file is uploaded, once, and never in a circle.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    ENDED, Workflow, chain, create, entry, node, nodes, output, run, runs, set_active, wait_ended,
};
use crate::{
    support::{
        Failure, eventually, http,
        images::svg,
        json::text,
        server::{Api, Form, Server, Settings},
    },
    tus::Upload,
};

async fn folder(api: &Api, name: &str, parent: Option<&str>) -> Result<String, Failure> {
    let body = json!({"name": name, "parentId": parent});
    let path = "/api/folders";
    let made = api.expect(StatusCode::CREATED, Method::POST, path, Some(&body));
    text(&made.await?["folder"]["id"])
}

async fn upload_into(api: &Api, folder: &str, name: &str, bytes: &[u8]) -> Result<String, Failure> {
    let form = Form::new()
        .file("file", name, bytes)
        .field("folderId", folder);
    let stored = api.post_form("/api/files", form).await?.expect(201)?;
    text(&stored.json()?["file"]["id"])
}

/// To PNG, into `to`, for every file that comes into `from`.
fn bound(from: &str, to: Option<&str>) -> Value {
    let mut definition = chain(vec![
        node("png", "convert", json!({"format": "png"})),
        node("keep", "storage", json!({"folderId": to})),
    ]);
    definition["trigger"] = json!({"folderId": from});
    definition
}

/// Waits until so many runs have ended, and fails when there are more.
async fn wait_runs(api: &Api, workflow: &Workflow, count: usize) -> Result<Vec<Value>, Failure> {
    let what = format!("{count} runs of {} have ended", workflow.record["name"]);
    let found = eventually(&what, ENDED, async || {
        let runs = runs(api, workflow).await.ok()?;
        (runs.len() >= count && runs.iter().all(super::has_ended)).then_some(runs)
    });
    let found = found.await?;
    assert_eq!(found.len(), count, "{found:?}");
    Ok(found)
}

async fn files_in(api: &Api, folder: &str) -> Result<Vec<String>, Failure> {
    let list = super::get(api, &format!("/api/files?folderId={folder}")).await?;
    let names = crate::support::json::each(&list["files"], "filename")?;
    names.iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_of_uploading_runs_the_folders_workflow_once() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let (inbox, done) = (
        folder(&api, "inbox", None).await?,
        folder(&api, "done", None).await?,
    );
    let below = folder(&api, "below", Some(&inbox)).await?;
    let workflow = create(&api, "inbox", &bound(&inbox, Some(&done))).await?;

    // Files elsewhere start nothing; those below prove it.
    upload_into(&api, &below, "below.svg", &svg("red")).await?;
    api.upload("top.svg", &svg("red")).await?;

    let source = upload_into(&api, &inbox, "form.svg", &svg("red")).await?;
    let [first] = &wait_runs(&api, &workflow, 1).await?[..] else {
        return Err("not one run".into());
    };
    assert_eq!(
        (&first["status"], &first["trigger"], &first["inputFilename"]),
        (&json!("completed"), &json!("folder"), &json!("form.svg")),
        "{first}"
    );
    assert_eq!(nodes(first, "completed"), ["upload", "png", "keep"]);
    let stored = text(&output(first)?["storedFileId"])?;
    assert_eq!(entry(first, "keep")?["storedFileId"], json!(stored));
    assert_ne!(stored, source);

    let new = json!({
        "filename": "signed.svg", "sizeBytes": svg("blue").len(), "contentType": "image/svg+xml", "folderId": inbox,
    });
    let (_, made) = api.call(Method::POST, "/api/uploads", Some(&new)).await?;
    let put = http::client()
        .put(text(&made["upload"]["signedUrl"])?)
        .body(svg("blue"));
    assert_eq!(put.send().await?.status(), StatusCode::OK);
    // Said twice, it is the same file and starts nothing.
    for _ in 0..2 {
        let complete = &made["complete"]["body"];
        let path = "/api/uploads/complete";
        let completed = api.expect(StatusCode::OK, Method::POST, path, Some(complete));
        completed.await?;
    }
    wait_runs(&api, &workflow, 2).await?;

    let named = [("filename", "train.svg"), ("folderId", &inbox)];
    let train = Upload::make(&api, svg("white").len(), &named).await?;
    train.send(0, svg("white")).await?;
    wait_runs(&api, &workflow, 3).await?;

    // The result of a conversion is no upload.
    let converted = Form::new()
        .file("file", "converted.svg", &svg("green"))
        .fields(&[
            ("format", "png"),
            ("saveToStorage", "true"),
            ("folderId", &inbox),
        ]);
    api.post_form("/api/convert", converted)
        .await?
        .expect(200)?;
    upload_into(&api, &inbox, "last.svg", &svg("black")).await?;
    wait_runs(&api, &workflow, 4).await?;
    let mut names = files_in(&api, &done).await?;
    names.sort();
    assert_eq!(names, ["form.png", "last.png", "signed.png", "train.png"]);
    assert_eq!(api.operations_used().await?, 4 + 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_workflow_stores_runs_no_workflow() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let (here, there) = (
        folder(&api, "here", None).await?,
        folder(&api, "there", None).await?,
    );
    let own = create(&api, "into its own", &bound(&here, Some(&here))).await?;
    let to_and = create(&api, "to and", &bound(&there, Some(&here))).await?;
    let fro = create(&api, "fro", &bound(&here, Some(&there))).await?;

    // The second upload's runs end after any that the first upload's may have started wrongly.
    for (uploads, name) in [(1, "a.svg"), (2, "b.svg")] {
        upload_into(&api, &here, name, &svg("red")).await?;
        wait_runs(&api, &own, uploads).await?;
        wait_runs(&api, &fro, uploads).await?;
    }
    upload_into(&api, &there, "c.svg", &svg("red")).await?;
    wait_runs(&api, &to_and, 1).await?;
    for (workflow, count) in [(&own, 2), (&to_and, 1), (&fro, 2)] {
        wait_runs(&api, workflow, count).await?;
    }
    assert_eq!(api.operations_used().await?, 5);
    Ok(())
}

/// With a generation more, what an uploaded file's run stores begins one more run, and a circle ends after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_circle_ends_at_the_last_generation() -> Result<(), Failure> {
    let settings = Settings::new().env("SLUICE_WORKFLOWS__MAX_GENERATION", "1");
    let server = settings.start().await?;
    let api = server.api();
    let (here, there) = (
        folder(&api, "here", None).await?,
        folder(&api, "there", None).await?,
    );
    let to = create(&api, "to", &bound(&here, Some(&there))).await?;
    let fro = create(&api, "fro", &bound(&there, Some(&here))).await?;

    upload_into(&api, &here, "a.svg", &svg("red")).await?;
    wait_runs(&api, &to, 1).await?;
    wait_runs(&api, &fro, 1).await?;
    upload_into(&api, &here, "b.svg", &svg("red")).await?;
    wait_runs(&api, &fro, 2).await?;
    wait_runs(&api, &to, 2).await?;
    assert_eq!(files_in(&api, &here).await?.len(), 4);
    assert_eq!(files_in(&api, &there).await?.len(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_workflow_is_not_triggered() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let inbox = folder(&api, "inbox", None).await?;
    let workflow = create(&api, "inbox", &bound(&inbox, None)).await?;
    set_active(&api, &workflow, false).await?;
    upload_into(&api, &inbox, "unseen.svg", &svg("red")).await?;
    set_active(&api, &workflow, true).await?;
    upload_into(&api, &inbox, "seen.svg", &svg("red")).await?;
    let runs = wait_runs(&api, &workflow, 1).await?;
    assert_eq!(runs[0]["inputFilename"], "seen.svg");
    Ok(())
}

/// An upload is stored although the month is used up; the run says why it did not begin.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_succeeds_though_its_run_cannot_be_paid() -> Result<(), Failure> {
    let settings = Settings::new().env("SLUICE_PLANS__UNLIMITED__OPERATIONS_PER_MONTH", "1");
    let server = settings.start().await?;
    let api = server.api();
    let inbox = folder(&api, "inbox", None).await?;
    let workflow = create(&api, "inbox", &bound(&inbox, None)).await?;
    upload_into(&api, &inbox, "first.svg", &svg("red")).await?;
    wait_runs(&api, &workflow, 1).await?;
    upload_into(&api, &inbox, "second.svg", &svg("red")).await?;
    let runs = wait_runs(&api, &workflow, 2).await?;
    let refused = &runs[0];
    assert_eq!(
        (&refused["status"], &refused["inputFilename"]),
        (&json!("failed"), &json!("second.svg")),
        "{refused}"
    );
    assert!(text(&refused["error"])?.contains("month"), "{refused}");
    assert_eq!(api.operations_used().await?, 1);
    let names = files_in(&api, &inbox).await?;
    assert_eq!(names, ["second.svg", "first.svg"]);
    Ok(())
}

/// By hand, for a file that is stored already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_file_is_run_by_its_id() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let inbox = folder(&api, "inbox", None).await?;
    let workflow = create(
        &api,
        "by hand",
        &chain(vec![node("png", "convert", json!({"format": "png"}))]),
    )
    .await?;
    let stored = upload_into(&api, &inbox, "stored.svg", &svg("red")).await?;
    let path = format!("/api/workflows/{}/run-file", workflow.id);
    for (body, status) in [
        (json!({}), StatusCode::BAD_REQUEST),
        (json!({"fileId": "x"}), StatusCode::BAD_REQUEST),
        (json!({"fileId": workflow.id}), StatusCode::NOT_FOUND),
    ] {
        let (answered, says) = api.call(Method::POST, &path, Some(&body)).await?;
        assert_eq!(answered, status, "{body}: {says}");
    }
    let body = json!({"fileId": stored});
    let (status, answer) = api.call(Method::POST, &path, Some(&body)).await?;
    assert!(
        status == StatusCode::OK || status == StatusCode::ACCEPTED,
        "{answer}"
    );
    let ended = wait_ended(&api, &text(&answer["runId"])?).await?;
    assert_eq!(
        (&ended["status"], &ended["trigger"], &ended["inputFilename"]),
        (&json!("completed"), &json!("file"), &json!("stored.svg"))
    );
    // The file may go; the run has what it needs.
    let path = format!("/api/files/{stored}");
    api.expect(StatusCode::OK, Method::DELETE, &path, None)
        .await?;
    let again = run(&api, &text(&ended["id"])?).await?;
    super::download(&api, &output(&again)?).await?;
    Ok(())
}
