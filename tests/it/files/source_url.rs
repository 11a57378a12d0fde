//! `sourceUrl`: files that the service fetches, from servers as they should be and as they should not.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::download;
use crate::support::{
    Failure, eventually,
    images::svg,
    json::each,
    receiver::{Behaviour, Receiver, Reply},
    server::{API_KEY, Api, Form, Server, Settings},
};

const SOON: Duration = Duration::from_secs(20);

async fn png(api: &Api) -> Result<Vec<u8>, Failure> {
    let image = svg("teal");
    let (_, converted) = api.convert("a.svg", &image, &[("format", "png")]).await?;
    Ok(converted.to_vec())
}

fn from(url: &str) -> Form {
    Form::new().field("sourceUrl", url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetched_file_is_stored_and_converted_as_one_that_was_sent() -> Result<(), Failure> {
    let server = Settings::new().reaching_this_machine().start().await?;
    let api = server.api();
    let image = png(&api).await?;
    let source = Receiver::start(Behaviour::with_body(200, image.clone())).await?;
    let url = source.url("/holiday/beach?signature=secret");

    let stored = api.post_form("/api/files", from(&url)).await?;
    let file = stored.expect(201)?.json()?["file"].clone();
    assert_eq!(
        (&file["filename"], &file["mime_type"], &file["role"]),
        (&json!("beach.png"), &json!("image/png"), &json!("uploaded"))
    );
    assert_eq!(download(&api, &file).await?, image);
    let asked = source.requests();
    assert_eq!(asked[0].header("accept-encoding"), "identity");
    for header in ["authorization", "cookie", "referer"] {
        assert_eq!(asked[0].header(header), "", "{header}");
    }
    let (_, feed) = api.call(Method::GET, "/api/events", None).await?;
    let event = feed["events"].as_array().and_then(|events| events.last());
    let event = event.ok_or_else(|| format!("no events: {feed}"))?;
    assert_eq!(
        (
            &event["type"],
            &event["data"]["fileId"],
            &event["data"]["role"]
        ),
        (&json!("file.uploaded"), &file["id"], &json!("uploaded"))
    );

    let body = json!({"source_url": url});
    let (status, named) = api.call(Method::POST, "/api/files", Some(&body)).await?;
    assert_eq!(status, StatusCode::CREATED, "{named}");
    assert_eq!(named["file"]["size_bytes"], file["size_bytes"]);

    for (path, fields, expected) in [
        ("/api/convert", &[("format", "jpg")][..], "beach.jpg"),
        ("/api/compress", &[], "beach.png"),
        ("/api/media/thumbnail", &[("format", "webp")], "beach.webp"),
    ] {
        let (record, bytes) = api.result_of(path, from(&url).fields(fields)).await?;
        assert_eq!(record["filename"], expected, "{path}");
        assert!(!bytes.is_empty(), "{path}");
    }
    server.nothing_temporary_is_left(SOON).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_come_first_and_addresses_in_their_order() -> Result<(), Failure> {
    let server = Settings::new().reaching_this_machine().start().await?;
    let api = server.api();
    let source = Receiver::start(Behaviour::script(|request| {
        let name = request.path.trim_start_matches('/').to_owned();
        Behaviour::Reply(Reply {
            status: 200,
            headers: vec![(
                "Content-Disposition".to_owned(),
                format!("attachment; filename=\"../{name}.svg\""),
            )],
            body: svg("red"),
        })
    }))
    .await?;
    let form = Form::new()
        .field("sourceUrl", &source.url("/two"))
        .field("source_urls", &json!([source.url("/three")]).to_string())
        .field("sourceUrl", &source.url("/four"))
        .file("files", "one.svg", &svg("blue"))
        .field("formats", r#"["png", "jpg", "webp", "png"]"#);
    let answer = api.post_form("/api/convert", form).await?.expect(200)?;
    let answer = answer.json()?;
    let names = each(&answer["files"], "filename")?;
    assert_eq!(names, ["one.png", "two.jpg", "three.webp", "four.png"]);

    let body = json!({"format": "png", "sourceUrls": [source.url("/a"), source.url("/b")]});
    let (status, job) = api.call(Method::POST, "/api/jobs", Some(&body)).await?;
    assert_eq!(
        (status, &job["totalFiles"]),
        (StatusCode::ACCEPTED, &json!(2))
    );
    let id = job["jobId"].as_str().ok_or("no jobId")?;
    let job = api.wait_job(id, SOON).await?;
    assert_eq!(job["status"], "completed", "{job}");
    Ok(())
}

/// Private addresses are not dialled in any spelling.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn this_machine_is_refused_unless_it_is_allowed() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let source = Receiver::start(Behaviour::with_body(200, svg("red"))).await?;
    let port = source.address().port();
    for host in [
        "127.0.0.1",
        "localhost",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
    ] {
        let form = from(&format!("http://{host}:{port}/a.svg?key=secret"));
        let answer = api
            .post_form("/api/convert", form.field("format", "png"))
            .await?;
        let error = answer.expect(400)?.json()?["error"].clone();
        let error = error.as_str().unwrap_or_default();
        assert!(error.contains("outbound.allow = [\""), "{host}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    assert_eq!(source.connections(), 0);
    assert_eq!(api.operations_used().await?, 0);
    server.nothing_temporary_is_left(SOON).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_redirect_is_checked_and_they_are_few() -> Result<(), Failure> {
    let server = Settings::new().reaching_this_machine().start().await?;
    let api = server.api();
    let source = Receiver::start(Behaviour::script(|request| {
        match request.path.trim_start_matches('/').parse::<u32>() {
            Ok(0) => Behaviour::with_body(200, svg("red")),
            Ok(more) => Behaviour::redirect(&format!("/{}", more - 1)),
            Err(_) => Behaviour::redirect(request.path.split_once("?to=").unwrap_or_default().1),
        }
    }))
    .await?;
    let three = api.post_form("/api/files", from(&source.url("/3"))).await?;
    assert_eq!(three.expect(201)?.json()?["file"]["filename"], "0.svg");
    let four = api.post_form("/api/files", from(&source.url("/4"))).await?;
    let four = four.expect(422)?.json()?;
    assert_eq!(four["code"], "source_failed");
    assert!(four["error"].to_string().contains("redirect"), "{four}");

    let port = source.address().port();
    for (target, says) in [
        (
            "http://169.254.169.254/latest/meta-data/".to_owned(),
            "169.254.169.254",
        ),
        ("http://0xa9fea9fe/latest".to_owned(), "169.254.169.254"),
        (format!("http://[::1]:{port}/0"), "loopback"),
        (format!("http://[0:0:0:0:0:0:0:1]:{port}/0"), "loopback"),
        (format!("//[0::1]:{port}/0"), "loopback"),
        ("http://10.0.0.1/".to_owned(), "private"),
        ("http://[64:ff9b::10.0.0.1]/".to_owned(), "10.0.0.1"),
    ] {
        let form = from(&source.url(&format!("/?to={target}")));
        let refused = api
            .post_form("/api/files", form)
            .await?
            .expect(400)?
            .json()?;
        let error = refused["error"].as_str().unwrap_or_default();
        assert!(error.contains(says), "{target}: {error}");
        assert!(error.contains("outbound.allow"), "{target}: {error}");
    }
    let form = from(&source.url("/?to=file:///etc/passwd"));
    api.post_form("/api/files", form).await?.expect(422)?;
    server.nothing_temporary_is_left(SOON).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_other_side_does_wrong_is_reported_and_free() -> Result<(), Failure> {
    let server = Settings::new()
        .reaching_this_machine()
        .env("SLUICE_PLANS__UNLIMITED__IMAGE_UPLOAD", "100 KB")
        .env("SLUICE_OUTBOUND__FETCH_IDLE_TIMEOUT", "2s")
        .env("SLUICE_OUTBOUND__FETCH_TIMEOUT", "3s")
        .env("SLUICE_OUTBOUND__CONNECT_TIMEOUT", "1s")
        .env("SLUICE_OUTBOUND__RESOLVE_TIMEOUT", "1s")
        .start()
        .await?;
    let api = server.api();
    let mut source = Receiver::start(Behaviour::Hang).await?;
    let page = b"<!doctype html><title>Sign in</title>".to_vec();
    let often = Duration::from_millis(100);
    let cases = [
        (Behaviour::status(404), 422, "404"),
        (Behaviour::with_body(500, "no"), 422, "500"),
        (Behaviour::with_body(206, svg("red")), 422, "206"),
        (Behaviour::GzipBomb(200), 422, "gzip"),
        (Behaviour::EndlessBody(200), 413, "image_upload"),
        (
            Behaviour::with_body(200, vec![b'x'; 200_000]),
            413,
            "image_upload",
        ),
        (Behaviour::with_body(200, page), 415, "no type"),
        (Behaviour::with_body(200, ""), 415, "empty"),
        (Behaviour::CutShort(200), 422, "200"),
        (Behaviour::HugeHead(200), 422, "head"),
        (Behaviour::Garbage, 422, "HTTP"),
        (Behaviour::Reset, 422, "closed"),
        (Behaviour::Hang, 422, "longer than"),
        (Behaviour::DripHead(often), 422, "longer than"),
        (Behaviour::DripBody(200, often), 422, "longer than"),
    ];
    for (behaviour, status, says) in cases {
        let case = format!("{behaviour:?}");
        source.behave(behaviour);
        let form = from(&source.url("/photo.png?token=secret")).field("format", "jpg");
        let answer = api.post_form("/api/convert", form).await?;
        let body = answer.json()?;
        assert_eq!(answer.status, status, "{case}: {body}");
        let error = body["error"].as_str().unwrap_or_default();
        assert!(error.contains(says), "{case}: {error}");
        assert!(!error.contains("secret"), "{case}: {error}");
        if status == 422 {
            assert_eq!(body["code"], "source_failed", "{case}");
        }
    }
    source.go_down().await;
    for url in [source.url("/"), "http://nowhere.invalid/a.png".to_owned()] {
        let form = from(&url).field("format", "jpg");
        let refused = api.post_form("/api/convert", form).await?.expect(422)?;
        assert_eq!(refused.json()?["code"], "source_failed", "{url}");
    }
    assert_eq!(api.operations_used().await?, 0);
    server.nothing_temporary_is_left(SOON).await
}

/// A missing one of several files refuses the request: nothing of the others is kept or charged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_one_of_several_is_named() -> Result<(), Failure> {
    let server = Settings::new().reaching_this_machine().start().await?;
    let api = server.api();
    let source = Receiver::start(Behaviour::script(|request| match request.path.as_str() {
        "/gone" => Behaviour::status(410),
        _ => Behaviour::with_body(200, svg("red")),
    }))
    .await?;
    let form = from(&source.url("/here"))
        .field("sourceUrl", &source.url("/gone"))
        .field("format", "png");
    let refused = api
        .post_form("/api/jobs", form)
        .await?
        .expect(422)?
        .json()?;
    let error = refused["error"].as_str().unwrap_or_default();
    assert!(
        error.starts_with("sourceUrl 2 of 2: ") && error.contains("410"),
        "{error}"
    );
    let (_, jobs) = api.call(Method::GET, "/api/jobs", None).await?;
    assert_eq!(jobs["jobs"], json!([]));
    assert_eq!(api.operations_used().await?, 0);
    server.nothing_temporary_is_left(SOON).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_key_looks_at_the_bytes_that_were_fetched() -> Result<(), Failure> {
    let server = Settings::new().reaching_this_machine().start().await?;
    let source = Receiver::start(Behaviour::with_body(200, svg("red"))).await?;
    let client = crate::support::http::client();
    let ask = async || {
        let body = json!({"format": "png", "sourceUrls": [source.url("/a.svg")]});
        let asked = client
            .post(format!("{}/api/jobs", server.base_url()))
            .bearer_auth(API_KEY)
            .header("Idempotency-Key", "once")
            .json(&body);
        let answer = asked.send().await?;
        Ok::<_, Failure>((answer.status().as_u16(), answer.json::<Value>().await?))
    };
    let (first, again) = (ask().await?, ask().await?);
    assert_eq!((first.0, again.0), (202, 202));
    assert_eq!(first.1["jobId"], again.1["jobId"]);
    source.behave(Behaviour::with_body(200, svg("blue")));
    let other = ask().await?;
    assert_eq!(other.0, 409, "{}", other.1);
    assert_eq!(server.api().operations_used().await?, 1);
    Ok(())
}

/// A request of JSON for one address, on a connection of its own.
async fn ask(server: &Server, url: &str) -> Result<TcpStream, Failure> {
    let body = json!({"sourceUrl": url}).to_string();
    let head = format!(
        "POST /api/files HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {API_KEY}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        server.addresses().http,
        body.len()
    );
    let mut connection = TcpStream::connect(server.addresses().http).await?;
    connection.write_all((head + &body).as_bytes()).await?;
    Ok(connection)
}

async fn answer(mut connection: TcpStream) -> Result<String, Failure> {
    let mut head = vec![0; 1024];
    let length = connection.read(&mut head).await?;
    Ok(String::from_utf8_lossy(&head[..length]).to_lowercase())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fetches_are_bounded_and_end_with_their_client_and_the_service() -> Result<(), Failure> {
    let mut server = Settings::new()
        .reaching_this_machine()
        .env("SLUICE_OUTBOUND__MAX_FETCHES", "1")
        .env("SLUICE_OUTBOUND__FETCH_IDLE_TIMEOUT", "1s")
        .start()
        .await?;
    let source = Receiver::start(Behaviour::DripBody(200, Duration::from_millis(50))).await?;
    let url = source.url("/endless");
    let spooled = async |server: &Server| {
        eventually("a spool is there", SOON, async || {
            (server.temporary_files().ok()? == 1).then_some(())
        })
        .await
    };
    let first = ask(&server, &url).await?;
    spooled(&server).await?;
    let refused = answer(ask(&server, &url).await?).await?;
    assert!(
        refused.starts_with("http/1.1 503 ") && refused.contains("\nretry-after: "),
        "{refused}"
    );
    assert_eq!(source.count(), 1);

    first.set_zero_linger()?;
    drop(first);
    server.nothing_temporary_is_left(SOON).await?;
    let third = ask(&server, &url).await?;
    spooled(&server).await?;
    let status = server.terminate().await?;
    assert!(status.success(), "{status}");
    let stopped = answer(third).await?;
    assert!(stopped.starts_with("http/1.1 503 "), "{stopped}");
    assert_eq!(server.temporary_files()?, 0);
    Ok(())
}
