//! Several files at once, and requests that no one waits for.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{number, svg, text};
use crate::support::{
    Failure, eventually,
    http::client,
    json::each,
    server::{API_KEY, Form, Server},
};

const SOON: Duration = Duration::from_secs(60);

/// The events of a stream that ends, as (name, data).
async fn events(server: &Server, job: &str) -> Result<Vec<(String, Value)>, Failure> {
    let url = format!("{}/api/jobs/{job}/events", server.base_url());
    let answer = client().get(url).bearer_auth(API_KEY).send().await?;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut events = Vec::new();
    for block in answer.text().await?.split("\n\n") {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        if let (Some(name), Some(data)) = (field("event: "), field("data: ")) {
            events.push((name.to_owned(), serde_json::from_str(data)?));
        }
    }
    Ok(events)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_tells_its_progress_and_gives_back_what_failed() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let form = Form::new()
        .file("files", "red.svg", &svg("red"))
        .file(
            "files",
            "broken.png",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDRnothing",
        )
        .file("files", "text.png", b"#EXTM3U\nfile:///etc/passwd\n")
        .file("files", "blue.svg", &svg("blue"))
        .field("format", "webp");
    let id = api.submit(form).await?;
    let events = events(&server, &id).await?;
    let (last, progress) = events.split_last().ok_or("no events")?;
    let mut percent = 0;
    for (name, data) in progress {
        assert_eq!((name.as_str(), &data["jobId"]), ("progress", &json!(id)));
        assert!(number(&data["progress"])? >= percent, "{progress:?}");
        percent = number(&data["progress"])?;
    }
    assert_eq!(percent, 100);
    let (name, record) = last;
    assert_eq!(name, "end");
    assert_eq!(
        (
            &record["status"],
            &record["completedFiles"],
            &record["failedFiles"]
        ),
        (&json!("completed"), &json!(2), &json!(2))
    );
    let names = each(&record["results"], "filename")?;
    assert_eq!(names, ["red.webp", "blue.webp"]);
    let errors: Vec<(&Value, &Value)> = record["errors"]
        .as_array()
        .ok_or("no errors")?
        .iter()
        .map(|error| (&error["filename"], &error["code"]))
        .collect();
    assert_eq!(
        errors,
        [
            (&json!("broken.png"), &json!("undecodable")),
            (&json!("text.png"), &json!("unsupported_type"))
        ]
    );
    assert_eq!(api.operations_used().await?, 2);
    let (status, shown) = api
        .call(Method::GET, &format!("/api/jobs/{id}"), None)
        .await?;
    assert_eq!(
        (status, &shown["status"]),
        (StatusCode::OK, &record["status"])
    );
    let (_, list) = api
        .call(Method::GET, "/api/jobs?status=completed&limit=1", None)
        .await?;
    assert_eq!(list["jobs"][0]["id"], json!(id), "{list}");
    assert_eq!(
        list["pagination"],
        json!({"limit": 1, "offset": 0, "total": 1, "hasMore": false})
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_key_is_one_job() -> Result<(), Failure> {
    let server = Server::start().await?;
    let send = async |key: &str, format: &str| -> Result<(u16, Value), Failure> {
        let form = reqwest::multipart::Form::new()
            .part(
                "file",
                reqwest::multipart::Part::bytes(svg("red")).file_name("red.svg"),
            )
            .text("format", format.to_owned());
        let url = format!("{}/api/jobs", server.base_url());
        let request = client()
            .post(url)
            .bearer_auth(API_KEY)
            .header("Idempotency-Key", key);
        let answer = request.multipart(form).send().await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    };
    let api = server.api();
    let (status, first) = send("order-7", "png").await?;
    assert_eq!(status, 202, "{first}");
    let (status, again) = send("order-7", "png").await?;
    assert_eq!((status, &again["jobId"]), (202, &first["jobId"]), "{again}");
    let (status, other) = send("order-7", "webp").await?;
    assert_eq!(status, 409, "{other}");
    let (status, _) = send(&"k".repeat(256), "png").await?;
    assert_eq!(status, 400);
    api.wait_job(&text(&first["jobId"])?, SOON).await?;
    assert_eq!(api.operations_used().await?, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_job_stops_and_costs_what_it_gave() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let mut form = Form::new()
        .field("format", "avif")
        .field("resizeWidth", "4000");
    for _ in 0..20 {
        form = form.file("files", "large.svg", &svg("red"));
    }
    let id = api.submit(form).await?;
    let path = format!("/api/jobs/{id}");
    eventually("it is being worked on", SOON, async || {
        let (_, job) = api.call(Method::GET, &path, None).await.ok()?;
        (job["status"] == "processing").then_some(())
    })
    .await?;
    let (status, cancelled) = api.call(Method::DELETE, &path, None).await?;
    assert_eq!(
        (status, &cancelled["status"]),
        (StatusCode::OK, &json!("cancelled"))
    );
    let (status, _) = api.call(Method::DELETE, &path, None).await?;
    assert_eq!(status, StatusCode::CONFLICT);
    let (_, after) = api.call(Method::GET, &path, None).await?;
    assert_eq!(
        api.operations_used().await?,
        number(&after["completedFiles"])?
    );
    // The workers are free again: a small image does not wait for nineteen large ones.
    api.convert("small.svg", &svg("blue"), &[("format", "png")])
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archives_go_out_and_come_in() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let form = Form::new()
        .file("files[1]", "same.svg", &svg("blue"))
        .file("files[0]", "same.svg", &svg("red"))
        .field("format", "png")
        .field("createArchive", "true");
    let id = api.submit(form).await?;
    let done = api.wait_job(&id, SOON).await?;
    let archive = api
        .fetch(&text(&done["archive"]["downloadUrl"])?)
        .await?
        .expect(200)?;
    assert_eq!(&archive.bytes[..4], b"PK\x03\x04");
    assert_eq!(done["archive"]["size"], json!(archive.bytes.len()));

    let form = Form::new()
        .file("file", "all.zip", &archive.bytes)
        .field("format", "webp");
    let answer = api
        .post_form("/api/convert", form)
        .await?
        .expect(200)?
        .json()?;
    let names = each(&answer["files"], "filename")?;
    assert_eq!(names, ["same.webp", "same (2).webp"]);
    assert_eq!(api.operations_used().await?, 4);

    let form = Form::new()
        .file("files", "a.svg", &svg("red"))
        .file("files", "notes.txt", b"any bytes")
        .field("format", "zip");
    let (record, packed) = api.result_of("/api/convert", form).await?;
    assert_eq!(record["mimeType"], "application/zip");
    let form = Form::new()
        .file("file", "packed.zip", &packed)
        .field("format", "png");
    let answer = api
        .post_form("/api/convert", form)
        .await?
        .expect(200)?
        .json()?;
    assert_eq!(answer["files"][0]["filename"], "a.png");
    assert_eq!(answer["errors"][0]["filename"], "notes.txt", "{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_become_files_and_stored_files_sources() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let (_, folder) = api
        .call(Method::POST, "/api/folders", Some(&json!({"name": "here"})))
        .await?;
    let folder = text(&folder["folder"]["id"])?;
    let fields = [
        ("format", "png"),
        ("saveToStorage", "true"),
        ("folderId", &folder),
    ];
    let (record, bytes) = api.convert("red.svg", &svg("red"), &fields).await?;
    let stored = text(&record["storedFileId"])?;
    let url = format!("/api/files/{stored}");
    let (_, file) = api
        .call(Method::GET, &format!("/api/files?folderId={folder}"), None)
        .await?;
    let file = &file["files"][0];
    assert_eq!(
        (
            &file["id"],
            &file["role"],
            &file["width"],
            &file["size_bytes"]
        ),
        (
            &json!(stored),
            &json!("converted"),
            &json!(1024),
            &json!(bytes.len())
        )
    );

    let body = json!({"tool": "thumbnail", "params": {"width": 64, "height": 64}});
    let (status, answer) = api
        .call(Method::POST, &format!("{url}/tools"), Some(&body))
        .await?;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let thumbnail = &answer["files"][0];
    assert_eq!(
        (&thumbnail["width"], &thumbnail["filename"]),
        (&json!(64), &json!("red.jpg"))
    );
    let (_, files) = api
        .call(Method::GET, &format!("/api/files?folderId={folder}"), None)
        .await?;
    assert_eq!(
        files["pagination"]["total"], 2,
        "beside its source: {files}"
    );

    let body = json!({"fileIds": [stored], "format": "webp", "jobType": "convert"});
    let (status, answer) = api.call(Method::POST, "/api/jobs", Some(&body)).await?;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let done = api.wait_job(&text(&answer["jobId"])?, SOON).await?;
    assert_eq!(done["results"][0]["filename"], "red.webp", "{done}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_tell_facts_join_files_and_run_without_a_listener() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let form = Form::new().file("file", "red.svg", &svg("red"));
    let answer = api
        .post_form("/api/media/inspect", form.clone())
        .await?
        .expect(200)?
        .json()?;
    let inspected = &answer["files"][0];
    assert_eq!(
        (&inspected["facts"]["width"], &inspected["finalSize"]),
        (&json!(400), &Value::Null)
    );
    // Its facts as a file, without a credential.
    let url = inspected["downloadUrl"].as_str().ok_or("no downloadUrl")?;
    let answer = crate::support::http::client().get(url).send().await?;
    assert_eq!(answer.status(), 200);
    let disposition = answer.headers()["content-disposition"].to_str()?.to_owned();
    assert!(disposition.contains("red.svg.json"), "{disposition}");
    assert_eq!(answer.json::<Value>().await?, inspected["facts"]);

    let (_, png) = api
        .convert("red.svg", &svg("red"), &[("format", "png")])
        .await?;
    let form = Form::new()
        .file("files", "a.png", &png)
        .file("files", "b.png", &png);
    let (record, document) = api.result_of("/api/media/image-to-pdf", form).await?;
    assert_eq!(
        (&record["filename"], &document[..5]),
        (&json!("a.pdf"), &b"%PDF-"[..])
    );
    assert_eq!(record["originalSize"], json!(2 * png.len()));

    let form = Form::new()
        .file("file", "a.png", &png)
        .field("async", "true")
        .field("width", "32")
        .field("height", "32");
    let answer = api
        .post_form("/api/media/thumbnail", form)
        .await?
        .expect(202)?
        .json()?;
    assert_eq!(answer["tool"], "thumbnail", "{answer}");
    let done = api.wait_job(&text(&answer["jobId"])?, SOON).await?;
    assert_eq!(
        (&done["tool"], &done["results"][0]["width"]),
        (&json!("thumbnail"), &json!(32))
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_does_not_lose_its_job() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let form = Form::new()
        .file("files", "large.svg", &svg("red"))
        .file("files", "small.svg", &svg("blue"))
        .field("format", "avif")
        .field("resizeWidth", "3000");
    let leaving = tokio::spawn({
        let api = api.clone();
        async move { api.post_form("/api/convert", form).await.map(drop) }
    });
    let id = eventually("the job is there", SOON, async || {
        let (_, list) = api.call(Method::GET, "/api/jobs", None).await.ok()?;
        text(&list["jobs"][0]["id"]).ok()
    })
    .await?;
    leaving.abort();
    let done = api.wait_job(&id, SOON).await?;
    assert_eq!(
        (&done["status"], &done["completedFiles"]),
        (&json!("completed"), &json!(2))
    );
    Ok(())
}
