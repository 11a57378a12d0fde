//! Rejected conversions, which cost nothing.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::svg;
use crate::support::{
    Failure,
    server::{Form, Settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_requests_are_typed_and_free() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_PLANS__UNLIMITED__FILES_PER_BATCH", "2")
        .env("SLUICE_PLANS__UNLIMITED__IMAGE_UPLOAD", "100 KB")
        .start()
        .await?;
    let api = server.api();
    let image = || Form::new().file("file", "a.svg", &svg("red"));
    let named = |bytes: &[u8]| {
        Form::new()
            .file("file", "a.png", bytes)
            .field("format", "jpg")
    };
    let three = image()
        .file("files", "b.svg", &svg("red"))
        .file("files", "c.svg", &svg("red"));
    let cases = [
        (
            "no file",
            "/api/convert",
            Form::new().field("format", "png"),
            400,
            "file is missing",
        ),
        ("no format", "/api/convert", image(), 400, "format"),
        (
            "no such format",
            "/api/convert",
            image().field("format", "exe"),
            400,
            "format",
        ),
        (
            "quality",
            "/api/convert",
            image().fields(&[("format", "jpg"), ("compression", "101")]),
            400,
            "compression",
        ),
        (
            "a flag",
            "/api/convert",
            image().fields(&[("format", "jpg"), ("saveToStorage", "yes")]),
            400,
            "saveToStorage",
        ),
        (
            "a folder",
            "/api/convert",
            image().fields(&[("format", "jpg"), ("folderId", "x")]),
            400,
            "folderId",
        ),
        (
            "list length",
            "/api/convert",
            image().field("formats", r#"["png","jpg"]"#),
            400,
            "formats",
        ),
        (
            "a refused address",
            "/api/convert",
            Form::new().fields(&[("format", "png"), ("sourceUrl", "http://127.0.0.1/")]),
            400,
            "outbound.allow",
        ),
        (
            "three of two",
            "/api/convert",
            three.field("format", "png"),
            400,
            "at most 2 files",
        ),
        ("text", "/api/convert", named(b"hello"), 415, "no type"),
        (
            "a playlist",
            "/api/convert",
            named(b"#EXTM3U\nfile:///etc/passwd"),
            415,
            "no type",
        ),
        ("nothing", "/api/convert", named(b""), 415, "empty"),
        (
            "too large",
            "/api/convert",
            named(&vec![0; 100_001]),
            413,
            "image_upload",
        ),
        (
            "broken",
            "/api/convert",
            named(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDRnothing"),
            415,
            "",
        ),
        (
            "compress an SVG",
            "/api/compress",
            image(),
            415,
            "compress takes",
        ),
        (
            "no such tool",
            "/api/media/defrost",
            image(),
            404,
            "thumbnail",
        ),
        ("no sides", "/api/media/resize", image(), 400, "resizeWidth"),
        (
            "job type",
            "/api/jobs",
            image().fields(&[("format", "png"), ("jobType", "x")]),
            400,
            "jobType",
        ),
    ];
    for (case, path, form, status, says) in cases {
        let answer = api.post_form(path, form).await?;
        let body = answer.json()?;
        assert_eq!(answer.status, status, "{case}: {body}");
        let error = body["error"].as_str().unwrap_or_default();
        assert!(!error.is_empty() && error.contains(says), "{case}: {body}");
    }
    assert_eq!(api.operations_used().await?, 0);
    let (_, jobs) = api
        .call(Method::GET, "/api/jobs?status=completed", None)
        .await?;
    assert_eq!(jobs["jobs"], json!([]));
    for (method, path) in [
        (
            Method::GET,
            "/api/jobs/00000000-0000-4000-8000-000000000000",
        ),
        (
            Method::DELETE,
            "/api/jobs/00000000-0000-4000-8000-000000000000",
        ),
        (
            Method::GET,
            "/api/jobs/00000000-0000-4000-8000-000000000000/events",
        ),
        (Method::GET, "/api/jobs/7"),
    ] {
        let (status, _) = api.call(method, path, None).await?;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    let (status, _) = api.call(Method::GET, "/api/jobs?status=lost", None).await?;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cap_of_the_plan_is_never_exceeded() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_PLANS__UNLIMITED__OPERATIONS_PER_MONTH", "3")
        .start()
        .await?;
    let api = server.api();
    let form = |files: usize| {
        let add = |form: Form, _| form.file("files", "a.svg", &svg("red"));
        (0..files).fold(Form::new().field("format", "png"), add)
    };
    api.post_form("/api/convert", form(2)).await?.expect(200)?;
    let refused = api
        .post_form("/api/convert", form(2))
        .await?
        .expect(402)?
        .json()?;
    assert_eq!(refused["code"], "operations_used_up");
    assert!(refused["upgradeUrl"].is_string(), "{refused}");
    let broken = Form::new()
        .file("file", "a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDRnothing")
        .field("format", "jpg");
    api.post_form("/api/convert", broken).await?.expect(415)?;
    assert_eq!(
        api.operations_used().await?,
        2,
        "a failed file is given back"
    );
    api.post_form("/api/convert", form(1)).await?.expect(200)?;
    api.post_form("/api/convert", form(1)).await?.expect(402)?;
    let (_, usage) = api.call(Method::GET, "/api/usage", None).await?;
    assert_eq!(
        (
            &usage["operations"]["used"],
            &usage["operations"]["remaining"],
            &usage["plan"]
        ),
        (&json!(3), &json!(0), &json!("unlimited"))
    );
    Ok(())
}
