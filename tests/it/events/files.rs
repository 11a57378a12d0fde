//! `file.uploaded`, for each way in which a file is stored.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{CONVERTED, all_events, svg, text, types};
use crate::support::{
    Failure,
    http::client,
    server::{Form, Server},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_stored_file_is_reported_once() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let folder = json!({"name": "in here"});
    let (status, made) = api
        .call(Method::POST, "/api/folders", Some(&folder))
        .await?;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let folder_id = text(&made["folder"]["id"])?;
    let form = Form::new()
        .file("file", "größe.svg", &svg("red"))
        .field("folderId", &folder_id);
    let stored = api.post_form("/api/files", form).await?.expect(201)?;
    let stored = stored.json()?["file"].clone();

    let new = json!({"filename": "direct.bin", "sizeBytes": 5});
    let (_, made) = api.call(Method::POST, "/api/uploads", Some(&new)).await?;
    let url = text(&made["upload"]["signedUrl"])?;
    let put = client().put(url).body("bytes").send().await?;
    assert_eq!(put.status(), StatusCode::OK);
    assert_eq!(
        types(&all_events(&api).await?),
        ["file.uploaded"],
        "no file yet"
    );
    let mut direct = Value::Null;
    for idempotent in [false, true] {
        let body = &made["complete"]["body"];
        let (_, completed) = api
            .call(Method::POST, "/api/uploads/complete", Some(body))
            .await?;
        assert_eq!(completed["idempotent"], idempotent, "{completed}");
        direct = completed["file"].clone();
    }

    let job = json!({"fileIds": [stored["id"]], "format": "png", "saveToStorage": true});
    let (status, accepted) = api.call(Method::POST, "/api/jobs", Some(&job)).await?;
    assert_eq!(status, StatusCode::ACCEPTED, "{accepted}");
    let job = api.wait_job(&text(&accepted["jobId"])?, CONVERTED).await?;
    let converted = &job["results"][0];

    let events = all_events(&api).await?;
    let files: Vec<&Value> = events
        .iter()
        .filter(|(kind, _)| kind == "file.uploaded")
        .map(|(_, data)| data)
        .collect();
    let expected = [
        json!({
            "fileId": stored["id"], "filename": "größe.svg", "mimeType": "image/svg+xml",
            "sizeBytes": svg("red").len(), "folderId": folder_id, "role": "uploaded", "sequence": 1,
        }),
        json!({
            "fileId": direct["id"], "filename": "direct.bin", "mimeType": direct["mime_type"],
            "sizeBytes": 5, "folderId": null, "role": "uploaded", "sequence": 1,
        }),
        json!({
            "fileId": converted["storedFileId"], "filename": "größe.png", "mimeType": "image/png",
            "sizeBytes": converted["finalSize"], "folderId": null, "role": "converted", "sequence": 1,
        }),
    ];
    assert_eq!(files, expected.iter().collect::<Vec<_>>());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_is_refused_is_not_reported() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let unknown = "00000000-0000-4000-8000-000000000000";
    let form = Form::new()
        .file("file", "a.svg", &svg("red"))
        .field("folderId", unknown);
    api.post_form("/api/files", form).await?.expect(404)?;
    let empty = Form::new().field("folderId", "null");
    api.post_form("/api/files", empty).await?.expect(400)?;
    assert_eq!(all_events(&api).await?, []);
    Ok(())
}
