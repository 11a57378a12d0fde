//! `media.tool.*`: one event for each request that completes, fails, or is rejected.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{BROKEN_PNG, CONVERTED, all_events, svg, text, types};
use crate::support::{
    Failure,
    database_lock::DatabaseLock,
    server::{Api, Form, Server, Settings},
    skip,
};

/// The tools' events so far.
async fn tools(api: &Api) -> Result<Vec<Value>, Failure> {
    let mut events = all_events(api).await?;
    events.retain(|(kind, _)| kind.starts_with("media.tool."));
    Ok(events
        .into_iter()
        .map(|(kind, mut data)| {
            data["type"] = json!(kind);
            data
        })
        .collect())
}

fn thumbnail(name: &str, bytes: &[u8], fields: &[(&str, &str)]) -> Form {
    Form::new().file("file", name, bytes).fields(fields)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_ran_is_reported_once() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let form = thumbnail("a.svg", &svg("red"), &[("format", "png")]);
    let done = api.post_form("/api/media/thumbnail", form).await?;
    let done = done.expect(200)?.json()?;
    let file_id = api.upload_id("b.svg", &svg("blue")).await?;
    let on_file = json!({"tool": "thumbnail", "params": {"width": 20}});
    let path = format!("/api/files/{file_id}/tools");
    let (status, on_file) = api.call(Method::POST, &path, Some(&on_file)).await?;
    assert_eq!(status, StatusCode::OK, "{on_file}");
    let form = thumbnail("bad.png", BROKEN_PNG, &[]);
    api.post_form("/api/media/thumbnail", form)
        .await?
        .expect(415)?;

    let tools = tools(&api).await?;
    let [upload, stored, failed] = &tools[..] else {
        panic!("{tools:?}");
    };
    for (event, answer, name) in [(upload, &done, "a.svg"), (stored, &on_file, "b.svg")] {
        let result = &answer["files"][0];
        assert_eq!(
            *event,
            json!({
                "type": "media.tool.completed", "tool": "thumbnail", "jobId": answer["jobId"], "filename": name,
                "files": [{
                    "filename": result["filename"], "mimeType": result["mimeType"], "sizeBytes": result["finalSize"],
                    "width": result["width"], "height": result["height"], "storedFileId": result["storedFileId"],
                }],
                "filesTotal": 1, "sequence": 1,
            })
        );
    }
    assert!(stored["files"][0]["storedFileId"].is_string());
    assert_eq!(
        (&failed["type"], &failed["code"], &failed["errorsTotal"]),
        (
            &json!("media.tool.failed"),
            &json!("undecodable"),
            &json!(1)
        )
    );
    assert!(
        failed["jobId"].is_string(),
        "a job was made of it: {failed}"
    );
    let all = all_events(&api).await?;
    assert!(
        !types(&all)
            .iter()
            .any(|kind| kind.starts_with("conversion."))
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_tool_is_reported_without_a_job() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_PLANS__UNLIMITED__IMAGE_UPLOAD", "100 KB")
        .env("SLUICE_PLANS__UNLIMITED__OPERATIONS_PER_MONTH", "1")
        .start()
        .await?;
    let api = server.api();
    let file_id = api.upload_id("b.svg", &svg("blue")).await?;
    let on_file = format!("/api/files/{file_id}/tools");
    let media = "/api/media/thumbnail";
    let image = |fields: &[(&str, &str)]| thumbnail("a.svg", &svg("red"), fields);
    let forms = [
        (image(&[("width", "0")]), 400, json!(null), json!("a.svg")),
        (
            Form::new().field("width", "9"),
            400,
            json!(null),
            json!(null),
        ),
        (
            thumbnail("a.txt", b"hello", &[]),
            415,
            json!("unsupported_type"),
            json!("a.txt"),
        ),
        (
            thumbnail("a.png", &vec![0; 100_001], &[]),
            413,
            json!("too_large"),
            json!(null),
        ),
        (image(&[]), 200, json!(null), json!("a.svg")),
        (image(&[]), 402, json!("operations_used_up"), json!("a.svg")),
    ];
    let mut expected = Vec::new();
    for (form, status, code, filename) in forms {
        api.post_form(media, form).await?.expect(status)?;
        expected.push((json!("thumbnail"), code, filename));
    }
    for (body, status, tool, filename) in [
        (
            json!({"tool": "thumbnail", "params": {"width": 0}}),
            400,
            json!("thumbnail"),
            json!("b.svg"),
        ),
        (json!({"params": {}}), 400, json!(null), json!(null)),
    ] {
        let (answer, error) = api.call(Method::POST, &on_file, Some(&body)).await?;
        assert_eq!(answer, status, "{error}");
        expected.push((tool, json!(null), filename));
    }
    let unknown = "/api/files/00000000-0000-4000-8000-000000000000/tools";
    let named = json!({"tool": "thumbnail"});
    for (path, body) in [(unknown, &named), (on_file.as_str(), &json!({"tool": "x"}))] {
        let (status, _) = api.call(Method::POST, path, Some(body)).await?;
        assert_eq!(status, StatusCode::NOT_FOUND, "no event is due");
    }
    api.post_form("/api/media/nothing", image(&[]))
        .await?
        .expect(404)?;

    let tools = tools(&api).await?;
    let seen: Vec<_> = tools
        .iter()
        .map(|it| {
            let filename = it["filename"].clone();
            (
                it["tool"].clone(),
                it.get("code").cloned().unwrap_or_default(),
                filename,
            )
        })
        .collect();
    assert_eq!(seen, expected);
    for event in tools.iter().filter(|it| it["type"] == "media.tool.failed") {
        assert_eq!(
            (&event["jobId"], &event["sequence"], &event["files"]),
            (&Value::Null, &json!(1), &json!([]))
        );
        assert!(!text(&event["error"])?.is_empty());
    }
    Ok(())
}

/// An event that cannot be written must not change the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejection_stays_one_while_the_database_is_locked() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_STORE__BUSY_TIMEOUT", "300ms")
        .start()
        .await?;
    let api = server.api();
    let Some(lock) = DatabaseLock::take(&server.data_dir().join("sluice.db")).await? else {
        skip("a refused tool under a locked database", "no python3");
        return Ok(());
    };
    let bad = || thumbnail("a.svg", &svg("red"), &[("width", "0")]);
    api.post_form("/api/media/thumbnail", bad())
        .await?
        .expect(400)?;
    lock.release().await?;
    api.post_form("/api/media/thumbnail", bad())
        .await?
        .expect(400)?;
    assert_eq!(tools(&api).await?.len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_no_one_waits_for_is_reported_at_its_end() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let form = thumbnail("a.svg", &svg("red"), &[("async", "true")]);
    let accepted = api.post_form("/api/media/thumbnail", form).await?;
    let id = text(&accepted.expect(202)?.json()?["jobId"])?;
    api.wait_job(&id, CONVERTED).await?;
    let events = super::events_of(&api, &id).await?;
    assert_eq!(types(&events), ["media.tool.completed"]);
    Ok(())
}
