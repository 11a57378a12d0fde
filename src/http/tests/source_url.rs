//! `sourceUrl` in forms: requests rejected before a connection is made or a file is kept.

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::{Answer, Site, jobs::form};

const LOOPBACK: &str = "http://127.0.0.1:9/photo.png?token=secret";

impl Site {
    /// A form with so many images and these fields.
    async fn post_fields(&self, path: &str, files: usize, fields: &[(&str, &str)]) -> Answer {
        let key = self.first.api_key.expose();
        self.send_form(key, path, form(files, fields)).await
    }
}

/// Every way in leads to the guard; nothing is charged or stored.
#[actix_web::test]
async fn a_rejected_address_is_named_with_the_setting_that_allows_it() {
    let site = Site::with_slow_workers(|_| {}).await;
    let (png, source) = (("format", "png"), ("sourceUrl", LOOPBACK));
    let mut answers = Vec::new();
    for (path, files, fields) in [
        ("/api/convert", 0, &[png, source][..]),
        ("/api/compress", 0, &[("source_url", LOOPBACK)]),
        ("/api/media/thumbnail", 1, &[source]),
        ("/api/jobs", 1, &[png, source]),
        ("/api/files", 0, &[source]),
    ] {
        answers.push(site.post_fields(path, files, fields).await);
    }
    for (path, body) in [
        (
            "/api/jobs",
            json!({"format": "png", "sourceUrls": [LOOPBACK]}),
        ),
        ("/api/files", json!({"source_url": LOOPBACK})),
    ] {
        answers.push(site.call("POST", path, Some(body)).await);
    }
    for answer in answers {
        let error = answer.error();
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(error.starts_with("sourceUrl: 127.0.0.1 is "), "{error}");
        assert!(
            error.contains("outbound.allow = [\"127.0.0.0/8\"]"),
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
    }
    assert_eq!(site.used().await, 0);
    let files = site.call("GET", "/api/files", None).await.json();
    assert_eq!(files["files"], json!([]));
}

#[actix_web::test]
async fn what_is_no_address_is_rejected() {
    let site = Site::open().await;
    for (address, says) in [
        ("photo.png", "URL"),
        ("file:///etc/passwd", "http"),
        ("ftp://example.com/a.png", "http"),
        ("http://user:pass@example.com/", "user name"),
        ("http://exa mple.com/", "spaces"),
        ("http://[::ffff:127.0.0.1]/", "outbound.allow"),
        ("http://2130706433/", "outbound.allow"),
        ("http://169.254.169.254/latest/meta-data", "outbound.allow"),
    ] {
        let fields = [("sourceUrl", address)];
        let answer = site.post_fields("/api/files", 0, &fields).await;
        assert_eq!(answer.status, 400, "{address}: {answer:?}");
        let error = answer.error();
        assert!(error.contains(says), "{address}: {error}");
        assert!(!error.contains("pass@"), "{error}");
    }
    for body in [
        json!({}),
        json!({"sourceUrl": 7}),
        json!({"sourceUrl": [LOOPBACK]}),
        json!({"sourceUrl": LOOPBACK, "folderId": "x"}),
    ] {
        let answer = site.call("POST", "/api/files", Some(body.clone())).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
    }
}

/// Errors that need no file are answered without a fetch: these would be rejected for their address otherwise.
#[actix_web::test]
async fn a_request_is_judged_before_its_files_are_fetched() {
    let site = Site::with_slow_workers(|config| {
        config.plans.get_mut("unlimited").unwrap().files_per_batch = 2;
    })
    .await;
    let source = ("sourceUrl", LOOPBACK);
    let nowhere = "00000000-0000-4000-8000-000000000000";
    let png = ("format", "png");
    let cases = [
        ("/api/convert", 0, vec![source], 400, "format"),
        (
            "/api/convert",
            1,
            vec![png, source, source],
            400,
            "at most 2 files",
        ),
        (
            "/api/convert",
            1,
            vec![png, ("sourceUrls", "[\"http://a/\",\"http://b/\"]")],
            400,
            "got 3",
        ),
        (
            "/api/convert",
            0,
            vec![png, ("sourceUrls", "http://a/")],
            400,
            "JSON array",
        ),
        (
            "/api/convert",
            0,
            vec![png, ("sourceUrl", " ")],
            400,
            "`sourceUrl`",
        ),
        (
            "/api/convert",
            0,
            vec![png, source, ("folderId", nowhere)],
            404,
            "folder",
        ),
        (
            "/api/files",
            0,
            vec![source, ("folderId", nowhere)],
            404,
            "folder",
        ),
        ("/api/files", 0, vec![source, source], 400, "one file"),
        ("/api/files", 1, vec![source], 400, "one file"),
        ("/api/files", 0, vec![], 400, "`sourceUrl`"),
    ];
    for (path, files, fields, status, says) in cases {
        let answer = site.post_fields(path, files, &fields).await;
        assert_eq!(answer.status, status, "{path} {fields:?}: {answer:?}");
        assert!(
            answer.error().contains(says),
            "{fields:?}: {}",
            answer.error()
        );
    }
    site.nothing_temporary_is_left().await;
}

/// It would be rejected for its address otherwise.
#[actix_web::test]
async fn who_has_no_operations_left_has_nothing_fetched() {
    let site = Site::with_slow_workers(|config| {
        let plan = config.plans.get_mut("unlimited").unwrap();
        plan.operations_per_month = 2;
    })
    .await;
    let fields = [("format", "png"), ("sourceUrl", LOOPBACK)];
    let rejected = site.post_fields("/api/convert", 0, &fields).await;
    assert_eq!(rejected.status, 400, "{rejected:?}");
    site.pending_job().await;
    let rejected = site.post_fields("/api/convert", 0, &fields).await;
    assert_eq!(rejected.status, 402, "{rejected:?}");
}

#[actix_web::test]
async fn without_workers_nothing_is_fetched() {
    let site = Site::open().await;
    let is_known = async || site.app.jobs.conversions.refused().is_some();
    super::eventually(
        "the pool does not know that its program is missing",
        is_known,
    )
    .await;
    let fields = [("format", "png"), ("sourceUrl", LOOPBACK)];
    let answer = site.post_fields("/api/convert", 0, &fields).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "10"));
}

/// A server on loopback that answers every request so and then waits for the client to go; its address.
async fn source(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a.bin", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _head = client.read(&mut request).await;
            let _sent = client.write_all(answer.as_bytes()).await;
            let _gone = client.read(&mut request).await;
        }
    });
    url
}

#[actix_web::test]
async fn no_more_is_fetched_than_the_account_may_store() {
    let site = Site::open_with(|config| {
        config.outbound.allow = vec!["127.0.0.0/8".parse().unwrap()];
        config.plans.get_mut("unlimited").unwrap().storage = bytesize::ByteSize(10);
    })
    .await;
    site.stored("six", b"123456").await;
    let store = async |answer| {
        let named = json!({"sourceUrl": source(answer).await});
        site.call("POST", "/api/files", Some(named)).await
    };
    for answer in [
        // The body would never come.
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
    ] {
        let rejected = store(answer).await;
        assert_eq!(
            (rejected.status, &rejected.json()["code"]),
            (413, &json!("storage_used_up")),
            "{answer}"
        );
    }
    site.nothing_temporary_is_left().await;
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n7890";
    let stored = store(answer).await;
    assert_eq!(stored.status, 201, "{stored:?}");
}
